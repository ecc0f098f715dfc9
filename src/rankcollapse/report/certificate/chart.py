"""The charts of a certificate: the measured residual through depth, and every bound beside it."""

from typing import Literal

import altair as alt
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report.certificate.marks import layers
from rankcollapse.report.certificate.points import Points, points
from rankcollapse.report.certificate.summary import FROBENIUS, PAPER, bounds, variant_name
from rankcollapse.report.chart import DEEP_AXIS, configured, heading
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.style import LIGHT, Theme

Name = Literal["per_layer", "in_depth", "per_layer_frobenius", "in_depth_frobenius"]
CHARTS: dict[Name, tuple[bool, str, str]] = {
    "per_layer": (False, PAPER, "Bounds from the state entering each layer"),
    "in_depth": (True, PAPER, "Bounds from the input of the network"),
    "per_layer_frobenius": (
        False,
        FROBENIUS,
        "Bounds from the state entering each layer, Frobenius norm",
    ),
    "in_depth_frobenius": (True, FROBENIUS, "Bounds from the input of the network, Frobenius norm"),
}
"""Whether a chart is in depth, of which norm, and its title."""


def chart(
    dataset: xr.Dataset,
    name: Name = "per_layer",
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> alt.LayerChart:
    """Return the chart of the measured residual and of the bounds on it.

    The ordinate is the mean of log10 over samples, on a doubly logarithmic axis where it spans 150
    decades or more. Points are hollow, and lines that lead to them dashed, where the hypotheses of
    a bound do not hold in every sample. Infinite bounds are not drawn. A click in the legend
    isolates a line.

    Args:
        dataset: what `rankcollapse.certify` returns.
        name: "per_layer" for bounds from the measured state that enters each layer, "in_depth" for
            those from the network's input; with "_frobenius" for those on the Frobenius norm.
        theme: the colours.
        width: in pixels, or "container" to fill the element that holds the chart.
        height: in pixels, without axes and legend.
        title: whether to write what is drawn over the chart.

    Raises:
        OptionError: no such chart, or the data set has no such bounds.
    """
    known = _known(dataset)
    if name not in known:
        raise OptionError(f"There is no chart of {name!r}; there are charts of {known}.")
    deep, norm, what = CHARTS[name]
    drawn = points(dataset, deep, norm)
    picture = alt.LayerChart(layer=layers(drawn, theme)).properties(
        width=width, height=height, description=f"{what}: {', '.join(drawn.names)}"
    )
    if title:
        picture = picture.properties(title=_heading(dataset, what, drawn, theme))
    return configured(picture, theme)


def charts(
    dataset: xr.Dataset,
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> dict[Name, alt.LayerChart]:
    """Return every chart the data set has bounds for, by name; arguments as `chart`."""
    return {
        name: chart(dataset, name, theme=theme, width=width, height=height, title=title)
        for name in _known(dataset)
    }


def _known(dataset: xr.Dataset) -> list[Name]:
    return [
        name for name, (deep, norm, _) in CHARTS.items() if bounds(dataset, deep=deep, norm=norm)
    ]


def _heading(dataset: xr.Dataset, what: str, drawn: Points, theme: Theme) -> alt.TitleParams:
    run = metadata(dataset)
    details = [model_name(dataset), f"variant {variant_name(dataset)}"]
    if run.get("init") == "random":
        details.insert(1, f"random initialisation, seed {run.get('seed')}")
    count = dataset.sizes["sample"]
    details.append(f"mean of log10 over {count} texts" if count > 1 else "one text")
    subtitle = [" · ".join(details)]
    hints = [DEEP_AXIS] if drawn.deep else []
    if drawn.has_hollow:
        hints.append("hollow and dashed: a bound whose hypotheses do not hold")
    if hints:
        text = "; ".join(hints)
        subtitle.append(f"{text[:1].upper()}{text[1:]}")
    return heading(what, subtitle, theme)
