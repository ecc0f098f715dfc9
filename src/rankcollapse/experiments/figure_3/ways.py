"""One panel of Figure 3: the ways of two points beside the arcs that they were trained on."""

from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.figure_3.circle import arcs
from rankcollapse.report.style import Theme

SIDE = 190
FRAME = 0.6
"""Coordinates reach so far in a panel; what leaves it is cut."""
MOVED = 0.004
"""A drawn point is at least so far from the one before."""
MET = 1e-3
"""Relative distance below which the two points count as one."""
POINTS = ("from (0.3, 0)", "from (−0.3, 0)")

Record = dict[str, Any]


def way(one: xr.Dataset, theme: Theme, bottom: bool, left: bool) -> alt.LayerChart:
    """Draws one network's two points.

    Args:
        one: `position` and `distance` by step.
        theme: The colours.
        bottom: Whether the abscissa has its name.
        left: Whether the ordinate has its name.
    """
    scale = alt.Scale(domain=[-FRAME, FRAME], nice=False)
    ticks = [-0.6, -0.3, 0.0, 0.3, 0.6]
    x = alt.X("x:Q", scale=scale, axis=alt.Axis(title="x" if bottom else None, values=ticks))
    y = alt.Y("y:Q", scale=scale, axis=alt.Axis(title="y" if left else None, values=ticks))
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="circle")
    colours = alt.Scale(domain=list(POINTS), range=list(theme.palette[:2]))
    color = alt.Color("point:N", scale=colours, legend=legend)
    met = meeting(one["distance"].values)
    apart, common = one["position"].values[: met + 1], one["position"].values[met:]
    shared = [record for record in _course(common) if record["point"] == POINTS[0]]
    starts, ends = _at(apart[:1]), _at(one["position"].values[-1:])
    layers = [
        _line(_course(arcs(60).numpy()), color=theme.muted, opacity=0.35, strokeWidth=5).encode(
            x=x, y=y, detail="point:N", order="order:Q"
        ),
        _line(shared, color=theme.muted, opacity=0.6, strokeWidth=0.4).encode(
            x=x, y=y, order="order:Q"
        ),
        _line(_course(apart), strokeWidth=2).encode(x=x, y=y, color=color, order="order:Q"),
        _mark(starts, size=70, fill=theme.surface, strokeWidth=2).encode(x=x, y=y, color=color),
        _mark(ends, size=60, filled=True).encode(x=x, y=y, color=color),
    ]
    if met < one.sizes["step"] - 1:
        cross = _mark(_at(apart[-1:])[:1], shape="cross", size=90, filled=True, color=theme.text)
        layers.append(cross.encode(x=x, y=y))
    text = f"{capital(one['variant'].values)}, width {int(one['width'])}"
    drawn = alt.LayerChart(layer=layers)
    return drawn.properties(width=SIDE, height=SIDE, title=line_panel.small(text, theme))


def meeting(distance: np.ndarray) -> int:
    """The first step from which on the two points are one; the last where they never are."""
    apart = np.flatnonzero(distance >= MET)
    return min(int(apart[-1]) + 1 if len(apart) else 0, len(distance) - 1)


def capital(name: object) -> str:
    """The name with its first letter in upper case."""
    return f"{str(name)[:1].upper()}{str(name)[1:]}"


def thinned(path: np.ndarray) -> np.ndarray:
    """The points that are some way from the one kept before, with the first and the last."""
    kept = [path[0]]
    for point in path[1:]:
        if np.linalg.norm(point - kept[-1]) >= MOVED:
            kept.append(point)
    return np.stack([*kept, path[-1]])


def _course(path: np.ndarray) -> list[Record]:
    return [
        {"x": float(x), "y": float(y), "point": name, "order": order}
        for index, name in enumerate(POINTS)
        for order, (x, y) in enumerate(thinned(path[:, index]))
    ]


def _at(path: np.ndarray) -> list[Record]:
    """The points of a single step that are within the frame."""
    return [
        {"x": float(x), "y": float(y), "point": name}
        for name, (x, y) in zip(POINTS, path[0], strict=True)
        if max(abs(x), abs(y)) <= FRAME
    ]


def _line(records: list[Record], **look: Any) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=records)).mark_line(clip=True, **look)


def _mark(records: list[Record], **look: Any) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=records)).mark_point(opacity=1, **look)
