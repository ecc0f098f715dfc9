"""The tables of a decomposition: a row per length, a column per source; the largest heads."""

import math
from collections.abc import Iterable

import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from rankcollapse.report.decomposition.summary import (
    TITLES,
    Head,
    Spread,
    by_length,
    counted,
    largest_heads,
    overall,
    plain,
)
from rankcollapse.report.decomposition.target import target_name
from rankcollapse.report.numbers import MISSING, deviation, number

WIDTH = 80
Cell = tuple[str, str]
"""A mean and its deviation, which is empty where there is none."""


def rows(dataset: xr.Dataset, variable: str) -> list[tuple[str, list[Cell]]]:
    """Return the cells of shares or projections by length and source, and of all lengths.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        variable: "share" or "projection".

    Returns:
        A label and one cell per source and the total, in the order of `columns`; the last row,
        "all", has the sums over lengths.
    """
    spreads = by_length(dataset, variable)
    sums = overall(dataset, variable)
    largest = _largest([*(s for column in spreads.values() for s in column), *sums.values()])
    lengths = [str(length) for length in dataset["length"].values]
    body = [
        (label, [_cell(column[n], largest) for column in spreads.values()])
        for n, label in enumerate(lengths)
    ]
    whole = {s: sums[s] if any(column) else None for s, column in spreads.items()}
    return [*body, ("all", [_cell(whole[source], largest) for source in spreads])]


def columns(dataset: xr.Dataset) -> list[str]:
    """Return the titles of the columns of `rows`."""
    return [TITLES.get(source, source) for source in by_length(dataset, "share")]


def paths_cells(dataset: xr.Dataset) -> list[str]:
    """Return the share of the number of the input's paths by length, and of all."""
    shares = counted(dataset)
    if shares is None:
        return [MISSING] * (dataset.sizes["length"] + 1)
    return [*(number(float(share)) for share in shares), "1.00"]


def residual_cells(dataset: xr.Dataset, source: str = "input") -> list[Cell]:
    """Return the relative residual of the terms of one source by length."""
    column = by_length(dataset, "relative_residual").get(source, [])
    return [(MISSING, "") if s is None else (number(s.mean), _deviation(s)) for s in column]


def table(dataset: xr.Dataset, variable: str = "share") -> Table:
    """Return the table of shares or projections that fits a terminal of 80 columns.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        variable: "share", with the share of the number of paths and the residual of the input's
            terms beside it, or "projection".
    """
    shares = variable == "share"
    body = rows(dataset, variable)
    beside = (paths_cells(dataset), [*residual_cells(dataset), ("", "")]) if shares else ((), ())
    samples = dataset.sizes["sample"]
    over = f"mean ± std over {samples} samples" if samples > 1 else "one sample"
    if shares:
        title = f"Share of the output by path length, {over}"
    else:
        title = f"Projection on {target_name(dataset)}, {over}"
    headings = [*(["paths"] if shares else []), *columns(dataset)]
    headings += ["input's\nresidual"] if shares else []
    lines = [
        [
            *([(beside[0][n], "")] if shares else []),
            *cells,
            *([beside[1][n]] if shares else []),
        ]
        for n, (_, cells) in enumerate(body)
    ]
    return _drawn(title, "length", headings, [label for label, _ in body], lines)


def heads_table(dataset: xr.Dataset) -> Table:
    """Return the table of the heads with the largest totals; see `largest_heads`."""
    labels, lines = [], []
    for head, cell in head_cells(dataset):
        labels.append(str(head.layer))
        lines.append([(str(head.head), ""), cell])
    title = "Heads, largest first"
    return _drawn(title, "layer", ["head", TITLES["total"]], labels, lines)


def head_cells(dataset: xr.Dataset) -> list[tuple[Head, Cell]]:
    """Return the heads with the largest totals, each with its cell."""
    heads = largest_heads(dataset)
    largest = _largest([head.total for head in heads])
    return [(head, _cell(head.total, largest)) for head in heads]


def _drawn(
    title: str, first: str, headings: list[str], labels: list[str], lines: list[list[Cell]]
) -> Table:
    widths = [
        max(len(line[n][0]) + len(line[n][1]) for line in lines) for n in range(len(headings))
    ]
    needed = len(first) + sum(
        max(width, *map(len, heading.split("\n")))
        for width, heading in zip(widths, headings, strict=True)
    )
    gap = max(1, min(3, (WIDTH - needed) // len(headings)))
    drawn = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        title=Text(title, style="bold"),
        title_justify="left",
        # A title would be broken to the width of its table.
        min_width=min(WIDTH, len(title)),
    )
    drawn.add_column(first, justify="right", no_wrap=True)
    for heading in headings:
        drawn.add_column(heading, justify="right", no_wrap=True)
    for label, line in zip(labels, lines, strict=True):
        if label == "all":
            drawn.add_section()
        drawn.add_row(label, *(Text.assemble(mean, (std, "dim")) for mean, std in line))
    return drawn


def _largest(spreads: Iterable[Spread | None]) -> float:
    return max((abs(s.mean) + (s.std if s.std > 0 else 0) for s in spreads if s), default=0.0)


def _cell(spread: Spread | None, largest: float) -> Cell:
    if spread is None:
        return MISSING, ""
    std = plain(spread.std, largest)
    return plain(spread.mean, largest), f"±{std}" if std else ""


def _deviation(spread: Spread) -> str:
    return "" if math.isnan(spread.std) else f"±{deviation(spread.std, spread.mean)}"
