"""What a chart draws: points, bands and floors in the coordinates of its axes.

Logarithmic quantities are turned into log10 here, from which everything downstream is linear.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import xarray as xr

from rankcollapse.report import numbers
from rankcollapse.report.metadata import listing, metadata
from rankcollapse.report.summary import FINAL_NORM, is_marked, layer_labels, summarize

# Twice the unit roundoff: where a plain run of this arithmetic can resolve nothing any more.
ROUNDING = {"float32": 2 * 2.0**-23, "float64": 2 * 2.0**-52}


@dataclass(frozen=True)
class Measure:
    """A variable that is charted: its title, its axis and the range it cannot leave."""

    variable: str
    title: str
    logarithmic: bool
    smallest: float = -math.inf
    largest: float = math.inf


MEASURES = (
    Measure("relative_residual", "Relative residual", logarithmic=True),
    Measure("effective_rank", "Effective rank", logarithmic=False, smallest=0.0),
    Measure("token_cosine", "Token cosine", logarithmic=False, smallest=-1.0, largest=1.0),
    Measure("largest_token_ratio", "Largest token over the median", logarithmic=True),
)


Point = dict[str, Any]


@dataclass(frozen=True)
class Curves:
    """The numbers of one chart.

    `points` has one entry per variant and state: `variant`, `layer`, `position` (abscissa), `y`,
    `low`, `high` (ordinate of mean and band), `after` (a final norm), `hollow` (at the floor),
    `value` and `note` (text). `floors` are pairs of ordinate and label. `edge` is the abscissa of
    the state after a final norm, None without one. `domain` is the ordinate's range.
    """

    points: list[Point]
    floors: list[tuple[float, str]]
    last_layer: int
    edge: float | None
    domain: tuple[float, float]


def curves(dataset: xr.Dataset, measure: Measure) -> Curves:
    """Return the curves of `measure`.

    Raises:
        OptionError: the data set lacks the measure's variable.
    """
    rows = summarize(dataset, measure.variable).to_dict("records")
    last = int(dataset["layer"].values[-1])
    edge = last + max(0.12 * last, 0.3) if FINAL_NORM in layer_labels(dataset) else None
    points = [_point(row, measure, edge) for row in rows if row["samples"]]
    floors = _floors(dataset, measure, points)
    if measure.logarithmic:
        _lift_zeros(points, floors)
    points = [point for point in points if math.isfinite(point["y"])]
    return Curves(points, floors, last, edge, _domain(points, floors, measure))


def _point(row: dict[Hashable, Any], measure: Measure, edge: float | None) -> Point:
    after = row["layer"] == FINAL_NORM
    y, low, high = _ordinates(row, measure)
    return {
        "variant": row["variant"],
        "layer": "after the final norm" if after else row["layer"],
        "position": edge if after else float(row["layer"]),
        "y": y,
        "low": low,
        "high": high,
        "after": after,
        "hollow": is_marked(row),
        "value": cell(row),
        "note": _note(row),
    }


def cell(row: dict[Hashable, Any]) -> str:
    """Write a summary's mean and deviation, as a power of ten where the ratio is no float."""
    if row["as_log10"]:
        return numbers.power(row["log10_mean"], row["log10_std"])
    return numbers.mean_and_std(row["mean"], row["std"])


def _note(row: dict[Hashable, Any]) -> str:
    count = round(row["at_floor"] * row["samples"])
    samples = f"{row['samples']} sample{'s' if row['samples'] != 1 else ''}"
    return f"{samples}, {count} at the rounding floor" if count else samples


def _ordinates(row: dict[Hashable, Any], measure: Measure) -> tuple[float, float, float]:
    mean, std = row["mean"], 0.0 if math.isnan(row["std"]) else row["std"]
    if not measure.logarithmic:
        low, high = max(mean - std, measure.smallest), min(mean + std, measure.largest)
        return mean, min(mean, low), max(mean, high)
    if row["as_log10"]:
        spread = 0.0 if math.isnan(row["log10_std"]) else row["log10_std"]
        return row["log10_mean"], row["log10_mean"] - spread, row["log10_mean"] + spread
    # A band that reaches zero ends at the smallest sample: a logarithm has no lower end.
    lower = mean - std if mean - std > 0 else min(row["min"], mean)
    return _log10(mean), _log10(lower), _log10(mean + std)


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else (math.nan if math.isnan(value) else -math.inf)


def _floors(dataset: xr.Dataset, measure: Measure, points: list[Point]) -> list[tuple[float, str]]:
    """Return the rounding floors within two decades of the data, the run's own as it says."""
    if measure.variable != "relative_residual":
        return []
    run = metadata(dataset)
    known: dict[str, float] = dict(ROUNDING)
    if run.get("floor"):
        known[str(run.get("dtype"))] = float(run["floor"])
    lowest = min((p["y"] for p in points if math.isfinite(p["y"])), default=0.0)
    reached = any(p["hollow"] for p in points)
    near = {
        dtype: math.log10(value)
        for dtype, value in known.items()
        if math.log10(value) >= lowest - 2 or (run.get("dtype") == dtype and reached)
    }
    # In a chart of hundreds of decades the labels would lie on each other.
    if len(near) > 1 and max(near.values()) - min(near.values()) < 0.08 * -lowest:
        label = f"{listing(list(near))} rounding floors"
        top = max(near.values())
        return [(y, label if y == top else "") for y in near.values()]
    return [(y, f"{dtype} rounding floor") for dtype, y in near.items()]


def _lift_zeros(points: list[Point], floors: list[tuple[float, str]]) -> None:
    """Put exact zeros, which have no logarithm, at the lowest thing drawn."""
    drawn = [p["y"] for p in points if math.isfinite(p["y"])] + [y for y, _ in floors]
    bottom = min(drawn, default=0.0)
    for point in points:
        for edge in ("y", "low", "high"):
            if point[edge] == -math.inf:
                point[edge] = bottom


def _domain(
    points: list[Point], floors: list[tuple[float, str]], measure: Measure
) -> tuple[float, float]:
    drawn = [y for p in points for y in (p["low"], p["high"])] + [y for y, _ in floors]
    finite = [y for y in drawn if math.isfinite(y)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    margin = max(0.04 * (high - low), 1e-3 * max(abs(low), abs(high)), 1e-6)
    if measure.logarithmic:
        return low - margin, high + margin
    return max(low - margin, min(low, measure.smallest)), min(
        high + margin, max(high, measure.largest)
    )
