"""The report as one HTML file that needs no network: sentences, charts, tables, definitions.

The charting library travels in the file. Colours are custom properties of the page, so charts
follow a change between the light and the dark scheme without being drawn again.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import xarray as xr
from markupsafe import Markup, escape

from rankcollapse.report.chart import chart
from rankcollapse.report.curves import PLAIN, cell, curves
from rankcollapse.report.findings import findings
from rankcollapse.report.html import render
from rankcollapse.report.measures import RESIDUAL, Measure, measured, rows, shown_variants
from rankcollapse.report.metadata import (
    listing,
    metadata,
    model_name,
    part_names,
    switched_off,
)
from rankcollapse.report.numbers import number
from rankcollapse.report.rates import rate_sentences, rate_table
from rankcollapse.report.style import PAGE, look
from rankcollapse.report.summary import FINAL_NORM, is_marked

HEIGHTS = {RESIDUAL.variable: 380}
OTHER_HEIGHT = 250

_NUMBER = re.compile(r"\d[\d.]*(?:e|\^)[-+]?[\d.]*\d")


@dataclass(frozen=True)
class Figure:
    """One chart with its table: what is measured, its definition, cells by layer and variant.

    `is_cut` says that means lie beyond the range that is drawn.
    """

    measure: Measure
    definition: str
    samples: int
    variants: list[dict[str, Any]]
    is_cut: bool
    rows: list[tuple[str, list[tuple[str, bool]]]]

    @property
    def has_floor(self) -> bool:
        """Return whether any cell is at the rounding floor."""
        return any(marked for _, cells in self.rows for _, marked in cells)

    @property
    def has_powers(self) -> bool:
        """Return whether any cell is a power of ten with a deviation in its exponent."""
        return any(text.startswith("10^(") for _, cells in self.rows for text, _ in cells)


def page(dataset: xr.Dataset) -> str:
    """Return the report as a self-contained HTML document.

    Args:
        dataset: what `rankcollapse.inspect` returns.

    Returns:
        HTML that opens without a network, in which everything from the data set is escaped.
    """
    variants = look([str(name) for name in dataset["variant"].values])
    described = {name: _variant(dataset, name, n) for name, n in variants.items()}
    measures = measured(dataset)
    figures = [_figure(dataset, measure, described) for measure in measures]
    specs = {}
    for figure in figures:
        name = figure.measure.variable
        height = HEIGHTS.get(name, OTHER_HEIGHT)
        drawn = chart(dataset, name, theme=PAGE, width="container", height=height, title=False)
        specs[name] = drawn.to_dict()
    return render(
        "report.html.j2",
        specs,
        model=model_name(dataset),
        facts=run_facts(dataset),
        findings=[unbroken(sentence) for sentence in findings(dataset)],
        figures=figures,
        has_plain=PLAIN in dataset,
        is_deep=RESIDUAL in measures and curves(dataset, RESIDUAL).deep,
        rates=rate_table(dataset),
        described=described,
        rate_sentences=[unbroken(sentence) for sentence in rate_sentences(dataset)],
        variants=list(described.values()),
        definitions=definitions(dataset),
        metadata=run_entries(dataset),
    )


def _figure(dataset: xr.Dataset, measure: Measure, described: dict[str, Any]) -> Figure:
    cells: dict[str, list[tuple[str, bool]]] = {}
    low, high = measure.window or (-math.inf, math.inf)
    shown = rows(dataset, measure)
    for row in shown:
        label = "after final norm" if row["layer"] == FINAL_NORM else row["layer"]
        cells.setdefault(label, []).append((cell(row), is_marked(row)))
    definition = str(dataset[measure.variable].attrs.get("definition", ""))
    variants = [described[name] for name in shown_variants(dataset, measure)]
    is_cut = any(row["mean"] < low or row["mean"] > high for row in shown)
    samples = dataset.sizes["sample"]
    return Figure(measure, definition, samples, variants, is_cut, list(cells.items()))


def _variant(dataset: xr.Dataset, name: str, look_number: int) -> dict[str, Any]:
    off = switched_off(dataset, name)
    entry = metadata(dataset).get("variants", {}).get(name, {})
    parts = f"without {listing(part_names(off))}" if off else "everything on"
    return {
        "name": name,
        "colour": f"var(--variant-{look_number % len(PAGE.palette)})",
        "parts": "" if off is None else parts,
        "formula": entry.get("formula", ""),
    }


def run_facts(dataset: xr.Dataset) -> list[str]:
    """Return what a reader must know of the run before the first number, in short pieces."""
    run = metadata(dataset)
    facts = []
    if run.get("layers"):
        facts.append(
            f"{run['layers']} layers of width {run.get('width')}, {run.get('heads')} heads"
        )
    if run.get("init") == "random":
        facts.append(f"random initialisation, seed {run.get('seed')}")
    elif run.get("init"):
        facts.append(f"{run['init']} weights")
    count = dataset.sizes["sample"]
    low, high = run.get("tokens_min"), run.get("tokens_max")
    length = "" if low is None else f" of {low if low == high else f'{low} to {high}'} tokens"
    facts.append(f"{count} text{'s' if count != 1 else ''}{length}")
    if run.get("dtype"):
        facts.append(f"{run['dtype']}, {run.get('arithmetic', 'dense')} arithmetic")
    return facts


def definitions(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Return name with unit and definition of every variable that has a definition, once each."""
    found = []
    for name, array in dataset.data_vars.items():
        definition = array.attrs.get("definition")
        if name == "at_floor" and metadata(dataset).get("floor") == 0:
            continue
        if definition and not str(name).endswith("_after_final_norm"):
            unit = str(array.attrs.get("units", "1"))
            title = str(array.attrs.get("long_name", name))
            title = title[:1].upper() + title[1:] + ("" if unit == "1" else f", {unit}")
            found.append((title, str(definition)))
    return found


def run_entries(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Return the metadata as names and texts."""
    return [
        (key.replace("_", " "), _plain(value))
        for key, value in metadata(dataset).items()
        # A floor of zero is none.
        if key != "variants" and value is not None and (key, value) != ("floor", 0)
    ]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return number(value) if isinstance(value, float) else str(value)


def unbroken(sentence: str) -> Markup:
    """Return an escaped sentence in which no line ends within a number such as 2.4e-06."""
    return Markup(_NUMBER.sub(r'<span class="number">\g<0></span>', str(escape(sentence))))
