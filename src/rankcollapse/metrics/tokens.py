"""What every metric looks at: n tokens as rows and their residual, both in float64.

Costs two float64 copies of the state. Values and residual each carry a power of two of their own,
so that squares neither overflow nor vanish and a residual far below the values keeps its digits.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rankcollapse.metrics.norms import composite_norm


@dataclass(frozen=True)
class TokenMatrix:
    """X = `values` · 2^`exponent` and res(X) = `residual` · 2^`residual_exponent`, for each sample.

    The residual is res(X) = X − 1x̄ᵀ with x̄ the mean over counted tokens, the minimiser of the
    Frobenius norm (docs/theory.md §1). Rows that do not count are zero in both, which leaves every
    norm and singular value of the counted rows as it is.
    """

    values: Float[Tensor, "batch token width"]
    exponent: Float[Tensor, " batch"]
    residual: Float[Tensor, "batch token width"]
    residual_exponent: Float[Tensor, " batch"]
    mask: Bool[Tensor, "batch token"]

    @classmethod
    def of(
        cls, x: Float[Tensor, "batch token width"], mask: Bool[Tensor, "batch token"] | None = None
    ) -> "TokenMatrix":
        """Centres `x` in float64, whatever its dtype; `mask` says which tokens count."""
        values, exponent = rescaled(x.double(), mask)
        if mask is None:
            first, count = values[:, :1], torch.tensor(x.shape[1])
        else:
            first = values[torch.arange(len(x)), mask.int().argmax(1)].unsqueeze(1)
            count = mask.sum(1).view(-1, 1, 1)
        # Apart from the first token, so that equal tokens leave exactly nothing.
        residual = values - first
        if mask is not None:
            residual = torch.where(mask.unsqueeze(-1), residual, 0.0)
        residual, shift = rescaled(residual - residual.sum(1, keepdim=True) / count, mask)
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        return cls(values, exponent, residual, exponent + shift, mask)

    @classmethod
    def split(
        cls,
        values: Float[Tensor, "batch token width"],
        residual: Float[Tensor, "batch token width"],
        exponent: Float[Tensor, " batch"],
        mask: Bool[Tensor, "batch token"] | None,
    ) -> "TokenMatrix":
        """From values and a residual 2^`exponent` · `residual` that was carried apart from them."""
        if mask is not None:
            kept = torch.where(mask.unsqueeze(-1), residual, 0.0)
            residual = residual - kept.sum(1, keepdim=True) / mask.sum(1).view(-1, 1, 1)
        values, values_exponent = rescaled(values, mask)
        residual, shift = rescaled(residual, mask)
        if mask is None:
            mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        return cls(values, values_exponent, residual, exponent + shift, mask)

    @cached_property
    def values_norm(self) -> Float[Tensor, " batch"]:
        """‖`values`‖₁,∞."""
        return composite_norm(self.values)

    @cached_property
    def residual_norm(self) -> Float[Tensor, " batch"]:
        """‖`residual`‖₁,∞."""
        return composite_norm(self.residual)

    @property
    def count(self) -> Int[Tensor, " batch"]:
        """Number of tokens that count, per sample."""
        return self.mask.sum(1)


def rescaled(
    x: Float[Tensor, "batch token width"], mask: Bool[Tensor, "batch token"] | None
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, " batch"]]:
    """Uncounted rows set to zero, and samples of extreme size divided by a power of two."""
    if mask is not None:
        x = torch.where(mask.unsqueeze(-1), x, 0.0)
    largest = torch.maximum(x.amax((1, 2)), -x.amin((1, 2)))
    exponent = torch.frexp(largest).exponent.double()
    if bool((exponent.abs() < 300).all()):  # the usual case needs no scale, and no copy
        return x, torch.zeros_like(exponent)
    exponent = exponent.clamp(min=-1000)  # 2^1074 is no float64
    return x * torch.exp2(-exponent).view(-1, 1, 1), exponent
