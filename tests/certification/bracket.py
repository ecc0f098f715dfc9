"""Whether a certificate holds: lower ≤ measured ≤ upper wherever a bound applies."""

import numpy as np
import xarray as xr


def excess(dataset: xr.Dataset) -> np.ndarray:
    """By how much a bound is on the wrong side, log₁₀; NaN where it says nothing.

    Logarithms that are huge themselves are good to a part of their own size only.
    """
    composite = (dataset.norm == "composite").values[:, None, None]
    measured = np.where(
        composite, dataset.log10_measured.values, dataset.log10_measured_frobenius.values
    )
    bound = dataset.log10_bound.values
    sign = np.where(dataset.kind == "upper", 1, -1)[:, None, None]
    equal = bound == measured  # −inf twice
    with np.errstate(invalid="ignore"):
        difference = np.where(equal, 0.0, sign * (measured - bound))
    return difference - 1e-10 * (1 + np.abs(np.where(np.isfinite(bound), bound, 0)))


def assert_certified(dataset: xr.Dataset) -> int:
    """Checks every bound that applies and returns at how many samples and layers."""
    stated = ~np.isnan(dataset.log10_bound.values)
    assert not stated[..., 0].any() and stated[..., 1:].any((1, 2)).all()
    judged = stated & dataset.applies.values
    wrong = judged & ~(excess(dataset) <= 0)
    assert not wrong.any(), [
        (str(dataset.bound.values[b]), int(s), int(layer)) for b, s, layer in np.argwhere(wrong)
    ]
    return int(judged.sum())
