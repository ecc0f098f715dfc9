"""The charts of measured and expected rates."""

import math
from collections.abc import Callable

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.experiment import Drawing
from rankcollapse.experiments.line_panel import Point
from rankcollapse.experiments.rates import cases as rate_cases
from rankcollapse.report.axis import log_ticks
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.style import Theme

SHOWN = (
    "content alone",
    "relative, scores 0.5",
    "rotary, scores 1",
    "causal mask",
    "ALiBi 0.25",
    "band of 9",
)
DEPTH, LOWEST = 24, -12.0
MECHANISMS = {
    "causal": "causal mask",
    "band": "band of 9, 13, 17",
    "alibi": "ALiBi 0.125, 0.25, 0.5",
    "rotary": "rotary",
    "relative": "XLNet's relative positions",
}


def through_depth(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """The residual by layer, a line per mechanism."""
    values = dataset["log10_relative_residual"].isel(layer=slice(DEPTH + 1))
    data = [p for name in SHOWN for p in line_panel.points(values.sel(case=name), "layer", name)]
    domain = (LOWEST, 0.2)
    drawn = line_panel.panel(
        data,
        SHOWN,
        line_panel.layers_x(DEPTH, 2),
        line_panel.log_y(None, domain),
        theme,
        domain=domain,
        width=640,
        height=340,
        columns=3,
    )
    title = heading(
        "Relative residual through depth, by what acts in the scores",
        [
            f"One head, W_V W_O = I, {rate_cases.TOKENS} tokens, no skip, no norm · "
            f"mean ± std of the logarithm over {dataset.sizes['seed']} seeds",
            "Content alone leaves the chart: its logarithm triples in every layer",
        ],
        theme,
    )
    return configured(drawn.properties(title=title), theme)


def predicted(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """The measured factor per layer beside |λ₂|, a point per case and seed."""
    data: list[Point] = []
    for case in rate_cases.CASES[1:]:
        chosen = dataset.sel(case=case.name)
        for factor, lambda2 in zip(chosen["factor"].values, chosen["lambda2"].values, strict=True):
            data.append(_pair(MECHANISMS[case.mechanism], lambda2, factor))
    base = "XLNet-base, 12 heads"
    for factor, lambda2 in zip(
        dataset["xlnet_factor"].values, dataset["xlnet_lambda2"].values, strict=True
    ):
        data.append(_pair(base, lambda2, factor))
    data = [point for point in data if np.isfinite([point["x"], point["y"]]).all()]
    values = np.array([[point["x"], point["y"]] for point in data])
    domain = [float(values.min()) - 0.08, 0.04]
    ticks = log_ticks(*domain)
    axis = {"values": ticks.values, "labelExpr": ticks.label_expression()}
    scale = alt.Scale(domain=domain, nice=False)
    x = alt.X(
        "x:Q",
        scale=scale,
        axis=alt.Axis(title="Second eigenvalue of attention between equal tokens", **axis),
    )
    y = alt.Y("y:Q", scale=scale, axis=alt.Axis(title="Measured factor per layer", **axis))
    color, shape = line_panel.looks([*MECHANISMS.values(), base], theme, 3)
    identity = alt.Chart(alt.InlineData(values=[{"x": end, "y": end} for end in domain])).mark_line(
        color=theme.muted, strokeDash=[5, 4], strokeWidth=1.25
    )
    dots = (
        alt.Chart(alt.InlineData(values=data))
        .mark_point(size=70, strokeWidth=1.75, filled=False)
        .encode(x=x, y=y, color=color, shape=shape)
    )
    title = heading(
        "What a layer leaves of the residual: the second eigenvalue of its attention",
        [
            f"A point per mechanism, size of scores and seed ({dataset.sizes['seed']} seeds) · "
            "dashes: equal",
            "One head with W_V W_O = I; XLNet-base at random initialisation apart from that",
        ],
        theme,
    )
    drawn = alt.LayerChart(layer=[identity.encode(x=x, y=y), dots])
    return configured(drawn.properties(width=520, height=440, title=title), theme)


def _pair(series: str, lambda2: float, factor: float) -> Point:
    return {"series": series, "x": float(np.log10(lambda2)), "y": float(np.log10(factor))}


def with_skips(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """The residual over the shared row with skips, measured and as expected."""
    layers = dataset.sizes["skip_layer"] - 1
    random = _skip_panel(
        dataset["log10_energy_ratio"],
        "strength",
        lambda a: -math.log10(1 + a * a),
        "a",
        "X + PXW, W of variance a²/d: energy, × 1/(1 + a²) per layer",
        layers,
        theme,
    )
    identity = _skip_panel(
        dataset["log10_norm_ratio"],
        "eigenvalue",
        lambda h: -math.log10(1 + h),
        "h",
        "X + hPX: norm, × 1/(1 + h) per layer",
        layers,
        theme,
    )
    title = heading(
        "Residual over shared row with skips and no norms",
        [
            f"Mean ± std of the logarithm over {dataset.sizes['seed']} seeds · dashes: as expected "
            "from the first state on"
        ],
        theme,
    )
    both = alt.hconcat(random, identity, spacing=30).resolve_scale(
        color="independent", shape="independent"
    )
    return configured(both.properties(title=title), theme)


def _skip_panel(
    values: xr.DataArray,
    dimension: str,
    slope: Callable[[float], float],
    letter: str,
    title: str,
    layers: int,
    theme: Theme,
) -> alt.LayerChart:
    names, data, expected = [], [], []
    for parameter in values[dimension].values:
        name = f"{letter} = {parameter:g}".replace("-", "−")
        names.append(name)
        own = line_panel.points(values.sel({dimension: parameter}), "skip_layer", name)
        data += own
        start = own[0]["y"]
        expected += [
            {"series": name, "x": x, "y": start + x * slope(float(parameter))} for x in (0, layers)
        ]
    domain = line_panel.log_domain(data)
    x, y = line_panel.layers_x(layers, 4), line_panel.log_y(None, domain)
    drawn = line_panel.panel(
        data, names, x, y, theme, domain=domain, width=340, height=300, title=title, size=24
    )
    dashes = (
        alt.Chart(alt.InlineData(values=expected))
        .mark_line(strokeDash=[3, 4], strokeWidth=1.25, color=theme.text, clip=True)
        .encode(x=x, y=y, detail="series:N")
    )
    return drawn + dashes
