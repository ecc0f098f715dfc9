"""The rate of collapse as readers get it: sentences, and the rows of a small table."""

import math
from dataclasses import dataclass

import xarray as xr

from rankcollapse.report.metadata import metadata, switched_off
from rankcollapse.report.numbers import MISSING, number
from rankcollapse.theory import Rate, rates

EXPECTED = {"cubic": "order 3", "linear": "order 1", "none": "no rate"}
HEADINGS = ("Theory expects", "Measured order", "Factor per layer", "|λ₂|", "Layers", "Agrees")


@dataclass(frozen=True)
class RateTable:
    """The rates as text: headings of the columns, and the cells of each variant."""

    headings: list[str]
    rows: list[tuple[str, list[str]]]


def known_rates(dataset: xr.Dataset) -> list[Rate]:
    """Return the rate of each variant, or nothing where that would tell nothing.

    In `Dense` arithmetic that is where no variant leaves enough layers above rounding to compare
    an order with theory; in any, where the data set does not say what the model's structure is.
    """
    run = metadata(dataset)
    variants = [str(name) for name in dataset["variant"].values]
    described = all(switched_off(dataset, variant) is not None for variant in variants)
    if not described or not {"causal", "positions_in_scores"} <= run.keys():
        return []
    found = rates(dataset)
    compared = any(rate.expected != "none" and rate.layers is not None for rate in found)
    return found if compared or run.get("arithmetic") == "centered" else []


def rate_sentences(dataset: xr.Dataset) -> list[str]:
    """Return what theory expects of each variant's rate and what was measured, in sentences.

    Args:
        dataset: what `rankcollapse.inspect` returns.

    Returns:
        One sentence or two for each variant of which theory expects a rate, and one for all
        others together; none where nothing can be compared, as in most `Dense` runs.
    """
    found = known_rates(dataset)
    sentences = [str(rate) for rate in found if rate.expected != "none"]
    others = [rate for rate in found if rate.expected == "none"]
    if others:
        names = ", ".join(rate.variant for rate in others)
        sentences.append(f"{names}: {others[0].why}; theory expects no rate.")
    return sentences


def rate_table(dataset: xr.Dataset) -> RateTable:
    """Return the rates as a table without the columns that would be empty; `–` is an empty cell."""
    found = known_rates(dataset)
    cells = [_cells(rate) for rate in found]
    filled = [n for n in range(len(HEADINGS)) if any(row[n] != MISSING for row in cells)]
    rows = [
        (rate.variant, [row[n] for n in filled]) for rate, row in zip(found, cells, strict=True)
    ]
    return RateTable([HEADINGS[n] for n in filled], rows)


def _cells(rate: Rate) -> list[str]:
    """Return the texts under `HEADINGS`.

    A factor per layer is none of a sequence that falls ever faster, an order none of one that a
    skip connection carries on.
    """
    order, factor, span = MISSING, MISSING, MISSING
    if rate.layers is not None:
        first, last = rate.layers
        span = f"{first} to {last}" if last > first else f"{first}"
        if rate.expected != "none" and math.isfinite(rate.order):
            order = f"{rate.order:.2f}"
            if rate.error >= 0.005:
                order += f" ± {rate.error:.2f}"
        if rate.expected != "cubic":
            factor = number(10**rate.log10_factor)
    lambda2 = MISSING if rate.lambda2 is None else number(rate.lambda2)
    agrees = {True: "yes", False: "no", None: MISSING}[rate.agrees]
    return [EXPECTED[rate.expected], order, factor, lambda2, span, agrees]
