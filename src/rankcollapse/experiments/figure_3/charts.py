"""The charts of Figure 3: where the two points go, and how far apart they are."""

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.experiment import Drawing
from rankcollapse.experiments.figure_3.ways import capital, way
from rankcollapse.report.axis import log_ticks
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.style import Theme

FLOOR = 1e-7
"""Distances below this are rounding of float32, if not 0."""


def trajectories(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """Both points' ways, in one network per panel: widths across, layers down; arcs in grey."""
    first = dataset.isel(seed=0, init=0)
    variants, widths = dataset["variant"].values, dataset["width"].values
    panels = [
        way(first.sel(variant=v, width=w), theme, v == variants[-1], w == widths[0])
        for v in variants
        for w in widths
    ]
    whole = alt.concat(*panels, columns=len(widths), spacing={"row": 16, "column": 16})
    title = heading(
        "Two points led by their own predictions",
        [
            f"{dataset.sizes['step'] - 1} steps after training with teacher forcing, seed "
            f"{int(first['seed'])} · thick grey: the arcs",
            "Ring: start, disc: end, cross: where the points meet; their common way is thin",
        ],
        theme,
    )
    return configured(whole.properties(title=title), theme)


def distances(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """The relative distance between the two points by step, a line per network."""
    steps = np.unique(np.geomspace(1, dataset.sizes["step"] - 1, 28).round().astype(int))
    distance = dataset["distance"].isel(step=steps).clip(min=FLOOR)
    log10 = distance.copy(data=np.log10(distance.values)).assign_coords(step=np.log10(steps))
    domain = (np.log10(FLOOR) - 0.2, max(1.0, float(log10.max()) + 0.1))
    panels = [
        _lines(log10.sel(init=init, variant=variant), theme, domain, row, column)
        for row, init in enumerate(dataset["init"].values)
        for column, variant in enumerate(dataset["variant"].values)
    ]
    seeds = dataset.sizes["seed"]
    title = heading(
        "Distance between the two points",
        [
            f"Thick: geometric mean over {seeds} seed{'s' * (seeds > 1)}, thin: each seed · "
            "logarithmic axes · at the bottom the points are equal up to float32 rounding",
        ],
        theme,
    )
    whole = alt.concat(*panels, columns=dataset.sizes["variant"], spacing=20)
    whole = whole.resolve_scale(color="shared", shape="shared")
    return configured(whole.properties(title=title), theme)


def _lines(
    log10: xr.DataArray, theme: Theme, domain: tuple[float, float], row: int, column: int
) -> alt.LayerChart:
    widths = log10["width"].values
    names = [f"width {width}" for width in widths]
    means, each = [], []
    for width, name in zip(widths, names, strict=True):
        one = log10.sel(width=width)
        means += line_panel.points(one.mean("seed").expand_dims(seed=1), "step", name)
        for seed in one["seed"].values:
            alone = line_panel.points(one.sel(seed=[seed]), "step", name)
            each += [{**point, "seed": int(seed)} for point in alone]
    x = _steps_x(float(log10["step"][-1]))
    y = line_panel.log_y("Distance ÷ distance at the start" if column == 0 else None, domain)
    color, _ = line_panel.looks(names, theme, len(names))
    thin = (
        alt.Chart(alt.InlineData(values=each))
        .mark_line(strokeWidth=1, opacity=0.45, clip=True)
        .encode(x=x, y=y, color=color, detail="seed:N")
    )
    init = {"published": "", "pytorch": ", PyTorch's init"}[str(log10["init"].values)]
    mean = line_panel.panel(
        means,
        names,
        x,
        y,
        theme,
        domain=domain,
        width=260,
        height=210,
        size=30,
    )
    title = line_panel.small(f"{capital(log10['variant'].values)}{init}", theme)
    return alt.LayerChart(layer=[thin, mean]).properties(width=260, height=210, title=title)


def _steps_x(last: float) -> alt.X:
    ticks = log_ticks(0, last)
    axis = alt.Axis(
        title="Step",
        values=ticks.values,
        labelExpr=ticks.label_expression(),
        grid=False,
        labelFlush=False,
    )
    return alt.X("x:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=axis)
