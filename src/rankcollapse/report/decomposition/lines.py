"""The relative residual by length: a line per source on a logarithmic axis."""

import math
from typing import Any

import altair as alt
import xarray as xr

from rankcollapse.report.axis import log_ticks
from rankcollapse.report.decomposition.marks import (
    by_path_length,
    color_of,
    legend_of,
    of,
    whisker,
)
from rankcollapse.report.decomposition.summary import TITLES, by_length, sources
from rankcollapse.report.metadata import metadata
from rankcollapse.report.numbers import mean_and_std
from rankcollapse.report.style import SHAPES, Theme

_FLOOR = {"float32": 4 * 2.0**-23, "float64": 4 * 2.0**-52}


def rounding_floor(dataset: xr.Dataset) -> float:
    """Return the relative residual up to which a term is one row but for rounding."""
    return _FLOOR.get(str(metadata(dataset).get("dtype")), _FLOOR["float32"])


def lines(dataset: xr.Dataset, theme: Theme) -> list[alt.Chart]:
    """Return the marks of the relative residual: a line per source, whiskers, points."""
    floor = rounding_floor(dataset)
    names = [TITLES.get(source, source) for source in sources(dataset)]
    points: list[dict[str, Any]] = [
        {
            "length": n,
            "name": name,
            "y": math.log10(s.mean),
            # Where the deviation reaches zero, down to the smallest sample.
            "low": math.log10(max(s.mean - whisker(s.std), s.low, floor)),
            "high": math.log10(s.mean + whisker(s.std)),
            "text": mean_and_std(s.mean, s.std),
        }
        for name, column in zip(
            names, by_length(dataset, "relative_residual").values(), strict=True
        )
        for n, s in enumerate(column)
        if s is not None and s.mean > floor
    ]
    low = min((p["low"] for p in points), default=-1.0)
    high = max((p["high"] for p in points), default=0.0)
    margin = max(0.05, 0.04 * (high - low))
    ticks = log_ticks(low - margin, high + margin)
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    axis = alt.Axis(
        title="Relative residual", values=ticks.values, labelExpr=ticks.label_expression()
    )
    x, y = by_path_length(dataset), alt.Y("y:Q", scale=scale, axis=axis)
    color = color_of(names, list(theme.palette[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    shape = alt.Shape("name:N", scale=shapes, legend=legend_of(names))
    tooltip = [
        alt.Tooltip("length:O", title="Length"),
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("text:N", title="Relative residual"),
    ]
    whiskers = alt.Y("low:Q", scale=scale, axis=axis)
    return [
        of(points).mark_line(strokeWidth=1.75, aria=False).encode(x=x, y=y, color=color),
        of(points)
        .mark_rule(strokeWidth=1.25, aria=False)
        .encode(x=x, y=whiskers, y2="high:Q", color=color),
        of(points)
        .mark_point(filled=True, size=46, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
    ]
