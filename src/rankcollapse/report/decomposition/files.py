"""Writing a decomposition: the data, the charts and the page, all of them or none."""

import os
from pathlib import Path

import xarray as xr

from rankcollapse.report.decomposition.chart import VARIABLES, charts
from rankcollapse.report.decomposition.page import page
from rankcollapse.report.decomposition.summary import tidy
from rankcollapse.report.files import draw, put, write_files

NAMES = (
    "decomposition.nc",
    "decomposition.csv",
    "decomposition.html",
    *(f"{variable}.{kind}" for variable in VARIABLES for kind in ("svg", "png")),
)


def write(
    dataset: xr.Dataset, directory: str | os.PathLike[str], overwrite: bool = False
) -> list[Path]:
    """Write decomposition.nc, .csv and .html and the charts as SVG and PNG, all or none.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        directory: made if it does not exist, with its parents.
        overwrite: whether the directory may hold anything already; other files are left alone.

    Returns:
        The paths of the files.

    Raises:
        OutputError: the directory cannot be written, or is not empty and `overwrite` is false.
    """

    def produce(fresh: Path) -> None:
        put(fresh / "decomposition", dataset, tidy(dataset))
        (fresh / "decomposition.html").write_text(page(dataset), encoding="utf-8")
        draw(fresh, charts(dataset).items())

    return write_files(directory, NAMES, produce, overwrite)
