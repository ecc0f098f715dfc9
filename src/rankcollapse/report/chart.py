"""The charts: one quantity through depth, a line per variant, mean and deviation over samples."""

from typing import TypeVar

import altair as alt
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report.curves import Curves, curves
from rankcollapse.report.drawing import Drawing
from rankcollapse.report.measures import MEASURES, Measure, measured
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.style import LIGHT, PAGE, Theme

DEEP_AXIS = "doubly logarithmic"

Picture = TypeVar("Picture", bound=alt.TopLevelMixin)


def chart(
    dataset: xr.Dataset,
    variable: str = "relative_residual",
    *,
    theme: Theme = LIGHT,
    width: int | str = 640,
    height: int = 340,
    title: bool = True,
) -> alt.LayerChart:
    """Return the chart of one quantity through depth.

    The ordinate is the mean over samples, the band mean ± standard deviation (ddof = 1), cut at
    the smallest sample where it would reach zero on a logarithmic axis. Points at which at least
    half of the samples are at the rounding floor are hollow. Dashes along a line are the same pass
    in plain floating point, where that ran beside and still resolves. The local order leaves out
    variants that keep the attention skip connection, of which it says nothing. A click in the
    legend isolates a variant, shift and click adds one.

    Args:
        dataset: what `rankcollapse.inspect` returns.
        variable: "relative_residual", "local_order", "effective_rank", "token_cosine" or
            "largest_token_ratio".
        theme: the colours.
        width: in pixels, or "container" to fill the element that holds the chart.
        height: in pixels, without axes and legend.
        title: whether to write the quantity and the model's name over the chart.

    Raises:
        OptionError: no such chart, or the data set has no such quantity.
    """
    measure = next((m for m in MEASURES if m.variable == variable), None)
    if measure is None:
        known = ", ".join(m.variable for m in MEASURES)
        raise OptionError(f"There is no chart of {variable!r}; there are charts of {known}.")
    drawn = curves(dataset, measure)
    variants = [str(name) for name in dataset["variant"].values]
    picture = Drawing(drawn, measure, variants, theme).layers()
    description = f"{measure.title} by layer for {', '.join(drawn.variants)}"
    picture = picture.properties(width=width, height=height, description=description)
    if title:
        picture = picture.properties(title=_heading(dataset, measure, drawn, theme))
    return configured(picture, theme)


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
        m.variable: chart(dataset, m.variable, theme=theme, width=width, height=height, title=title)
        for m in measured(dataset)
    }


def _heading(dataset: xr.Dataset, measure: Measure, drawn: Curves, theme: Theme) -> alt.TitleParams:
    run = metadata(dataset)
    details = [model_name(dataset)]
    if run.get("init") == "random":
        details.append(f"random initialisation, seed {run.get('seed')}")
    count = dataset.sizes["sample"]
    spread = "mean ± std over" if count > 1 else "over"
    details.append(f"{spread} {count} text{'s' if count != 1 else ''}")
    subtitle = [" · ".join(details)]
    hints = [DEEP_AXIS] if drawn.deep else []
    if drawn.plain:
        hints.append("dashes are the same pass in plain float64, as far as it resolves")
    if hints:
        subtitle.append(f"{hints[0][:1].upper()}{'; '.join(hints)[1:]}")
    return heading(f"{measure.title} through depth", subtitle, theme)


def heading(text: str, subtitle: list[str], theme: Theme) -> alt.TitleParams:
    """Return the title over a chart, with smaller lines under it."""
    return alt.TitleParams(
        text=text,
        subtitle=subtitle,
        anchor="start",
        fontSize=16,
        fontWeight=600,
        subtitleFontSize=12.5,
        subtitlePadding=5,
        offset=12,
        color=theme.text,
        subtitleColor=theme.muted,
    )


def configured(picture: Picture, theme: Theme) -> Picture:
    """Return a chart with the fonts, colours and distances that all have in common."""
    return (
        picture.configure(
            background=theme.surface,
            font=theme.font,
            padding={"left": 0, "right": 0, "top": 4, "bottom": 0} if theme is PAGE else 10,
        )
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=theme.muted,
            titleColor=theme.muted,
            gridColor=theme.grid,
            domainColor=theme.grid,
            tickColor=theme.grid,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelPadding=6,
            tickSize=4,
        )
        .configure_axisY(domain=False, ticks=False, labelPadding=10)
        .configure_legend(
            labelColor=theme.text,
            labelFontSize=12.5,
            labelLimit=260,
            symbolSize=80,
            symbolStrokeWidth=1.75,
            columnPadding=18,
            rowPadding=4,
            offset=10,
        )
    )
