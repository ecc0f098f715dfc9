"""What each head's attention matrix P does to tokens: how widely it looks, how fast it mixes.

Cost: one n × n matrix per head; the eigenvalues of an unmasked P take O(n³) each.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def attention_entropy(p: Float[Tensor, "batch head token token"]) -> Float[Tensor, "batch head"]:
    """Mean over queries of −Σ_j P_ij ln P_ij, in nat: 0 looks at one token, ln n at all alike."""
    return torch.special.entr(p.double()).sum(-1).mean(-1)


def second_eigenvalue(p: Float[Tensor, "batch head token token"]) -> Float[Tensor, "batch head"]:
    """|λ₂|, the second largest modulus among the eigenvalues of the row-stochastic P.

    Repeated application of P shrinks differences between tokens by this factor (docs/theory.md §5).
    A causal P is triangular, so that its eigenvalues are its diagonal. NaN where P is not finite.
    """
    p = p.double()
    finite = torch.isfinite(p).flatten(2).all(-1)
    p = torch.where(finite[..., None, None], p, 0.0)
    if not bool(torch.triu(p, diagonal=1).any()):
        moduli = torch.diagonal(p, dim1=-2, dim2=-1).abs()
    else:
        moduli = torch.linalg.eigvals(p).abs()
    return torch.where(finite, moduli.topk(2, dim=-1).values[..., 1], torch.nan)
