"""How alike the directions of the tokens are. Cost: one pass over the state."""

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.metrics.tokens import TokenMatrix


def token_cosine(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """Mean cosine over all pairs of different tokens, per sample, in float64.

    With u_i = x_i / ‖x_i‖₂ it is (‖Σ_i u_i‖² − Σ_i ‖u_i‖²) / (n(n − 1)), so no n × n matrix is
    formed. 1 when all tokens point the same way. A zero token has
    cosine 0 with every other; NaN where all are zero.

    >>> token_cosine(TokenMatrix.of(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])))
    tensor([0.], dtype=torch.float64)
    """
    norms = torch.linalg.vector_norm(x.values, dim=-1)
    weights = torch.where(norms > 0, 1 / norms, 0.0)
    total = (weights.unsqueeze(1) @ x.values).squeeze(1)
    units = (norms > 0).sum(1)
    pairs = x.count * (x.count - 1)
    cosine = (total.square().sum(-1) - units) / pairs
    return torch.where(units > 0, cosine, torch.nan)
