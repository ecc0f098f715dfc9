"""The two axes of a chart as Altair has them: their scales, and where they are ticked."""

import altair as alt

from rankcollapse.report.axis import deep_ticks, layer_ticks, log_ticks
from rankcollapse.report.curves import Curves
from rankcollapse.report.measures import Measure


def right_end(drawn: Curves) -> float:
    """Return the abscissa of the right end, half the gap behind a point after a final norm."""
    last, edge = drawn.last_layer, drawn.edge
    return max(float(last), 0.5) if edge is None else edge + (edge - last) / 2


def x_scale(drawn: Curves) -> alt.Scale:
    """Return the scale of the layers, with room for the state after a final norm."""
    return alt.Scale(domain=[0, right_end(drawn)], nice=False)


def x_axis(drawn: Curves) -> alt.Axis:
    """Return the axis of the layers, whose last tick is the final norm if there is one."""
    last, edge = drawn.last_layer, drawn.edge
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


def y_scale(drawn: Curves, measure: Measure) -> alt.Scale:
    """Return the scale of the quantity, or of its log10."""
    domain = list(drawn.domain)
    if drawn.deep:
        # ± ln(1 + |log10|), as `axis.along`.
        return alt.Scale(type="symlog", constant=1, domain=domain, nice=False)
    return alt.Scale(domain=domain, nice=not measure.logarithmic and measure.window is None)


def y_axis(drawn: Curves, measure: Measure) -> alt.Axis:
    """Return the axis of the quantity."""
    if measure.logarithmic:
        ticks = (deep_ticks if drawn.deep else log_ticks)(*drawn.domain)
        return alt.Axis(title=None, values=ticks.values, labelExpr=ticks.label_expression())
    if measure.window is not None:
        return alt.Axis(title=None, tickCount=6, tickMinStep=1, format="d")
    return alt.Axis(title=None, tickCount=6)
