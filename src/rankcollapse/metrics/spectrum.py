"""How many directions the tokens span, from singular values in float64.

Cost: singular values of an n × d matrix per sample, the dearest of the metrics (see `benchmarks/`).
"""

import torch
from jaxtyping import Float
from torch import Tensor


def singular_values(x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch rank"]:
    """Singular values of each sample, in descending order; NaN where a sample is not finite.

    Those of the triangular factor of a QR decomposition, which are the same and cheaper to take
    than those of the wide matrix; squaring into a Gram matrix would drown the small ones.
    """
    finite = torch.isfinite(x).flatten(1).all(1)
    safe = torch.where(finite.view(-1, 1, 1), x, 0.0)
    tall = safe.mT if x.shape[1] <= x.shape[2] else safe
    values = torch.linalg.svdvals(torch.linalg.qr(tall, mode="r").R)
    return torch.where(finite.unsqueeze(-1), values, torch.nan)


def effective_rank(values: Float[Tensor, "batch rank"]) -> Float[Tensor, " batch"]:
    """exp(−Σ p_i ln p_i) with p_i = σ_i / Σσ: the exponential of the entropy of singular values.

    This is Roy and Vetterli's definition (2007). Between 1 and the rank; NaN for a zero matrix.

    >>> effective_rank(torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.float64))
    tensor([2.], dtype=torch.float64)
    """
    p = values / values.sum(-1, keepdim=True)
    return torch.special.entr(p).sum(-1).exp()


def stable_rank(values: Float[Tensor, "batch rank"]) -> Float[Tensor, " batch"]:
    """‖X‖_F² / ‖X‖₂² = Σσ_i² / σ_1², between 1 and the rank; NaN for a zero matrix.

    >>> stable_rank(torch.tensor([[2.0, 1.0]], dtype=torch.float64))
    tensor([1.2500], dtype=torch.float64)
    """
    return (values / values[:, :1]).square().sum(-1)
