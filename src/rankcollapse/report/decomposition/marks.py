"""What the charts by length have in common: their abscissa, their colours, their legend."""

from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.report.axis import layer_ticks


def of(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of these rows, yet without marks."""
    return alt.Chart(alt.InlineData(values=rows))


def by_path_length(dataset: xr.Dataset) -> alt.X:
    """Return the abscissa: every length from 0 to the number of layers."""
    layers = dataset.sizes["length"] - 1
    axis = alt.Axis(
        title="Path length (attention layers passed)",
        values=layer_ticks(layers),
        labelAngle=0,
        labelOverlap=False,
        ticks=False,
    )
    domain = list(range(layers + 1))
    return alt.X("length:O", axis=axis, scale=alt.Scale(domain=domain, paddingInner=0.35))


def color_of(names: list[str], colours: list[str]) -> alt.Color:
    """Return the colour by `name`, with its legend."""
    scale = alt.Scale(domain=names, range=colours)
    return alt.Color("name:N", scale=scale, legend=legend_of(names))


def legend_of(names: list[str]) -> alt.Legend:
    """Return a legend in as many columns as the chart's width has room for."""
    widest = 6.7 * max(map(len, names)) + 38
    columns = alt.ExprRef(f"max(1, min({len(names)}, floor(width / {widest})))")
    return alt.Legend(
        title=None, orient="top", direction="horizontal", columns=columns, symbolOpacity=1
    )


def whisker(std: float) -> float:
    """Return the deviation as the length of a whisker: none for one sample."""
    return 0.0 if np.isnan(std) else std
