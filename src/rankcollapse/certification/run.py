"""One pass of `certify`: bounds for every block from the state that enters it, and in depth.

Memory: the current states, one block and two width × width matrices, and the results.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rankcollapse.certification.structure import Structure
from rankcollapse.errors import InputError
from rankcollapse.inputs.tokens import Batch
from rankcollapse.streams import Centered
from rankcollapse.theory import (
    BOUNDS,
    LARGEST_DELTA,
    Bounded,
    BoundedState,
    HeadNorms,
    LogNorms,
    NearRankOne,
    cubic_bound,
    log_contraction,
    log_smallest_singular_value,
    recentering,
    skip_bound,
    skip_operator,
)
from rankcollapse.theory.skip_operator import LARGEST, Operator
from rankcollapse.transformer import Transformer, Variant, apply_block

LN10 = math.log(10)
PROVED_WIDTH = 897
"""Where 2κ_d ≤ 4, Lemma A.2 holds for any heads, about the mean too (docs/theory.md §3)."""
Progress = Callable[[float, float], None]


@dataclass
class Found:
    """Everything by sample and layer, natural logarithms; NaN where nothing is stated.

    Attributes:
        measured: Ln ‖res(X)‖₁,∞.
        frobenius: Ln ‖res(X)‖_F.
        bounds: Bounds by name.
        log_delta: Ln max δ over heads and tokens, for the layer's input.
        log_gamma: Ln γ, the largest over heads.
        sums: Whether composite norms may be added at the layer.
        log_c: Ln c for the statement in depth, over the layers so far.
        contraction: Ln(√c ‖res(X⁰)‖) over all layers, by sample; `paper` is ln c without MLPs.
    """

    measured: np.ndarray
    frobenius: np.ndarray
    bounds: dict[str, np.ndarray]
    log_delta: np.ndarray
    log_gamma: np.ndarray
    sums: np.ndarray
    log_c: np.ndarray
    contraction: np.ndarray = field(default_factory=lambda: np.empty(0))
    paper: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def empty(cls, samples: int, layers: int) -> "Found":
        """Nothing found yet."""

        def blank() -> np.ndarray:
            return np.full((samples, layers + 1), np.nan)

        sums = np.ones((samples, layers + 1), dtype=bool)
        return cls(blank(), blank(), {}, blank(), blank(), sums, blank())

    def put(self, name: str, samples: Sequence[int], layer: int, values: Tensor) -> None:
        """Keeps a bound's values."""
        if name not in self.bounds:
            self.bounds[name] = np.full_like(self.measured, np.nan)
        self.bounds[name][list(samples), layer] = values.cpu().numpy()


@torch.inference_mode()
def run(
    model: Transformer, variant: Variant, parts: Sequence[Batch], progress: Progress | None
) -> Found:
    """Takes every batch through the blocks and evaluates every bound.

    Args:
        model: In float64.
        variant: What is switched off.
        parts: All samples, in batches.
        progress: Called after each block and batch.
    """
    layers = model.architecture.layers
    found = Found.empty(sum(len(batch.samples) for batch in parts), layers)
    embedding = model.read_embedding()
    enter = Centered().enter
    states = [BoundedState.known(enter(embedding(b.ids, b.positions, b.types))) for b in parts]
    for batch, x in zip(parts, states, strict=True):
        _measured(found, batch, 0, x)
    del embedding
    composed: dict[int, Operator] = {}
    log_beta, log_lambda = -math.inf, np.full(layers, -math.inf)
    for index in range(layers):
        block, layer = model.blocks[index], index + 1
        structure = Structure.of(block, variant)
        bounded = Bounded.of(block, variant)
        norms = bounded.heads
        log_beta = max(log_beta, float((norms.query_key * norms.composite).amax().log()))
        if bounded.lipschitz is not None:
            slope = bounded.lipschitz.composite
            log_lambda[index] = math.log(slope) if slope else -math.inf
        constant = math.log(4 * len(norms.row)) + log_beta
        for b, batch in enumerate(parts):
            x = BoundedState.known(states[b].real)
            _check_finite(x, layer)
            y = apply_block(x, block, batch.layout, variant, bounded)
            _layer(found, batch, layer, x, y, structure, norms)
            found.log_c[list(batch.samples), layer] = constant
            if structure.linear:
                _operators(found, batch, layer, x, y, bounded, composed)
            states[b] = y
            if progress is not None:
                progress(index * len(parts) + b + 1, layers * len(parts))
    found.log_c[:, 1:] += np.maximum.accumulate(found.log_gamma[:, 1:], axis=1)
    _depth(found, Structure.of(model.blocks[0], variant), log_lambda, parts)
    return found


def _check_finite(x: BoundedState, layer: int) -> None:
    if not all(bool(part.isfinite().all()) for part in (x.real.shared, x.real.residual)):
        raise InputError(
            f"The state that enters layer {layer} overflows float64, so no bound can be evaluated: "
            "scale the weights down, or leave on the norms that keep the states small."
        )


def _measured(found: Found, batch: Batch, layer: int, x: BoundedState) -> None:
    norms = LogNorms.of(x.real)
    where = (list(batch.samples), layer)
    found.measured[where] = norms.composite[0].cpu().numpy()
    found.frobenius[where] = norms.frobenius.cpu().numpy()


def _layer(
    found: Found,
    batch: Batch,
    layer: int,
    x: BoundedState,
    y: BoundedState,
    of: Structure,
    norms: HeadNorms,
) -> None:
    """What one block's pass says."""
    _measured(found, batch, layer, y)
    for name, values in zip(BOUNDS, y.upper.composite, strict=True):
        found.put(name, batch.samples, layer, values)
    found.put("spectral", batch.samples, layer, y.upper.frobenius)
    found.put("weyl", batch.samples, layer, y.lower)
    assert y.near is not None and y.attended is not None
    where = (list(batch.samples), layer)
    found.log_delta[where] = y.near.log_largest_delta.amax(1).cpu().numpy()
    found.log_gamma[where] = y.near.log_gamma.amax(1).cpu().numpy()
    if of.theorem == "skip":
        sums = _skip_adds(x.upper, y.attended, batch.ids.shape[1])
    else:
        sums = _heads_add(y.near, norms)
    found.sums[where] = sums.cpu().numpy()


def _heads_add(near: NearRankOne, norms: HeadNorms) -> Tensor:
    """Whether Lemma A.2's sum over heads is true in two norms here.

    Both sides have the factor ‖R‖₁,∞³, which is left out: at 10^-1e20 it would round all else away.
    In narrow models the lemma is a theorem, however unlike the heads are.
    """
    if norms.value.shape[1] <= PROVED_WIDTH:
        return torch.ones_like(near.log_gamma[:, 0], dtype=torch.bool)
    gamma, query_key = near.log_gamma, norms.query_key.log()
    column = torch.logsumexp(2 * gamma + query_key + norms.column.log(), -1)
    row = torch.logsumexp(query_key + norms.row.log(), -1)
    largest = (norms.query_key * norms.composite).amax().log()
    return (column + row) / 2 <= math.log(len(query_key)) + gamma.amax(-1) + largest + 1e-9


def _skip_adds(entered: LogNorms, attended: LogNorms, tokens: int) -> Tensor:
    """Whether ‖R + Y‖₁,∞ ≤ 2 max(‖R‖₁,∞, lemma's bound on Y) is true in two norms here."""
    paper, sound = BOUNDS.index("lemma_a2"), BOUNDS.index("two_norms")
    lemma = attended.composite[paper]
    moved = recentering(tokens)
    column = torch.logaddexp(entered.column[0], attended.column[sound] - moved)
    row = torch.logaddexp(entered.row[0], attended.row[sound] - moved)
    step = math.log(2) + torch.maximum(entered.composite[0], lemma - moved)
    return (column + row) / 2 <= step + 1e-9


def _operators(
    found: Found,
    batch: Batch,
    layer: int,
    x: BoundedState,
    y: BoundedState,
    bounded: Bounded,
    composed: dict[int, Operator],
) -> None:
    """Exact smallest singular values, of the layer and of all layers so far, where small."""
    tokens, width = x.real.residual.shape[1:]
    if (tokens - 1) * width > LARGEST:
        return
    assert y.near is not None
    for n, sample in enumerate(batch.samples):
        operator = skip_operator(y.near.centered[n], bounded.heads.value_output)
        log = x.upper.frobenius[n] + log_smallest_singular_value(operator)
        found.put("smallest_singular_value", [sample], layer, log[None])
        composed[sample] = operator @ composed[sample] if sample in composed else operator
        start = found.frobenius[sample, 0] + log_smallest_singular_value(composed[sample])
        found.put("composed", [sample], layer, torch.tensor([start]))


def _depth(found: Found, of: Structure, log_lambda: np.ndarray, parts: Sequence[Batch]) -> None:
    """The statements about the whole network, layer by layer."""
    moved = np.empty(len(found.measured))
    for batch in parts:
        moved[list(batch.samples)] = recentering(batch.ids.shape[1])
    start = found.measured[:, 0]
    found.paper = found.log_c[:, -1].copy()
    if of.theorem == "corollary_3_2":
        found.log_c[:, 1:] += np.maximum.accumulate(log_lambda)
    if of.theorem is not None:
        bound = skip_bound if of.theorem == "skip" else cubic_bound
        values = np.full_like(found.measured, np.nan)
        for layer in range(1, values.shape[1]):
            values[:, layer] = bound(found.log_c[:, layer], start, layer) + moved
        found.bounds[of.theorem] = values
    found.contraction = log_contraction(found.log_c[:, -1], start)
    if of.theorem in (None, "skip"):
        found.contraction = np.full_like(start, np.nan)
    weyl = found.bounds["weyl"][:, 1:]
    with np.errstate(invalid="ignore"):  # of equal tokens nothing can be kept
        kept = np.where(np.isneginf(weyl), -np.inf, weyl - found.frobenius[:, :-1])
    values = np.full_like(found.measured, np.nan)
    values[:, 1:] = found.frobenius[:, :1] + np.cumsum(kept, axis=1)
    found.bounds["weyl_depth"] = values


def holds(found: Found, of: Structure) -> dict[str, np.ndarray]:
    """Which hypotheses hold, by sample and layer; at layer 0 there is nothing to ask."""
    shape = found.measured.shape
    result = {
        "small_delta": found.log_delta <= math.log(LARGEST_DELTA),
        "content_only": np.full(shape, of.content_only),
        "no_mask": np.full(shape, not of.masked),
        "no_norm": np.full(shape, not of.norms),
        "sum_over_heads": found.sums,
    }
    result["small_delta"][:, 0] = True
    return result


def stated(bounds: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Those that say anything at all, vacuous ones included."""
    return ((name, values) for name, values in bounds.items() if not np.isnan(values).all())
