"""A decomposition in tables of plain values: every sample in one, mean and deviation in another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rankcollapse.paths.counting import length_distribution
from rankcollapse.report.metadata import metadata
from rankcollapse.report.numbers import number

TOTAL = "total"
TITLES = {"input": "input", "mlp": "MLPs", "bias": "biases", TOTAL: TOTAL}
ADDITIVE = ("share", "projection")
DIMS = ("sample", "source", "length")
HEADS = 5


@dataclass(frozen=True)
class Spread:
    """Mean and deviation over samples (ddof = 1; NaN for one), with the smallest sample."""

    mean: float
    std: float
    low: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Spread":
        """Summarise the numbers among `values`."""
        found = values[~np.isnan(values)]
        if found.size == 0:
            return cls(np.nan, np.nan, np.nan)
        std = float(np.std(found, ddof=1)) if found.size > 1 else np.nan
        return cls(float(np.mean(found)), std, float(np.min(found)))


@dataclass(frozen=True)
class Head:
    """The paths through one head: their total projection over samples."""

    layer: int
    head: int
    total: Spread


def sources(dataset: xr.Dataset) -> list[str]:
    """Return the sources in the data set's order."""
    return [str(name) for name in dataset["source"].values]


def tidy(dataset: xr.Dataset) -> pd.DataFrame:
    """Return one row per sample, source and length, and one column per variable.

    Args:
        dataset: what `rankcollapse.decompose` returns. Variables per head are left out.
    """
    names = [str(name) for name, array in dataset.data_vars.items() if set(array.dims) == {*DIMS}]
    frame = dataset[names].to_dataframe(dim_order=list(DIMS)).reset_index()
    return frame.reindex(columns=[*DIMS, *names])


def by_length(dataset: xr.Dataset, variable: str) -> dict[str, list[Spread | None]]:
    """Return a variable over samples for every length, by source.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        variable: "share", "projection", "relative_residual" or another one per source and length.

    Returns:
        A list over lengths for each source, None where no sample has such paths; of shares and
        projections, which add up, also the sum over sources as "total".
    """
    values = dataset[variable].transpose(*DIMS).values
    present = np.any(dataset["frobenius_norm"].transpose(*DIMS).values > 0, axis=0)
    spreads: dict[str, list[Spread | None]] = {
        source: [
            Spread.of(values[:, s, length]) if present[s, length] else None
            for length in range(values.shape[2])
        ]
        for s, source in enumerate(sources(dataset))
    }
    if variable in ADDITIVE:
        sums = values.sum(axis=1)
        spreads[TOTAL] = [
            Spread.of(sums[:, length]) if present[:, length].any() else None
            for length in range(sums.shape[1])
        ]
    return spreads


def overall(dataset: xr.Dataset, variable: str) -> dict[str, Spread]:
    """Return the sum of shares or projections over all lengths, by source and in total."""
    sums = dataset[variable].transpose(*DIMS).values.sum(axis=2)
    found = {source: Spread.of(sums[:, s]) for s, source in enumerate(sources(dataset))}
    return found | {TOTAL: Spread.of(sums.sum(axis=1))}


def up_to(dataset: xr.Dataset, variable: str, length: int) -> Spread:
    """Return the sum of shares or projections over sources and lengths 0 to `length`."""
    values = dataset[variable].transpose(*DIMS).values
    return Spread.of(values[:, :, : length + 1].sum(axis=(1, 2)))


def largest_heads(dataset: xr.Dataset, count: int = HEADS) -> list[Head]:
    """Return the heads whose mean total is largest in size; none without a target."""
    if "head_projection" not in dataset:
        return []
    array = dataset["head_projection"].transpose("layer", "head", "sample")
    heads = [
        Head(int(layer), int(head), Spread.of(array.values[i, j]))
        for i, layer in enumerate(array["layer"].values)
        for j, head in enumerate(array["head"].values)
    ]
    return sorted(heads, key=lambda h: -abs(h.total.mean))[:count]


def counted(dataset: xr.Dataset) -> np.ndarray | None:
    """Return the share of the number of the input's paths that have each length.

    None where no path of the input reaches the output, because MLPs without their skip connection
    end every one, or where the data set does not say how it was made.
    """
    run = metadata(dataset)
    off = variant_off(dataset)
    if not run.get("heads") or ("mlp_skip" in off and "mlp" not in off):
        return None
    skips = "attention_skip" not in off
    return length_distribution(int(run["layers"]), int(run["heads"]), skips).share.values


def variant_name(dataset: xr.Dataset) -> str:
    """Return the variant that was decomposed."""
    return next(iter(metadata(dataset).get("variants", {})), "transformer")


def variant_off(dataset: xr.Dataset) -> list[str]:
    """Return what is off in the variant."""
    variants: dict[str, Any] = metadata(dataset).get("variants", {})
    return next((entry.get("off") or [] for entry in variants.values()), [])


def plain(value: float, largest: float) -> str:
    """Write a number with as many decimals as leave a column of numbers up to `largest` narrow."""
    if np.isnan(value):
        return ""
    if not 1e-3 <= largest < 1e5:
        return number(value)
    decimals = next(d for d, end in ((3, 10), (2, 100), (1, 1000), (0, 1e5)) if largest < end)
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text
