"""Whether one token outgrows the others. Cost: one pass over the state."""

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.metrics.tokens import TokenMatrix


def largest_token_ratio(x: TokenMatrix) -> Float[Tensor, " batch"]:
    """max_i ‖x_i‖₂ / median_i ‖x_i‖₂ per sample; massive activations show as tens or more.

    The median of an even number of tokens is the mean of the two in the middle.

    >>> largest_token_ratio(TokenMatrix.of(torch.tensor([[[9.0], [1.0], [-1.0]]])))
    tensor([9.], dtype=torch.float64)
    """
    norms = torch.linalg.vector_norm(x.values, dim=-1)
    largest = torch.where(x.mask, norms, -torch.inf).amax(-1)  # NaN where any counted token is
    return largest / torch.where(x.mask, norms, torch.nan).nanquantile(0.5, dim=-1)
