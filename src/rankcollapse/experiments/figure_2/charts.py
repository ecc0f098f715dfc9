"""The charts of Figure 2: a column a model, a row an arithmetic, curves over seeds and texts."""

from collections.abc import Iterator
from dataclasses import replace

import altair as alt
import xarray as xr

from rankcollapse.experiments.experiment import Drawing
from rankcollapse.experiments.figure_2 import panels
from rankcollapse.experiments.figure_2.base_models import BASE_MODELS
from rankcollapse.report.axis import DEEP, along, exponent_at
from rankcollapse.report.chart import DEEP_AXIS, configured, heading
from rankcollapse.report.curves import Curves, curves
from rankcollapse.report.drawing import Drawing as Layers
from rankcollapse.report.measures import RESIDUAL
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.style import Theme

WIDTH, HEIGHT = 250, 230


def charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    """Returns "fig2" (random initialisation) and, where a model was given, "fig2_pretrained"."""
    drawn = {"fig2": "random", "fig2_pretrained": "pretrained"}
    return {
        name: _chart(dataset, init, theme)
        for name, init in drawn.items()
        if panels.panels(dataset, init)
    }


def _chart(dataset: xr.Dataset, init: str, theme: Theme) -> Drawing:
    names = panels.panels(dataset, init)
    cells = [
        *_row([panels.dense(dataset, name) for name in names], names, init, theme),
        *_row([panels.centered(dataset, name) for name in names], names, init, theme),
    ]
    whole = alt.concat(*cells, columns=len(names), spacing={"row": 26, "column": 26})
    whole = whole.resolve_scale(color="shared", shape="shared")
    deep = any(_ordinate([curves(panels.centered(dataset, name), RESIDUAL)])[1] for name in names)
    return configured(whole.properties(title=_heading(dataset, names, init, deep, theme)), theme)


def _row(
    parts: list[xr.Dataset], names: list[str], init: str, theme: Theme
) -> Iterator[alt.LayerChart]:
    """Yields panels that stand side by side, on one ordinate and with the same rules."""
    drawn = [curves(part, RESIDUAL) for part in parts]
    domain, deep = _ordinate(drawn)
    ruled = max((one.rules for one in drawn), key=lambda rules: len(rules.lines))
    bare = replace(ruled, lines=tuple((y, "") for y, _ in ruled.lines))
    for name, part, one in zip(names, parts, drawn, strict=True):
        rules = ruled if name == names[0] else bare
        one = replace(one, domain=domain, deep=deep, rules=rules)
        variants = [str(variant) for variant in part["variant"].values]
        layers = Layers(one, RESIDUAL, variants, theme, still=True).layers()
        title = alt.TitleParams(
            text=f"{BASE_MODELS[name.split()[0]].title}, {_arithmetic(part)}",
            subtitle=[] if init == "random" else [model_name(part)],
            anchor="start",
            frame="group",
            fontSize=13,
            fontWeight=600,
            color=theme.text,
            subtitleColor=theme.muted,
        )
        yield layers.properties(width=WIDTH, height=HEIGHT, title=title)


def _ordinate(drawn: list[Curves]) -> tuple[tuple[float, float], bool]:
    """Returns the range that holds all curves, and whether it is to be doubly logarithmic."""
    ends = [
        end
        for one in drawn
        for end in (map(exponent_at, map(along, one.domain)) if one.deep else one.domain)
    ]
    low, high = min(ends), max(ends)
    return (low, high), high - low >= DEEP


def _arithmetic(part: xr.Dataset) -> str:
    run = metadata(part)
    return "residual carried apart" if run["arithmetic"] == "centered" else str(run["dtype"])


def _heading(
    dataset: xr.Dataset, names: list[str], init: str, deep: bool, theme: Theme
) -> alt.TitleParams:
    first = names[0]
    many, few = panels.texts(dataset, first), panels.texts(dataset, first, centered=True)
    tokens = panels.runs(dataset)[first]["tokens_max"]
    seeds = panels.seeds(dataset, first)
    if init == "random":
        title = "Relative residual through depth, random initialisation"
        over = f"mean ± std over {seeds} seed{'s' * (seeds > 1)} × {many} texts of {tokens} tokens"
    else:
        title = "Relative residual through depth, pretrained"
        over = f"mean ± std over {many} texts of {tokens} tokens"
    lines = [
        f"Top: {over}; hollow points are rounding",
        f"Bottom: float64 with the residual carried apart, {few} of the texts"
        f"{f'; {DEEP_AXIS}' if deep else ''}",
        "Dashes are the same pass in plain float64, as far as it resolves",
    ]
    return heading(title, lines, theme)
