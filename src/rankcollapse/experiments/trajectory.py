"""The residual of a batch of states through blocks, by the one forward pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.metrics import log10_relative_residual
from rankcollapse.transformer import Arithmetic, Block, Layout, Variant, Visit, sweep


def visits(
    x: Float[Tensor, "batch token width"],
    blocks: Sequence[Block],
    variant: str,
    arithmetic: Arithmetic[Any],
) -> list[Visit[Any]]:
    """Every state from the one that enters the first block to the last."""
    layout = Layout.contiguous(x.shape[1])
    with torch.no_grad():
        return list(sweep([x], [layout], blocks, None, [Variant.parse(variant)], arithmetic))


def log10_residuals(
    x: Float[Tensor, "batch token width"],
    blocks: Sequence[Block],
    variant: str,
    arithmetic: Arithmetic[Any],
) -> np.ndarray:
    """log₁₀ of the relative residual by (sample, layer), −inf where all tokens are equal."""
    states = visits(x, blocks, variant, arithmetic)
    values = [log10_relative_residual(arithmetic.tokens(visit.state, None)) for visit in states]
    return torch.stack(values, dim=1).numpy()
