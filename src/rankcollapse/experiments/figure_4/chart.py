"""The chart of Figure 4: accuracy against path length, a panel per task."""

import altair as alt
import numpy as np
import xarray as xr

from rankcollapse.experiments import line_panel
from rankcollapse.experiments.experiment import Drawing
from rankcollapse.report.chart import configured, heading
from rankcollapse.report.style import Theme

WIDTH, HEIGHT = 250, 260
TERMS = "exact terms of this length"
LINES = {
    "whole_accuracy": "whole network",
    "attainable": "most that can be reached",
    "token_majority": "majority by token",
    "position_majority": "majority by position",
    "guess": "guess",
}
# Two labels need so much between them, as a share of the ordinate.
APART = 0.052


def chart(dataset: xr.Dataset, theme: Theme) -> Drawing:
    """Sums of 5 and of 20 sub-network paths and the exact terms, with what they are held against.

    Bands are mean ± std over networks and draws; the straight lines carry their names.
    """
    tasks = [task for task in dataset["task"].values if _of(dataset, task).sizes["seed"]]
    panels = [_panel(_of(dataset, task), str(task), theme) for task in tasks]
    whole = alt.hconcat(*panels, spacing=14).resolve_scale(color="shared", shape="shared")
    seeds = {str(task): _of(dataset, task).sizes["seed"] for task in tasks}
    repeats = dataset.sizes["repeat"]
    title = heading(
        "Accuracy of paths by length",
        [
            f"Mean ± std over networks and {repeats} draws of paths; networks: "
            + ", ".join(f"{task} {count}" for task, count in seeds.items()),
        ],
        theme,
    )
    return configured(whole.properties(title=title), theme)


def _of(dataset: xr.Dataset, task: str) -> xr.Dataset:
    return dataset.sel(task=task).dropna("seed", subset=["whole_accuracy"])


def _panel(one: xr.Dataset, task: str, theme: Theme) -> alt.LayerChart:
    counts = one["count"].values.tolist()
    names = [*(f"{count} paths, attention recomputed" for count in counts), TERMS]
    data = []
    for count, name in zip(counts, names, strict=False):
        drawn = one["subnetwork_accuracy"].sel(count=count).stack(draw=("seed", "repeat"))
        data += line_panel.points(drawn.dropna("draw", how="all"), "length", name, "draw")
    data += line_panel.points(one["term_accuracy"], "length", TERMS)
    layers = int(one["length"][-1])
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(
            title="Share of tokens right" if task == "memorization" else None,
            values=np.linspace(0, 1, 6).round(1).tolist(),
            format=".1f",
        ),
    )
    curves = line_panel.panel(
        data,
        names,
        line_panel.layers_x(layers, title="Path length"),
        y,
        theme,
        domain=(0, 1),
        width=WIDTH,
        height=HEIGHT,
        title=task[:1].upper() + task[1:],
        columns=3,
    )
    return alt.LayerChart(layer=[*_lines(one, layers, theme), curves]).properties(
        width=WIDTH,
        height=HEIGHT,
        title=line_panel.small(task[:1].upper() + task[1:], theme),
    )


def _lines(one: xr.Dataset, layers: int, theme: Theme) -> list[alt.Chart]:
    """Dashed lines across the panel, their names to the right of it."""
    values = {name: float(one[variable].mean()) for variable, name in LINES.items()}
    shown = {
        name: value
        for name, value in values.items()
        if np.isfinite(value) and not (name == LINES["attainable"] and value == 1)
    }
    records = [
        {"name": f"{name} {value:.2f}", "y": value, "label": at, "x": layers}
        for (name, value), at in zip(
            shown.items(), spread(list(shown.values()), APART), strict=True
        )
    ]
    data = alt.Chart(alt.InlineData(values=records))
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, 1], nice=False))
    return [
        data.mark_rule(color=theme.muted, strokeDash=[5, 4], strokeWidth=1.1).encode(y=y),
        data.mark_text(align="left", dx=8, fontSize=11, color=theme.muted).encode(
            x="x:Q", y=alt.Y("label:Q"), text="name:N"
        ),
    ]


def spread(values: list[float], apart: float) -> list[float]:
    """The values moved so that no two are closer than `apart`, in the same order."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    placed = [values[index] for index in order]
    for _ in range(200):
        for low in range(len(placed) - 1):
            lack = apart - (placed[low + 1] - placed[low])
            if lack > 1e-9:
                placed[low] -= lack / 2
                placed[low + 1] += lack / 2
    result = [0.0] * len(values)
    for index, value in zip(order, placed, strict=True):
        result[index] = value
    return result
