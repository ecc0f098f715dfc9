"""The one JSON document of `certify --json`: the run, every bound by layer, every hypothesis."""

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.report.certificate.bound import Bound, mean_log
from rankcollapse.report.certificate.summary import (
    NORMS,
    bounds,
    holds,
    measured,
    statements,
    variant_name,
)
from rankcollapse.report.metadata import metadata


def json_document(dataset: xr.Dataset) -> str:
    """Return the certificate as JSON, summarised over samples.

    Args:
        dataset: what `rankcollapse.certify` returns.

    Returns:
        An object with `metadata` and `variant`; `measured`, for each norm log10 of the residual by
        layer from 0 on (mean over samples); `bounds`, for each its title, source, definition,
        `kind` (upper or lower), `scope` (layer or depth), `norm`, the names of the hypotheses it
        `requires`, and by layer `log10` (mean over samples with a finite value), `finite`,
        `zero`, `applies` and `vacuous` (shares of samples) and `crossed` (number of samples in
        which it applies and the measurement is on its wrong side; none unless something is computed
        wrongly); `hypotheses`, for each its statement and by layer the share of samples in which
        it holds; `max_delta`, the largest by layer; `log10_contraction` and
        `log10_paper_condition` by sample. A number that does not exist is null.
    """
    document: dict[str, Any] = {
        "metadata": metadata(dataset),
        "variant": variant_name(dataset),
        "measured": {norm: _list(mean_log(measured(dataset, norm))) for norm in NORMS},
        "bounds": {bound.name: _bound(bound) for bound in bounds(dataset)},
        "hypotheses": {
            name: {"statement": text, "holds": _list(_behind(holds(dataset, name).mean(axis=0)))}
            for name, text in statements(dataset).items()
        },
        "max_delta": _list(dataset["max_delta"].transpose("sample", "layer").values.max(axis=0)),
    }
    for name in ("log10_contraction", "log10_paper_condition"):
        document[name] = _list(dataset[name].values)
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "title": bound.title,
        "source": bound.source,
        "definition": bound.definition,
        "kind": "upper" if bound.upper else "lower",
        "scope": "depth" if bound.deep else "layer",
        "norm": bound.norm,
        "requires": list(bound.requires),
        "log10": _list(bound.mean),
        "finite": _list(_stated(bound, np.isfinite(bound.logs).mean(axis=0))),
        "zero": _list(_stated(bound, (bound.logs == -np.inf).mean(axis=0))),
        "applies": _list(_stated(bound, bound.holding)),
        "vacuous": _list(_stated(bound, bound.vacuous.mean(axis=0))),
        "crossed": [int(count) for count in bound.crossed.sum(axis=0)],
    }


def _stated(bound: Bound, values: np.ndarray) -> np.ndarray:
    return np.where(bound.stated, values, np.nan)


def _behind(values: np.ndarray) -> np.ndarray:
    """Return values by layer without one for the state that enters the first layer."""
    return np.concatenate([[np.nan], values[1:]])


def _list(values: np.ndarray) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]
