"""Rotary positions: queries and keys are turned by an angle that grows with the position."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.transformer.scores import Layout


@dataclass(frozen=True)
class Rotary:
    """Turns pairs (x_k, x_{k+s/2}) of a head's first s = `size` features by p · base^(−2k/s).

    Scores then depend on the distance of query and key only. Features beyond `size` stay.
    """

    base: float
    size: int

    def __call__(
        self, x: Float[Tensor, "batch head token size"], layout: Layout
    ) -> Float[Tensor, "batch head token size"]:
        """`x` turned, each token by its own position."""
        steps = torch.arange(0, self.size, 2, device=x.device, dtype=x.dtype)
        angle = layout.positions[:, None] * self.base ** (-steps / self.size)
        cos, sin = angle.cos(), angle.sin()
        first, second, rest = x.tensor_split([self.size // 2, self.size], dim=-1)
        turned = (first * cos - second * sin, second * cos + first * sin, rest)
        return torch.cat(turned, dim=-1)
