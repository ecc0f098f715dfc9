"""The chart of path lengths: the share of paths at each length, a line per architecture."""

import math
from typing import Any

import altair as alt
import xarray as xr

from rankcollapse.report.axis import layer_ticks, log_ticks
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.numbers import number, power
from rankcollapse.report.paths.summary import tidy, with_skips
from rankcollapse.report.style import LIGHT, SHAPES, Theme

WIDTH, HEIGHT = 640, 340


def chart(
    dataset: xr.Dataset,
    *,
    relative: bool | None = None,
    logarithmic: bool = False,
    theme: Theme = LIGHT,
    width: int | str = WIDTH,
    height: int = HEIGHT,
    title: bool = True,
) -> alt.LayerChart:
    """Return the chart of the share of paths against their length, as in Figure 5.

    Lengths are whole numbers; the lines between the points only guide the eye. A click in the
    legend isolates an architecture, shift and click adds one.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.
        relative: whether the abscissa is the length over the number of layers, or the length;
            relative by default where there are skip connections, without which it is always 1.
        logarithmic: whether the ordinate is logarithmic.
        theme: the colours.
        width: in pixels, or "container" to fill the element that holds the chart.
        height: in pixels, without axes and legend.
        title: whether to write what is drawn over the chart.
    """
    relative = with_skips(dataset) if relative is None else relative
    points = _points(dataset, relative, logarithmic)
    names = [str(name) for name in dataset["architecture"].values]
    # A colour that comes again has a dashed line.
    for point in points:
        point["again"] = names.index(point["name"]) >= len(theme.palette)
    layers = int(dataset["layers"].max())
    color, shape = _looks(names, theme)
    dash = alt.condition("datum.again", alt.value([6, 3]), alt.value([1, 0]))
    x = alt.X("x:Q", scale=_scale([0, 1 if relative else layers]), axis=_axis_x(relative, layers))
    y = _logarithmic_y(points) if logarithmic else _linear_y(points)
    isolate = alt.selection_point(name="isolate", fields=["name"], bind="legend")
    hover = alt.selection_point(
        name="hover", fields=["name", "x"], on="pointerover", clear="pointerout", empty=False
    )
    faded = alt.condition(isolate, alt.value(1), alt.value(0.1))
    tooltip = [
        alt.Tooltip("name:N", title="Architecture"),
        alt.Tooltip("length:N", title="Length"),
        alt.Tooltip("share:N", title="Share"),
        alt.Tooltip("count:N", title="Paths"),
    ]
    drawn = alt.LayerChart(
        data=alt.InlineData(values=points),
        layer=[
            alt.Chart()
            .mark_line(strokeWidth=1.75, strokeJoin="round", aria=False)
            .encode(x=x, y=y, color=color, strokeDash=dash, opacity=faded),
            alt.Chart()
            .transform_filter("datum.apart")
            .mark_point(filled=True, aria=False)
            .encode(
                x=x,
                y=y,
                color=color,
                shape=shape,
                opacity=faded,
                size=alt.condition(hover, alt.value(150), alt.value(42 if layers <= 26 else 30)),
            )
            .add_params(isolate),
            # Unseen discs, large enough for a finger; they alone speak to screen readers.
            alt.Chart()
            .mark_circle(size=220, opacity=0)
            .encode(x=x, y=y, tooltip=tooltip)
            .add_params(hover),
        ],
    ).properties(
        width=width,
        height=height,
        description=f"Share of paths by length for {', '.join(names)}",
    )
    if title:
        what = "with skip connections" if with_skips(dataset) else "without skip connections"
        drawn = drawn.properties(title=heading("Share of paths by length", [what], theme))
    return configured(drawn, theme)


def _points(dataset: xr.Dataset, relative: bool, logarithmic: bool) -> list[dict[str, Any]]:
    rows = tidy(dataset).to_dict("records")
    visible = 0.002 * max(row["share"] for row in rows)
    return [
        {
            "name": row["architecture"],
            "x": row["relative_length"] if relative else float(row["length"]),
            "y": row["log10_share"] if logarithmic else row["share"],
            "length": f"{row['length']} of {row['layers']}",
            "share": _share(row["share"], row["log10_share"]),
            # On the ground line, hundreds of points would lie on each other.
            "apart": logarithmic or row["share"] > visible,
            "count": power(row["log10_count"]),
        }
        for row in rows
        if math.isfinite(row["log10_share"])
    ]


def _share(share: float, log10: float) -> str:
    return power(log10) if share < 1e-300 else number(share)


def _looks(names: list[str], theme: Theme) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of each name; the pair repeats after 56 names."""
    colours = [theme.palette[n % len(theme.palette)] for n in range(len(names))]
    shapes = [SHAPES[n % len(SHAPES)] for n in range(len(names))]
    widest = 6.7 * max(map(len, names)) + 38
    columns = alt.ExprRef(f"max(1, min({len(names)}, floor(width / {widest})))")
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", columns=columns, symbolOpacity=1
    )
    return (
        alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.Shape("name:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
    )


def _scale(domain: list[float]) -> alt.Scale:
    return alt.Scale(domain=domain, nice=False)


def _axis_x(relative: bool, layers: int) -> alt.Axis:
    if relative:
        ticks: list[float] = [n / 5 for n in range(6)]
        title = "Length ÷ layers"
        return alt.Axis(title=title, values=ticks, format=".1f", labelFlush=False, grid=False)
    ticks = [float(tick) for tick in layer_ticks(layers)]
    return alt.Axis(
        title="Length", values=ticks, format="d", labelOverlap=False, labelFlush=False, grid=False
    )


def _linear_y(points: list[dict[str, Any]]) -> alt.Y:
    top = 1.04 * max(point["y"] for point in points)
    axis = alt.Axis(title="Share of paths", tickCount=6)
    return alt.Y("y:Q", scale=_scale([0, top]), axis=axis)


def _logarithmic_y(points: list[dict[str, Any]]) -> alt.Y:
    low = min(-1.0, *(point["y"] for point in points))
    ticks = log_ticks(low, 0)
    axis = alt.Axis(title="Share of paths", values=ticks.values, labelExpr=ticks.label_expression())
    return alt.Y("y:Q", scale=_scale([low, 0]), axis=axis)
