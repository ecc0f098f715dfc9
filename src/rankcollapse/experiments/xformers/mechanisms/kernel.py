"""Kernel attention: P_ij = φ(q_i)ᵀφ(k_j) / Σ_l φ(q_i)ᵀφ(k_l) with positive features φ.

Its rank is at most the number of features. Content alone decides and rows sum to one, so that P is
11ᵀ/n between equal tokens and differs from rank one by a term of second order in the residual.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.experiments.xformers.mechanisms.mechanism import Mixed
from rankcollapse.streams import CenteredState
from rankcollapse.streams.differences import activation_difference
from rankcollapse.transformer import Attention, Linear
from rankcollapse.transformer.activations import ACTIVATIONS
from rankcollapse.transformer.attention import heads_of

Row = Float[Tensor, "batch head 1 size"]
Rows = Float[Tensor, "batch head token size"]


@runtime_checkable
class Features(Protocol):
    """Positive features of queries and keys."""

    def queries(self, q: Rows, scale: float) -> Float[Tensor, "batch head token feature"]:
        """φ of queries, up to a factor for each, which cancels in P; `scale` as in softmax."""
        ...

    def keys(self, k: Rows, scale: float) -> Float[Tensor, "batch head token feature"]:
        """φ of keys, up to a common factor."""
        ...

    def query_change(
        self, q: Row, change: Rows, exponent: Tensor, scale: float
    ) -> Float[Tensor, "batch head token feature"]:
        """(φ(q + 2^e r) − φ(q)) / 2^e without cancellation, for r = `change`."""
        ...

    def key_change(
        self, k: Row, change: Rows, exponent: Tensor, scale: float
    ) -> Float[Tensor, "batch head token feature"]:
        """The same of keys."""
        ...


@dataclass(frozen=True)
class Kernel:
    """Kernel attention with the given features."""

    features: Features

    def operator(
        self, x: Float[Tensor, "batch token width"], attention: Attention
    ) -> Float[Tensor, "batch head token token"]:
        """P_h, which nobody forms in practice."""
        query = heads_of(attention.query, x, attention.heads)
        key = heads_of(attention.key, x, attention.heads)
        weights = self.features.queries(query, attention.scale)
        weights = weights @ self.features.keys(key, attention.scale).mT
        return weights / weights.sum(-1, keepdim=True)

    def mix(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
    ) -> Mixed:
        """P_ij − p_j = (φ_i/(φ_iᵀκ) − φ/(φᵀκ))ᵀ ε_j / n, p the row of φ at the shared query.

        κ is the mean of the keys' features and ε_j what key j differs by. With φ_i = φ + 2^e d_i
        the bracket is 2^e (d_i φᵀκ − φ d_iᵀκ) / (φ_iᵀκ φᵀκ).
        """
        scale, exponent = x.scale.unsqueeze(-1), x.exponent
        query, key = (
            linear(x.shared).unflatten(-1, (attention.heads, 1, -1))
            for linear in (attention.query, attention.key)
        )
        query_change, key_change = (
            heads_of(Linear(linear.weight), x.residual, attention.heads)
            for linear in (attention.query, attention.key)
        )
        phi = self.features.queries(query, attention.scale)
        d = self.features.query_change(query, query_change, exponent, attention.scale)
        changes = self.features.key_change(key, key_change, exponent, attention.scale)
        center = changes.mean(2, keepdim=True)
        kappa = self.features.keys(key, attention.scale) + scale * center
        tokens = value.shape[2]
        moment = (changes - center).mT @ value / tokens
        shared_weight = (phi * kappa).sum(-1, keepdim=True)
        slope = (d * kappa).sum(-1, keepdim=True)
        direction = (d * shared_weight - phi * slope) / (
            (shared_weight + scale * slope) * shared_weight
        )
        mean = scale.square() * (phi / shared_weight) @ moment
        return mean.squeeze(2), direction @ moment, 3 * exponent


@dataclass(frozen=True)
class Elu:
    """φ(x) = elu(x) + 1: linear attention (Katharopoulos et al. 2020), which scales nothing."""

    def queries(self, q: Rows, scale: float) -> Rows:
        """elu(q) + 1."""
        return torch.nn.functional.elu(q) + 1

    def keys(self, k: Rows, scale: float) -> Rows:
        """elu(k) + 1."""
        return self.queries(k, scale)

    def query_change(self, q: Row, change: Rows, exponent: Tensor, scale: float) -> Rows:
        """Of max(x, 0) + exp(min(x, 0)); the first moves by the ReLU's difference."""
        flat = change.transpose(1, 2).flatten(2)
        above = activation_difference(ACTIVATIONS["relu"], q.flatten(1), flat, exponent)
        above = above.unflatten(-1, (change.shape[1], -1)).transpose(1, 2)
        return above + q.clamp(max=0).exp() * scaled_expm1(change - above, exponent)

    def key_change(self, k: Row, change: Rows, exponent: Tensor, scale: float) -> Rows:
        """As of queries."""
        return self.query_change(k, change, exponent, scale)


@dataclass(frozen=True)
class PositiveRandom:
    """φ(x) = exp(Wx − ‖x‖²/2), W random: E φ(q)ᵀφ(k) ∝ exp(qᵀk) (Choromanski et al. 2021).

    Without the small constant that published code adds to the features. A factor of a query's
    features cancels in P, so that queries go without the norm.
    """

    directions: Float[Tensor, "feature size"]

    def queries(self, q: Rows, scale: float) -> Float[Tensor, "batch head token feature"]:
        """exp(W q √scale)."""
        return (scale**0.5 * q @ self.directions.T).exp()

    def keys(self, k: Rows, scale: float) -> Float[Tensor, "batch head token feature"]:
        """exp(W k √scale − scale ‖k‖²/2)."""
        norm = scale * k.square().sum(-1, keepdim=True) / 2
        return (scale**0.5 * k @ self.directions.T - norm).exp()

    def query_change(
        self, q: Row, change: Rows, exponent: Tensor, scale: float
    ) -> Float[Tensor, "batch head token feature"]:
        """φ(q) expm1(2^e W r √scale) / 2^e."""
        moved = scale**0.5 * change @ self.directions.T
        return self.queries(q, scale) * scaled_expm1(moved, exponent)

    def key_change(
        self, k: Row, change: Rows, exponent: Tensor, scale: float
    ) -> Float[Tensor, "batch head token feature"]:
        """The exponent moves by W r √scale − scale (kᵀr + 2^e ‖r‖²/2)."""
        size = torch.exp2(exponent).view(-1, 1, 1, 1)
        norm = (k * change).sum(-1, keepdim=True) + size * change.square().sum(-1, keepdim=True) / 2
        moved = scale**0.5 * change @ self.directions.T - scale * norm
        return self.keys(k, scale) * scaled_expm1(moved, exponent)


def orthogonal_directions(
    features: int, size: int, generator: torch.Generator
) -> Float[Tensor, "feature size"]:
    """Normal directions, orthogonal in groups of `size`, with the lengths of normal vectors."""
    shape = features, size
    groups = [
        torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64)).Q.T
        for _ in range(-(-features // size))
    ]
    lengths = torch.randn(shape, generator=generator, dtype=torch.float64).norm(dim=1, keepdim=True)
    return torch.cat(groups)[:features] * lengths


def scaled_expm1(
    x: Float[Tensor, "batch head token feature"], exponent: Float[Tensor, " batch"]
) -> Float[Tensor, "batch head token feature"]:
    """expm1(2^e x) / 2^e, which is x once 2^e x is below rounding."""
    scale = torch.exp2(exponent).view(-1, 1, 1, 1)
    tiny = (scale * x).abs() < 1e-17
    return torch.where(tiny, x, torch.expm1(scale * x) / torch.where(tiny, 1.0, scale))
