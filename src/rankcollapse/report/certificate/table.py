"""The tables for a terminal of 80 columns: bounds by layer, and which hypotheses hold where."""

import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from rankcollapse.report.certificate.cells import (
    Cell,
    Grid,
    grids,
    hypotheses,
    needs,
)

WIDTH = 80
GAP = 2
FIRST = len("layer")
BRACKETS = {"": "  ", "some": "[]", "none": "()"}


def tables(dataset: xr.Dataset) -> list[Table]:
    """Return the tables of bounds: a row per layer, a column per bound beside the measurement.

    A cell is a power of ten whose exponent is the mean of log10 over the samples, for bounds on the
    Frobenius norm a plain number where that is short. Brackets mark
    bounds whose hypotheses do not hold, in any sample or in some; `cells.legend` explains them.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    return [part for grid in grids(dataset) for part in _parts(grid)]


def hypotheses_tables(dataset: xr.Dataset) -> list[Table]:
    """Return at which layers each hypothesis holds, and what each bound needs and where it applies.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    every = " in every sample" if dataset.sizes["sample"] > 1 else ""
    held = _empty("Hypotheses")
    for heading in ("", "hypothesis", f"holds{every} at"):
        held.add_column(heading)
    for row in hypotheses(dataset):
        held.add_row(row.letter, row.statement, row.where)
    needed = _empty("What each bound needs")
    for heading in ("bound", "needs", f"applies{every} at"):
        needed.add_column(heading)
    for need in needs(dataset):
        needed.add_row(need.title, need.letters, need.where)
    return [held, needed] if held.row_count else [needed]


def _parts(grid: Grid) -> list[Table]:
    """Return as few tables as fit, of about equal width."""
    headings = grid.headings
    texts = [_column([cells[n] for _, _, cells in grid.rows]) for n in range(len(headings))]
    widths = [
        max(*map(len, heading.split()), *(len(text) for text in column))
        for heading, column in zip(headings, texts, strict=True)
    ]
    first = FIRST + GAP + max(len(grid.measured), *(len(text) for _, text, _ in grid.rows))
    count = next(
        n
        for n in range(1, len(headings) + 1)
        if n == len(headings) or all(_fits(widths, first, group) for group in _shared(widths, n))
    )
    return [
        _part(grid, headings, texts, widths, first, group, n)
        for n, group in enumerate(_shared(widths, count))
    ]


def _shared(widths: list[int], count: int) -> list[list[int]]:
    each = -(-len(widths) // count)
    return [list(range(len(widths)))[n : n + each] for n in range(0, len(widths), each)]


def _fits(widths: list[int], first: int, group: list[int]) -> bool:
    return first + sum(widths[n] + GAP for n in group) <= WIDTH


def _part(
    grid: Grid,
    headings: list[str],
    texts: list[list[Text]],
    widths: list[int],
    first: int,
    group: list[int],
    number: int,
) -> Table:
    title = f"{grid.title} (continued)" if number else grid.title
    drawn = _empty(title)
    drawn.add_column("layer", justify="right", no_wrap=True)
    drawn.add_column(grid.measured, justify="right", no_wrap=True)
    for n in group:
        drawn.add_column(Text(headings[n]), justify="right", overflow="fold", width=widths[n])
    # A title would be broken to the width of its table.
    spare = min(WIDTH, len(title)) - first - sum(widths[n] + GAP for n in group)
    if spare > 0:
        drawn.add_column("", width=max(1, spare - GAP))
    for row, (layer, text, _) in enumerate(grid.rows):
        drawn.add_row(layer, Text(text, style="bold"), *(texts[n][row] for n in group))
    return drawn


def _empty(title: str) -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        title=Text(title, style="bold"),
        title_justify="left",
    )


def _column(cells: list[Cell]) -> list[Text]:
    """Return cells in their brackets; where any has a mark, the others get blanks in its place."""
    marked = any(cell.mark for cell in cells)
    noted = any(cell.partial or cell.crossed for cell in cells)
    return [_text(cell, marked, noted) for cell in cells]


def _text(cell: Cell, marked: bool, noted: bool) -> Text:
    opening, closing = BRACKETS[cell.mark]
    text = f"{opening}{cell.text}{closing}".lstrip() if marked else cell.text
    note = ("!" if cell.crossed else "†" if cell.partial else " ") if noted else ""
    style = "bold red" if cell.crossed else "dim" if cell.mark else ""
    return Text(text + note, style=style, end="")
