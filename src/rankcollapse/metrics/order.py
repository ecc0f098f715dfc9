"""The order at which a residual falls from layer to layer, from its measured sequence."""

import numpy as np


def local_order(log10_residual: np.ndarray) -> np.ndarray:
    """(y_l − y_(l−1)) / (y_(l−1) − y_(l−2)) along the last axis, NaN for the first two layers.

    >>> local_order(np.array([-1.0, -3.0, -9.0, -27.0]))
    array([nan, nan,  3.,  3.])
    """
    result = np.full(log10_residual.shape, np.nan)
    steps = np.diff(log10_residual, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        result[..., 2:] = steps[..., 1:] / steps[..., :-1]
    return result
