"""What `inspect` measures, in one table: name, unit, definition and group of each quantity."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse import metrics
from rankcollapse.metrics import TokenMatrix


@dataclass(frozen=True)
class Quantity:
    """One variable of the results."""

    name: str
    group: str
    long_name: str
    units: str
    definition: str
    dims: tuple[str, ...] = ("variant", "sample", "layer")


_OVER = "over the counted tokens, float64"

QUANTITIES: tuple[Quantity, ...] = (
    Quantity(
        "relative_residual",
        "residual",
        "relative residual (composite norm)",
        "1",
        f"‖res(X)‖₁,∞ / ‖X‖₁,∞ with res(X) = X − 1x̄ᵀ, x̄ the token mean, "
        f"‖·‖₁,∞ = √(‖·‖₁‖·‖∞), {_OVER}",
    ),
    Quantity(
        "log10_relative_residual",
        "residual",
        "log₁₀ of the relative residual",
        "1",
        "log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞), finite where the ratio itself has no float64; −inf where all "
        "counted tokens are equal",
    ),
    Quantity(
        "relative_residual_frobenius",
        "residual",
        "relative residual (Frobenius norm)",
        "1",
        f"‖res(X)‖_F / ‖X‖_F, {_OVER}",
    ),
    Quantity(
        "absolute_residual",
        "residual",
        "residual (composite norm)",
        "units of the state",
        f"‖res(X)‖₁,∞, {_OVER}",
    ),
    Quantity(
        "token_cosine",
        "similarity",
        "mean pairwise token cosine",
        "1",
        f"mean of x_iᵀx_j / (‖x_i‖₂‖x_j‖₂) over pairs i ≠ j, {_OVER}",
    ),
    Quantity(
        "effective_rank",
        "spectrum",
        "effective rank",
        "1",
        "exp(−Σ p_i ln p_i), p_i = σ_i / Σσ, σ the singular values of X (Roy and Vetterli 2007)",
    ),
    Quantity(
        "stable_rank",
        "spectrum",
        "stable rank",
        "1",
        "‖X‖_F² / ‖X‖₂²",
    ),
    Quantity(
        "residual_effective_rank",
        "spectrum",
        "effective rank of the residual",
        "1",
        "exp(−Σ p_i ln p_i), p_i = σ_i / Σσ, σ the singular values of res(X)",
    ),
    Quantity(
        "residual_stable_rank",
        "spectrum",
        "stable rank of the residual",
        "1",
        "‖res(X)‖_F² / ‖res(X)‖₂²",
    ),
    Quantity(
        "largest_token_ratio",
        "magnitude",
        "largest token norm over the median",
        "1",
        f"max_i ‖x_i‖₂ / median_i ‖x_i‖₂, {_OVER}",
    ),
)

_PER_HEAD = ("variant", "sample", "layer", "head")

ATTENTION: tuple[Quantity, ...] = (
    Quantity(
        "attention_entropy",
        "attention",
        "attention entropy",
        "nat",
        "mean over queries i of −Σ_j P_ij ln P_ij, P the attention matrix of the block that made "
        "the state",
        _PER_HEAD,
    ),
    Quantity(
        "attention_lambda2",
        "attention",
        "|λ₂| of the attention matrix",
        "1",
        "second largest modulus among the eigenvalues of P, by which repeated application of P "
        "shrinks differences between tokens",
        _PER_HEAD,
    ),
)

BESIDE_CENTERED: tuple[Quantity, ...] = (
    Quantity(
        "dense_log10_relative_residual",
        "residual",
        "log₁₀ of the relative residual in plain float64",
        "1",
        "log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞) of the same pass in plain float64, which stops at rounding",
    ),
    Quantity(
        "local_order",
        "residual",
        "local order",
        "1",
        "(y_l − y_(l−1)) / (y_(l−1) − y_(l−2)), y the log₁₀ of the relative residual: 3 is cubic, "
        "1 linear",
    ),
    Quantity(
        "positional_lambda2",
        "residual",
        "|λ₂| of the attention between equal tokens",
        "1",
        "second largest modulus among the eigenvalues of a head's attention matrix when every "
        "token is the mean token of the first sample; absent where that has over 512 tokens",
        ("variant", "layer", "head"),
    ),
)

ALL = {q.name: q for q in QUANTITIES + ATTENTION + BESIDE_CENTERED}
GROUPS = tuple(dict.fromkeys(q.group for q in QUANTITIES + ATTENTION))
DEFAULT_GROUPS = tuple(group for group in GROUPS if group != "attention")

_DIRECT: dict[str, Callable[[TokenMatrix], Float[Tensor, " batch"]]] = {
    "relative_residual": metrics.relative_residual,
    "log10_relative_residual": metrics.log10_relative_residual,
    "relative_residual_frobenius": metrics.relative_residual_frobenius,
    "absolute_residual": metrics.absolute_residual,
    "token_cosine": metrics.token_cosine,
    "largest_token_ratio": metrics.largest_token_ratio,
}


def measure(x: TokenMatrix, groups: tuple[str, ...]) -> dict[str, Float[Tensor, " batch"]]:
    """All quantities of `groups` for the samples of one batch, and always the residual's."""
    wanted = {q.name for q in QUANTITIES if q.group in (*groups, "residual")}
    result = {name: function(x) for name, function in _DIRECT.items() if name in wanted}
    if "spectrum" in groups:
        for prefix, matrix in (("", x.values), ("residual_", x.residual)):
            values = metrics.singular_values(matrix)
            result[f"{prefix}effective_rank"] = metrics.effective_rank(values)
            result[f"{prefix}stable_rank"] = metrics.stable_rank(values)
    return {name: torch.as_tensor(value) for name, value in result.items()}
