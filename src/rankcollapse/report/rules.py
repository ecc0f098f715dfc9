"""The horizontal rules of a chart and their labels: rounding floors, and orders to compare with."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from rankcollapse.report.axis import along
from rankcollapse.report.measures import RESIDUAL, Measure
from rankcollapse.report.metadata import listing, metadata

# Twice the unit roundoff: where a plain run of this arithmetic can resolve nothing any more.
ROUNDING = {"float32": 2 * 2.0**-23, "float64": 2 * 2.0**-52}

# Shares of the chart's height: what looks like one line, what a label needs between two lines,
# and what it needs to keep clear of the lines at the top; and the share of its width for a label.
ONE_LINE, ONE_LABEL, CLEAR = 0.012, 0.06, 0.07
LABEL_WIDTH = 0.25


@dataclass(frozen=True)
class Rules:
    """Ordinates, each with its label ("" for none).

    `place` is where the labels are: above or below the rules' right end, or above their left end.
    """

    lines: tuple[tuple[float, str], ...] = ()
    place: Literal["above", "below", "start"] = "above"


def rules(dataset: xr.Dataset, measure: Measure, points: list[dict[str, Any]], deep: bool) -> Rules:
    """Return the rules for a chart of `points`, whose `y` are log10 where that is the axis."""
    if measure.references:
        return Rules(measure.references, "start")
    return _floors(dataset, points, deep) if measure is RESIDUAL else Rules()


def _floors(dataset: xr.Dataset, points: list[dict[str, Any]], deep: bool) -> Rules:
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
    scale = along if deep else float
    top, bottom = max(near.values()), min(near.values())
    highest = scale(max(*drawn, top))
    height, gap = highest - scale(min(*drawn, bottom)), scale(top) - scale(bottom)
    if len(near) > 1 and gap < ONE_LABEL * height:
        label = f"{listing(list(near))} rounding floors"
        if gap < ONE_LINE * height:
            return Rules(((bottom, label),), "below")
        return Rules(((top, ""), (bottom, label)), "below")
    lines = tuple((y, f"{dtype} rounding floor") for dtype, y in near.items())
    if highest - scale(top) < CLEAR * height:
        return Rules(lines, "below")
    heights = [scale(y) for y in near.values()]
    curves = [[(x, scale(y)) for x, y in curve] for curve in _curves(points)]
    at_end, at_start = (
        _crossings(curves, heights, ONE_LABEL * height, where)
        for where in (np.linspace(1 - LABEL_WIDTH, 1, 26), np.linspace(0, LABEL_WIDTH, 26))
    )
    return Rules(lines, "above" if at_end <= at_start else "start")


def _curves(points: list[dict[str, Any]]) -> list[list[tuple[float, float]]]:
    """Return the curves through depth as pairs of abscissa, from 0 to 1, and ordinate."""
    through = [p for p in points if not p["after"] and math.isfinite(p["y"])]
    right = max((p["position"] for p in through), default=0.0) or 1.0
    found: dict[str, list[tuple[float, float]]] = {}
    for p in through:
        found.setdefault(p["variant"], []).append((p["position"] / right, p["y"]))
    return list(found.values())


def _crossings(
    curves: list[list[tuple[float, float]]], heights: list[float], room: float, where: np.ndarray
) -> int:
    """Return at how many of the abscissae `where` a curve runs through the room over a rule."""
    count = 0
    for curve in curves:
        y = np.interp(where, [x for x, _ in curve], [y for _, y in curve])
        count += sum(int(np.sum((rule < y) & (y < rule + room))) for rule in heights)
    return count
