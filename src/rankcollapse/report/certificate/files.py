"""Writing a certificate: the data, the charts and the page, all of them or none."""

import os
from pathlib import Path

import xarray as xr

from rankcollapse.report.certificate.chart import CHARTS, charts
from rankcollapse.report.certificate.page import page
from rankcollapse.report.certificate.summary import tidy
from rankcollapse.report.files import write_files
from rankcollapse.report.picture import png, svg

NAMES = (
    "results.nc",
    "results.csv",
    "certificate.html",
    *(f"{name}.{kind}" for name in CHARTS for kind in ("svg", "png")),
)


def write(
    dataset: xr.Dataset, directory: str | os.PathLike[str], overwrite: bool = False
) -> list[Path]:
    """Write results.nc, results.csv, certificate.html and the charts as SVG and PNG, all or none.

    Args:
        dataset: what `rankcollapse.certify` returns.
        directory: made if it does not exist, with its parents.
        overwrite: whether the directory may hold anything already; other files are left alone.

    Returns:
        The paths of the files.

    Raises:
        OutputError: the directory cannot be written, or is not empty and `overwrite` is false.
    """

    def produce(fresh: Path) -> None:
        dataset.to_netcdf(fresh / "results.nc", engine="h5netcdf")
        tidy(dataset).to_csv(fresh / "results.csv", index=False)
        (fresh / "certificate.html").write_text(page(dataset), encoding="utf-8")
        for name, drawing in charts(dataset).items():
            (fresh / f"{name}.svg").write_text(svg(drawing), encoding="utf-8")
            (fresh / f"{name}.png").write_bytes(png(drawing))

    return write_files(directory, NAMES, produce, overwrite)
