"""The charts of the tug-of-war: residual and sensitivity by the MLP's strength, and together."""

from collections.abc import Mapping

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.experiment import Drawing
from rankcollapse.experiments.line_panel import Point
from rankcollapse.report.axis import log_ticks
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.style import Theme

LABELS = {"gelu": "GELU", "tanh": "tanh"}
RESIDUAL = "Relative residual"
HIGHEST = 0.3
"""No relative residual is above 2, whatever a band of logarithms is."""
DEEP = 30.0
"""Decades from which a panel is doubly logarithmic."""


def by_factor(dataset: xr.Dataset, titles: Mapping[str, str], theme: Theme) -> Drawing:
    """Residual above, sensitivity below, each by the factor on the MLP's Lipschitz constant."""
    last = int(dataset["layer"][-1])
    residual = dataset["log10_relative_residual"].sel(layer=last)
    sensitivity = xr.DataArray(np.log10(dataset["sensitivity"]))
    shared = line_panel.log_domain([p for v in titles for p in _series(sensitivity.sel(variant=v))])
    collapsing = _collapsing([_series(residual.sel(variant=v)) for v in titles])
    rows = []
    for values, name in ((residual, RESIDUAL), (sensitivity, "Sensitivity")):
        panels = []
        for number, (variant, title) in enumerate(titles.items()):
            data = _series(values.sel(variant=variant))
            deep = name == RESIDUAL and _deep(data)
            own = collapsing if deep else line_panel.log_domain(data)
            domain = own if name == RESIDUAL else shared
            y = line_panel.log_y(name if number == 0 else None, domain, deep)
            over = title if name == RESIDUAL else None
            panels.append(_panel(data, _factors(dataset), y, domain, over, theme))
        rows.append(alt.hconcat(*panels, spacing=24))
    title = heading(
        "Stronger MLPs: what they do to collapse, and to robustness",
        [
            f"Relative residual after {last} layers, and relative change of the output per "
            f"relative change of the input · mean ± std of the logarithm over "
            f"{dataset.sizes['seed']} seeds",
            "Residuals without skips are drawn doubly logarithmic",
        ],
        theme,
    )
    return configured(alt.vconcat(*rows, spacing=16).properties(title=title), theme)


def residual_by_sensitivity(
    dataset: xr.Dataset, titles: Mapping[str, str], theme: Theme
) -> Drawing:
    """One against the other, along growing strength of the MLP."""
    last = int(dataset["layer"][-1])
    drawn = []
    for variant in titles:
        chosen = dataset.sel(variant=variant)
        sensitivity = _series(xr.DataArray(np.log10(chosen["sensitivity"])))
        at = {(point["series"], point["x"]): point["y"] for point in sensitivity}
        drawn.append(
            [
                {**p, "low": p["y"], "high": p["y"], "s": p["x"], "x": at[p["series"], p["x"]]}
                for p in _series(chosen["log10_relative_residual"].sel(layer=last))
            ]
        )
    collapsing = _collapsing(drawn)
    panels = []
    for number, (title, data) in enumerate(zip(titles.values(), drawn, strict=True)):
        domain = collapsing if _deep(data) else line_panel.log_domain(data)
        panels.append(_trade(data, domain, number == 0, title, theme))
    title = heading(
        "Collapse against robustness",
        [
            f"Means of the logarithm over {dataset.sizes['seed']} seeds, along the factor s on the "
            f"MLP's Lipschitz constant, from {float(dataset['factor'][0]):g} (small) to "
            f"{float(dataset['factor'][-1]):g} (large points)",
        ],
        theme,
    )
    return configured(alt.hconcat(*panels, spacing=24).properties(title=title), theme)


def _series(values: xr.DataArray) -> list[Point]:
    """The four curves of one variant, by activation and way."""
    result: list[Point] = []
    named = values.assign_coords(factor=np.log2(values["factor"].values))
    for activation in named["activation"].values:
        for way in named["way"].values:
            chosen = named.sel(activation=activation, way=way)
            name = f"{LABELS[str(activation)]}, {way}"
            result += line_panel.points(chosen, "factor", name)
    return result


def _names(data: list[Point]) -> list[str]:
    return list(dict.fromkeys(point["series"] for point in data))


def _deep(data: list[Point]) -> bool:
    return min(point["low"] for point in data) < -DEEP


def _collapsing(panels: list[list[Point]]) -> tuple[float, float]:
    """The one range of all panels that are doubly logarithmic."""
    deep = [point for data in panels if _deep(data) for point in data]
    if not deep:
        return -1.0, 0.0
    low, high = line_panel.log_domain(deep, deep=True)
    return low, min(high, HIGHEST)


def _factors(dataset: xr.Dataset) -> alt.X:
    values = np.log2(dataset["factor"].values)
    margin = 0.15
    cases = "".join(
        f"datum.value == {v} ? '{label}' : "
        for v, label in zip(values, (f"{f:g}" for f in dataset["factor"].values), strict=True)
    )
    axis = alt.Axis(
        title="Factor s on the Lipschitz constant",
        values=[float(v) for v in values],
        labelExpr=f"{cases}''",
        grid=False,
    )
    domain = [float(values[0]) - margin, float(values[-1]) + margin]
    return alt.X("x:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)


def _panel(
    data: list[Point],
    x: alt.X,
    y: alt.Y,
    domain: tuple[float, float],
    title: str | None,
    theme: Theme,
) -> alt.LayerChart:
    return line_panel.panel(
        data, _names(data), x, y, theme, domain=domain, width=250, height=220, title=title
    )


def _trade(
    data: list[Point], domain: tuple[float, float], first: bool, title: str, theme: Theme
) -> alt.LayerChart:
    names, deep = _names(data), _deep(data)
    y = line_panel.log_y(RESIDUAL if first else None, domain, deep)
    horizontal = [point["x"] for point in data]
    low, high = min(horizontal) - 0.15, max(horizontal) + 0.15
    ticks = log_ticks(low, high)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(title="Sensitivity", values=ticks.values, labelExpr=ticks.label_expression()),
    )
    color, shape = line_panel.looks(names, theme, 4)
    size = alt.Size("s:Q", scale=alt.Scale(range=[20, 150]), legend=None)
    chart = alt.Chart(alt.InlineData(values=data))
    order = alt.Order("s:Q")
    layers = [
        chart.mark_line(strokeWidth=1.75).encode(x=x, y=y, color=color, order=order),
        chart.mark_point(filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, size=size
        ),
    ]
    drawn = alt.LayerChart(layer=layers)
    return drawn.properties(width=250, height=260, title=line_panel.small(title, theme))
