"""Norms of a matrix of tokens, per sample, in the dtype that comes in."""

import torch
from jaxtyping import Float
from torch import Tensor


def composite_norm(x: Float[Tensor, "batch token width"]) -> Float[Tensor, " batch"]:
    """The paper's composite norm ‖X‖₁,∞ = √(‖X‖₁ ‖X‖∞), per sample.

    ‖X‖₁ is the largest column sum of |X| (a sum over tokens), ‖X‖∞ the largest row sum (a sum over
    features). It is homogeneous and positive but obeys no triangle inequality (docs/theory.md §1).

    >>> composite_norm(torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    tensor([4.])
    """
    size = x.abs()
    return size.sum(1).amax(-1).sqrt() * size.sum(2).amax(-1).sqrt()


def frobenius_norm(x: Float[Tensor, "batch token width"]) -> Float[Tensor, " batch"]:
    """‖X‖_F = √Σ x_ij², per sample."""
    return torch.linalg.vector_norm(torch.linalg.vector_norm(x, dim=2), dim=1)
