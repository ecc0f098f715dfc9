"""From the data set to tables: every sample in one, mean and deviation over samples in another.

The state after a final norm is a row of its own, labelled `final_norm`, never joined to a layer.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rankcollapse.errors import OptionError

FINAL_NORM = "final_norm"
AFTER = "_after_final_norm"

# Under this a float64 ratio loses its digits, so its log10 is summarised instead.
SMALLEST_RATIO = 1e-300


def layer_labels(dataset: xr.Dataset) -> list[str]:
    """Return the labels of the states in order: "0", "1", ... and "final_norm" if there is one."""
    labels = [str(layer) for layer in dataset["layer"].values]
    has_final = any(str(name).endswith(AFTER) for name in dataset.data_vars)
    return [*labels, FINAL_NORM] if has_final else labels


def states(dataset: xr.Dataset, variable: str) -> np.ndarray:
    """Return `variable` over (variant, sample, state), the states being `layer_labels`.

    Raises:
        OptionError: the data set lacks the variable, or it is not one number per state.
    """
    if variable not in dataset or set(dataset[variable].dims) != {"variant", "sample", "layer"}:
        known = ", ".join(per_state_variables(dataset)) or "none"
        raise OptionError(
            f"The data set has no variable {variable!r} over variant, sample and layer; "
            f"it has {known}."
        )
    values = dataset[variable].transpose("variant", "sample", "layer").values
    if len(layer_labels(dataset)) == values.shape[2]:
        return values
    if variable + AFTER in dataset:
        last = dataset[variable + AFTER].transpose("variant", "sample").values[:, :, None]
    else:
        last = np.full((*values.shape[:2], 1), np.nan)
    return np.concatenate([values, last], axis=2)


def per_state_variables(dataset: xr.Dataset) -> list[str]:
    """Return the variables with one number per variant, sample and layer, in the set's order."""
    dims = {"variant", "sample", "layer"}
    return [str(name) for name, array in dataset.data_vars.items() if set(array.dims) == dims]


def tidy(dataset: xr.Dataset) -> pd.DataFrame:
    """Return one row per variant, sample and state, and one column per variable.

    Args:
        dataset: what `rankcollapse.inspect` returns. Variables per head are left out.

    Returns:
        Columns `variant`, `sample`, `layer` (text: "0", "1", ..., "final_norm") and the variables.
    """
    index = pd.MultiIndex.from_product(
        [
            [str(name) for name in dataset["variant"].values],
            dataset["sample"].values,
            layer_labels(dataset),
        ],
        names=["variant", "sample", "layer"],
    )
    columns = {name: states(dataset, name).reshape(-1) for name in per_state_variables(dataset)}
    return pd.DataFrame(columns, index=index).reset_index()


def summarize(dataset: xr.Dataset, variable: str) -> pd.DataFrame:
    """Return mean, deviation and range over samples per variant and state.

    Args:
        dataset: what `rankcollapse.inspect` returns.
        variable: a variable over variant, sample and layer, such as "relative_residual".

    Returns:
        One row per variant and state with `mean`, `std` (ddof = 1; NaN for one sample), `min`,
        `max`, `samples` (how many are numbers), `log10_mean` and `log10_std` (of the samples'
        log10), `as_log10` (the ratios are below 1e-300, so the log10 pair is to be shown) and
        `at_floor` (share of samples at the rounding floor; 0 for variables without a floor).

    Raises:
        OptionError: the data set lacks the variable.
    """
    values = states(dataset, variable).astype(np.float64)
    logs = _log10(dataset, variable, values)
    floor = _at_floor(dataset, variable, values.shape)
    labels = layer_labels(dataset)
    rows = []
    for v, variant in enumerate(dataset["variant"].values):
        for s, layer in enumerate(labels):
            sample = values[v, :, s]
            mean, std = _mean_and_std(sample)
            log10_mean, log10_std = _mean_and_std(logs[v, :, s])
            finite = sample[~np.isnan(sample)]
            low = float(finite.min()) if finite.size else np.nan
            high = float(finite.max()) if finite.size else np.nan
            rows.append(
                {
                    "variant": str(variant),
                    "layer": layer,
                    "mean": mean,
                    "std": std,
                    "min": low,
                    "max": high,
                    "samples": finite.size,
                    "log10_mean": log10_mean,
                    "log10_std": log10_std,
                    "as_log10": bool(0 <= high < SMALLEST_RATIO and np.isfinite(log10_mean)),
                    "at_floor": float(np.mean(floor[v, :, s])),
                }
            )
    return pd.DataFrame(rows)


def is_marked(row: dict[Hashable, Any]) -> bool:
    """Return whether at least half of a summary's samples are at the rounding floor."""
    return row["at_floor"] >= 0.5


def _log10(dataset: xr.Dataset, variable: str, values: np.ndarray) -> np.ndarray:
    if f"log10_{variable}" in dataset:
        logs = states(dataset, f"log10_{variable}").astype(np.float64)
    else:
        logs = np.log10(np.where(values > 0, values, np.nan))
    return np.where(np.isfinite(logs), logs, np.nan)


def _at_floor(dataset: xr.Dataset, variable: str, shape: tuple[int, ...]) -> np.ndarray:
    if "at_floor" not in dataset or "residual" not in variable:
        return np.zeros(shape, dtype=bool)
    return states(dataset, "at_floor").astype(np.float64) == 1.0


def _mean_and_std(sample: np.ndarray) -> tuple[float, float]:
    """Return mean and deviation, scaled first: squares of 1e-200 would vanish."""
    finite = sample[~np.isnan(sample)]
    if finite.size == 0:
        return np.nan, np.nan
    scale = float(np.max(np.abs(finite)))
    if not 0 < scale < np.inf:
        return float(np.mean(finite)), (0.0 if finite.size > 1 and scale == 0 else np.nan)
    scaled = finite / scale
    std = float(np.std(scaled, ddof=1)) * scale if finite.size > 1 else np.nan
    return float(np.mean(scaled)) * scale, std
