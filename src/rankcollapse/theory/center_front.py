"""Which pairs (‖X − 1cᵀ‖₁, ‖X − 1cᵀ‖∞) centres can attain: bounds on that set from outside.

Both norms are convex in c, so the pairs (a, b) that some centre attains or betters form a convex
set. It lies in the quadrant above the smallest values and above every supporting line
p a + q b ≥ v. What is left is a polygon, and √(ab), being quasi-concave, is smallest at a corner.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


def attained(matrix: Array) -> tuple[float, float]:
    """(‖·‖₁, ‖·‖∞): the largest column sum and the largest row sum of absolute values."""
    size = np.abs(matrix)
    return float(size.sum(0).max()), float(size.sum(1).max())


def composite(a: float, b: float) -> float:
    """√(ab), without forming a product that may have no float64."""
    return math.sqrt(a) * math.sqrt(b)


def least(z: Array) -> tuple[float, float]:
    """Lower bounds on either norm of Z − 1cᵀ over all c; `z` has to be about its median.

    The median attains the first. In the second, a centre is at least half their distance away from
    one of two tokens. From the token farthest from the mean to the one farthest from that, this
    is at least ‖ΠZ‖∞ / (2(1 − 1/n)).
    """
    first = attained(z)[0]
    row = int(np.abs(z - z.mean(0)).sum(1).argmax())
    row = int(np.abs(z - z[row]).sum(1).argmax())
    second = float(np.abs(z - z[row]).sum(1).max()) / 2
    # Entries about the median are themselves rounded, by EPS each, and so are the sums.
    slack = 4 * (sum(z.shape) + 4) * EPS
    return first * (1 - slack), max(0.0, second - slack * attained(z)[1])


class Front:
    """The polygon, as the lines p a + q b ≥ v that bound it.

    Attributes:
        corner: The corner where a b is smallest.
        lower: A lower bound on √(ab) over the polygon, with allowance for rounding.
    """

    def __init__(self, a: float, b: float) -> None:
        """Begin with the quadrant of all that is at least (a, b)."""
        self._a = a
        self._lines = np.array([[0.0, 1.0, b]])
        self.corner = (a, b)
        self.lower = composite(a, b) * (1 - 4 * EPS)

    def cut(self, p: float, q: float, v: float) -> None:
        """Leave only what is on or above the line p a + q b = v; p ≥ 0 and q > 0."""
        self._lines = np.vstack([self._lines, [p, q, v]])
        p_, q_, v_ = self._lines.T[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # parallel lines do not meet
            meet = (v_ / q_ - (v_ / q_).T) / (p_ / q_ - (p_ / q_).T)
        a = np.unique(np.append(meet[np.isfinite(meet) & (meet > self._a)], self._a))
        heights = ((v_ - p_ * a) / q_).max(0)
        best = int((a * heights).argmin())
        self.corner = (float(a[best]), float(heights[best]))
        # Along one line a b is concave, so between two values of a it is at least the smaller of
        # its ends. This holds for any values of a, exactly those of the corners or not.
        ends = a * (v_ - p_ * a - 4 * EPS * (v_ + p_ * a)) / q_
        between = np.minimum(ends[:, :-1], ends[:, 1:]).max(0)
        product = float(min(between.min(initial=np.inf), ends[0, -1]))
        self.lower = max(self.lower, math.sqrt(max(product, 0.0)) * (1 - 4 * EPS))
