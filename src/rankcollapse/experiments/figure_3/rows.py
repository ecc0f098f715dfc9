"""What Figure 3 shows, beside what is measured here."""

import math

import numpy as np
import xarray as xr

from rankcollapse.experiments.experiment import Row
from rankcollapse.experiments.figure_3.ways import MET

INITS = {"published": "", "pytorch": ", PyTorch's initialisation"}
CLAIMS = {
    "attention": "the paper shows the points meet, later the wider the layer, hardly at 128",
    "attention + MLP": "the paper shows the points stay apart, or meet much later",
    "attention + skip": "the paper shows the points stay apart, or meet much later, and move less",
}


def rows(dataset: xr.Dataset) -> list[Row]:
    """Distances at the end, how long they last, and how fast errors grow."""
    found = []
    for init in dataset["init"].values.tolist():
        for variant in dataset["variant"].values.tolist():
            one = dataset.sel(init=init, variant=variant)
            name = f"{variant}{INITS[init]}"
            widths = one["width"].values.tolist()
            found += [_end(name, variant, one.sel(width=width)) for width in widths]
            found += [_lasting(name, one.sel(width=width)) for width in widths]
            if not np.isnan(one["growth"]).any():
                found.append(_growth(name, one))
    return found


def _end(name: str, variant: str, one: xr.Dataset) -> Row:
    end = _each(one["distance"].isel(step=-1))
    met = sum(value < MET for value in end)
    return Row(
        f"{name}, width {int(one['width'])}: distance after {one.sizes['step'] - 1} steps",
        None,
        "Figure 3",
        end,
        remark=f"{CLAIMS[variant]}\nthe points meet in {met} of {len(end)} seeds",
    )


def _lasting(name: str, one: xr.Dataset) -> Row:
    by_seed = one["distance"].transpose("seed", "step").values
    return Row(
        f"{name}, width {int(one['width'])}: steps until the distance has halved or doubled",
        None,
        "",
        tuple(float(lasting(distance)) for distance in by_seed),
    )


def _growth(name: str, one: xr.Dataset) -> Row:
    loss, still = float(one["loss"].max()), _standstill(one)
    return Row(
        f"{name}: growth of a small error per step, mean over widths",
        None,
        "",
        _each(one["growth"].mean("width")),
        remark=f"one step is learnt to a mean squared error of at most {loss:.1e}, "
        f"{100 * loss / still:.1f} % of that of standing still; where errors grow, no such error "
        "is small enough to stay on the arcs",
    )


def _standstill(one: xr.Dataset) -> float:
    """The error of answering with the point itself: half the squared length of a true step."""
    points = 500 if one.attrs.get("as_published") else 1000
    return (2 * 0.3 * math.sin(math.pi / points / 2)) ** 2 / 2


def lasting(distance: np.ndarray) -> int:
    """Steps before the relative distance first leaves (1/2, 2); all of them where it never does."""
    gone = np.flatnonzero((distance <= 0.5) | (distance >= 2))
    return int(gone[0]) if len(gone) else len(distance) - 1


def _each(values: xr.DataArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values.values)
