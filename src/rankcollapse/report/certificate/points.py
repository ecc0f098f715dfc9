"""What a chart of bounds draws: points and segments in the coordinates of its axes."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.report.axis import DEEP, Ticks, along, deep_ticks, exponent_at, log_ticks
from rankcollapse.report.certificate.bound import Bound, mean_log
from rankcollapse.report.certificate.summary import bounds, measured
from rankcollapse.report.certificate.words import value

# In words: the fonts of pictures have no double bars.
MEASURED = {"composite": "measured residual", "frobenius": "measured, Frobenius norm"}
LARGEST = 700.0
"""How far along the doubly logarithmic axis a float64 exponent reaches."""

# Shares of the chart's height: what looks like one place, what two ticks need between them.
ONE_PLACE, BETWEEN_TICKS = 0.012, 0.05


@dataclass(frozen=True)
class Points:
    """The numbers of one chart.

    `points` has an entry per name and layer: `name`, `layer`, `y` (mean of log10), `hollow` (the
    hypotheses do not hold in every sample), `under` (how many earlier names are at the same place),
    `value` and `note` (text). `segments` join them from
    `layer`, `y` to `layer2`, `y2`, `dashed` where they lead to a hollow point. `measured`, `upper`
    and `lower` are the names. `deep` says that the axis is doubly logarithmic.
    """

    points: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    measured: str
    upper: list[str]
    lower: list[str]
    layers: int
    domain: tuple[float, float]
    deep: bool

    @property
    def names(self) -> list[str]:
        """Return every name, in the order of the legend."""
        return [self.measured, *self.upper, *self.lower]

    @property
    def ticks(self) -> Ticks:
        """Return the ticks of the ordinate, without those that would crowd around 1."""
        if not self.deep:
            return log_ticks(*self.domain)
        ticks = deep_ticks(*self.domain)
        room = BETWEEN_TICKS * (along(self.domain[1]) - along(self.domain[0]))
        kept: list[tuple[float, str]] = []
        for at, text in sorted(
            zip(ticks.values, ticks.labels, strict=True), key=lambda tick: abs(tick[0])
        ):
            if all(abs(along(at) - along(other)) >= room for other, _ in kept):
                kept.append((at, text))
        kept.sort()
        return Ticks([at for at, _ in kept], [text for _, text in kept])

    @property
    def has_hollow(self) -> bool:
        """Return whether there are bounds whose hypotheses do not hold."""
        return any(point["hollow"] for point in self.points)


def points(dataset: xr.Dataset, deep: bool, norm: str) -> Points:
    """Return the points of the bounds on one norm, by layer or in depth."""
    found = bounds(dataset, deep=deep, norm=norm)
    means = mean_log(measured(dataset, norm))
    rows = _row(dataset, MEASURED[norm], means, None)
    for bound in found:
        rows += _row(dataset, label(bound), bound.mean, bound.holding)
    drawn = [point for point in rows if math.isfinite(point["y"])]
    ys = [point["y"] for point in drawn] or [0.0]
    is_deep = max(ys) - min(ys) >= DEEP
    domain = _domain(min(ys), max(ys), is_deep)
    _count_under(drawn, domain, is_deep)
    return Points(
        drawn,
        _segments(drawn),
        MEASURED[norm],
        [label(bound) for bound in found if bound.upper],
        [label(bound) for bound in found if not bound.upper],
        dataset.sizes["layer"] - 1,
        domain,
        is_deep,
    )


def label(bound: Bound) -> str:
    """Return a bound's name in the legend, with the side of the residual it is on."""
    return f"{'≤' if bound.upper else '≥'} {bound.title}"


def _row(
    dataset: xr.Dataset, name: str, logs: np.ndarray, holding: np.ndarray | None
) -> list[dict[str, Any]]:
    samples = dataset.sizes["sample"]
    over = f"mean of log10 over {samples} texts" if samples > 1 else "one text"
    shares = np.ones(len(logs)) if holding is None else holding
    return [
        {
            "name": name,
            "layer": int(layer),
            "y": float(log),
            "hollow": bool(share < 1),
            "value": value(log),
            "note": over if holding is None else _holding(round(share * samples), samples),
        }
        for layer, log, share in zip(dataset["layer"].values, logs, shares, strict=True)
    ]


def _holding(count: int, samples: int) -> str:
    if count == samples:
        return "it applies"
    if count == 0:
        return "its hypotheses fail"
    return f"its hypotheses hold in {count} of {samples} texts"


def _count_under(drawn: list[dict[str, Any]], domain: tuple[float, float], deep: bool) -> None:
    """Tell points that would hide each other apart, so that they can be drawn one in another."""
    scale = along if deep else float
    near = ONE_PLACE * (scale(domain[1]) - scale(domain[0]))
    for n, point in enumerate(drawn):
        point["under"] = sum(
            other["layer"] == point["layer"] and abs(scale(other["y"]) - scale(point["y"])) < near
            for other in drawn[:n]
        )


def _segments(drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "name": a["name"],
            "layer": a["layer"],
            "y": a["y"],
            "layer2": b["layer"],
            "y2": b["y"],
            "dashed": b["hollow"],
        }
        for a, b in pairwise(drawn)
        if a["name"] == b["name"] and b["layer"] == a["layer"] + 1
    ]


def _domain(low: float, high: float, deep: bool) -> tuple[float, float]:
    if deep:
        low, high = along(low), along(high)
        margin = 0.04 * (high - low)
        return exponent_at(max(low - margin, -LARGEST)), exponent_at(min(high + margin, LARGEST))
    margin = max(0.06 * (high - low), 0.003)
    return low - margin, high + margin
