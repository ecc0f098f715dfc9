"""Terms that a family adds to the content scores Q Kᵀ before the softmax.

A term makes P depend on position even when all tokens are equal, which turns the cubic rate of
collapse into a linear one (docs/theory.md §5). Terms are computed for a block of query rows at a
time, so that no n × n matrix is held.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Where the tokens of a batch stand. All samples of a batch have the same number of tokens.

    Attributes:
        positions: Position of each token relative to the first one; gaps are where padding stood.
        types: Segment of each token, where the caller gave them.
    """

    positions: Int[Tensor, " token"]
    types: Int[Tensor, "batch token"] | None = None

    @classmethod
    def contiguous(cls, tokens: int, device: torch.device | str = "cpu") -> "Layout":
        """`tokens` tokens, one after the other, without segments."""
        return cls(torch.arange(tokens, device=device))


@runtime_checkable
class ScoreTerm(Protocol):
    """An affine function of the query, for some rows of queries against all tokens."""

    def scores(
        self, query: Float[Tensor, "batch head row size"], layout: Layout, rows: slice
    ) -> Float[Tensor, "batch head row token"]:
        """The term for query rows `rows`; `query` holds those rows only."""
        ...


@dataclass(frozen=True)
class RelativePositions:
    """XLNet's (q_i + offset)ᵀ W_R r_{i−j}, with r the sinusoid of the distance i − j.

    `weight` maps the width to heads × head size. The sinusoids are computed in float32, as Hugging
    Face computes them. `clamp` cuts distances off at ±clamp where it is positive.
    """

    weight: Float[Tensor, "out width"]
    offset: Float[Tensor, "head size"]
    clamp: int = -1

    def scores(
        self, query: Float[Tensor, "batch head row size"], layout: Layout, rows: slice
    ) -> Float[Tensor, "batch head row token"]:
        """(q_i + offset)ᵀ W_R r_{i−j} for i in `rows` and every j."""
        distance = layout.positions[rows, None] - layout.positions[None, :]
        first = int(distance.min())
        table = torch.arange(first, int(distance.max()) + 1, device=query.device)
        keys = self.sinusoids(table) @ self.weight.T
        keys = keys.unflatten(-1, self.offset.shape).transpose(0, 1)
        by_distance = (query + self.offset.unsqueeze(1)) @ keys.mT
        index = (distance - first).expand(*query.shape[:2], -1, -1)
        return by_distance.gather(-1, index)

    def sinusoids(self, distance: Int[Tensor, " distance"]) -> Float[Tensor, "distance width"]:
        """[sin(δ ω), cos(δ ω)] with ω_k = 10000^(−2k/width)."""
        width = self.weight.shape[1]
        steps = torch.arange(0, width, 2, device=distance.device).float()
        frequency = 1 / torch.pow(10000, steps / width)
        if self.clamp > 0:
            distance = distance.clamp(-self.clamp, self.clamp)
        angle = distance.float()[:, None] * frequency
        return torch.cat([angle.sin(), angle.cos()], dim=-1).to(self.weight.dtype)


@dataclass(frozen=True)
class Segments:
    """XLNet's (q_i + offset)ᵀ e_s, s = 0 where i and j share a segment and 1 where they do not."""

    embedding: Float[Tensor, "2 head size"]
    offset: Float[Tensor, "head size"]

    def scores(
        self, query: Float[Tensor, "batch head row size"], layout: Layout, rows: slice
    ) -> Float[Tensor, "batch head row token"]:
        """Zero where the caller gave no segments, as in Hugging Face."""
        if layout.types is None:
            return query.new_zeros(*query.shape[:-1], len(layout.positions))
        biased = query + self.offset.unsqueeze(1)
        same, other = torch.einsum("bhrs,khs->kbhr", biased, self.embedding).unsqueeze(-1)
        differs = layout.types[:, rows, None] != layout.types[:, None, :]
        return torch.where(differs.unsqueeze(1), other, same)
