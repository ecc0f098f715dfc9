"""The charts of efficient attention: the residual through depth, and apart from softmax's."""

import altair as alt
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.experiment import Drawing
from rankcollapse.experiments.paired import margin
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.style import SHAPES, Theme

PANELS = {"low rank or kernel": "Low rank and kernel", "sparse": "Sparse patterns"}
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+')"
GAIN_TITLES = {1.0: "BERT's initialisation", 3.0: "Queries and keys × 3"}


def through_depth(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """The residual by layer: mechanisms by group across, size of the scores down."""
    layers = int(dataset["layer"][-1])
    log10 = dataset["log10_relative_residual"].sel(variant="san")
    everything = [
        point
        for gain in dataset["gain"].values
        for name in dataset["mechanism"].values
        for point in line_panel.points(log10.sel(gain=gain, mechanism=name), "layer", str(name))
    ]
    domain = line_panel.log_domain(everything, deep=True)
    rows = []
    for gain in dataset["gain"].values:
        panels = []
        for group, title in PANELS.items():
            names = [
                str(name)
                for name, kind in zip(
                    dataset["mechanism"].values, dataset["group"].values, strict=True
                )
                if kind in ("full", group)
            ]
            data = [
                point
                for name in names
                for point in line_panel.points(log10.sel(gain=gain, mechanism=name), "layer", name)
            ]
            panels.append(
                line_panel.panel(
                    data,
                    names,
                    line_panel.layers_x(layers),
                    line_panel.log_y(None, domain, deep=True),
                    theme,
                    domain=domain,
                    width=400,
                    height=270,
                    title=f"{title} · {GAIN_TITLES[float(gain)]}",
                    columns=2 if group.startswith("low") else 3,
                )
            )
        rows.append(
            alt.hconcat(*panels, spacing=34).resolve_scale(color="independent", shape="independent")
        )
    title = heading(
        "Relative residual through depth, by kind of attention",
        [
            f"Attention alone, random weights, {int(dataset.sizes['seed'])} seeds: mean ± std of "
            "the logarithm · doubly logarithmic"
        ],
        theme,
    )
    return configured(alt.vconcat(*rows, spacing=24).properties(title=title), theme)


def against_softmax(dataset: xr.Dataset, theme: Theme, layer: int) -> Drawing:
    """Decades apart from softmax after a few layers, a point per seed and the mean's interval."""
    apart = dataset["apart"].sel(variant="san", layer=layer)
    names = [str(name) for name in dataset["mechanism"].values if name != "softmax"]
    groups = dict(zip(dataset["mechanism"].values, dataset["group"].values, strict=True))
    seeds = dataset.sizes["seed"]
    panels = []
    for number, gain in enumerate(dataset["gain"].values):
        points, means = [], []
        for name in names:
            values = apart.sel(gain=gain, mechanism=name).values
            label = PANELS[str(groups[name])]
            points += [{"mechanism": name, "group": label, "x": float(v)} for v in values]
            half = margin(values) if seeds > 1 else 0.0
            mean = float(values.mean())
            means.append(
                {
                    "mechanism": name,
                    "group": label,
                    "x": mean,
                    "low": mean - half,
                    "high": mean + half,
                }
            )
        panels.append(
            _differences(points, means, names, GAIN_TITLES[float(gain)], number == 0, theme)
        )
    title = heading(
        f"Faster or slower than softmax after {layer} layers",
        [
            f"Decades of the relative residual above softmax's with the same weights and inputs · "
            f"a point per seed ({seeds}), bar: 95 % interval of the mean",
            "Remark 1 expects low rank and kernel to the left of 0, sparse patterns to the right",
        ],
        theme,
    )
    return configured(alt.hconcat(*panels, spacing=20).properties(title=title), theme)


def _differences(
    points: list[dict[str, object]],
    means: list[dict[str, object]],
    names: list[str],
    title: str,
    labelled: bool,
    theme: Theme,
) -> alt.LayerChart:
    axis = alt.Axis(title=None, labels=labelled, ticks=False, grid=False, labelLimit=220)
    y = alt.Y("mechanism:N", sort=names, axis=axis)
    groups = list(PANELS.values())
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolOpacity=1)
    color = alt.Color(
        "group:N", scale=alt.Scale(domain=groups, range=list(theme.palette[:2])), legend=legend
    )
    shape = alt.Shape(
        "group:N", scale=alt.Scale(domain=groups, range=list(SHAPES[:2])), legend=legend
    )
    axis = alt.Axis(title="← faster · decades · slower →", labelExpr=_SIGNED, labelFlush=False)
    x = alt.X("x:Q", axis=axis)
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(
        color=theme.muted, strokeDash=[5, 4], strokeWidth=1.25
    )
    dots = alt.Chart(alt.InlineData(values=points)).mark_point(filled=True, size=26, opacity=0.45)
    bars = alt.Chart(alt.InlineData(values=means)).mark_bar(height=3, opacity=0.9)
    middle = alt.Chart(alt.InlineData(values=means)).mark_point(filled=True, size=75, opacity=1)
    layers = [
        zero.encode(x="x:Q"),
        bars.encode(x=alt.X("low:Q", axis=x["axis"]), x2="high:Q", y=y, color=color),
        dots.encode(x=x, y=y, color=color, shape=shape),
        middle.encode(x=x, y=y, color=color, shape=shape),
    ]
    drawn = alt.LayerChart(layer=layers)
    return drawn.properties(width=330, height=26 * len(names), title=line_panel.small(title, theme))
