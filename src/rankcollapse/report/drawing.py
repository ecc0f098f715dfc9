"""What every chart is made of.

Bands, lines, points (hollow at the rounding floor), the state after a final norm apart at the
right, the floors as dashed rules, a legend to click and unseen discs that bring the tooltips.
"""

from typing import Any

import altair as alt

from rankcollapse.report.axis import Ticks, layer_ticks, log_ticks
from rankcollapse.report.curves import Curves, Measure
from rankcollapse.report.style import SHAPES, Theme, look

AFTER = "datum.after"
THROUGH = "!datum.after"


class Drawing:
    """The layers of one chart, which share their scales and the two selections."""

    def __init__(self, drawn: Curves, measure: Measure, variants: list[str], theme: Theme) -> None:
        """Prepare what the layers have in common."""
        self.drawn, self.theme = drawn, theme
        numbers = look(variants)
        colours = [theme.palette[n % len(theme.palette)] for n in numbers.values()]
        shapes = [SHAPES[n % len(SHAPES)] for n in numbers.values()]
        entries = [6.7 * len(name) + 38 for name in variants]
        in_a_row = f"width > {sum(entries)} ? {len(variants)}"
        legend = alt.Legend(
            title=None,
            orient="top",
            direction="horizontal",
            columns=alt.ExprRef(f"{in_a_row} : max(1, floor(width / {max(entries)}))"),
            symbolOpacity=1,
        )
        self.colour_scale = alt.Scale(domain=variants, range=colours)
        self.colour = alt.Color("variant:N", scale=self.colour_scale, legend=legend)
        self.shape = alt.Shape(
            "variant:N", scale=alt.Scale(domain=variants, range=shapes), legend=legend
        )
        self.isolate = alt.selection_point(name="isolate", fields=["variant"], bind="legend")
        self.hover = alt.selection_point(
            name="hover",
            fields=["variant", "position"],
            on="pointerover",
            clear="pointerout",
            empty=False,
        )
        self.x = alt.X("position:Q", scale=self._x_scale(), axis=self._x_axis())
        axis = self._log_axis() if measure.logarithmic else alt.Axis(title=None, tickCount=6)
        self.y_scale = alt.Scale(domain=list(drawn.domain), nice=not measure.logarithmic)
        self.y = alt.Y("y:Q", scale=self.y_scale, axis=axis)
        self.tooltip = [
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("layer:N", title="Layer"),
            alt.Tooltip("value:N", title=measure.title),
            alt.Tooltip("note:N", title="Over"),
        ]

    def layers(self) -> alt.LayerChart:
        """Return all layers, the lowest first."""
        has_after = any(point["after"] for point in self.drawn.points)
        return alt.LayerChart(
            data=alt.InlineData(values=self.drawn.points),
            layer=[
                *([self._ground()] if has_after else []),
                self._band(),
                *self._floor_rules(),
                self._line(),
                *self._floor_labels(),
                *([self._bar()] if has_after else []),
                self._points(),
                self._targets(),
            ],
        )

    def _band(self) -> alt.Chart:
        return (
            alt.Chart()
            .transform_filter(THROUGH)
            .mark_area(strokeWidth=0, aria=False)
            .encode(
                x=self.x,
                y=alt.Y("low:Q", scale=self.y_scale),
                y2="high:Q",
                color=self.colour,
                opacity=alt.condition(self.isolate, alt.value(0.16), alt.value(0.02)),
            )
        )

    def _line(self) -> alt.Chart:
        return (
            alt.Chart()
            .transform_filter(THROUGH)
            .mark_line(strokeWidth=2, strokeJoin="round", aria=False)
            .encode(x=self.x, y=self.y, color=self.colour, opacity=self._faded())
        )

    def _bar(self) -> alt.Chart:
        return (
            alt.Chart()
            .transform_filter(AFTER)
            .mark_rule(strokeWidth=2, aria=False)
            .encode(
                x=self.x,
                y=alt.Y("low:Q", scale=self.y_scale),
                y2="high:Q",
                color=self.colour,
                opacity=alt.condition(self.isolate, alt.value(0.5), alt.value(0.05)),
            )
        )

    def _points(self) -> alt.Chart:
        size = 48 if self.drawn.last_layer <= 26 else 20
        fill = alt.condition(
            "datum.hollow",
            alt.value(self.theme.surface),
            alt.Fill("variant:N", scale=self.colour_scale, legend=None),
        )
        return (
            alt.Chart()
            .mark_point(strokeWidth=1.75, fillOpacity=1, strokeOpacity=1, aria=False)
            .encode(
                x=self.x,
                y=self.y,
                color=self.colour,
                fill=fill,
                shape=self.shape,
                opacity=self._faded(),
                size=alt.condition(self.hover, alt.value(150), alt.value(size)),
            )
            .add_params(self.isolate)
        )

    def _targets(self) -> alt.Chart:
        """Return unseen discs around the points, large enough for a finger.

        They alone speak to screen readers, in the words of the tooltip.
        """
        return (
            alt.Chart()
            .mark_circle(size=420, opacity=0)
            .encode(x=self.x, y=self.y, tooltip=self.tooltip)
            .add_params(self.hover)
        )

    def _faded(self) -> Any:
        return alt.condition(self.isolate, alt.value(1), alt.value(0.12))

    def _floor_rules(self) -> list[alt.Chart]:
        rule = self._floors().mark_rule(
            strokeDash=[5, 4], strokeWidth=1.25, color=self.theme.muted, aria=False
        )
        return [rule] if self.drawn.floors else []

    def _floor_labels(self) -> list[alt.Chart]:
        """Return the labels over the lines that cross them, with a rim in the ground's colour."""
        place = {"align": "right", "baseline": "bottom", "dy": -4, "fontSize": 11}
        surface, text = self.theme.surface, self.theme.muted
        rim = {"stroke": surface, "strokeWidth": 4, "strokeJoin": "round", "aria": False}
        labels = [
            self._floors().mark_text(**place, **rim, color=surface),
            self._floors().mark_text(**place, color=text),
        ]
        return [x.encode(x=self.x, text="label:N") for x in labels] if self.drawn.floors else []

    def _floors(self) -> alt.Chart:
        end = float(self.drawn.last_layer)
        values = [{"y": y, "label": label, "position": end} for y, label in self.drawn.floors]
        return alt.Chart(alt.InlineData(values=values)).encode(y=self.y)

    def _ground(self) -> alt.Chart:
        """Return the ground that sets the state after the final norm off from the layers."""
        right = self._right()
        left = right - (right - self.drawn.last_layer) * 2 / 3
        values = [{"from": left, "to": right}]
        return (
            alt.Chart(alt.InlineData(values=values))
            .mark_rect(color=self.theme.muted, opacity=0.09, aria=False)
            .encode(x=alt.X("from:Q", scale=self._x_scale(), axis=self._x_axis()), x2="to:Q")
        )

    def _right(self) -> float:
        """Return the abscissa of the right end, half the gap behind the last point."""
        last, edge = self.drawn.last_layer, self.drawn.edge
        return max(float(last), 0.5) if edge is None else edge + (edge - last) / 2

    def _x_scale(self) -> alt.Scale:
        return alt.Scale(domain=[0, self._right()], nice=False)

    def _x_axis(self) -> alt.Axis:
        last, edge = self.drawn.last_layer, self.drawn.edge
        ticks: list[float] = [float(t) for t in layer_ticks(last)]
        label = "format(datum.value, 'd')"
        if edge is not None:
            ticks.append(edge)
            label = f"datum.value > {last} ? ['final', 'norm'] : {label}"
        return alt.Axis(
            title="Layer",
            values=ticks,
            labelExpr=label,
            labelOverlap=False,
            labelFlush=False,
            grid=False,
        )

    def _log_axis(self) -> alt.Axis:
        ticks: Ticks = log_ticks(*self.drawn.domain)
        return alt.Axis(title=None, values=ticks.values, labelExpr=ticks.label_expression())
