"""What stands in the tables of a certificate, on a terminal as on the page."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from rankcollapse.report.certificate.bound import Bound, mean_log
from rankcollapse.report.certificate.summary import (
    FROBENIUS,
    NORMS,
    SYMBOLS,
    bounds,
    holds,
    measured,
    statements,
)
from rankcollapse.report.certificate.words import power, ranges, value
from rankcollapse.report.numbers import MISSING

Mark = Literal["", "some", "none"]
"""In how many samples the hypotheses of a bound hold, where that is not in all."""


@dataclass(frozen=True)
class Cell:
    """A value as text, and what has to be said of it.

    `partial` says that the bound has a finite value in some samples only, `crossed` that the
    measurement is on the wrong side of a bound that applies.
    """

    text: str
    mark: Mark = ""
    partial: bool = False
    crossed: bool = False


@dataclass(frozen=True)
class Grid:
    """The bounds on one norm beside the measurement: a row per layer, a column per bound."""

    title: str
    measured: str
    headings: list[str]
    bounds: list[Bound]
    rows: list[tuple[str, str, list[Cell]]]

    @property
    def cells(self) -> list[Cell]:
        """Return every cell of a bound."""
        return [cell for _, _, cells in self.rows for cell in cells]


def grids(dataset: xr.Dataset) -> list[Grid]:
    """Return a grid for each norm, by layer and in depth, where there are bounds."""
    return [
        _grid(dataset, found)
        for deep in (False, True)
        for norm in NORMS
        if (found := bounds(dataset, deep=deep, norm=norm))
    ]


def _grid(dataset: xr.Dataset, of: list[Bound]) -> Grid:
    first = of[0]
    kinds = {bound.upper for bound in of}
    kind = "Bounds" if len(kinds) > 1 else "Upper bounds" if first.upper else "Lower bounds"
    where = "from the network's input" if first.deep else "from the state entering the layer"
    means = mean_log(measured(dataset, first.norm))
    rows = [
        (str(layer), value(means[n]), [_cell(bound, n) for bound in of])
        for n, layer in enumerate(first.layers)
    ]
    headings = [f"{'≤' if b.upper else '≥'} {b.title}" if len(kinds) > 1 else b.title for b in of]
    return Grid(f"{kind} on {SYMBOLS[first.norm]}, {where}", "measured", headings, of, rows)


def _cell(bound: Bound, n: int) -> Cell:
    mean = float(bound.mean[n])
    if np.isnan(mean):
        return Cell(MISSING)
    share = bound.holding[n]
    infinite = np.isinf(bound.logs[:, n])
    # Bounds on the Frobenius norm are close: a power of ten would say the same of all.
    write = value if bound.norm == FROBENIUS else power
    return Cell(
        write(mean),
        "" if share == 1 else ("some" if share > 0 else "none"),
        bool(infinite.any() and not infinite.all()),
        bool(bound.crossed[:, n].any()),
    )


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis: its letter, what it says, and at which layers that is so."""

    letter: str
    statement: str
    where: str


@dataclass(frozen=True)
class Need:
    """A bound: its title and source, the letters of its hypotheses, and where they all hold."""

    title: str
    source: str
    letters: str
    where: str


def hypotheses(dataset: xr.Dataset) -> list[Hypothesis]:
    """Return the hypotheses that some bound requires, lettered from a."""
    layers = dataset["layer"].values[1:].tolist()
    found = []
    for n, (name, text) in enumerate(statements(dataset).items()):
        share = holds(dataset, name)[:, 1:].mean(axis=0)
        found.append(Hypothesis(chr(ord("a") + n), text, _where(share, layers)))
    return found


def needs(dataset: xr.Dataset) -> list[Need]:
    """Return what each bound needs."""
    letters = {name: chr(ord("a") + n) for n, name in enumerate(statements(dataset))}
    found = []
    for bound in bounds(dataset):
        where = _where(bound.holding[bound.stated], bound.layers[bound.stated].tolist())
        needed = " ".join(letters[name] for name in bound.requires)
        found.append(Need(bound.title, bound.source, needed or "nothing", where))
    return found


def _where(share: np.ndarray, layers: list[int]) -> str:
    """Write at which layers something is so in every sample, and where in some."""
    everywhere = [layer for layer, s in zip(layers, share, strict=True) if s == 1]
    partly = [layer for layer, s in zip(layers, share, strict=True) if 0 < s < 1]
    if len(everywhere) == len(layers):
        return "every layer"
    where = ranges(everywhere) if everywhere else "no layer"
    return f"{where}; in some at {ranges(partly)}" if partly else where


def legend(dataset: xr.Dataset, samples: str) -> list[str]:
    """Return what explains the marks in the cells, only of those that occur.

    Args:
        dataset: what `rankcollapse.certify` returns.
        samples: what a sample is called there.
    """
    cells = [cell for grid in grids(dataset) for cell in grid.cells]
    texts = {cell.text for cell in cells}
    many = dataset.sizes["sample"] > 1
    lines = []
    if many:
        lines.append(f"values are 10^(mean of log10) over {dataset.sizes['sample']} {samples}")
    if any(cell.mark == "none" for cell in cells):
        lines.append(
            f"( ) its hypotheses hold in none of the {samples}: its proof does not reach there"
            if many
            else "( ) its hypotheses do not hold: its proof does not reach there"
        )
    if any(cell.mark == "some" for cell in cells):
        lines.append(f"[ ] its hypotheses hold in some of the {samples} only")
    if any(cell.partial for cell in cells):
        lines.append(f"† without the {samples} in which it is 0 or ∞")
    if "0" in texts and any((b.logs == -np.inf).any() for b in bounds(dataset, upper=False)):
        lines.append("0: the lower bound says nothing")
    if "∞" in texts:
        lines.append("∞: the upper bound says nothing")
    if any(cell.crossed for cell in cells):
        lines.append("! crossed by the measurement although its hypotheses hold: a defect")
    return lines
