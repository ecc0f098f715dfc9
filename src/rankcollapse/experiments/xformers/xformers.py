"""Remark 1, for which the paper has no experiment: which attention collapses faster than softmax.

Low-rank and kernel attention is said to collapse faster, sparse and random patterns slower. All
mechanisms run on the same weights and inputs per seed, so that differences are paired, and in
`Centered` arithmetic, so that none ends at the rounding floor.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
import xarray as xr
from scipy.stats import rankdata

from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Row, Settings
from rankcollapse.experiments.initial import Size, embedded, random_blocks
from rankcollapse.experiments.paired import verdict
from rankcollapse.experiments.trajectory import log10_residuals
from rankcollapse.experiments.xformers import charts as xformer_charts
from rankcollapse.experiments.xformers.mechanisms.catalogue import CATALOGUE, Budget, prepare
from rankcollapse.metrics import effective_rank, local_order, singular_values
from rankcollapse.report.style import Theme

SEEDS, QUICK_SEEDS = 5, 2
GAINS = (1.0, 3.0)
VARIANTS = ("san", "san+skip")
JUDGED = 2
"""The layer at which residuals are compared: tokens still differ visibly under each mechanism."""
LATE = 3
EXPECTED = {"low rank or kernel": -1, "sparse": 1}
Progress = Callable[[float, float], None]


def measure(
    seed: int,
    gain: float,
    layers: int,
    heads: int,
    width: int,
    tokens: int,
    samples: int,
    progress: Progress,
) -> xr.Dataset:
    """All mechanisms on one network at BERT's initialisation, queries and keys times `gain`."""
    budget = Budget(Size(layers, heads, width), tokens)
    x = embedded(samples, tokens, width, torch.Generator().manual_seed(2 * seed))
    residuals = np.empty((len(VARIANTS), len(CATALOGUE), layers + 1))
    ranks, spreads = np.empty(len(CATALOGUE)), np.empty(len(CATALOGUE))
    for index, entry in enumerate(CATALOGUE):
        generator = torch.Generator().manual_seed(2 * seed + 1)
        drawn = prepare(entry, budget, torch.Generator().manual_seed(seed))
        blocks = random_blocks(budget.size, generator, gain=gain, terms=drawn.terms)
        for row, variant in enumerate(VARIANTS):
            residuals[row, index] = log10_residuals(x, blocks, variant, drawn.centered).mean(0)
            progress(index + (row + 1) / len(VARIANTS), len(CATALOGUE))
        matrices = drawn.operator(x[:1], blocks[0].attention)[0]
        ranks[index] = effective_rank(singular_values(matrices)).mean().item()
        rows_apart = matrices - matrices.mean(1, keepdim=True)
        rows_apart = rows_apart - rows_apart.mean(2, keepdim=True)
        spreads[index] = (rows_apart.norm(dim=(1, 2)).mean() / tokens**0.5).item()
    return xr.Dataset(
        {
            "log10_relative_residual": (("variant", "mechanism", "layer"), residuals),
            "attention_rank": ("mechanism", ranks),
            "attention_spread": ("mechanism", spreads),
        },
        coords={
            "variant": list(VARIANTS),
            "mechanism": [entry.name for entry in CATALOGUE],
            "layer": np.arange(layers + 1),
        },
    )


def _parts(settings: Settings) -> list[Part]:
    size = {"layers": 6, "heads": 12, "width": 768, "tokens": 128, "samples": 1}
    if settings.quick:
        size = {"layers": 6, "heads": 4, "width": 256, "tokens": 64, "samples": 2}
    return [
        Part(
            f"gain{gain:g}-seed{seed}",
            measure,
            {"seed": seed, "gain": gain, **size},
            1 if settings.quick else 8,
        )
        for seed in range(settings.seeds or (QUICK_SEEDS if settings.quick else SEEDS))
        for gain in GAINS
    ]


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    by_gain = [
        xr.concat(
            [part for name, part in results.items() if name.startswith(f"gain{g:g}-")], "seed"
        )
        for g in GAINS
    ]
    together = xr.concat(by_gain, "gain", join="exact").assign_coords(gain=list(GAINS))
    together = together.assign_coords(
        seed=np.arange(together.sizes["seed"]),
        group=("mechanism", [entry.group for entry in CATALOGUE]),
    )
    log10 = together["log10_relative_residual"]
    order = xr.apply_ufunc(
        local_order,
        log10.sel(variant="san"),
        input_core_dims=[["layer"]],
        output_core_dims=[["layer"]],
    )
    softmax = log10.sel(mechanism="softmax", drop=True)
    together = together.assign(local_order=order.drop_vars("variant"), apart=log10 - softmax)
    for name, (long_name, definition) in _MEANINGS.items():
        together[name].attrs = {"long_name": long_name, "units": "1", "definition": definition}
    return together


_MEANINGS = {
    "log10_relative_residual": (
        "log₁₀ of the relative residual",
        "log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞) after each layer, mean over samples",
    ),
    "attention_rank": (
        "effective rank of attention in the first layer",
        "exp(−Σ p_i ln p_i), p_i = σ_i / Σσ, σ the singular values of the n × n matrix that "
        "multiplies the values; mean over heads",
    ),
    "attention_spread": (
        "spread of the rows of attention in the first layer",
        "‖ΠPΠ‖_F / √n, P the n × n matrix that multiplies the values, Π = I − 11ᵀ/n: what one "
        "layer leaves of independent rows; mean over heads",
    ),
    "local_order": (
        "local order of attention alone",
        "(y_l − y_(l−1)) / (y_(l−1) − y_(l−2)), y the log₁₀ of the relative residual",
    ),
    "apart": (
        "log₁₀ of the relative residual over softmax's",
        "y − y of softmax with the same weights, inputs and layer: negative where the mechanism "
        "collapses faster",
    ),
}


def _compare(dataset: xr.Dataset) -> list[Row]:
    rows = []
    last = int(dataset["layer"][-1])
    for gain in GAINS:
        at_gain = dataset.sel(gain=gain)
        for entry in CATALOGUE[1:]:
            expected = EXPECTED[entry.group]
            ours = at_gain["apart"].sel(variant="san", mechanism=entry.name, layer=JUDGED).values
            what = f"{entry.name}, gain {gain:g}: decades above softmax after {JUDGED} layers"
            source = f"Remark 1: {'faster' if expected < 0 else 'slower'}"
            rows.append(_row(what, ours, source, verdict(ours, expected, "Remark 1")))
    for entry in CATALOGUE:
        chosen = dataset.sel(mechanism=entry.name, gain=GAINS[0])
        if entry.cubic:
            what = f"{entry.name}: order of the residual at the last layer"
            ours = chosen["local_order"].sel(layer=last).values
            rows.append(Row(what, 3.0, "docs/theory.md §5", tuple(map(float, ours)), 0.02))
        else:
            what = f"{entry.name}: factor per layer over the last {LATE} layers"
            y = chosen["log10_relative_residual"].sel(variant="san")
            fall = (y.sel(layer=last) - y.sel(layer=last - LATE)).values / LATE
            rows.append(_row(what, 10**fall))
    apart = dataset["apart"].sel(variant="san", layer=JUDGED, gain=GAINS[0])
    for name, what in _OF_THE_MATRIX.items():
        of_matrix = dataset[name].sel(gain=GAINS[0])
        ours = [
            float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
            for one, other in zip(of_matrix.values, apart.values, strict=True)
        ]
        title = f"rank correlation over mechanisms: {what}, and decades above softmax"
        rows.append(Row(title, None, "Remark 1: by rank", tuple(ours)))
        for entry in CATALOGUE:
            ours = dataset[name].sel(mechanism=entry.name, gain=GAINS[0]).values
            rows.append(_row(f"{entry.name}: {what} of attention, layer 1", ours))
    for entry in CATALOGUE:
        chosen = dataset["log10_relative_residual"].sel(mechanism=entry.name, gain=GAINS[0])
        ours = chosen.sel(variant="san+skip", layer=last).values
        rows.append(_row(f"{entry.name}, with skips: log10 residual at layer {last}", ours))
    return rows


_OF_THE_MATRIX = {"attention_rank": "effective rank", "attention_spread": "spread of the rows"}


def _row(what: str, ours: np.ndarray, source: str = "", remark: str = "") -> Row:
    return Row(what, None, source, tuple(float(value) for value in ours), remark=remark)


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {
        "xformers": xformer_charts.through_depth(dataset, theme),
        "xformers_against_softmax": xformer_charts.against_softmax(dataset, theme, JUDGED),
    }


EXPERIMENT = Experiment(
    name="xformers",
    title="Remark 1: collapse of efficient attention",
    about="Relative residual through depth of attention alone (and with skips) under eleven "
    "mechanisms on the same random weights and inputs: BERT-base's width and heads, 128 tokens, "
    "BERT's initialisation, and with queries and keys three times as large. Sparse patterns show "
    "a query about n/4 keys; Linformer projects to n/4 rows, with one projection for all layers.",
    parts=_parts,
    combine=_combine,
    compare=_compare,
    charts=_charts,
)
