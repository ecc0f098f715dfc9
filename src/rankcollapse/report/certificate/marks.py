"""What the charts of a certificate are made of: lines, points, a legend to click, tooltips."""

from typing import Any

import altair as alt

from rankcollapse.report.axis import layer_ticks
from rankcollapse.report.certificate.points import Points
from rankcollapse.report.style import Theme

# Upper bounds never point upwards and lower bounds always do.
MEASURED_SHAPE = "circle"
UPPER_SHAPES = ("triangle-down", "square", "diamond", "cross", "circle", "triangle-left", "stroke")
LOWER_SHAPES = ("triangle-up", "triangle-right")


def looks(drawn: Points, theme: Theme) -> dict[str, tuple[str, str]]:
    """Return colour and shape of each name; the measured residual has the colour of text."""
    look = {drawn.measured: (theme.text, MEASURED_SHAPE)}
    for names, shapes, first in (
        (drawn.upper, UPPER_SHAPES, 0),
        (drawn.lower, LOWER_SHAPES, len(drawn.upper)),
    ):
        for n, name in enumerate(names):
            colour = theme.palette[(first + n) % len(theme.palette)]
            look[name] = colour, shapes[n % len(shapes)]
    return look


def layers(drawn: Points, theme: Theme) -> list[alt.Chart]:
    """Return the marks, the lowest first: lines, points, unseen discs that bring the tooltips."""
    look = looks(drawn, theme)
    isolate = alt.selection_point(name="isolate", fields=["name"], bind="legend")
    hover = alt.selection_point(
        name="hover", fields=["name", "layer"], on="pointerover", clear="pointerout", empty=False
    )
    names = list(look)
    legend = _legend(names)
    scale = alt.Scale(domain=names, range=[colour for colour, _ in look.values()])
    shapes = alt.Scale(domain=names, range=[shape for _, shape in look.values()])
    colour = alt.Color("name:N", scale=scale, legend=legend)
    fill = alt.condition(
        "datum.hollow", alt.value(theme.surface), alt.Fill("name:N", scale=scale, legend=None)
    )
    faded = alt.condition(isolate, alt.value(1), alt.value(0.12))
    x, y = _x(drawn), _y(drawn)
    size = 48 if drawn.layers <= 26 else 20
    # The first names on top, in the rings of those they would hide.
    marks = [p | {"size": size * (1 + min(p["under"], 2))} for p in reversed(drawn.points)]
    lines = sorted(reversed(drawn.segments), key=lambda s: s["name"] != drawn.measured)
    is_main = f"datum.name === '{drawn.measured}'"
    tooltip = [
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("layer:N", title="Layer"),
        alt.Tooltip("value:N", title="Residual"),
        alt.Tooltip("note:N", title="Here"),
    ]
    dash: Any = alt.condition("datum.dashed", alt.value([4, 4]), alt.value([1, 0]))
    return [
        _of(lines)
        .mark_rule(strokeCap="round", aria=False)
        .encode(
            x=x,
            x2="layer2:Q",
            y=y,
            y2="y2:Q",
            color=colour,
            opacity=faded,
            strokeDash=dash,
            size=alt.condition(is_main, alt.value(3.5), alt.value(1.75)),
        ),
        _of(marks)
        .mark_point(strokeWidth=1.75, fillOpacity=1, strokeOpacity=1, aria=False)
        .encode(
            x=x,
            y=y,
            color=colour,
            fill=fill,
            shape=alt.Shape("name:N", scale=shapes, legend=legend),
            opacity=faded,
            size=alt.condition(hover, alt.value(150), alt.Size("size:Q", scale=None, legend=None)),
        )
        .add_params(isolate),
        _of(marks)
        .mark_circle(size=420, opacity=0)
        .encode(x=x, y=y, tooltip=tooltip)
        .add_params(hover),
    ]


def _of(rows: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _legend(names: list[str]) -> alt.Legend:
    widest = 6.7 * max(map(len, names)) + 38
    columns = alt.ExprRef(f"max(1, min({len(names)}, floor(width / {widest})))")
    return alt.Legend(
        title=None, orient="top", direction="horizontal", columns=columns, symbolOpacity=1
    )


def _x(drawn: Points) -> alt.X:
    axis = alt.Axis(
        title="Layer",
        values=[float(tick) for tick in layer_ticks(drawn.layers)],
        format="d",
        labelOverlap=False,
        labelFlush=False,
        grid=False,
    )
    return alt.X("layer:Q", axis=axis, scale=alt.Scale(domain=[0, drawn.layers], nice=False))


def _y(drawn: Points) -> alt.Y:
    ticks = drawn.ticks
    axis = alt.Axis(title=None, values=ticks.values, labelExpr=ticks.label_expression())
    domain = list(drawn.domain)
    if drawn.deep:
        # ± ln(1 + |log10|), as `axis.along`.
        return alt.Y(
            "y:Q", axis=axis, scale=alt.Scale(type="symlog", constant=1, domain=domain, nice=False)
        )
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=domain, nice=False))
