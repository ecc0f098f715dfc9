"""From arrays to the Dataset that users get: named dimensions, definitions, the run's metadata."""

import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.inputs.tokens import Sample, digest
from rankcollapse.inspection.quantities import ALL
from rankcollapse.transformer import Block, Transformer, Variant

DIMS = ("variant", "sample", "layer")


def assemble(
    model: Transformer,
    variants: Sequence[Variant],
    samples: Sequence[Sample],
    results: Mapping[str, np.ndarray],
    at_floor: np.ndarray,
    details: Mapping[str, Any],
) -> xr.Dataset:
    """Names everything. A slot behind the last layer becomes the "…_after_final_norm" variables."""
    layers = model.architecture.layers
    dataset = xr.Dataset(
        coords={
            "variant": ("variant", [v.name for v in variants]),
            "sample": ("sample", np.arange(len(samples))),
            "layer": ("layer", np.arange(layers + 1), {"long_name": "layer", "units": "1"}),
        }
    )
    for name, values in results.items():
        quantity = ALL[name]
        attrs = {
            "long_name": quantity.long_name,
            "units": quantity.units,
            "definition": quantity.definition,
        }
        through = values[:, :, : layers + 1] if quantity.dims == DIMS else values
        dataset[name] = (quantity.dims, through, attrs)
        if quantity.dims == DIMS and values.shape[2] > layers + 1:
            attrs = attrs | {"long_name": f"{quantity.long_name}, after the final norm"}
            dataset[f"{name}_after_final_norm"] = (DIMS[:2], values[:, :, -1], attrs)
    floor = details["floor"]
    attrs = {
        "long_name": "at the rounding floor",
        "units": "1",
        "definition": f"relative residual at most {floor:.2g} here or at an earlier layer: what is "
        "measured is rounding, which later layers can only amplify"
        if floor
        else "never: shared row and residual are carried apart, so there is no floor",
    }
    dataset["at_floor"] = (DIMS, at_floor[:, :, : layers + 1], attrs)
    if model.final_norm is not None:
        attrs = attrs | {"long_name": f"{attrs['long_name']}, after the final norm"}
        dataset["at_floor_after_final_norm"] = (DIMS[:2], at_floor[:, :, -1], attrs)
    return attach_metadata(dataset, model, variants, samples, details)


def attach_metadata(
    dataset: xr.Dataset,
    model: Transformer,
    variants: Sequence[Variant],
    samples: Sequence[Sample],
    details: Mapping[str, Any],
) -> xr.Dataset:
    """`dataset` with the run's metadata as one JSON attribute."""
    dataset.attrs["metadata"] = json.dumps(metadata(model, variants, samples, details))
    return dataset


def _positions_in_scores(block: Block) -> bool:
    return bool(block.attention.terms) or block.attention.rotary is not None


def metadata(
    model: Transformer,
    variants: Sequence[Variant],
    samples: Sequence[Sample],
    details: Mapping[str, Any],
) -> dict[str, Any]:
    """What is needed to say what was run, and to run it again."""
    a = model.architecture
    lengths = [len(sample.ids) for sample in samples]
    return {
        "model": model.name,
        "family": model.family,
        "layers": a.layers,
        "heads": a.heads,
        "causal": model.blocks[0].attention.causal,
        "positions_in_scores": _positions_in_scores(model.blocks[0]),
        "width": a.width,
        **model.origin,
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        **details,
        "samples": len(samples),
        "tokens_min": min(lengths),
        "tokens_max": max(lengths),
        "text_sha256": digest(samples),
        "variants": {
            v.name: {"off": sorted(v.off), "formula": v.formula(a.placement)} for v in variants
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rankcollapse", "torch", "transformers", "xarray")},
        },
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
