"""What an experiment leaves in its folder: data, charts and the comparison, all of them or none."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import xarray as xr

from rankcollapse.experiments import comparison
from rankcollapse.experiments.experiment import Drawing, Experiment, Row
from rankcollapse.report.files import check_writable, write_files
from rankcollapse.report.picture import pdf, png, svg

_COMPARISON = ("comparison.csv", "comparison.md")
_CHART_KINDS = ("svg", "png", "pdf")


def check_place(folder: Path, name: str) -> None:
    """Makes sure, before long work, that an experiment's outputs can go to `folder / name`.

    Raises:
        OutputError: They cannot.
    """
    check_writable(folder / name, overwrite=True, names=_earlier(folder / name, name))


def write(
    folder: Path,
    experiment: Experiment,
    dataset: xr.Dataset,
    rows: Sequence[Row],
    charts: Mapping[str, Drawing],
) -> list[Path]:
    """Writes an experiment's outputs to `folder / name`, in place of earlier ones.

    Args:
        folder: The folder of all experiments.
        experiment: Whose outputs they are.
        dataset: The data.
        rows: The comparison.
        charts: The figures by file name without ending; the experiment's name is put before those
            that do not begin with it.

    Returns:
        The files: data, comparison, charts.

    Raises:
        OutputError: They cannot be written; earlier ones are then as they were.
    """
    name = experiment.name
    pictures = {
        key if key.startswith(name) else f"{name}_{key}": drawing for key, drawing in charts.items()
    }

    def produce(fresh: Path) -> None:
        dataset.to_netcdf(fresh / f"{name}.nc", engine="h5netcdf")
        tidy(dataset).to_csv(fresh / f"{name}.csv", index=False)
        comparison.frame(rows).to_csv(fresh / _COMPARISON[0], index=False)
        text = comparison.markdown(rows, experiment.title, experiment.about)
        (fresh / _COMPARISON[1]).write_text(text, encoding="utf-8")
        for stem, drawing in pictures.items():
            (fresh / f"{stem}.svg").write_text(svg(drawing), encoding="utf-8")
            (fresh / f"{stem}.png").write_bytes(png(drawing))
            (fresh / f"{stem}.pdf").write_bytes(pdf(drawing))

    names = [f"{name}.nc", f"{name}.csv", *_COMPARISON]
    names += [f"{stem}.{kind}" for stem in pictures for kind in _CHART_KINDS]
    names += [earlier for earlier in _earlier(folder / name, name) if earlier not in names]
    return write_files(folder / name, names, produce, overwrite=True)


def tidy(dataset: xr.Dataset) -> pd.DataFrame:
    """Returns one row per number: its variable, its place along each dimension, its value.

    A cell is empty where the variable has no such dimension. Numbers that do not exist (NaN) have
    no row.
    """
    frames = []
    for name, array in dataset.data_vars.items():
        values = array.rename("value").reset_coords(drop=True)
        frame = values.to_dataframe().reset_index() if array.dims else _single(array)
        frames.append(frame.dropna(subset=["value"]).assign(variable=str(name)))
    dims = [str(dim) for dim in dataset.sizes]
    if not frames:
        return pd.DataFrame(columns=["variable", *dims, "value"])
    # Whole numbers along a dimension stay whole beside cells that are empty.
    joined = pd.concat([frame.astype({"value": object}) for frame in frames], ignore_index=True)
    for dim in dims:
        if pd.api.types.is_integer_dtype(dataset[dim].dtype) and dim in joined:
            joined[dim] = joined[dim].astype("Int64")
    return joined.reindex(columns=["variable", *dims, "value"])


def _single(array: xr.DataArray) -> pd.DataFrame:
    return pd.DataFrame({"value": [array.item()]})


def _earlier(folder: Path, name: str) -> list[str]:
    """Returns the files of earlier outputs in an experiment's folder, which others may share."""
    if not folder.is_dir():
        return []
    mine = {f"{name}.nc", f"{name}.csv", *_COMPARISON}
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.name in mine or (path.name.startswith(name) and path.suffix[1:] in _CHART_KINDS)
    )
