"""The panels of Figure 2 as data sets of the kind that `inspect` returns, over seeds and texts.

Every pair of a seed and a text becomes one sample, so that everything that draws and summarises
such data sets draws and summarises the panels.
"""

import json
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.experiments.figure_2.runs import VARIANTS
from rankcollapse.report.metadata import model_name


def runs(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Returns the metadata of each panel's first run, by panel."""
    return json.loads(dataset.attrs["metadata"])


def panels(dataset: xr.Dataset, init: str) -> list[str]:
    """Returns the panels whose weights are "random" or "pretrained"."""
    return [name for name, run in runs(dataset).items() if run["init"] == init]


def model(dataset: xr.Dataset, panel: str) -> str:
    """Returns the name of a panel's model, of a folder its last two parts."""
    return model_name(xr.Dataset(attrs={"metadata": json.dumps(runs(dataset)[panel])}))


def seeds(dataset: xr.Dataset, panel: str) -> int:
    """Returns over how many seeds a panel was run."""
    return int(dataset["relative_residual"].sel(panel=panel).count("seed").max())


def texts(dataset: xr.Dataset, panel: str, centered: bool = False) -> int:
    """Returns over how many texts a panel was run, in float32 or in centered arithmetic."""
    name = "centered_log10_relative_residual" if centered else "relative_residual"
    return int(dataset[name].sel(panel=panel).count("sample").max())


def dense(dataset: xr.Dataset, panel: str) -> xr.Dataset:
    """Returns a panel as it runs in plain floating point."""
    own = _own(dataset[["relative_residual", "at_floor"]], dataset, panel)
    kept = own.where(own["relative_residual"].notnull().any(["variant", "layer"]), drop=True)
    kept["at_floor"] = kept["at_floor"].astype(bool)
    return kept.assign_attrs(metadata=json.dumps(runs(dataset)[panel]))


def centered(dataset: xr.Dataset, panel: str) -> xr.Dataset:
    """Returns a panel in centered arithmetic, the same pass in plain float64 beside it."""
    log10 = "log10_relative_residual"
    names = {f"centered_{log10}": log10, f"float64_{log10}": f"dense_{log10}"}
    own = _own(dataset[list(names)].rename(names), dataset, panel)
    kept = own.where(own[log10].notnull().any(["variant", "layer"]), drop=True)
    with np.errstate(under="ignore"):
        kept["relative_residual"] = 10.0 ** kept[log10]
    kept["at_floor"] = xr.zeros_like(kept[log10], dtype=bool)
    run = {**runs(dataset)[panel], "arithmetic": "centered", "dtype": "float64", "floor": 0.0}
    return kept.assign_attrs(metadata=json.dumps(run))


def _own(values: xr.Dataset, dataset: xr.Dataset, panel: str) -> xr.Dataset:
    """Returns what a panel has, without the layers that only deeper models have."""
    layers = slice(0, runs(dataset)[panel]["layers"])
    own = values.sel(panel=panel, layer=layers, variant=list(VARIANTS)).reset_coords(drop=True)
    pairs = own.stack(pair=("seed", "sample"), create_index=False)
    return pairs.drop_vars(["seed", "sample"]).rename(pair="sample")
