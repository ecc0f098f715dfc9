"""The charts of a decomposition: what each length holds, how collapsed it is, and which heads."""

import math
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report.axis import layer_ticks, log_ticks
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.decomposition.heads import heat_map
from rankcollapse.report.decomposition.summary import (
    ADDITIVE,
    TITLES,
    TOTAL,
    by_length,
    counted,
    sources,
    variant_name,
)
from rankcollapse.report.decomposition.target import target_name
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.numbers import mean_and_std, number
from rankcollapse.report.style import LIGHT, SHAPES, Theme

VARIABLES = ("share", "relative_residual", "projection", "head_projection")
PATHS = "path count"
SUM = "sum"
FLOOR = {"float32": 4 * 2.0**-23, "float64": 4 * 2.0**-52}


def chart(
    dataset: xr.Dataset,
    variable: str = "share",
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> alt.LayerChart:
    """Return one chart of a decomposition.

    Shares and projections are stacked bars by source, negative ones downwards, with their sum and
    its standard deviation (ddof = 1) as a point with whiskers; over shares a line tells the share
    of the number of the input's paths. The relative residual has a line per source on a
    logarithmic axis, without terms whose residual is rounding. Heads are a heat map.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        variable: "share", "relative_residual", "projection" or "head_projection".
        theme: the colours.
        width: in pixels, or "container" to fill the element that holds the chart.
        height: in pixels, without axes and legend.
        title: whether to write what is drawn over the chart.

    Raises:
        OptionError: no such chart, or the data set has no such variable.
    """
    known = [name for name in VARIABLES if name in dataset]
    if variable not in known:
        raise OptionError(f"There is no chart of {variable!r}; there are charts of {known}.")
    if variable == "head_projection":
        layers = heat_map(dataset, theme)
    elif variable in ADDITIVE:
        layers = _bars(dataset, variable, theme)
    else:
        layers = _lines(dataset, theme)
    what = {
        "share": "Share of the output by path length",
        "relative_residual": "Relative residual by path length",
        "projection": f"Projection on {target_name(dataset)} by path length",
        "head_projection": f"Projection on {target_name(dataset)} of all paths through a head",
    }[variable]
    drawn = alt.LayerChart(layer=layers).properties(width=width, height=height, description=what)
    if title:
        drawn = drawn.properties(title=heading(what, [_subtitle(dataset, variable)], theme))
    return configured(drawn, theme)


def charts(
    dataset: xr.Dataset,
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> dict[str, alt.LayerChart]:
    """Return every chart the data set has the numbers for, by variable; arguments as `chart`."""
    return {
        name: chart(dataset, name, theme=theme, width=width, height=height, title=title)
        for name in VARIABLES
        if name in dataset
    }


def _subtitle(dataset: xr.Dataset, variable: str) -> str:
    count = dataset.sizes["sample"]
    spread = "mean over" if variable == "head_projection" else "mean ± std over"
    over = f"{spread if count > 1 else 'over'} {count} text{'s' if count != 1 else ''}"
    init = metadata(dataset).get("init")
    details = [model_name(dataset), *(["random initialisation"] if init == "random" else [])]
    return " · ".join([*details, variant_name(dataset), over])


def _bars(dataset: xr.Dataset, variable: str, theme: Theme) -> list[alt.Chart]:
    spreads = by_length(dataset, variable)
    sums = spreads.pop(TOTAL)
    paths = counted(dataset) if variable == "share" else None
    names = [TITLES.get(source, source) for source in spreads]
    bars = [
        {
            "length": n,
            "name": name,
            "order": order,
            "y": s.mean,
            "text": mean_and_std(s.mean, s.std),
        }
        for order, (name, column) in enumerate(zip(names, spreads.values(), strict=True))
        for n, s in enumerate(column)
        if s is not None
    ]
    points = [
        {
            "length": n,
            "name": SUM,
            "y": s.mean,
            "low": s.mean - _deviation(s.std),
            "high": s.mean + _deviation(s.std),
            "text": mean_and_std(s.mean, s.std),
        }
        for n, s in enumerate(sums)
        if s is not None
    ]
    counts = [
        {"length": n, "name": PATHS, "y": float(share), "text": number(float(share))}
        for n, share in enumerate([] if paths is None else paths)
    ]
    extra = {SUM: theme.text, **({PATHS: theme.muted} if counts else {})}
    color = _color([*names, *extra], [*theme.palette[: len(names)], *extra.values()])
    title = "Share" if variable == "share" else "Projection"
    scale = alt.Scale(domain=_domain(bars, [*points, *counts]), nice=False)
    x, y = _x(dataset), alt.Y("y:Q", axis=alt.Axis(title=title, tickCount=6), scale=scale)
    tooltip = [
        alt.Tooltip("length:O", title="Length"),
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("text:N", title=title),
    ]
    layers = [
        _of(bars).mark_bar().encode(x=x, y=y, color=color, order="order:Q", tooltip=tooltip),
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(color=theme.muted, aria=False)
        .encode(y=alt.Y("zero:Q", scale=scale)),
        _of(points)
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=color),
        _of(points)
        .mark_point(filled=True, size=46, opacity=1)
        .encode(x=x, y=y, color=color, tooltip=tooltip),
    ]
    if counts:
        layers += [
            _of(counts)
            .mark_line(strokeWidth=1.75, strokeDash=[5, 3], aria=False)
            .encode(x=x, y=y, color=color),
            _of(counts)
            .mark_point(filled=True, size=40, opacity=1, shape="diamond")
            .encode(x=x, y=y, color=color, tooltip=tooltip),
        ]
    return layers


def _domain(bars: list[dict[str, Any]], points: list[dict[str, Any]]) -> list[float]:
    """Return the range of stacked bars and whiskers, with zero in it and a little room."""
    ends = [0.0, *(p.get(end, p["y"]) for p in points for end in ("low", "high"))]
    for sign in (-1, 1):
        stacks: dict[int, float] = {}
        for bar in bars:
            if sign * bar["y"] > 0:
                stacks[bar["length"]] = stacks.get(bar["length"], 0.0) + bar["y"]
        ends += stacks.values()
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or 1.0
    return [low - room if low < -room else low, high + room if high > 0 else high]


def _lines(dataset: xr.Dataset, theme: Theme) -> list[alt.Chart]:
    floor = FLOOR.get(str(metadata(dataset).get("dtype")), FLOOR["float32"])
    names = [TITLES.get(source, source) for source in sources(dataset)]
    points: list[dict[str, Any]] = [
        {
            "length": n,
            "name": name,
            "y": math.log10(s.mean),
            # Where the deviation reaches zero, down to the smallest sample.
            "low": math.log10(max(s.mean - _deviation(s.std), s.low, floor)),
            "high": math.log10(s.mean + _deviation(s.std)),
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
    x, y = _x(dataset), alt.Y("y:Q", scale=scale, axis=axis)
    color = _color(names, list(theme.palette[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    shape = alt.Shape("name:N", scale=shapes, legend=color.to_dict()["legend"])
    tooltip = [
        alt.Tooltip("length:O", title="Length"),
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("text:N", title="Relative residual"),
    ]
    whiskers = alt.Y("low:Q", scale=scale, axis=axis)
    return [
        _of(points).mark_line(strokeWidth=1.75, aria=False).encode(x=x, y=y, color=color),
        _of(points)
        .mark_rule(strokeWidth=1.25, aria=False)
        .encode(x=x, y=whiskers, y2="high:Q", color=color),
        _of(points)
        .mark_point(filled=True, size=46, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
    ]


def _of(rows: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _x(dataset: xr.Dataset) -> alt.X:
    layers = dataset.sizes["length"] - 1
    axis = alt.Axis(
        title="Path length (attention layers passed)",
        values=layer_ticks(layers),
        labelAngle=0,
        labelOverlap=False,
        ticks=False,
    )
    domain = list(range(layers + 1))
    return alt.X("length:O", axis=axis, scale=alt.Scale(domain=domain, paddingInner=0.35))


def _color(names: list[str], colours: list[str]) -> alt.Color:
    widest = 6.7 * max(map(len, names)) + 38
    columns = alt.ExprRef(f"max(1, min({len(names)}, floor(width / {widest})))")
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", columns=columns, symbolOpacity=1
    )
    return alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=legend)


def _deviation(std: float) -> float:
    return 0.0 if np.isnan(std) else std
