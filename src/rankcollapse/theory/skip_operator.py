"""How much a layer with a skip connection keeps at least, for given attention matrices.

R' = R + Σ_h (ΠP_hΠ) R W_h is linear in R (docs/theory.md §4), so its smallest singular value is the
best possible bound. Dense: O((nd)²) memory, O((nd)³) time, for small models only.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

LARGEST = 1024
"""Largest (n − 1)d for which the operator is formed."""

Operator = Float[Tensor, "size size"]


def skip_operator(
    centered: Float[Tensor, "head token token"], weights: Float[Tensor, "head width width"]
) -> Operator:
    """I + Σ_h (BᵀP_hB) ⊗ W_hᵀ on centred residuals R = BZ, B an orthonormal basis of {v : 1ᵀv = 0}.

    Args:
        centered: ΠP_hΠ.
        weights: W_h = W_V,h W_O,h.

    Returns:
        The matrix that maps vec Z (rows stacked) to that of Z'; singular values are those of the
        map of R, since B is orthonormal. Source: docs/theory.md §4.
    """
    tokens, width = centered.shape[-1], weights.shape[-1]
    basis = torch.linalg.qr(
        torch.cat([centered.new_ones(tokens, 1), torch.eye(tokens).to(centered)[:, 1:]], dim=1)
    ).Q[:, 1:]
    inner = basis.T @ centered @ basis
    operator = torch.eye((tokens - 1) * width).to(centered)
    for p, w in zip(inner, weights, strict=True):
        operator += torch.kron(p, w.T.contiguous())
    return operator


def log_smallest_singular_value(operator: Operator) -> float:
    """Ln σ_min; −inf where it is not above the rounding of the largest one, or of I."""
    values = torch.linalg.svdvals(operator)
    if not len(values):
        return -np.inf
    rounding = len(values) * torch.finfo(values.dtype).eps * values[0].clamp(min=1)
    return float(values[-1].log()) if values[-1] > rounding else -np.inf
