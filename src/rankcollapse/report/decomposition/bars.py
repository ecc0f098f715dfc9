"""Shares and projections by length: bars by source, their sum, and how many paths there are."""

from typing import Any

import altair as alt
import xarray as xr

from rankcollapse.report.decomposition.marks import by_path_length, color_of, of, whisker
from rankcollapse.report.decomposition.summary import TITLES, TOTAL, by_length, counted
from rankcollapse.report.numbers import mean_and_std, number
from rankcollapse.report.style import Theme

PATHS = "path count"
SUM = "sum"


def bars(dataset: xr.Dataset, variable: str, theme: Theme) -> list[alt.Chart]:
    """Return the marks of shares or projections: stacked bars by source, their sum, path counts."""
    spreads = by_length(dataset, variable)
    sums = spreads.pop(TOTAL)
    paths = counted(dataset) if variable == "share" else None
    names = [TITLES.get(source, source) for source in spreads]
    stacked = [
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
            "low": s.mean - whisker(s.std),
            "high": s.mean + whisker(s.std),
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
    color = color_of([*names, *extra], [*theme.palette[: len(names)], *extra.values()])
    title = "Share" if variable == "share" else "Projection"
    scale = alt.Scale(domain=_domain(stacked, [*points, *counts]), nice=False)
    x = by_path_length(dataset)
    y = alt.Y("y:Q", axis=alt.Axis(title=title, tickCount=6), scale=scale)
    tooltip = [
        alt.Tooltip("length:O", title="Length"),
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("text:N", title=title),
    ]
    layers = [
        of(stacked).mark_bar().encode(x=x, y=y, color=color, order="order:Q", tooltip=tooltip),
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(color=theme.muted, aria=False)
        .encode(y=alt.Y("zero:Q", scale=scale)),
        of(points)
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=color),
        of(points)
        .mark_point(filled=True, size=46, opacity=1)
        .encode(x=x, y=y, color=color, tooltip=tooltip),
    ]
    if counts:
        layers += [
            of(counts)
            .mark_line(strokeWidth=1.75, strokeDash=[5, 3], aria=False)
            .encode(x=x, y=y, color=color),
            of(counts)
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
