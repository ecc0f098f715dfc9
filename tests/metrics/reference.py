"""Every metric again, from its formula: in numpy for ordinary numbers, in 60 digits for the others.

Nothing here is shared with the package; sums over pairs are double loops.
"""

from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np
import scipy.linalg
import torch
from torch import Tensor

mp.mp.dps = 60

Rows = list[list[Any]]
"""Numbers of 60 digits, whose type mpmath makes at run time."""


def exact(x: Tensor) -> Rows:
    """One sample, entry by entry, without rounding."""
    return [[mp.mpf(float(v)) for v in row] for row in x]


def exact_residual(x: Rows) -> Rows:
    mean = [mp.fsum(column) / len(x) for column in zip(*x, strict=True)]
    return [[v - m for v, m in zip(row, mean, strict=True)] for row in x]


def exact_composite(x: Rows) -> Any:
    columns = max(mp.fsum(map(abs, column)) for column in zip(*x, strict=True))
    rows = max(mp.fsum(map(abs, row)) for row in x)
    return mp.sqrt(columns * rows)


def exact_frobenius(x: Rows) -> Any:
    return mp.sqrt(mp.fsum(v * v for row in x for v in row))


def exact_relative(x: Tensor) -> Any:
    values = exact(x)
    return exact_composite(exact_residual(values)) / exact_composite(values)


def exact_cosine(x: Tensor) -> Any:
    rows = exact(x)
    norms = [exact_frobenius([row]) for row in rows]
    total, pairs = mp.mpf(0), 0
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            if i != j:
                pairs += 1
                if norms[i] and norms[j]:
                    dot = mp.fsum(p * q for p, q in zip(a, b, strict=True))
                    total += dot / (norms[i] * norms[j])
    return total / pairs


def exact_largest_ratio(x: Tensor) -> Any:
    norms = sorted(exact_frobenius([row]) for row in exact(x))
    middle = len(norms) // 2
    median = norms[middle] if len(norms) % 2 else (norms[middle - 1] + norms[middle]) / 2
    return norms[-1] / median


def composite(x: np.ndarray) -> float:
    return float(np.sqrt(np.abs(x).sum(0).max() * np.abs(x).sum(1).max()))


def effective(values: np.ndarray) -> float:
    p = values[values > 0] / values.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def stable(values: np.ndarray) -> float:
    return float((values**2).sum() / values.max() ** 2)


def everything(x: np.ndarray) -> dict[str, float]:
    """All quantities of one (tokens, width) state of ordinary size, by name."""
    x = np.asarray(x, dtype=np.float64)
    residual = x - x.mean(0)
    norms = np.sqrt((x**2).sum(1))
    cosines = [
        x[i] @ x[j] / (norms[i] * norms[j]) for i in range(len(x)) for j in range(len(x)) if i != j
    ]
    values, residual_values = (np.asarray(scipy.linalg.svdvals(m)) for m in (x, residual))
    relative = composite(residual) / composite(x)
    return {
        "relative_residual": relative,
        "log10_relative_residual": float(np.log10(relative)),
        "relative_residual_frobenius": float(np.linalg.norm(residual) / np.linalg.norm(x)),
        "absolute_residual": composite(residual),
        "token_cosine": float(np.mean(cosines)),
        "effective_rank": effective(values),
        "stable_rank": stable(values),
        "residual_effective_rank": effective(residual_values),
        "residual_stable_rank": stable(residual_values),
        "largest_token_ratio": float(norms.max() / np.median(norms)),
    }


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal float64 numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def garbage(x: Tensor, lengths: Sequence[int], filling: float | Tensor) -> tuple[Tensor, Tensor]:
    """`x` with every row behind a sample's length overwritten, and the mask that says so."""
    mask = torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None]
    return torch.where(mask[..., None], x, torch.as_tensor(filling, dtype=x.dtype)), mask
