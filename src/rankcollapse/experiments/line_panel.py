"""What the charts of the experiments have in common: lines with bands and points in a panel."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.report.axis import Ticks, along, deep_ticks, exponent_at, log_ticks
from rankcollapse.report.style import SHAPES, Theme

Point = dict[str, Any]
"""`series`, `x`, `y`, and `low` and `high` of the band."""


def points(values: xr.DataArray, along_x: str, series: str, over: str = "seed") -> list[Point]:
    """Mean and mean ± std (ddof = 1) over a dimension; the band is empty for one value."""
    mean = values.mean(over)
    std = values.std(over, ddof=1) if values.sizes[over] > 1 else 0 * mean
    return [
        {
            "series": series,
            "x": float(x),
            "y": float(m),
            "low": float(m - s),
            "high": float(m + s),
        }
        for x, m, s in zip(values[along_x].values, mean.values, std.values, strict=True)
        if math.isfinite(m)
    ]


def looks(names: Sequence[str], theme: Theme, columns: int) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of each name, with one legend over the panel."""
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=columns,
        symbolOpacity=1,
    )
    colours = [theme.palette[n % len(theme.palette)] for n in range(len(names))]
    shapes = [SHAPES[n % len(SHAPES)] for n in range(len(names))]
    return (
        alt.Color("series:N", scale=alt.Scale(domain=list(names), range=colours), legend=legend),
        alt.Shape("series:N", scale=alt.Scale(domain=list(names), range=shapes), legend=legend),
    )


def panel(
    data: Sequence[Point],
    names: Sequence[str],
    x: alt.X,
    y: alt.Y,
    theme: Theme,
    *,
    domain: tuple[float, float],
    width: int,
    height: int,
    title: str | None = None,
    columns: int = 4,
    size: int = 40,
) -> alt.LayerChart:
    """Lines with bands and points; lines that leave `domain` are cut there, points left out."""
    color, shape = looks(names, theme, columns)
    low, high = domain
    inside = [point for point in data if low <= point["y"] <= high]
    chart = alt.Chart(alt.InlineData(values=list(data)))
    marks: list[alt.Chart | alt.LayerChart] = [
        chart.mark_area(opacity=0.16, strokeWidth=0, clip=True).encode(
            x=x, y=alt.Y("low:Q", scale=y["scale"]), y2="high:Q", color=color
        ),
        chart.mark_line(strokeWidth=2, strokeJoin="round", clip=True).encode(x=x, y=y, color=color),
        alt.Chart(alt.InlineData(values=inside))
        .mark_point(filled=True, size=size, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape),
    ]
    drawn = alt.LayerChart(layer=marks).properties(width=width, height=height)
    return drawn if title is None else drawn.properties(title=small(title, theme))


def small(text: str, theme: Theme) -> alt.TitleParams:
    """The title of one panel among several."""
    return alt.TitleParams(
        text=text, anchor="start", fontSize=13, fontWeight=600, color=theme.text, offset=6
    )


def log_y(title: str | None, domain: tuple[float, float], deep: bool = False) -> alt.Y:
    """The ordinate of log₁₀ values, labelled with the numbers themselves."""
    ticks: Ticks = (deep_ticks if deep else log_ticks)(*domain)
    scale = (
        alt.Scale(type="symlog", constant=1, domain=list(domain), nice=False)
        if deep
        else alt.Scale(domain=list(domain), nice=False)
    )
    axis = alt.Axis(title=title, values=ticks.values, labelExpr=ticks.label_expression())
    return alt.Y("y:Q", scale=scale, axis=axis)


def log_domain(data: Sequence[Point], deep: bool = False) -> tuple[float, float]:
    """The range of all bands, with a margin."""
    values = np.array([[point["low"], point["high"]] for point in data])
    low, high = float(values.min()), float(values.max())
    if deep:
        low, high = along(low), along(high)
        margin = 0.04 * (high - low)
        return exponent_at(low - margin), exponent_at(high + margin)
    margin = max(0.04 * (high - low), 0.02)
    return low - margin, high + margin


def layers_x(layers: int, step: int = 1, title: str = "Layer") -> alt.X:
    """The abscissa of layers 0 to `layers`, ticked every `step`."""
    ticks = [float(n) for n in range(0, layers + 1, step)]
    return alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, layers], nice=False),
        axis=alt.Axis(
            title=title, values=ticks, format="d", labelOverlap=False, labelFlush=False, grid=False
        ),
    )
