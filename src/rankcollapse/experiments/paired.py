"""What paired differences between seeds say of a claim about their sign."""

import numpy as np
from scipy import stats

LEVEL = 0.95
NOTHING = 1e-6
"""Differences up to this are rounding, and what the eps of norms leaves."""


def margin(differences: np.ndarray) -> float:
    """Half the 95 % interval of the mean difference (Student's t); infinite for one seed."""
    n = len(differences)
    if n < 2:
        return float("inf")
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, n - 1))
    return quantile * float(differences.std(ddof=1)) / n**0.5


def verdict(differences: np.ndarray, expected: int, claim: str) -> str:
    """Whether the mean difference has the expected sign beyond its 95 % interval, as a remark."""
    if len(differences) < 2:
        return "One seed cannot say."
    mean = float(differences.mean())
    if np.abs(differences).max() < NOTHING:
        return f"{claim}: no effect."
    if abs(mean) <= margin(differences):
        return f"{claim}: undecided, the 95 % interval of the mean holds 0."
    return f"{claim}: {'confirmed' if np.sign(mean) == expected else 'contradicted'}."
