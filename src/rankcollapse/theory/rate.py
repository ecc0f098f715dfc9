"""How fast the residual falls: the measured order and factor, beside what the structure predicts.

Order is the slope of log residual out against log residual in, layer by layer: 3 is the
cubic rate of content-only attention (doubly exponential in depth), 1 a constant factor per layer,
which is what a mask or positions in the scores leave (docs/theory.md §5).
"""

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from rankcollapse.metrics import local_order

Expected = Literal["cubic", "linear", "none"]

ORDERS: dict[Expected, float] = {"cubic": 3.0, "linear": 1.0}
TOLERANCE, WIDEST = 0.15, 0.5
LAYERS = 3
"""Fewest layers from which agreement is judged."""
SMALL = {"cubic": -6.0, "linear": -0.3, "none": 0.0}
"""log10 of the relative residual below which the leading order is expected to show."""


@dataclass(frozen=True)
class Rate:
    """The rate of one variant.

    Attributes:
        variant: Its name.
        expected: "cubic", "linear", or "none" where a skip connection carries the residual on.
        why: What in the structure says so, as part of a sentence.
        order: Σ(y_l − y_(l−1)) / Σ(y_(l−1) − y_(l−2)) over the layers used, y the mean over samples
            of log₁₀ of the relative residual. NaN where no layer can be used.
        error: Standard error of the local orders over the layers used, NaN for a single layer.
        log10_factor: Mean of y_l − y_(l−1) over the same layers: log₁₀ of what one layer leaves.
        layers: First and last layer l used, None where there are none.
        lambda2: Root mean square over heads, mean over the layers used, of |λ₂| of the attention
            matrix at the shared row; None unless linear.
        agrees: Whether `order` is within 0.15 of the expected one, or two standard errors if that
            is more, 0.5 at most; None where none is expected or fewer than three layers serve.
    """

    variant: str
    expected: Expected
    why: str
    order: float
    error: float
    log10_factor: float
    layers: tuple[int, int] | None
    lambda2: float | None
    agrees: bool | None

    def __str__(self) -> str:
        expected = (
            f"{self.variant}: {self.why}; theory expects "
            + {
                "cubic": "order 3 (doubly exponential collapse)",
                "linear": "order 1 (a constant factor per layer)",
                "none": "no rate",
            }[self.expected]
        )
        if self.layers is None:
            return (
                f"{expected}. Too few layers are small enough, and above rounding, to measure it."
            )
        first, last = self.layers
        span = f"over layers {first} to {last}" if last > first else f"at layer {first}"
        factor = f"a factor of {10**self.log10_factor:.3g} per layer"
        if self.expected == "none":
            return f"{expected}. Measured {span}: {factor}."
        measured = f"Measured {span}: order {self.order:.2f}"
        if self.expected == "linear":
            measured += f" and {factor}"
            if self.lambda2 is not None:
                measured += f", beside |λ₂| = {self.lambda2:.3g} of the attention between equals"
        verdict = {
            True: "which agrees",
            False: "which does not agree",
            None: "too few to say whether it agrees",
        }
        return f"{expected}. {measured}, {verdict[self.agrees]}."


def expected_rate(off: frozenset[str], causal: bool, positions: bool) -> tuple[Expected, str]:
    """What the structure predicts for the smallest residuals, and why.

    Args:
        off: Parts that the variant switches off.
        causal: Whether attention is masked to earlier tokens.
        positions: Whether positions act in the scores.
    """
    if "attention_skip" not in off:
        return "none", "the attention skip connection carries the residual from layer to layer"
    if causal or positions:
        what = "a causal mask" if causal else "positions in the scores"
        return "linear", f"with {what}, attention is not rank one even between equal tokens"
    return "cubic", "attention on content alone, unmasked, is rank one between equal tokens"


def rates(dataset: xr.Dataset) -> list[Rate]:
    """The rate of each variant of a dataset that `inspect` returned.

    Layers at the rounding floor, and layers above the size where the leading order shows, are left
    out; in `Dense` arithmetic little may remain.
    """
    run = json.loads(dataset.attrs["metadata"])
    if "log10_relative_residual" not in dataset:
        return []
    result = []
    for name in dataset["variant"].values:
        chosen = dataset.sel(variant=name)
        off = frozenset(run["variants"][str(name)]["off"])
        expected, why = expected_rate(off, run["causal"], run["positions_in_scores"])
        log10 = chosen["log10_relative_residual"].values.astype(float)
        log10 = np.where(chosen["at_floor"].values | ~np.isfinite(log10), np.nan, log10)
        result.append(_rate(str(name), expected, why, log10.mean(0), chosen))
    return result


def _rate(name: str, expected: Expected, why: str, y: np.ndarray, chosen: xr.Dataset) -> Rate:
    """`y` is NaN where any sample is at the floor."""
    layers = np.arange(len(y))
    used = layers[2:][np.isfinite(y[2:]) & np.isfinite(y[:-2]) & (y[1:-1] <= SMALL[expected])]
    if not len(used):
        return Rate(name, expected, why, np.nan, np.nan, np.nan, None, None, None)
    steps, before = y[used] - y[used - 1], y[used - 1] - y[used - 2]
    order = float(steps.sum() / before.sum()) if before.sum() else np.nan
    local = local_order(y)[used]
    error = float(local.std(ddof=1) / np.sqrt(len(used))) if len(used) > 1 else np.nan
    lambda2 = None
    if expected == "linear" and "positional_lambda2" in chosen:
        squares = (chosen["positional_lambda2"] ** 2).mean("head").sel(layer=used)
        lambda2 = float(np.sqrt(squares).mean())
    agrees = None
    if expected in ORDERS and np.isfinite(order) and len(used) >= LAYERS:
        agrees = bool(abs(order - ORDERS[expected]) <= max(TOLERANCE, min(2 * error, WIDEST)))
    span = (int(used[0]), int(used[-1]))
    return Rate(name, expected, why, order, error, float(steps.mean()), span, lambda2, agrees)
