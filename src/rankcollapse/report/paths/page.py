"""The page of path counts: what a path is, the charts, the numbers, the definitions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.report.html import render
from rankcollapse.report.numbers import MISSING, power
from rankcollapse.report.paths.chart import chart
from rankcollapse.report.paths.summary import Summary, summarize, with_skips
from rankcollapse.report.paths.table import HEADINGS, cells, notes
from rankcollapse.report.style import PAGE


@dataclass(frozen=True)
class Row:
    """An architecture in the table: its name, its colour and its numbers as text."""

    name: str
    colour: str
    cells: list[str]


def page(dataset: xr.Dataset) -> str:
    """Return the counts as a self-contained HTML document.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.

    Returns:
        HTML that opens without a network, in which every name is escaped.
    """
    summaries = summarize(dataset)
    skips = with_skips(dataset)
    look: dict[str, Any] = {"theme": PAGE, "width": "container", "title": False}
    charts = {"main": chart(dataset, height=380, **look)}
    if skips:
        charts["absolute"] = chart(dataset, relative=False, height=250, **look)
        charts["logarithmic"] = chart(dataset, logarithmic=True, height=250, **look)
    colours = [f"var(--variant-{n % len(PAGE.palette)})" for n in range(len(summaries))]
    rows = [Row(s.name, c, cells(s)) for s, c in zip(summaries, colours, strict=True)]
    definitions = [
        (str(array.attrs["long_name"]).capitalize(), str(array.attrs["definition"]))
        for array in dataset.data_vars.values()
    ]
    return render(
        "paths.html.j2",
        {name: drawn.to_dict() for name, drawn in charts.items()},
        skips=skips,
        findings=[_finding(s) for s in summaries] if skips and len(summaries) <= 2 else [],
        headings=[heading.replace("\n", " ") for heading in HEADINGS],
        rows=rows,
        notes=notes(summaries),
        lengths=_by_length(dataset),
        definitions=definitions,
    )


def _finding(row: Summary) -> str:
    return (
        f"Of the {power(row.log10_paths)} paths of {row.name}, {row.longest_share:.1%} go through "
        f"all {row.layers} layers; on average a path goes through {row.mean:.2f}."
    )


def _by_length(dataset: xr.Dataset) -> list[tuple[int, list[str]]]:
    """Return the shares by length, the longest first, each architecture to its own depth."""
    shares = dataset["log10_share"].transpose("length", "architecture").values
    return [
        (int(length), [_share(value) for value in row])
        for length, row in zip(dataset["length"].values[::-1], shares[::-1], strict=True)
    ]


def _share(log10: float) -> str:
    if np.isnan(log10):
        return MISSING
    if np.isneginf(log10):
        return "0"
    return f"{10.0**log10:.4f}" if log10 > -3 else power(log10)
