"""A certificate taken apart: its bounds, its hypotheses, what was measured, every number."""

import numpy as np
import pandas as pd
import xarray as xr

from rankcollapse.report.certificate.bound import Bound
from rankcollapse.report.metadata import metadata

NORMS = {"composite": "log10_measured", "frobenius": "log10_measured_frobenius"}
SYMBOLS = {"composite": "‖res‖₁,∞", "frobenius": "‖res‖_F"}
PAPER, FROBENIUS = tuple(NORMS)


def bounds(
    dataset: xr.Dataset,
    *,
    upper: bool | None = None,
    deep: bool | None = None,
    norm: str | None = None,
) -> list[Bound]:
    """Return the bounds in the data set's order.

    Args:
        dataset: what `rankcollapse.certify` returns.
        upper: only upper (or lower) bounds.
        deep: only those from the network's input (or from the state that enters each layer).
        norm: only those on the residual in this norm.
    """
    found = [_bound(dataset.isel(bound=n)) for n in range(dataset.sizes.get("bound", 0))]
    return [
        bound
        for bound in found
        if upper in (None, bound.upper)
        and deep in (None, bound.deep)
        and norm in (None, bound.norm)
        and bound.stated.any()
    ]


def _bound(one: xr.Dataset) -> Bound:
    norm = str(one["norm"].item())
    requires = one["requires"].values
    names = one["hypothesis"].values
    return Bound(
        name=str(one["bound"].item()),
        title=str(one["title"].item()),
        source=str(one["source"].item()),
        definition=str(one["definition"].item()) if "definition" in one.coords else "",
        upper=str(one["kind"].item()) == "upper",
        deep=str(one["scope"].item()) == "depth",
        norm=norm,
        requires=tuple(str(n) for n, needed in zip(names, requires, strict=True) if needed),
        layers=one["layer"].values,
        logs=_by_sample(one["log10_bound"]),
        applies=one["applies"].transpose("sample", "layer").values.astype(bool),
        measured=_by_sample(one[NORMS[norm]]),
    )


def measured(dataset: xr.Dataset, norm: str) -> np.ndarray:
    """Return log10 of the measured residual over (sample, layer)."""
    return _by_sample(dataset[NORMS[norm]])


def statements(dataset: xr.Dataset) -> dict[str, str]:
    """Return the hypotheses that some bound requires: their names and what they say."""
    needed = {name for bound in bounds(dataset) for name in bound.requires}
    names = [str(name) for name in dataset["hypothesis"].values]
    texts = [str(text) for text in dataset["statement"].values]
    return {name: text for name, text in zip(names, texts, strict=True) if name in needed}


def holds(dataset: xr.Dataset, hypothesis: str) -> np.ndarray:
    """Return where a hypothesis holds over (sample, layer)."""
    one = dataset["holds"].sel(hypothesis=hypothesis)
    return one.transpose("sample", "layer").values.astype(bool)


def variant_name(dataset: xr.Dataset) -> str:
    """Return the variant that was certified."""
    if "variant" in dataset.coords:
        return str(dataset["variant"].item())
    return next(iter(metadata(dataset).get("variants", {})), "san")


def tidy(dataset: xr.Dataset) -> pd.DataFrame:
    """Return one row per sample and layer, one column per number.

    Args:
        dataset: what `rankcollapse.certify` returns.

    Returns:
        Columns `sample`, `layer`, the variables over both, `holds_NAME` of each hypothesis, and
        `log10_NAME` and `applies_NAME` of each bound.
    """
    dims = ["sample", "layer"]
    index = pd.MultiIndex.from_product([dataset[d].values for d in dims], names=dims)
    columns = {
        str(name): array.transpose(*dims).values.reshape(-1)
        for name, array in dataset.data_vars.items()
        if set(array.dims) == set(dims)
    }
    for name in dataset["hypothesis"].values:
        columns[f"holds_{name}"] = holds(dataset, name).reshape(-1)
    for name in dataset["bound"].values:
        one = dataset.sel(bound=name)
        columns[f"log10_{name}"] = _by_sample(one["log10_bound"]).reshape(-1)
        columns[f"applies_{name}"] = one["applies"].transpose(*dims).values.reshape(-1)
    return pd.DataFrame(columns, index=index).reset_index()


def _by_sample(array: xr.DataArray) -> np.ndarray:
    return array.transpose("sample", "layer").values.astype(float)
