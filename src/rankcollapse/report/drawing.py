"""What every chart is made of.

Bands, lines, points (hollow at the rounding floor), the state after a final norm apart at the
right, floors and references as dashed rules, dashes along the lines where a plain pass resolves
them, a legend to click and unseen discs that bring the tooltips.
"""

from typing import Any

import altair as alt

from rankcollapse.report.axes import right_end, x_axis, x_scale, y_axis, y_scale
from rankcollapse.report.curves import Curves
from rankcollapse.report.measures import Measure
from rankcollapse.report.style import SHAPES, Theme, look

AFTER = "datum.after"
THROUGH = "!datum.after"

_PLACES: dict[str, dict[str, Any]] = {
    "above": {"align": "right", "baseline": "bottom", "dy": -4},
    "below": {"align": "right", "baseline": "top", "dy": 5},
    "start": {"align": "left", "baseline": "bottom", "dy": -4},
}


class Drawing:
    """The layers of one chart, which share their scales and the two selections."""

    def __init__(
        self,
        drawn: Curves,
        measure: Measure,
        variants: list[str],
        theme: Theme,
        still: bool = False,
    ) -> None:
        """Prepare what the layers have in common; `variants` are all, also those not drawn.

        With `still` there is nothing to click and nothing that speaks, as a panel of several needs.
        """
        self.drawn, self.measure, self.theme, self.still = drawn, measure, theme, still
        numbers = {name: n for name, n in look(variants).items() if name in drawn.variants}
        variants = list(numbers)
        colours = [theme.palette[n % len(theme.palette)] for n in numbers.values()]
        shapes = [SHAPES[n % len(SHAPES)] for n in numbers.values()]
        entries = [6.7 * len(name) + 38 for name in variants]
        in_a_row = f"width > {sum(entries)} ? {len(variants)}"
        fitting = alt.ExprRef(f"{in_a_row} : max(1, floor(width / {max(entries)}))")
        legend = alt.Legend(
            title=None,
            orient="top",
            direction="horizontal",
            # Beside other panels there is no one width.
            columns=len(variants) if still else fitting,
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
        self.x = alt.X("position:Q", scale=x_scale(drawn), axis=x_axis(drawn))
        self.y_scale = y_scale(drawn, measure)
        self.y = alt.Y("y:Q", scale=self.y_scale, axis=y_axis(drawn, measure))
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
                *self._rules(),
                self._line(),
                *self._plain(),
                *self._labels(),
                *([self._bar()] if has_after else []),
                self._points(),
                *([] if self.still else [self._targets()]),
            ],
        )

    def _band(self) -> alt.Chart:
        return (
            alt.Chart()
            .transform_filter(THROUGH)
            .mark_area(strokeWidth=0, aria=False, clip=self._clips)
            .encode(
                x=self.x,
                y=alt.Y("low:Q", scale=self.y_scale),
                y2="high:Q",
                color=self.colour,
                opacity=self._faded(0.16, 0.02),
            )
        )

    def _line(self) -> alt.Chart:
        return (
            alt.Chart()
            .transform_filter(THROUGH)
            .mark_line(strokeWidth=2, strokeJoin="round", aria=False, clip=self._clips)
            .encode(x=self.x, y=self.y, color=self.colour, opacity=self._faded())
        )

    def _plain(self) -> list[alt.Chart]:
        """Return the plain pass as hollow dashes, which stand out on a line of the same colour."""
        if not self.drawn.plain:
            return []
        dashes = alt.Chart(alt.InlineData(values=self.drawn.plain)).encode(
            x=self.x, y=self.y, detail="variant:N", opacity=self._faded()
        )
        style = {"strokeDash": [4, 4], "aria": False}
        return [
            dashes.mark_line(strokeWidth=2, **style).encode(color=self.colour),
            dashes.mark_line(strokeWidth=1, color=self.theme.surface, **style),
        ]

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
                opacity=self._faded(0.5, 0.05),
            )
        )

    def _points(self) -> alt.Chart:
        size = 48 if self.drawn.last_layer <= 26 else 20
        fill = alt.condition(
            "datum.hollow",
            alt.value(self.theme.surface),
            alt.Fill("variant:N", scale=self.colour_scale, legend=None),
        )
        points = (
            self._within()
            .mark_point(strokeWidth=1.75, fillOpacity=1, strokeOpacity=1, aria=False)
            .encode(
                x=self.x,
                y=self.y,
                color=self.colour,
                fill=fill,
                shape=self.shape,
                opacity=self._faded(),
            )
        )
        if self.still:
            return points.encode(size=alt.value(size))
        pointed_at = alt.condition(self.hover, alt.value(150), alt.value(size))
        return points.encode(size=pointed_at).add_params(self.isolate)

    def _targets(self) -> alt.Chart:
        """Return unseen discs around the points, large enough for a finger.

        They alone speak to screen readers, in the words of the tooltip.
        """
        return (
            self._within()
            .mark_circle(size=420, opacity=0)
            .encode(x=self.x, y=self.y, tooltip=self.tooltip)
            .add_params(self.hover)
        )

    def _within(self) -> alt.Chart:
        """Return a chart without the points beyond the window, at whose edge lines end."""
        if not self._clips:
            return alt.Chart()
        low, high = self.drawn.domain
        return alt.Chart().transform_filter(f"{low} <= datum.y && datum.y <= {high}")

    @property
    def _clips(self) -> bool:
        return self.measure.window is not None

    def _faded(self, shown: float = 1, faded: float = 0.12) -> Any:
        if self.still:
            return alt.value(shown)
        return alt.condition(self.isolate, alt.value(shown), alt.value(faded))

    def _rules(self) -> list[alt.Chart]:
        rule = self._ruled().mark_rule(
            strokeDash=[5, 4], strokeWidth=1.25, color=self.theme.muted, aria=False
        )
        return [rule] if self.drawn.rules.lines else []

    def _labels(self) -> list[alt.Chart]:
        """Return the labels over the lines that cross them, with a rim in the ground's colour."""
        place = {"fontSize": 11, **_PLACES[self.drawn.rules.place]}
        surface, text = self.theme.surface, self.theme.muted
        rim = {"stroke": surface, "strokeWidth": 4, "strokeJoin": "round", "aria": False}
        labels = [
            self._ruled().mark_text(**place, **rim, color=surface),
            self._ruled().mark_text(**place, color=text),
        ]
        return (
            [x.encode(x=self.x, text="label:N") for x in labels] if self.drawn.rules.lines else []
        )

    def _ruled(self) -> alt.Chart:
        at = 0.0 if self.drawn.rules.place == "start" else float(self.drawn.last_layer)
        lines = self.drawn.rules.lines
        values = [{"y": y, "label": label, "position": at} for y, label in lines]
        return alt.Chart(alt.InlineData(values=values)).encode(y=self.y)

    def _ground(self) -> alt.Chart:
        """Return the ground that sets the state after the final norm off from the layers."""
        right = right_end(self.drawn)
        left = right - (right - self.drawn.last_layer) * 2 / 3
        values = [{"from": left, "to": right}]
        return (
            alt.Chart(alt.InlineData(values=values))
            .mark_rect(color=self.theme.muted, opacity=0.09, aria=False)
            .encode(
                x=alt.X("from:Q", scale=x_scale(self.drawn), axis=x_axis(self.drawn)), x2="to:Q"
            )
        )
