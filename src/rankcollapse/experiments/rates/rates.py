"""How fast the residual falls, and what sets the rate: measured beside what theory expects.

The claims are those of docs/theory.md §5. Everything runs in `Centered` arithmetic, so that no
number is at the rounding floor.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
import xarray as xr

from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Row, Settings
from rankcollapse.experiments.rates import cases as rate_cases
from rankcollapse.experiments.rates import charts as rate_charts
from rankcollapse.experiments.rates import skip_cases
from rankcollapse.families.load import load
from rankcollapse.inspection import inspect
from rankcollapse.metrics import local_order
from rankcollapse.report.style import Theme
from rankcollapse.theory import rates

SEEDS, QUICK_SEEDS = 5, 2
THEORY = "docs/theory.md §5"
XLNET_LAYERS = (1, 3)
PAPERS_XLNET = (2.6e-6 / 1.5e-3) ** 0.5
"""Factor per layer between layers 1 and 3 of the paper's XLNet curve, 1.5e-3, 5.5e-5, 2.6e-6."""
Progress = Callable[[float, float], None]


def scores(seed: int, layers: int, progress: Progress) -> xr.Dataset:
    """Every mechanism of `rate_cases` for one seed."""
    results = []
    for done, case in enumerate(rate_cases.CASES, start=1):
        results.append(rate_cases.measure(case, seed, layers))
        progress(done, len(rate_cases.CASES))
    names = xr.Variable("case", [case.name for case in rate_cases.CASES])
    together = xr.concat(results, dim="case").assign_coords(case=names)
    content = together["log10_relative_residual"].sel(case="content alone")
    followed = content.values[: rate_cases.FOLLOWED + 1]
    return together.assign(content_order=("followed_layer", local_order(followed)))


def skips(seed: int, layers: int, progress: Progress) -> xr.Dataset:
    """X + PXW for one seed."""
    random = skip_cases.random_values(seed, layers)
    progress(1, 2)
    identity = skip_cases.identity_values(seed, layers)
    progress(2, 2)
    return xr.merge([random, identity])


def xlnet(seed: int, layers: int, samples: int, tokens: int, progress: Progress) -> xr.Dataset:
    """XLNet-base at random initialisation, attention alone; its MLPs are off, and kept small."""
    from transformers import XLNetConfig

    config = XLNetConfig(vocab_size=1000, d_model=768, n_head=12, n_layer=layers, d_inner=64)
    model = load(config, init="random", seed=seed)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, 1000, (samples, tokens), generator=generator).tolist()
    measured = inspect(
        model, {"input_ids": ids}, ["san"], "centered", metrics=["residual"], progress=progress
    )
    (rate,) = rates(measured)
    mean = measured["log10_relative_residual"].isel(variant=0).mean("sample").values
    first, last = XLNET_LAYERS
    published = 10 ** ((mean[last] - mean[first]) / (last - first))
    return xr.Dataset(
        {
            "xlnet_log10_relative_residual": ("xlnet_layer", mean),
            "xlnet_factor": ((), 10**rate.log10_factor),
            "xlnet_early_factor": ((), published),
            "xlnet_lambda2": ((), np.nan if rate.lambda2 is None else rate.lambda2),
        },
        coords={"xlnet_layer": np.arange(layers + 1)},
    )


def _parts(settings: Settings) -> list[Part]:
    quick = settings.quick
    parts = []
    for seed in range(settings.seeds or (QUICK_SEEDS if quick else SEEDS)):
        known = {"seed": seed, "layers": 48 if quick else 80}
        models = {"layers": 4, "samples": 1, "tokens": 64}
        if not quick:
            models = {"layers": 8, "samples": 4, "tokens": 128}
        parts += [
            Part(f"scores-seed{seed}", scores, known, 1),
            Part(f"skips-seed{seed}", skips, {"seed": seed, "layers": 24}, 0.5),
            Part(f"xlnet-seed{seed}", xlnet, {"seed": seed, **models}, 2 if quick else 4),
        ]
    return parts


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    kinds = ("scores", "skips", "xlnet")
    by_kind = [
        xr.concat([part for name, part in results.items() if name.startswith(kind)], dim="seed")
        for kind in kinds
    ]
    together = xr.merge(by_kind, join="exact")
    together = together.assign_coords(seed=np.arange(together.sizes["seed"]))
    for name, (long_name, definition) in _MEANINGS.items():
        together[name].attrs = {"long_name": long_name, "units": "1", "definition": definition}
    return together


_RATIO = "log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞)"
_MEANINGS = {
    "log10_relative_residual": ("log₁₀ of the relative residual", f"{_RATIO} after each layer"),
    "factor": (
        "measured factor per layer",
        f"geometric mean of what a layer leaves of the relative residual, over the last "
        f"{rate_cases.MEASURED} layers",
    ),
    "lambda2": (
        "|λ₂| between equal tokens",
        "second largest modulus among the eigenvalues of P where every token is the last shared "
        "row",
    ),
    "content_order": (
        "local order of content alone",
        "(y_l − y_(l−1)) / (y_(l−1) − y_(l−2)), y the log₁₀ of the relative residual",
    ),
    "log10_energy_ratio": (
        "log₁₀ of the residual's energy over the shared row's, X + PXW, W random",
        "log₁₀(‖R‖_F² / (n ‖x̄‖₂²))",
    ),
    "energy_factor": ("factor of that energy per layer", "geometric mean over all layers"),
    "log10_norm_ratio": (
        "log₁₀ of the residual's norm over the shared row's, X + hPX",
        "log₁₀(‖R‖_F / (√n ‖x̄‖₂))",
    ),
    "norm_factor": ("factor of that norm per layer", "geometric mean over all layers"),
    "xlnet_log10_relative_residual": (
        "log₁₀ of the relative residual of XLNet-base, attention alone",
        f"{_RATIO} after each layer, mean over samples",
    ),
    "xlnet_factor": (
        "XLNet-base: measured factor per layer",
        "geometric mean over the layers in which the leading order shows",
    ),
    "xlnet_early_factor": (
        "XLNet-base: factor per layer early on",
        f"geometric mean over layers {XLNET_LAYERS[0]} to {XLNET_LAYERS[1]}",
    ),
    "xlnet_lambda2": (
        "XLNet-base: |λ₂| between equal tokens",
        "root mean square over heads, mean over the layers of the measured factor",
    ),
}


def _compare(dataset: xr.Dataset) -> list[Row]:
    order = dataset["content_order"].isel(followed_layer=-1)
    rows = [
        Row("content alone: order of the residual", 3.0, "Theorem 2.2", _seeds(order), 1e-3),
    ]
    for case in rate_cases.CASES:
        chosen = dataset.sel(case=case.name)
        if case.factor is not None:
            what = f"{case.name}, scores near 0: factor per layer"
            rows.append(Row(what, case.factor, THEORY, _seeds(chosen["factor"]), 0.005))
    for case in rate_cases.CASES[1:]:
        chosen = dataset.sel(case=case.name)
        what = f"{case.name}: factor per layer ÷ |λ₂|"
        ours = _seeds(chosen["factor"] / chosen["lambda2"])
        remark = "" if case.mechanism not in ("rotary", "relative") else _OSCILLATES
        rows.append(Row(what, 1.0, THEORY, ours, 0.001, remark))
    early, late = _seeds(dataset["xlnet_early_factor"]), _seeds(dataset["xlnet_factor"])
    quotient = _seeds(dataset["xlnet_factor"] / dataset["xlnet_lambda2"])
    rows += [
        Row(
            "XLNet-base at initialisation: factor per layer, layers 1 to 3",
            PAPERS_XLNET,
            "Figure 2, XLNet, SAN",
            early,
            0.002,
        ),
        Row("XLNet-base at initialisation: factor per layer", 0.045, THEORY, late, 0.0005),
        Row("XLNet-base: factor per layer ÷ |λ₂|", None, "", quotient, remark=_MANY_HEADS),
    ]
    for a in skip_cases.STRENGTHS:
        ours = _seeds(dataset["energy_factor"].sel(strength=a))
        what = f"X + PXW, W of variance {a:g}²/d: factor of the residual's share of energy"
        rows.append(Row(what, 1 / (1 + a * a), "Noci et al. 2022", ours, 0.002))
    for h in skip_cases.EIGENVALUES:
        ours = _seeds(dataset["norm_factor"].sel(eigenvalue=h))
        what = f"X + hPX, h = {h:g}: factor of the residual's share"
        rows.append(Row(what, 1 / (1 + h), "Dovonon et al. 2024", ours, 1e-3))
    return rows


_OSCILLATES = (
    "The leading eigenvalues may be a complex pair, along which the residual swings as it falls."
)
_MANY_HEADS = (
    "With several heads and W_V W_O other than the identity, the heads' |λ₂| is no prediction but "
    "a scale: values mix what the heads leave, and the norm divides by the shared row."
)


def _seeds(values: xr.DataArray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.atleast_1d(values.values))


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {
        "rates": rate_charts.through_depth(dataset, theme),
        "rates_predicted": rate_charts.predicted(dataset, theme),
        "rates_skips": rate_charts.with_skips(dataset, theme),
    }


EXPERIMENT = Experiment(
    name="rates",
    title="Rates of collapse",
    about="What one layer leaves of the residual once tokens are nearly equal. Attention on "
    "content alone cubes it; a mask or positions in the scores leave the factor |λ₂| of the "
    "attention between equal tokens. Measured on one head with W_V W_O = I, 32 tokens, and on "
    "XLNet-base at random initialisation; two claims on skips without norms beside them.",
    parts=_parts,
    combine=_combine,
    compare=_compare,
    charts=_charts,
)
