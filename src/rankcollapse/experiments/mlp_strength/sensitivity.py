"""How strongly a network's output answers to small changes of its input.

Relative changes: ‖df‖_F / ‖f‖_F over ‖dX‖_F / ‖X‖_F, from the exact derivative, so that no size of
a perturbation has to be chosen. Cost: one pass, and about one more per direction.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from rankcollapse.streams import Dense
from rankcollapse.transformer import Block, Layout, Variant, apply_block

State = Float[Tensor, "batch token width"]


def network(blocks: Sequence[Block], variant: str) -> Callable[[State], State]:
    """The blocks as a function of the state that enters the first."""
    chosen, arithmetic = Variant.parse(variant), Dense(torch.float64)

    def function(x: State) -> State:
        layout = Layout.contiguous(x.shape[1])
        # Fused attention cannot be differentiated twice.
        with sdpa_kernel(SDPBackend.MATH):
            for block in blocks:
                x = apply_block(x, block, layout, chosen, arithmetic)
        return x

    return function


class Derivative:
    """The Jacobian J of a function at one state, as the maps v ↦ Jv and w ↦ Jᵀw.

    Jᵀw is linear in w, so that its own derivative by w, transposed, gives Jv: one recorded pass
    serves all directions.
    """

    def __init__(self, function: Callable[[State], State], x: State) -> None:
        self.x = x.detach().requires_grad_()
        self.y = function(self.x)
        self._dual = torch.zeros_like(self.y, requires_grad=True)
        (self._pulled,) = torch.autograd.grad(self.y, self.x, self._dual, create_graph=True)
        self.relative = float(self.x.detach().norm() / self.y.detach().norm())
        """‖X‖_F / ‖f(X)‖_F."""

    def push(self, direction: State) -> State:
        """Jv."""
        return torch.autograd.grad(self._pulled, self._dual, direction, retain_graph=True)[0]

    def pull(self, change: State) -> State:
        """Jᵀw."""
        return torch.autograd.grad(self.y, self.x, change, retain_graph=True)[0]


def typical(derivative: Derivative, directions: int, generator: Generator) -> float:
    """Root mean square of the relative change over random directions."""
    total = 0.0
    for _ in range(directions):
        direction = _random(derivative, generator)
        total += float(derivative.push(direction).norm() / direction.norm()) ** 2
    return derivative.relative * (total / directions) ** 0.5


def largest(derivative: Derivative, steps: int, generator: Generator) -> float:
    """σ_max of the Jacobian times ‖X‖_F / ‖f(X)‖_F by power iteration, a lower bound."""
    direction, size = _random(derivative, generator), 0.0
    for _ in range(steps):
        change = derivative.push(direction / direction.norm())
        size, direction = float(change.norm()), derivative.pull(change)
    return derivative.relative * size


def _random(derivative: Derivative, generator: Generator) -> State:
    shape, dtype = derivative.x.shape, derivative.x.dtype
    return torch.randn(shape, generator=generator, dtype=dtype)
