"""The heat map of heads: all paths through each, by layer and head."""

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.report.axis import layer_ticks
from rankcollapse.report.decomposition.summary import Spread
from rankcollapse.report.numbers import mean_and_std
from rankcollapse.report.style import Theme

FOR, AGAINST = "for the target", "against it"


def heat_map(dataset: xr.Dataset, theme: Theme) -> list[alt.Chart]:
    """Return the marks: a cell per layer and head, coloured by sign, deeper for larger totals.

    Colours of the page are custom properties, between which nothing can be interpolated; so the
    size is opacity.
    """
    array = dataset["head_projection"].transpose("layer", "head", "sample")
    layers, heads = array["layer"].values.tolist(), array["head"].values.tolist()
    cells = []
    for i, layer in enumerate(layers):
        for j, head in enumerate(heads):
            total = Spread.of(array.values[i, j])
            cells.append(
                {
                    "layer": layer,
                    "head": head,
                    "sign": FOR if total.mean >= 0 else AGAINST,
                    "size": abs(total.mean),
                    "text": mean_and_std(total.mean, total.std),
                }
            )
    largest = max((c["size"] for c in cells if np.isfinite(c["size"])), default=0.0) or 1.0
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square")
    color = alt.Color(
        "sign:N",
        scale=alt.Scale(domain=[FOR, AGAINST], range=[theme.palette[0], theme.palette[1]]),
        legend=legend,
    )
    tooltip = [
        alt.Tooltip("layer:O", title="Layer"),
        alt.Tooltip("head:O", title="Head"),
        alt.Tooltip("text:N", title="Total"),
    ]
    return [
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect(stroke=theme.grid, strokeWidth=1, strokeOpacity=1)
        .encode(
            x=alt.X("head:O", axis=_axis("Head", heads)),
            y=alt.Y("layer:O", axis=_axis("Layer", layers), sort="descending"),
            color=color,
            fillOpacity=alt.FillOpacity(
                "size:Q", scale=alt.Scale(domain=[0, largest], range=[0, 1]), legend=None
            ),
            tooltip=tooltip,
        )
    ]


def _axis(title: str, numbers: list[int]) -> alt.Axis:
    first = numbers[0]
    ticks = [first + n for n in layer_ticks(len(numbers) - 1)] if len(numbers) > 1 else numbers
    return alt.Axis(
        title=title, values=ticks, labelAngle=0, labelOverlap=False, ticks=False, domain=False
    )
