"""What a chart draws: points, bands and rules in the coordinates of its axes.

Logarithmic quantities are turned into log10 here, from which everything downstream is linear.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report import numbers
from rankcollapse.report.axis import DEEP, along, exponent_at
from rankcollapse.report.measures import RESIDUAL, Measure, rows, shown_variants
from rankcollapse.report.rules import Rules, rules
from rankcollapse.report.summary import FINAL_NORM, is_marked, layer_labels

PLAIN = "dense_log10_relative_residual"

Point = dict[str, Any]


@dataclass(frozen=True)
class Curves:
    """The numbers of one chart.

    `points` has one entry per variant and state: `variant`, `layer`, `position` (abscissa), `y`,
    `low`, `high` (ordinate of mean and band), `after` (a final norm), `hollow` (at the floor),
    `value` and `note` (text). `plain` has `variant`, `position`, `y` of the same pass in plain
    floating point, where it ran beside and resolves. `variants` are those that are drawn. `edge`
    is the abscissa of the state after a final norm, None without one. `domain` is the ordinate's
    range, and `deep` says that it is to be drawn doubly logarithmic.
    """

    points: list[Point]
    plain: list[Point]
    rules: Rules
    variants: list[str]
    last_layer: int
    edge: float | None
    domain: tuple[float, float]
    deep: bool


def curves(dataset: xr.Dataset, measure: Measure) -> Curves:
    """Return the curves of `measure`.

    Raises:
        OptionError: the data set lacks the measure's variable, or no variant has it.
    """
    summaries = rows(dataset, measure)
    variants = shown_variants(dataset, measure)
    if not variants:
        raise OptionError(
            f"There is no chart of {measure.variable!r}, because every variant of the data set "
            "keeps the attention skip connection; measure one without it, such as san."
        )
    last = int(dataset["layer"].values[-1])
    apart = FINAL_NORM in layer_labels(dataset) and not measure.of_fall
    edge = last + max(0.12 * last, 0.3) if apart else None
    points = [_point(row, measure, edge) for row in summaries if row["samples"]]
    deep = measure.logarithmic and _span(points) >= DEEP
    ruled = rules(dataset, measure, points, deep)
    if measure.logarithmic:
        _lift_zeros(points, ruled)
    points = [point for point in points if math.isfinite(point["y"])]
    plain = _plain(dataset) if measure is RESIDUAL else []
    domain = _domain(points, ruled, measure, deep)
    return Curves(points, plain, ruled, variants, last, edge, domain, deep)


def _span(points: list[Point]) -> float:
    drawn = [p["y"] for p in points if math.isfinite(p["y"])]
    return max(drawn) - min(drawn) if drawn else 0.0


def _plain(dataset: xr.Dataset) -> list[Point]:
    """Return the mean ratio of the plain pass by layer, where it resolves every sample."""
    if PLAIN not in dataset:
        return []
    mean = (10.0 ** dataset[PLAIN]).mean("sample", skipna=False).transpose("variant", "layer")
    return [
        {"variant": str(variant), "position": float(layer), "y": math.log10(value)}
        for variant, values in zip(dataset["variant"].values, mean.values, strict=True)
        for layer, value in zip(dataset["layer"].values, values, strict=True)
        if np.isfinite(value) and value > 0
    ]


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


def _lift_zeros(points: list[Point], ruled: Rules) -> None:
    """Put exact zeros, which have no logarithm, at the lowest thing drawn."""
    drawn = [p["y"] for p in points if math.isfinite(p["y"])] + [y for y, _ in ruled.lines]
    bottom = min(drawn, default=0.0)
    for point in points:
        for edge in ("y", "low", "high"):
            if point[edge] == -math.inf:
                point[edge] = bottom


def _domain(points: list[Point], ruled: Rules, measure: Measure, deep: bool) -> tuple[float, float]:
    drawn = [y for p in points for y in (p["low"], p["high"])] + [y for y, _ in ruled.lines]
    finite = [y for y in drawn if math.isfinite(y)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if deep:
        low, high = along(low), along(high)
        margin = 0.04 * (high - low)
        return exponent_at(low - margin), exponent_at(high + margin)
    if measure.logarithmic:
        # At least a tenth, so that equal values are no noise across the whole height.
        margin = max(0.04 * (high - low), 0.02)
        return low - margin, high + margin
    # Labels at the start of a rule need room over the highest one.
    share = 0.1 if ruled.place == "start" else 0.04
    margin = max(share * (high - low), 1e-3 * max(abs(low), abs(high)), 1e-6)
    low = max(low - margin, min(low, measure.smallest))
    high = min(high + margin, max(high, measure.largest))
    if measure.window is not None:
        low, high = max(low, measure.window[0]), min(high, measure.window[1])
    return low, high
