"""The one JSON document of `decompose --json`: the run, every term by source and length, heads."""

import json
import math
from typing import Any

import xarray as xr

from rankcollapse.report.decomposition.summary import (
    ADDITIVE,
    DIMS,
    Spread,
    by_length,
    counted,
    overall,
)
from rankcollapse.report.metadata import metadata


def json_document(dataset: xr.Dataset) -> str:
    """Return the results as JSON, summarised over samples.

    Args:
        dataset: what `rankcollapse.decompose` returns.

    Returns:
        An object with `metadata`; `paths`, the share of the number of the input's paths by length
        (null where none reaches the output); `sources`, for each source a list over lengths of
        `{"mean": ..., "std": ...}` per variable, null where there are no such paths; `total` the
        same for shares and projections summed over sources; `all` their sums over lengths; `error`
        the largest rounding of the sum; and with a target `heads`, per layer a list of totals by
        head. A number that does not exist is null.
    """
    names = [str(name) for name, array in dataset.data_vars.items() if set(array.dims) == {*DIMS}]
    columns = {name: by_length(dataset, name) for name in names}
    lengths = [int(length) for length in dataset["length"].values]
    by_source: dict[str, list[dict[str, Any]]] = {}
    for name, spreads in columns.items():
        for source, column in spreads.items():
            states = by_source.setdefault(source, [{"length": length} for length in lengths])
            for state, spread in zip(states, column, strict=True):
                state[name] = _spread(spread)
    total = by_source.pop("total", [])
    paths = counted(dataset)
    document: dict[str, Any] = {
        "metadata": metadata(dataset),
        "paths": None if paths is None else paths.tolist(),
        "sources": by_source,
        "total": total,
        "all": {
            name: {source: _spread(s) for source, s in overall(dataset, name).items()}
            for name in ADDITIVE
            if name in dataset
        },
        "error": float(dataset["error"].max()),
    }
    if "head_projection" in dataset:
        array = dataset["head_projection"].transpose("layer", "head", "sample").values
        document["heads"] = [[_spread(Spread.of(head)) for head in layer] for layer in array]
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _spread(spread: Spread | None) -> dict[str, float | None] | None:
    if spread is None:
        return None
    return {"mean": _number(spread.mean), "std": _number(spread.std)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
