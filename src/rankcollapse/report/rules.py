"""The horizontal rules of a chart and their labels: rounding floors, and orders to compare with."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import xarray as xr

from rankcollapse.report.measures import RESIDUAL, Measure
from rankcollapse.report.metadata import listing, metadata

# Twice the unit roundoff: where a plain run of this arithmetic can resolve nothing any more.
ROUNDING = {"float32": 2 * 2.0**-23, "float64": 2 * 2.0**-52}

# Shares of the chart's height: what looks like one line, what a label needs between two lines,
# and what it needs to keep clear of the lines at the top.
ONE_LINE, ONE_LABEL, CLEAR = 0.012, 0.06, 0.07


@dataclass(frozen=True)
class Rules:
    """Ordinates, each with its label ("" for none).

    `place` is where the labels are: above or below the rules' right end, or above their left end.
    """

    lines: tuple[tuple[float, str], ...] = ()
    place: Literal["above", "below", "start"] = "above"


def rules(dataset: xr.Dataset, measure: Measure, points: list[dict[str, Any]]) -> Rules:
    """Return the rules for a chart of `points`, whose `y` are log10 where that is the axis."""
    if measure.references:
        return Rules(measure.references, "start")
    return _floors(dataset, points) if measure is RESIDUAL else Rules()


def _floors(dataset: xr.Dataset, points: list[dict[str, Any]]) -> Rules:
    """Return the rounding floors within two decades of the data, the run's own as it says."""
    run = metadata(dataset)
    known: dict[str, float] = dict(ROUNDING)
    if run.get("floor"):
        known[str(run.get("dtype"))] = float(run["floor"])
    drawn = [p["y"] for p in points if math.isfinite(p["y"])] or [0.0]
    reached = any(p["hollow"] for p in points)
    near = {
        dtype: math.log10(value)
        for dtype, value in known.items()
        if math.log10(value) >= min(drawn) - 2 or (run.get("dtype") == dtype and reached)
    }
    if not near:
        return Rules()
    top, bottom = max(near.values()), min(near.values())
    span = max(*drawn, top) - min(*drawn, bottom)
    if len(near) > 1 and top - bottom < ONE_LABEL * span:
        label = f"{listing(list(near))} rounding floors"
        if top - bottom < ONE_LINE * span:
            return Rules((((top + bottom) / 2, label),), "below")
        return Rules(((top, ""), (bottom, label)), "below")
    lines = tuple((y, f"{dtype} rounding floor") for dtype, y in near.items())
    return Rules(lines, "below" if max(drawn) - top < CLEAR * span else "above")
