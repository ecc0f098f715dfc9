"""Figure 5: how many of all paths have each length, for nine architectures and for any model.

Nothing is random here and nothing is rounded but logarithms of exact counts, so what the figure
prints has to be met to its last digit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.experiments import published
from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Row, Settings
from rankcollapse.paths import FIGURE_5, Stack, length_distributions, read_stack
from rankcollapse.report.paths import chart
from rankcollapse.report.style import Theme

# The vertices of the published figure lie on a grid of about this size.
PRINTED = 1e-8
SOURCE = "Figure 5, vector graphic"


def count(stacks: Sequence[Sequence[Any]], progress: Callable[[float, float], None]) -> xr.Dataset:
    """Counts the paths of stacks that are given as (name, layers, heads, note)."""
    counted = length_distributions([Stack(*stack) for stack in stacks])
    progress(1, 1)
    return counted


def _parts(settings: Settings) -> list[Part]:
    stacks = [*FIGURE_5, *(read_stack(model) for model in dict.fromkeys(settings.models))]
    names = [stack.name for stack in stacks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"model {twice!r} is there twice: leave it out, or rename its folder.")
    plain = [(stack.name, stack.layers, stack.heads, stack.note) for stack in stacks]
    return [Part("count", count, {"stacks": plain}, 0.1)]


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    return results["count"]


def _compare(dataset: xr.Dataset) -> list[Row]:
    printed = {
        (point.architecture, point.length): point.printed
        for point in published.figure_5()
        if point.printed is not None
    }
    shares = {
        (name, length): float(dataset["share"].sel(architecture=name, length=length))
        for name, length in printed
    }
    rows = [_most_frequent(dataset.sel(architecture=name), printed) for name in _names(dataset)]
    off = max(abs(shares[place] - printed[place]) for place in printed)
    what = f"largest difference over the {len(printed)} printed shares"
    return [*rows, Row(what, 0.0, SOURCE, (off,), PRINTED, exact=True)]


def _most_frequent(one: xr.Dataset, printed: Mapping[tuple[str, int], float]) -> Row:
    """Compares the share of an architecture's most frequent length."""
    name = str(one["architecture"].values)
    mode = int(one["length"].values[one["is_mode"].values][-1])
    value = printed.get((name, mode))
    return Row(
        f"{name}, {int(one['layers'])} × {int(one['heads'])}: share of length {mode}",
        value,
        "" if value is None else SOURCE,
        (float(one["share"].sel(length=mode)),),
        PRINTED,
        f"{name}: {one['note'].values}" if str(one["note"].values) else "",
        exact=True,
    )


def _names(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["architecture"].values]


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {
        "fig5": chart(dataset, theme=theme),
        "fig5_logarithmic": chart(dataset, logarithmic=True, theme=theme),
    }


EXPERIMENT = Experiment(
    name="fig5",
    title="Figure 5: paths by length",
    about="The share of paths of length l among all paths through L layers of H heads with skip "
    "connections, C(L, l) H^l / (1 + H)^L, from exact integers. T5's encoder is counted; "
    "MobileBERT has 12 layers in the figure, the released model 24. Rows are named after layers × "
    "heads and show the most frequent length.",
    parts=_parts,
    combine=_combine,
    compare=_compare,
    charts=_charts,
)
