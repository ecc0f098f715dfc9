"""The circle: two opposite points that a network moves along their arcs, one step at a time."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.experiments.learning.networks import Network

RADIUS = 0.3

Path = Float[Tensor, "step point coordinate"]


@dataclass(frozen=True)
class Lesson:
    """What a network is shown, and what it is to answer."""

    inputs: Path
    targets: Path


def arcs(points: int) -> Path:
    """Half circles of radius 0.3, counter-clockwise from (0.3, 0) and from (−0.3, 0).

    Args:
        points: Points on each arc.

    Returns:
        Both points at every step; the second is minus the first.
    """
    angle = math.pi * torch.arange(points, dtype=torch.float64) / points
    top = RADIUS * torch.stack([angle.cos(), angle.sin()], dim=1)
    return torch.stack([top, -top], dim=1).float()


def next_step(course: Path) -> Lesson:
    """Teacher forcing: the true points of every step, and those of the next."""
    return Lesson(course[:-1], course[1:])


def next_step_carried(course: Path, lag: int) -> Lesson:
    """The published script's outer skip in training: step t plus step t − lag, none before 0.

    In the script the addend is the batch before, so the lag is its batch size.
    """
    before = torch.cat([torch.zeros_like(course[:lag]), course])[: len(course) - 1]
    return Lesson(course[:-1] + before, course[1:])


def roll_out(network: Network, start: Tensor, steps: int, carried: bool = False) -> Path:
    """Feeds predictions back.

    Args:
        network: One step.
        start: The two points at step 0.
        steps: Number of steps after it.
        carried: Feed back the sum of all steps so far, as the published script does for its skip.
    """
    path, state = [start], start
    with torch.no_grad():
        for _ in range(steps):
            path.append(network(state[None])[0])
            state = state + path[-1] if carried else path[-1]
    return torch.stack(path)


def error_growth(network: Network, course: Path) -> float:
    """The factor by which a small error grows per step while the points are on their arcs.

    (σ_max(J_T ··· J_1))^(1/T) with J_t the 4 × 4 Jacobian of one step at step t of `course`. Above
    1, no training error is small enough for the network to stay on the arcs by itself.
    """
    x = course.clone().requires_grad_()
    outputs = network(x).flatten(1)
    rows = [
        torch.autograd.grad(outputs[:, k].sum(), x, retain_graph=True)[0].flatten(1)
        for k in range(outputs.shape[1])
    ]
    jacobians = torch.stack(rows, dim=1).double()
    product, logarithm = torch.eye(outputs.shape[1], dtype=torch.float64), 0.0
    for jacobian in jacobians:
        product = jacobian @ product
        size = torch.linalg.matrix_norm(product, 2)
        product, logarithm = product / size, logarithm + float(size.log())
    return math.exp(logarithm / len(jacobians))
