"""Which quantities are charted, and which of a data set's numbers belong in the chart and table."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.report.metadata import switched_off
from rankcollapse.report.summary import FINAL_NORM, per_state_variables, summarize


@dataclass(frozen=True)
class Measure:
    """A variable that is charted: its title, its axis and the range it cannot leave.

    `window` is the widest range of the ordinate that is drawn. `references` are ordinates to
    compare with, each with its label. `of_fall` says that the variable compares the steps between
    layers of a falling residual: it has no meaning where an attention skip connection carries the
    residual on, nor behind a final norm.
    """

    variable: str
    title: str
    logarithmic: bool
    smallest: float = -math.inf
    largest: float = math.inf
    window: tuple[float, float] | None = None
    references: tuple[tuple[float, str], ...] = ()
    of_fall: bool = False


RESIDUAL = Measure("relative_residual", "Relative residual", logarithmic=True)
ORDER = Measure(
    "local_order",
    "Local order",
    logarithmic=False,
    window=(-1.0, 5.0),
    references=((3.0, "cubic"), (1.0, "linear")),
    of_fall=True,
)
MEASURES = (
    RESIDUAL,
    ORDER,
    Measure("effective_rank", "Effective rank", logarithmic=False, smallest=0.0),
    Measure("token_cosine", "Token cosine", logarithmic=False, smallest=-1.0, largest=1.0),
    Measure("largest_token_ratio", "Largest token over the median", logarithmic=True),
)


def measured(dataset: xr.Dataset) -> list[Measure]:
    """Return the measures that the data set has numbers for."""
    present = per_state_variables(dataset)
    found = [m for m in MEASURES if m.variable in present]
    return [m for m in found if not m.of_fall or _has_numbers(dataset, m)]


def shown_variants(dataset: xr.Dataset, measure: Measure) -> list[str]:
    """Return the variants for which `measure` means something, in the data set's order."""
    variants = [str(name) for name in dataset["variant"].values]
    if not measure.of_fall:
        return variants
    off = {variant: switched_off(dataset, variant) for variant in variants}
    return [v for v, parts in off.items() if parts is None or "attention_skip" in parts]


def rows(dataset: xr.Dataset, measure: Measure) -> list[dict[Hashable, Any]]:
    """Return the summaries (see `summarize`) that `measure` shows, by variant and state.

    Raises:
        OptionError: the data set lacks the measure's variable.
    """
    found = summarize(dataset, measure.variable).to_dict("records")
    if not measure.of_fall:
        return found
    shown = shown_variants(dataset, measure)
    first = int(dataset["layer"].values[0]) + 2
    return [
        row
        for row in found
        if row["variant"] in shown and row["layer"] != FINAL_NORM and int(row["layer"]) >= first
    ]


def _has_numbers(dataset: xr.Dataset, measure: Measure) -> bool:
    return any(np.isfinite(row["mean"]) for row in rows(dataset, measure))
