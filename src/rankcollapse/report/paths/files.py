"""Writing the counts of paths: the data, the chart and the page, all of them or none."""

import os
from pathlib import Path

import xarray as xr

from rankcollapse.report.files import draw, put, write_files
from rankcollapse.report.paths.chart import chart
from rankcollapse.report.paths.page import page
from rankcollapse.report.paths.summary import tidy

NAMES = ("paths.csv", "paths.nc", "paths.svg", "paths.png", "paths.html")


def write(
    dataset: xr.Dataset, directory: str | os.PathLike[str], overwrite: bool = False
) -> list[Path]:
    """Write paths.csv, paths.nc, paths.svg, paths.png and paths.html.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.
        directory: made if it does not exist, with its parents.
        overwrite: whether the directory may hold anything already; other files are left alone.

    Returns:
        The paths of the files.

    Raises:
        OutputError: the directory cannot be written, or is not empty and `overwrite` is false.
    """

    def produce(fresh: Path) -> None:
        put(fresh / "paths", dataset, tidy(dataset))
        draw(fresh, [("paths", chart(dataset))])
        (fresh / "paths.html").write_text(page(dataset), encoding="utf-8")

    return write_files(directory, NAMES, produce, overwrite)
