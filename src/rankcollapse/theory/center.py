"""The residual of one matrix about a centre of choice, beside the best that any centre could do.

The paper leaves open in which norm its centre is the best. Everywhere else in this package the
centre is the token mean; here the others can be had, to see how much the choice matters.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rankcollapse.errors import InputError, OptionError
from rankcollapse.theory.center_front import attained, composite, least

CENTERS = ("mean", "median", "optimal")

LARGEST = 100_000
"""Entries up to which the optimal centre is looked for: about half a minute on one core."""


@dataclass(frozen=True, eq=False, repr=False)
class Residual:
    """What is left of X about a centre c, and how close that is to the least possible.

    Attributes:
        matrix: X − 1cᵀ, tokens × width, float64.
        center: c, one number per feature, in the units of X. Rounded: where all tokens share a
            large row, the matrix is more precise than the difference from this.
        norm: ‖X − 1cᵀ‖₁,∞, in the units of X.
        lower: A lower bound on ‖X − 1vᵀ‖₁,∞ over all centres v. It allows for rounding, and does
            not rely on the tolerances of the solver.
        gap: norm / lower − 1, so that no centre gives less than norm / (1 + gap). 0 where the norm
            is 0.
    """

    matrix: Tensor
    center: Tensor
    norm: float
    lower: float
    gap: float

    def __repr__(self) -> str:
        tokens, width = self.matrix.shape
        return (
            f"Residual({tokens} tokens × {width}, norm={self.norm:.6g}, "
            f"lower={self.lower:.6g}, gap={self.gap:.1e})"
        )


def residual(x: Tensor | ArrayLike, center: str = "mean", *, tolerance: float = 1e-6) -> Residual:
    """X − 1cᵀ about the centre c named, with a certified bound on how good any centre could be.

    - ``mean``: c_j = Σ_i x_ij / n, the minimiser of ‖X − 1cᵀ‖_F. The gap is at most 1 − 2/n.
    - ``median``: c_j the median of column j, a minimiser of ‖X − 1cᵀ‖₁.
    - ``optimal``: a minimiser of ‖X − 1cᵀ‖₁,∞ over all c, by linear programs whose multipliers
      certify the lower bound (docs/theory.md §1). The search ends when the gap is within
      `tolerance`, or earlier where the solver's precision allows no more (at 1e-8 or so): the
      gap in the result is the one certified.

    With ``mean`` and ``median`` the lower bound is a cheap one, and the gap accordingly wide:
    the geometric mean of the smallest ‖X − 1cᵀ‖₁, which the median attains, and of half an ℓ₁
    distance between two tokens, which no centre undercuts in ‖X − 1cᵀ‖∞.

    Args:
        x: One matrix, tokens × width, of any real type; computed in float64 on the CPU.
        center: Which centre.
        tolerance: The gap at which the search for the optimal centre may end.

    Raises:
        InputError: `x` is not a real matrix with at least one token and one feature, holds NaN or
            infinity, or is so large that its norm is no float64.
        OptionError: The centre does not exist, the tolerance is not positive, or the matrix has
            too many entries for the optimal centre.

    >>> x = torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> residual(x)
    Residual(4 tokens × 2, norm=3.18198, lower=2.12132, gap=5.0e-01)
    >>> round(residual(x, "optimal").norm, 6)
    3.0
    """
    values = _matrix(x)
    n, d = values.shape
    if center not in CENTERS:
        known = ", ".join(CENTERS)
        raise OptionError(f"The centre {center!r} does not exist: choose one of {known}.")
    if not (tolerance > 0 and math.isfinite(tolerance)):
        raise OptionError(f"The tolerance is {tolerance}, but it has to be a positive number.")
    if center == "optimal" and n * d > LARGEST:
        raise OptionError(
            f"The optimal centre of {n} × {d} = {n * d} entries would take too long to find (the "
            f'limit is {LARGEST} entries): use center="median", or fewer tokens.'
        )
    # About the median first, which keeps the digits that a large common row would swamp.
    median = np.median(values, 0)
    z = values - median
    exponent = int(np.frexp(np.abs(z).max())[1])
    z = np.ldexp(z, -exponent)
    if center == "optimal":
        # The solver takes a while to import, which the command line's start should not pay for.
        from rankcollapse.theory.optimal_center import optimal_center

        shift, lower = optimal_center(z, tolerance)
    else:
        shift = z.mean(0) if center == "mean" else np.zeros(d)
        lower = composite(*least(z))
    norm = composite(*attained(z - shift))
    lower = min(lower, norm)
    return Residual(
        matrix=torch.from_numpy(np.ldexp(z - shift, exponent)),
        center=torch.from_numpy(median + np.ldexp(shift, exponent)),
        norm=math.ldexp(norm, exponent),
        lower=math.ldexp(lower, exponent),
        gap=norm / lower - 1 if norm else 0.0,
    )


def _matrix(x: Tensor | ArrayLike) -> NDArray[np.float64]:
    """`x` in float64, if it is a matrix whose residual can be computed in it."""
    if isinstance(x, Tensor):
        if x.is_sparse or x.is_meta:
            kind = "sparse" if x.is_sparse else "without data"
            raise InputError(f"The tensor is {kind}: give a dense one, such as x.to_dense().")
        complex_, array = x.is_complex(), x.detach().cpu()
        array = array if complex_ else array.double().numpy()
    else:
        try:
            array = np.asarray(x)
        except ValueError:
            raise InputError(
                "The matrix has rows of different lengths: give tokens × width numbers."
            ) from None
        complex_ = array.dtype.kind not in "biuf"
    if complex_:
        raise InputError(f"The matrix has entries of type {array.dtype}: give real numbers.")
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"A residual is taken of one matrix, tokens × width, but the shape is "
            f"{tuple(array.shape)}: give two dimensions, neither of them empty."
        )
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError("The matrix holds NaN or infinity: a residual needs finite numbers.")
    if np.abs(values).max() > np.finfo(float).max / 4 / max(values.shape):
        raise InputError(
            f"The matrix has an entry of size {np.abs(values).max():.1e}, whose sums are beyond "
            f"float64: divide the matrix by a constant first."
        )
    return values
