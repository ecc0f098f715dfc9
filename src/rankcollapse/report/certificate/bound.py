"""One bound of a certificate in plain arrays, beside what it bounds, and what became of it.

Values are averaged as logarithms. Whether a bound applies is a matter of the worst sample.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

# What rounding can do to two logarithms that are equal.
TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-10
# Larger logarithms are not known to a decade, and their differences are rounding.
COMPARABLE = 1e10


@dataclass(frozen=True)
class Bound:
    """One bound over samples and layers, as log10, beside the measured residual of its norm.

    `norm` is "composite" or "frobenius"; `upper` tells an upper bound from a lower one, `deep` one
    from the network's input from one from the state that enters the layer. `requires` are names of
    hypotheses. Arrays are over (sample, layer); `layers` are the numbers of the layers.
    """

    name: str
    title: str
    source: str
    definition: str
    upper: bool
    deep: bool
    norm: str
    requires: tuple[str, ...]
    layers: np.ndarray
    logs: np.ndarray
    applies: np.ndarray
    measured: np.ndarray

    @cached_property
    def stated(self) -> np.ndarray:
        """Return by layer whether any sample has the bound, infinite or not."""
        return np.any(~np.isnan(self.logs), axis=0)

    @cached_property
    def mean(self) -> np.ndarray:
        """Return the mean of log10 by layer over samples with a finite value.

        Infinite where the bound is in every sample, NaN where it is not stated.
        """
        return mean_log(self.logs)

    @cached_property
    def above(self) -> np.ndarray:
        """Return by layer the mean of log10 of the bound over the measured residual.

        NaN where either has no finite logarithm, or one that is too large for a difference.
        """
        known = (np.abs(self.logs) < COMPARABLE) & (np.abs(self.measured) < COMPARABLE)
        with np.errstate(invalid="ignore"):
            return mean_log(np.where(known, self.logs - self.measured, np.nan))

    @cached_property
    def zero(self) -> np.ndarray:
        """Return by layer whether it is 0 in every sample, as the residual below it has to be."""
        return self.upper & (self.logs == -np.inf).all(axis=0)

    @cached_property
    def holding(self) -> np.ndarray:
        """Return by layer the share of samples in which every hypothesis holds."""
        return self.applies.mean(axis=0)

    @cached_property
    def entering(self) -> np.ndarray:
        """Return the measured residual that the bound starts from."""
        if self.deep:
            return np.broadcast_to(self.measured[:, :1], self.measured.shape)
        before = np.roll(self.measured, 1, axis=1)
        before[:, 0] = np.nan
        return before

    @cached_property
    def vacuous(self) -> np.ndarray:
        """Return where an upper bound is not below what it starts from, a lower bound zero."""
        zero = self.logs == -np.inf
        return (self.logs >= self.entering) & ~zero if self.upper else zero

    @cached_property
    def crossed(self) -> np.ndarray:
        """Return where the bound applies and the measurement is on its wrong side: a defect."""
        size = np.where(np.isfinite(self.measured), np.abs(self.measured), 0.0)
        room = TOLERANCE + RELATIVE_TOLERANCE * size
        beyond = (
            self.measured > self.logs + room if self.upper else self.measured < self.logs - room
        )
        return beyond & self.applies

    @property
    def name_in_text(self) -> str:
        """Return the title as a sentence has it: "the tanh bound", "Lemma A.2 (two norms)"."""
        head, comma, tail = self.title.partition(", ")
        text = f"{head} ({tail})" if comma else head
        first = text.partition(" ")[0]
        named = first in ("Lemma", "Theorem", "Corollary") or first.endswith("'s")
        return text if named else f"the {text}"

    @property
    def applying(self) -> np.ndarray:
        """Return by layer whether the bound is stated and applies in every sample."""
        return self.stated & (self.holding == 1)

    def numbers(self, chosen: np.ndarray) -> list[int]:
        """Return the numbers of the layers at which `chosen` is true."""
        return [int(layer) for layer in self.layers[chosen]]


def mean_log(logs: np.ndarray) -> np.ndarray:
    """Return the mean over samples of the finite logarithms, by layer; ±inf where all are."""
    finite = np.isfinite(logs)
    count = finite.sum(axis=0)
    # Divided first: the sum of exponents near the end of the range has no float.
    parts = np.where(finite, logs, 0.0) / np.maximum(count, 1)
    infinite = np.where((logs == np.inf).any(axis=0), np.inf, -np.inf)
    empty = np.where(np.isnan(logs).all(axis=0), np.nan, infinite)
    return np.where(count > 0, parts.sum(axis=0), empty)
