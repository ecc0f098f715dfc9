"""The counts of paths as tables of plain values: a row per architecture, a row per length."""

import json
from dataclasses import dataclass

import pandas as pd
import xarray as xr


@dataclass(frozen=True)
class Summary:
    """One architecture's paths: how many, how long, and how many go through every layer."""

    name: str
    layers: int
    heads: int
    note: str
    log10_paths: float
    mean: float
    std: float
    modes: tuple[int, ...]
    longest_share: float


def with_skips(dataset: xr.Dataset) -> bool:
    """Return whether paths may take skip connections."""
    return bool(json.loads(dataset.attrs["metadata"])["skips"])


def summarize(dataset: xr.Dataset) -> list[Summary]:
    """Return each architecture's paths in a few numbers.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.
    """
    rows = []
    for name in dataset["architecture"].values:
        one = dataset.sel(architecture=name)
        layers = int(one["layers"])
        rows.append(
            Summary(
                name=str(name),
                layers=layers,
                heads=int(one["heads"]),
                note=str(one["note"].values),
                log10_paths=float(one["log10_paths"]),
                mean=float(one["mean_length"]),
                std=float(one["std_length"]),
                modes=tuple(int(n) for n in one["length"].values[one["is_mode"].values]),
                longest_share=float(one["share"].sel(length=layers)),
            )
        )
    return rows


def tidy(dataset: xr.Dataset) -> pd.DataFrame:
    """Return a row per architecture and length 0..L, with the length relative to L as a column.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.
    """
    names = ["log10_count", "log10_share", "share", "is_mode"]
    frame = dataset[names].to_dataframe().reset_index()
    frame = frame.query("length <= layers").reset_index(drop=True)
    frame["relative_length"] = frame["length"] / frame["layers"]
    first = ["architecture", "layers", "heads", "length", "relative_length"]
    return frame.reindex(columns=[*first, *names])
