"""The page of a decomposition: sentences, charts, tables, definitions, how the run was made."""

from typing import Any

import xarray as xr

from rankcollapse.report.decomposition.chart import charts
from rankcollapse.report.decomposition.findings import findings
from rankcollapse.report.decomposition.lines import rounding_floor
from rankcollapse.report.decomposition.summary import (
    TITLES,
    by_length,
    counted,
    sources,
    variant_name,
)
from rankcollapse.report.decomposition.table import (
    columns,
    head_cells,
    paths_cells,
    residual_cells,
    rows,
)
from rankcollapse.report.decomposition.target import target_name
from rankcollapse.report.html import render
from rankcollapse.report.metadata import metadata, model_name
from rankcollapse.report.numbers import number
from rankcollapse.report.page import definitions, run_entries, run_facts, unbroken
from rankcollapse.report.style import PAGE

HEIGHTS = {"share": 380, "relative_residual": 280, "projection": 280, "head_projection": 300}


def page(dataset: xr.Dataset) -> str:
    """Return the decomposition as a self-contained HTML document.

    Args:
        dataset: what `rankcollapse.decompose` returns.

    Returns:
        HTML that opens without a network, in which everything from the data set is escaped.
    """
    drawn = charts(dataset, theme=PAGE, width="container", title=False)
    specs = {
        name: picture.properties(height=HEIGHTS[name]).to_dict() for name, picture in drawn.items()
    }
    run = metadata(dataset)
    variant = variant_name(dataset)
    tables = [_table(dataset, "share", "Share of the output by length")]
    if "projection" in dataset:
        tables.append(_table(dataset, "projection", "Projection by length"))
    return render(
        "decomposition.html.j2",
        specs,
        model=model_name(dataset),
        facts=[*run_facts(dataset), f"variant {variant}"],
        findings=[unbroken(sentence) for sentence in findings(dataset)],
        samples=dataset.sizes["sample"],
        has_paths=counted(dataset) is not None,
        has_rounding=_has_rounding(dataset),
        target=target_name(dataset) if "projection" in dataset else None,
        deepest=_deepest(dataset),
        tables=tables,
        residuals=_residuals(dataset),
        heads=[
            (f"layer {head.layer}, head {head.head}", " ".join(_texts(cell)))
            for head, cell in head_cells(dataset)
        ],
        formula=run.get("variants", {}).get(variant, {}).get("formula", ""),
        definitions=definitions(dataset),
        metadata=run_entries(dataset),
    )


def _table(dataset: xr.Dataset, variable: str, title: str) -> dict[str, Any]:
    """Return headings and rows, of shares beside the share of the number of paths."""
    beside = paths_cells(dataset) if variable == "share" else None
    return {
        "title": title,
        "headings": [*(["number of paths"] if beside else []), *columns(dataset)],
        "rows": [
            (label, [*([beside[n]] if beside else []), *(" ".join(_texts(c)) for c in cells)])
            for n, (label, cells) in enumerate(rows(dataset, variable))
        ],
    }


def _residuals(dataset: xr.Dataset) -> dict[str, Any]:
    cells = [residual_cells(dataset, source) for source in sources(dataset)]
    lengths = [str(length) for length in dataset["length"].values]
    return {
        "title": "Relative residual by length",
        "headings": [TITLES.get(source, source) for source in sources(dataset)],
        "rows": [
            (label, [" ".join(_texts(column[n])) for column in cells])
            for n, label in enumerate(lengths)
        ],
    }


def _texts(cell: tuple[str, str]) -> list[str]:
    mean, std = cell
    return [mean, std.replace("±", "± ")] if std else [mean]


def _has_rounding(dataset: xr.Dataset) -> bool:
    """Return whether the chart of the residual leaves out terms at the rounding floor."""
    floor = rounding_floor(dataset)
    columns = by_length(dataset, "relative_residual").values()
    return any(s is not None and s.mean <= floor for column in columns for s in column)


def _deepest(dataset: xr.Dataset) -> str:
    if "head_projection" not in dataset:
        return ""
    return number(float(abs(dataset["head_projection"].mean("sample")).max()))
