"""Upper bounds on the residual that one attention layer leaves (docs/theory.md §3).

Each is a pair: of ‖·‖₁ and of ‖·‖∞ of res(SA(X)) about the token mean, bounded one by one, because
composite norms may not be added. About the best centre they are smaller by 2(1 − 1/n), but for
Dobrushin's. Logarithms are natural.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.metrics import frobenius_norm
from rankcollapse.streams.centered import SMALLEST, CenteredState
from rankcollapse.theory.constants import HeadNorms
from rankcollapse.theory.near_rank_one import LN2, NearRankOne

BOUNDS = ("lemma_a2", "two_norms", "gamma_free", "tanh", "values", "dobrushin")
PerBound = Float[Tensor, "bound batch"]


@dataclass(frozen=True)
class LogNorms:
    """Ln of ‖R‖₁ and ‖R‖∞ as a row per bound of `BOUNDS`, and of ‖R‖_F."""

    column: PerBound
    row: PerBound
    frobenius: Float[Tensor, " batch"]

    @property
    def composite(self) -> PerBound:
        """Ln ‖R‖₁,∞."""
        return (self.column + self.row) / 2

    @classmethod
    def of(cls, x: CenteredState) -> "LogNorms":
        """The norms of a residual that is known, the same for every bound."""
        size = x.residual.abs()
        # Below 10^-3e307 the logarithm itself has no float64: 0 as far as can be said.
        shift = torch.where(x.exponent <= SMALLEST, -torch.inf, LN2 * x.exponent)
        column, row = size.sum(1).amax(-1).log() + shift, size.sum(2).amax(-1).log() + shift
        return cls(
            column.expand(len(BOUNDS), -1),
            row.expand(len(BOUNDS), -1),
            frobenius_norm(x.residual).log() + shift,
        )


def recentering(tokens: int) -> float:
    """Ln 2(1 − 1/n): what the mean costs against any other centre; −inf for one token."""
    return math.log(2 * (1 - 1 / tokens)) if tokens > 1 else -math.inf


def attention_bounds(x: CenteredState, near: NearRankOne, norms: HeadNorms) -> LogNorms:
    """Bounds on res(SA(X)) from the state that enters attention.

    With a_h for ‖·‖₁ and b_h for ‖·‖∞ of head h, S_h = |scale| ‖W_QK‖₁‖R‖₁‖R‖∞, q_max = max_j q_j:

    - lemma_a2: 4γHβ‖R‖₁,∞³, β = max_h |scale| ‖W_QK‖₁‖W_h‖₁,∞. Lemmas A.1 and A.2, which ask for
      max δ ≤ 1.256; for several heads composite norms are added.
    - two_norms: a_h = 4γ_h²S_h‖R‖₁‖W_h‖₁, b_h = 4S_h‖R‖∞‖W_h‖∞: the same constants without adding
      composite norms.
    - gamma_free: a_h = 2 q_max κ S_h‖R‖₁‖W_h‖₁, b_h = S_h‖R‖∞‖W_h‖∞, κ = (e^δ − 1)/δ.
    - tanh: a_h = ½Σt_i ‖R‖₁‖W_h‖₁, b_h = max t_i ‖R‖∞‖W_h‖∞.
    - values: the same with ‖RW_h‖ in place of ‖R‖‖W_h‖.
    - dobrushin: a_h = ½ n τ max_j osc_j(RW_h), b_h = (1 − 1/n) τ min(Σ_j osc_j(RW_h), 2‖RW_h‖∞),
      osc_j the range of column j. For every row-stochastic P.

    All but the last are for content-only, unmasked attention. The Frobenius norm is at most
    Σ_h ‖ΠP_hΠ‖₂‖W_h‖₂‖R‖_F for the given P.

    Args:
        x: The state that enters attention.
        near: Its attention matrices.
        norms: The heads' norms.

    Source:
        Lemmas A.1 and A.2; docs/theory.md §3 and §4.
    """
    tokens = x.residual.shape[1]
    r = LogNorms.of(x)
    column, row = r.column[0].unsqueeze(1), r.row[0].unsqueeze(1)  # against heads
    weight_column, weight_row = norms.column.log(), norms.row.log()
    s = norms.query_key.log() + column + row
    log_t, gamma = near.log_t, near.log_gamma
    value_column, value_row, widest, total = _values(x, norms)
    beta = (norms.query_key * norms.composite).amax().log()
    lemma = math.log(4 * len(weight_column)) + gamma.amax(1) + beta + 3 * r.composite[0]
    q_max = near.largest_weight.log()
    half_t, largest_t = torch.logsumexp(log_t, -1) - LN2, log_t.amax(-1)
    columns = {
        "lemma_a2": lemma,
        "two_norms": _sum(2 * LN2 + 2 * gamma + s + column + weight_column),
        "gamma_free": _sum(LN2 + q_max + near.log_kappa + s + column + weight_column),
        "tanh": _sum(half_t + column + weight_column),
        "values": _sum(half_t + value_column),
        "dobrushin": _sum(math.log(tokens / 2) + near.log_dobrushin + widest),
    }
    ranges = torch.minimum(total, LN2 + value_row)
    rows = {
        "lemma_a2": lemma,
        "two_norms": _sum(2 * LN2 + s + row + weight_row),
        "gamma_free": _sum(s + row + weight_row),
        "tanh": _sum(largest_t + row + weight_row),
        "values": _sum(largest_t + value_row),
        "dobrushin": _sum(recentering(tokens) - LN2 + near.log_dobrushin + ranges),
    }
    moved = [0.0 if bound == "dobrushin" else recentering(tokens) for bound in BOUNDS]
    moved = column.new_tensor(moved).unsqueeze(1)
    spectral = _sum(near.log_spectral + norms.spectral.log()) + r.frobenius
    return LogNorms(
        torch.stack([columns[bound] for bound in BOUNDS]) + moved,
        torch.stack([rows[bound] for bound in BOUNDS]) + moved,
        spectral,
    )


def _sum(log: Float[Tensor, "batch head"]) -> Float[Tensor, " batch"]:
    """Ln of the sum over heads."""
    return torch.logsumexp(log, -1)


def _values(x: CenteredState, norms: HeadNorms) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ln of ‖RW_h‖₁, ‖RW_h‖∞, the widest column range and the sum of ranges, by head."""
    found = []
    for value, output in zip(norms.value, norms.output, strict=True):
        y = x.residual @ value @ output
        size, ranges = y.abs(), y.amax(1) - y.amin(1)
        found.append(
            torch.stack(
                [
                    size.sum(1).amax(-1),
                    size.sum(2).amax(-1),
                    ranges.amax(-1),
                    ranges.sum(-1),
                ]
            )
        )
    logs = torch.stack(found, dim=-1).log() + (LN2 * x.exponent).unsqueeze(-1)
    return logs[0], logs[1], logs[2], logs[3]
