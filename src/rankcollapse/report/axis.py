"""Where an axis is ticked and what the ticks say.

A logarithmic quantity is drawn as its log10 on a linear axis, because 1e-900 is no float: the
ticks sit at the log10 of round numbers and are labelled with these, as decimals or powers of ten.
Beyond `DEEP` decades the axis is logarithmic in the exponent as well, but linear near 1: on it
doubly exponential collapse is a straight line, beside which all else can still be seen.
"""

import math
from dataclasses import dataclass

from rankcollapse.report.numbers import decade

DEEP = 150.0
"""Decades from which the exponent is drawn on a logarithmic axis of its own."""


def along(exponent: float) -> float:
    """Return how far an exponent is along the doubly logarithmic axis: ± ln(1 + |exponent|)."""
    return math.copysign(math.log1p(abs(exponent)), exponent)


def exponent_at(place: float) -> float:
    """Return the exponent at a place along the doubly logarithmic axis."""
    return math.copysign(math.expm1(abs(place)), place)


@dataclass(frozen=True)
class Ticks:
    """Positions along an axis with the text at each."""

    values: list[float]
    labels: list[str]

    def label_expression(self) -> str:
        """Return the Vega expression that labels these ticks, whatever is asked of others."""
        pairs = zip(self.values, self.labels, strict=True)
        cases = "".join(f"abs(datum.value - ({v!r})) < 1e-9 ? '{text}' : " for v, text in pairs)
        return f"{cases}''"


def log_ticks(low: float, high: float) -> Ticks:
    """Return ticks for log10 values from `low` to `high`.

    Less than a decade gets evenly spaced numbers, less than three the 1-2-5 series, more the
    powers of ten at a round distance.
    """
    span = high - low
    if span < 1:
        return _even(low, high)
    if span < 3:
        return _one_two_five(low, high)
    step = max(1, round_step(span / 8))
    values = range(math.ceil(low / step) * step, math.floor(high / step) * step + 1, step)
    return Ticks([float(v) for v in values], [decade(v) for v in values])


def deep_ticks(low: float, high: float) -> Ticks:
    """Return ticks for log10 values on the doubly logarithmic axis: 1, 10⁻¹, 10⁻¹⁰, 10⁻¹⁰⁰, ..."""
    largest = max(abs(low), abs(high))
    step = round_step(math.log10(largest) / 7)
    sizes = [10.0**n for n in range(0, math.floor(math.log10(largest)) + 1, step)]
    if largest < 1000:
        sizes = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
    values = sorted({0.0, *sizes, *(-size for size in sizes)})
    inside = [v for v in values if low <= v <= high]
    return Ticks(inside, [decade(round(v)) for v in inside])


def layer_ticks(layers: int, most: int = 13) -> list[int]:
    """Return at most about `most` layers to tick, the first and the last among them."""
    step = max(1, round_step(layers / (most - 1)))
    ticks = list(range(0, layers + 1, step))
    if ticks[-1] != layers:
        if layers - ticks[-1] < 0.6 * step and len(ticks) > 1:
            ticks.pop()
        ticks.append(layers)
    return ticks


def round_step(at_least: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that is not below `at_least`."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if factor * size >= at_least:
                return factor * size
        size *= 10


def _even(low: float, high: float) -> Ticks:
    smallest, largest = 10.0**low, 10.0**high
    rough = (largest - smallest) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(f * size for f in (1, 2, 5, 10) if f * size >= rough)
    first, last = math.ceil(smallest / step), math.floor(largest / step)
    numbers = [k * step for k in range(max(first, 1), last + 1)]
    return Ticks([math.log10(n) for n in numbers], [f"{n:.4g}" for n in numbers])


def _one_two_five(low: float, high: float) -> Ticks:
    numbers = [
        factor * 10.0**exponent
        for exponent in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
    ]
    inside = [n for n in numbers if low - 1e-9 <= math.log10(n) <= high + 1e-9]
    return Ticks([math.log10(n) for n in inside], [f"{n:.3g}" for n in inside])
