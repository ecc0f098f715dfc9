"""Linformer: keys and values are projected from n tokens to k rows, over which softmax goes.

P is n × k and its rows sum to one, but what multiplies the n values is P E, whose rows sum to P E1.
Unless the projection keeps the constant vector (E1 = 1), rows of equal tokens reach the softmax as
rows of different size: a query's own difference then moves its output in first order, and the
residual falls by a factor per layer where full attention cubes it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.experiments.xformers.mechanisms.mechanism import Mixed
from rankcollapse.streams import CenteredState
from rankcollapse.streams.differences import softmax_difference
from rankcollapse.transformer import Attention, Linear
from rankcollapse.transformer.attention import heads_of

_ROUNDING = 1e-14
"""Row sums that differ by no more than this, relative to the rows, are meant to be equal."""


@dataclass(frozen=True)
class Projected:
    """softmax(Q (E K)ᵀ) E V with one projection E for keys, values, heads and layers."""

    projection: Float[Tensor, "projected token"]

    def operator(
        self, x: Float[Tensor, "batch token width"], attention: Attention
    ) -> Float[Tensor, "batch head token token"]:
        """P_h E."""
        query = heads_of(attention.query, x, attention.heads)
        key = self.projection @ heads_of(attention.key, x, attention.heads)
        return (attention.scale * query @ key.mT).softmax(-1) @ self.projection

    def mix(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
    ) -> Mixed:
        """With s = E1: keys are s k̄ᵀ + 2^e E R_K, values s v̄ᵀ + 2^e E R_V.

        What all k rows share changes no difference between queries, so that s may stand for s less
        its mean in both; where that is zero, everything is of a higher order.
        """
        heads, scale = attention.heads, x.scale.unsqueeze(-1)
        sums = self.projection.sum(1).view(-1, 1)
        uneven = sums - sums.mean()
        rounding = _ROUNDING * self.projection.abs().sum(1).max()
        even = bool((uneven.abs() <= rounding).all())
        query, key, shared = (
            linear(x.shared).unflatten(-1, (heads, 1, -1))
            for linear in (attention.query, attention.key, attention.value)
        )
        change = heads_of(Linear(attention.query.weight), x.residual, heads)
        keys = self.projection @ heads_of(Linear(attention.key.weight), x.residual, heads)
        values = self.projection @ value
        logits = attention.scale * query @ (sums * key + scale * keys).mT
        weights = logits.softmax(-1)
        mean = weights @ (sums * shared + scale * values) - shared
        if not even:
            scores = attention.scale * change @ (uneven * key + scale * keys).mT
            moved = softmax_difference(scores, logits, x.exponent / 2)
            return mean.squeeze(2), moved @ (uneven * shared + scale * values), x.exponent
        scores = attention.scale * change @ keys.mT
        moved = softmax_difference(scores, logits, x.exponent)
        return mean.squeeze(2), moved @ values, 3 * x.exponent


def gaussian(projected: int, tokens: int, generator: torch.Generator) -> Projected:
    """Independent entries of variance 1/k, as the Linformer's analysis has them."""
    draw = torch.randn(projected, tokens, generator=generator, dtype=torch.float64)
    return Projected(draw / projected**0.5)


def pooling(projected: int, tokens: int) -> Projected:
    """Means over `projected` runs of equal length, which keep the constant vector."""
    length = tokens // projected
    rows = torch.eye(projected, dtype=torch.float64).repeat_interleave(length, dim=1)
    return Projected(rows / length)


def rows_summing_to_one(projection: Projected) -> Projected:
    """The projection plus what it takes, spread over all tokens, that E1 = 1."""
    e = projection.projection
    return Projected(e + (1 - e.sum(1, keepdim=True)) / e.shape[1])
