"""Training: Adam with a warm-up and a cosine decay, until a target is met or the steps are spent.

Cost: a forward and a backward pass per step; gradients and Adam's two moments are held.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rankcollapse.experiments.learning.dropout import Dropout
from rankcollapse.experiments.learning.networks import Network
from rankcollapse.streams import Dense

Loss = Callable[[Tensor, Tensor], Tensor]
Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes:
        steps: Steps at most; the learning rate falls to zero over them.
        batch: Samples per step, drawn without replacement epoch by epoch; None for all of them.
        rate: Highest learning rate.
        warmup: Share of the steps over which the rate rises to it.
        clip: Largest norm of the gradient, None for no limit.
        dropout: Share of entries dropped behind the embedding and behind attention.
        every: Steps between two looks at the target.
    """

    steps: int
    batch: int | None
    rate: float
    warmup: float = 0.05
    clip: float | None = 1.0
    dropout: float = 0.0
    every: int = 100

    def factor(self, step: int) -> float:
        """The share of the highest rate that step number `step`, from 0, takes."""
        rising = max(1, round(self.warmup * self.steps))
        if step < rising:
            return (step + 1) / rising
        return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, self.steps - rising)))


def train(
    network: Network,
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
    recipe: Recipe,
    generator: torch.Generator,
    done: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
) -> int:
    """Trains in place.

    Args:
        network: What is trained.
        inputs: Samples, along the first dimension.
        targets: What `loss` compares the network's output with.
        loss: Of outputs and targets, a scalar.
        recipe: Steps, batch and rate.
        generator: Shuffles the samples and drops entries.
        done: Whether the target is met; asked every `recipe.every` steps, without gradients.
        progress: Called with (steps done, steps at most).

    Returns:
        The number of steps taken.
    """
    parameters = network.parameters()
    adam = torch.optim.Adam(parameters, lr=recipe.rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, recipe.factor)
    count, size = len(inputs), recipe.batch or len(inputs)
    order: list[Tensor] = []
    dtype = network.readout.weight.dtype
    arithmetic = Dropout(dtype, recipe.dropout, generator) if recipe.dropout else Dense(dtype)
    for step in range(1, recipe.steps + 1):
        if size >= count:
            x, y = inputs, targets
        else:
            if not order:
                order = list(torch.randperm(count, generator=generator).split(size))[::-1]
            rows = order.pop()
            x, y = inputs[rows], targets[rows]
        adam.zero_grad()
        loss(network(x, arithmetic), y).backward()
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, recipe.clip)
        adam.step()
        schedule.step()
        if step % recipe.every == 0 or step == recipe.steps:
            if progress is not None:
                progress(step, recipe.steps)
            with torch.no_grad():
                if done():
                    return step
    return recipe.steps
