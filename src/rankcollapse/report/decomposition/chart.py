"""The charts of a decomposition: what each length holds, how collapsed it is, and which heads."""

import altair as alt
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.decomposition.bars import bars
from rankcollapse.report.decomposition.heads import heat_map
from rankcollapse.report.decomposition.lines import lines
from rankcollapse.report.decomposition.summary import ADDITIVE, variant_name
from rankcollapse.report.decomposition.target import target_name
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.style import LIGHT, Theme

VARIABLES = ("share", "relative_residual", "projection", "head_projection")


def chart(
    dataset: xr.Dataset,
    variable: str = "share",
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> alt.LayerChart:
    """Return one chart of a decomposition.

    Shares and projections are stacked bars by source, negative ones downwards, with their sum and
    its standard deviation (ddof = 1) as a point with whiskers; over shares a line tells the share
    of the number of the input's paths. The relative residual has a line per source on a
    logarithmic axis, without terms whose residual is rounding. Heads are a heat map.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        variable: "share", "relative_residual", "projection" or "head_projection".
        theme: the colours.
        width: in pixels, or "container" to fill the element that holds the chart.
        height: in pixels, without axes and legend.
        title: whether to write what is drawn over the chart.

    Raises:
        OptionError: no such chart, or the data set has no such variable.
    """
    known = [name for name in VARIABLES if name in dataset]
    if variable not in known:
        raise OptionError(f"There is no chart of {variable!r}; there are charts of {known}.")
    if variable == "head_projection":
        layers = heat_map(dataset, theme)
    elif variable in ADDITIVE:
        layers = bars(dataset, variable, theme)
    else:
        layers = lines(dataset, theme)
    what = {
        "share": "Share of the output by path length",
        "relative_residual": "Relative residual by path length",
        "projection": f"Projection on {target_name(dataset)} by path length",
        "head_projection": f"Projection on {target_name(dataset)} of all paths through a head",
    }[variable]
    drawn = alt.LayerChart(layer=layers).properties(width=width, height=height, description=what)
    if title:
        drawn = drawn.properties(title=heading(what, [_subtitle(dataset, variable)], theme))
    return configured(drawn, theme)


def charts(
    dataset: xr.Dataset,
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> dict[str, alt.LayerChart]:
    """Return every chart the data set has the numbers for, by variable; arguments as `chart`."""
    return {
        name: chart(dataset, name, theme=theme, width=width, height=height, title=title)
        for name in VARIABLES
        if name in dataset
    }


def _subtitle(dataset: xr.Dataset, variable: str) -> str:
    count = dataset.sizes["sample"]
    spread = "mean over" if variable == "head_projection" else "mean ± std over"
    over = f"{spread if count > 1 else 'over'} {count} text{'s' if count != 1 else ''}"
    init = metadata(dataset).get("init")
    details = [model_name(dataset), *(["random initialisation"] if init == "random" else [])]
    return " · ".join([*details, variant_name(dataset), over])
