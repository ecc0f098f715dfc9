"""How far the tokens are from being one vector: norms of the residual, absolute and relative.

Cost: one pass over the state and one over its residual for each norm. Everything in float64.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.metrics.norms import frobenius_norm
from rankcollapse.metrics.tokens import TokenMatrix


def absolute_residual(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """‖res(X)‖₁,∞ per sample, in the units of the state (docs/theory.md §1)."""
    half = (x.residual_exponent / 2).floor()  # 2^1024 alone is no float64
    return x.residual_norm * torch.exp2(half) * torch.exp2(x.residual_exponent - half)


def log10_relative_residual(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞) per sample; finite where the ratio itself has no float64.

    −inf where all counted tokens are equal to the last bit, NaN where X is zero or not finite.
    """
    return _ratio(x).log10() + (x.residual_exponent - x.exponent) * math.log10(2)


def relative_residual(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """‖res(X)‖₁,∞ / ‖X‖₁,∞ per sample, the ordinate of the paper's Figure 2.

    0 where all counted tokens are equal, NaN where X is zero or not finite.

    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> relative_residual(TokenMatrix.of(x))
    tensor([1.], dtype=torch.float64)
    """
    return _ratio(x) * torch.exp2(x.residual_exponent - x.exponent)


def relative_residual_frobenius(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """‖res(X)‖_F / ‖X‖_F per sample; its square is the share of energy that tokens do not share."""
    ratio = frobenius_norm(x.residual) / frobenius_norm(x.values)
    return ratio * torch.exp2(x.residual_exponent - x.exponent)


def _ratio(x: TokenMatrix) -> Float[Tensor, " batch"]:
    return x.residual_norm / x.values_norm
