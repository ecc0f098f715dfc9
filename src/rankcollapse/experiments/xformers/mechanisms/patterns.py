"""Sparse attention: which keys a query may see, as a term of the scores.

What is forbidden gets −∞, so that a pattern works wherever terms do, in every arithmetic. Patterns
depend on positions alone: attention is not rank one even between equal tokens (docs/theory.md §5).
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from rankcollapse.transformer import Layout

Pattern = Bool[Tensor, "#head token token"]


@dataclass(frozen=True)
class Mask:
    """0 where `allowed`, −∞ elsewhere; one pattern for all heads, or one each."""

    allowed: Pattern

    def scores(
        self, query: Float[Tensor, "batch head row size"], layout: Layout, rows: slice
    ) -> Float[Tensor, "batch head row token"]:
        """The mask for query rows `rows`."""
        mask = query.new_zeros(self.allowed[:, rows].shape)
        mask = mask.masked_fill(~self.allowed[:, rows], -torch.inf)
        return mask.expand(*query.shape[:2], -1, -1)


def window(tokens: int, width: int) -> Pattern:
    """Keys at most (width − 1)/2 away: a band of `width`."""
    steps = torch.arange(tokens)
    return ((steps[:, None] - steps).abs() <= (width - 1) // 2).unsqueeze(0)


def strided(tokens: int) -> Pattern:
    """The Sparse Transformer's, in both directions: closer than √n, or a multiple of √n away."""
    stride = max(1, round(math.sqrt(tokens)))
    steps = torch.arange(tokens)
    distance = (steps[:, None] - steps).abs()
    return ((distance < stride) | (distance % stride == 0)).unsqueeze(0)


def random(tokens: int, keys: int, heads: int, generator: Generator) -> Pattern:
    """For each head and query itself and `keys` − 1 others, drawn without replacement."""
    draw = torch.rand(heads, tokens, tokens, generator=generator)
    draw.diagonal(dim1=1, dim2=2).fill_(2.0)
    chosen = draw.topk(keys, dim=-1).indices
    return torch.zeros(heads, tokens, tokens, dtype=torch.bool).scatter(-1, chosen, True)


def big_bird(
    tokens: int, width: int, everywhere: int, keys: int, heads: int, generator: Generator
) -> Pattern:
    """A window, the first tokens to and from all others, and random keys (Zaheer et al. 2020)."""
    pattern = random(tokens, keys + 1, heads, generator) | window(tokens, width)
    pattern[:, :everywhere] = True
    pattern[:, :, :everywhere] = True
    return pattern
