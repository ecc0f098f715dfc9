"""The page of a certificate: sentences, charts, tables, hypotheses, sources and the run."""

from collections.abc import Iterable
from typing import Any

import xarray as xr

from rankcollapse.report.certificate.cells import Grid, grids, hypotheses, legend, needs
from rankcollapse.report.certificate.chart import CHARTS, charts
from rankcollapse.report.certificate.findings import alarms, of_bounds, of_model
from rankcollapse.report.certificate.marks import looks
from rankcollapse.report.certificate.points import Points, label, points
from rankcollapse.report.certificate.summary import bounds, variant_name
from rankcollapse.report.certificate.table import BRACKETS
from rankcollapse.report.certificate.upper import VACUOUS
from rankcollapse.report.certificate.words import capital
from rankcollapse.report.html import render
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.page import run_entries, run_facts, unbroken
from rankcollapse.report.style import PAGE

HEIGHTS = {"per_layer": 380, "in_depth": 340}
OTHER_HEIGHT = 260


def page(dataset: xr.Dataset) -> str:
    """Return the certificate as a self-contained HTML document.

    Args:
        dataset: what `rankcollapse.certify` returns.

    Returns:
        HTML that opens without a network, in which everything from the data set is escaped.
    """
    drawn = charts(dataset, theme=PAGE, width="container", title=False)
    specs = {
        name: picture.properties(height=HEIGHTS.get(name, OTHER_HEIGHT)).to_dict()
        for name, picture in drawn.items()
    }
    variant = variant_name(dataset)
    contents = {name: points(dataset, *CHARTS[name][:2]) for name in drawn}
    colours = _colours(contents.values())
    return render(
        "certificate.html.j2",
        specs,
        model=model_name(dataset),
        facts=[*run_facts(dataset), f"variant {variant}"],
        alarms=[unbroken(sentence) for sentence in alarms(dataset)],
        findings=[unbroken(sentence) for sentence in of_model(dataset)],
        figures=[
            {
                "name": name,
                "title": title,
                "deep": contents[name].deep,
                "hollow": contents[name].has_hollow,
                "lower": bool(contents[name].lower),
            }
            for name, (_, _, title) in CHARTS.items()
            if name in contents
        ],
        grids=[_table(grid, colours) for grid in grids(dataset)],
        legend=legend(dataset, "texts"),
        samples=dataset.sizes["sample"],
        hypotheses=hypotheses(dataset),
        needs=needs(dataset),
        vacuous=VACUOUS,
        bounds=_described(dataset, colours),
        formula=metadata(dataset).get("variants", {}).get(variant, {}).get("formula", ""),
        definitions=_definitions(dataset),
        metadata=run_entries(dataset),
    )


def _colours(contents: Iterable[Points]) -> dict[str, str]:
    """Return the colour of each name in its chart."""
    found: dict[str, str] = {}
    for of in contents:
        found |= {name: colour for name, (colour, _) in looks(of, PAGE).items()}
    return found


def _table(grid: Grid, colours: dict[str, str]) -> dict[str, Any]:
    """Return headings and rows; a cell is its text in brackets, a note and a class."""
    return {
        "title": grid.title,
        "measured": grid.measured,
        "headings": [
            (heading, colours[label(bound)])
            for heading, bound in zip(grid.headings, grid.bounds, strict=True)
        ],
        "rows": [
            (
                layer,
                text,
                [
                    (
                        f"{BRACKETS[cell.mark][0]}{cell.text}{BRACKETS[cell.mark][1]}".strip(),
                        "!" if cell.crossed else "†" if cell.partial else "",
                        "crossed" if cell.crossed else "fails" if cell.mark else "",
                    )
                    for cell in cells
                ],
            )
            for layer, text, cells in grid.rows
        ],
    }


def _described(dataset: xr.Dataset, colours: dict[str, str]) -> list[dict[str, Any]]:
    """Return what each bound says here, its formula and its source."""
    sentences = of_bounds(dataset)
    return [
        {
            "title": capital(bound.title),
            "colour": colours[label(bound)],
            "says": unbroken(sentences[bound.name]),
            "definition": bound.definition,
            "source": bound.source,
        }
        for bound in bounds(dataset)
    ]


def _definitions(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Return name with unit and definition of every variable; a letter such as γ stays small."""
    found = []
    for name, array in dataset.data_vars.items():
        unit = str(array.attrs.get("units", "1"))
        title = capital(str(array.attrs.get("long_name", name)))
        if definition := array.attrs.get("definition"):
            found.append((title if unit == "1" else f"{title}, {unit}", str(definition)))
    return found
