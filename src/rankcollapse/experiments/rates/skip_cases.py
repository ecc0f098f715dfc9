"""Skips without norms, where the shared row outgrows the residual: X + P X W.

With P uniform the residual stays and the shared row becomes Wᵀ-mixed: for independent entries of
variance a²/d its mean square grows by 1 + a² per layer (Noci et al. 2022); for W = hI it grows by
1 + h whatever P is, once tokens are nearly equal (Dovonon et al. 2024).
"""

import numpy as np
import torch
import xarray as xr
from torch import Generator

from rankcollapse.experiments.initial import weight
from rankcollapse.experiments.trajectory import visits
from rankcollapse.streams import Centered, CenteredState
from rankcollapse.transformer import Attention, Block, Linear

TOKENS, WIDTH = 16, 256
NEARLY_EQUAL = 1e-6
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
EIGENVALUES = (-0.5, -0.25, 0.5, 1.0)


def random_values(seed: int, layers: int) -> xr.Dataset:
    """X + PXW with P = 11ᵀ/n and W random, a new one in each layer, for every a."""
    results = []
    for strength in STRENGTHS:
        generator = torch.Generator().manual_seed(seed)
        nothing = torch.zeros(WIDTH, WIDTH, dtype=torch.float64)
        blocks = []
        for _ in range(layers):
            value = weight(WIDTH, WIDTH, strength * WIDTH**-0.5, generator)
            blocks.append(_block(nothing, nothing, value))
        results.append(_ratios(blocks, 1.0, generator))
    return _dataset("energy", "strength", STRENGTHS, 2 * np.stack(results))


def identity_values(seed: int, layers: int) -> xr.Dataset:
    """X + h P X with P softmax of random queries and keys, nearly equal tokens, for every h."""
    results = []
    for h in EIGENVALUES:
        generator = torch.Generator().manual_seed(seed)
        query, key = (weight(WIDTH, WIDTH, WIDTH**-0.5, generator) for _ in range(2))
        value = h * torch.eye(WIDTH, dtype=torch.float64)
        blocks = [_block(query, key, value)] * layers
        results.append(_ratios(blocks, NEARLY_EQUAL, generator))
    return _dataset("norm", "eigenvalue", EIGENVALUES, np.stack(results))


def _block(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Block:
    identity = Linear(torch.eye(WIDTH, dtype=torch.float64))
    parts = Linear(query), Linear(key), Linear(value), identity
    return Block(Attention(*parts, 1, 1, WIDTH**-0.5), None, None, None, "post")


def _ratios(blocks: list[Block], size: float, generator: Generator) -> np.ndarray:
    """log₁₀ of ‖R‖_F / (√n ‖x̄‖₂) by layer."""
    rows = torch.randn(1, TOKENS, WIDTH, generator=generator, dtype=torch.float64)
    shared = torch.randn(WIDTH, generator=generator, dtype=torch.float64)
    states = visits(shared + size * rows, blocks, "san+skip", Centered())
    return np.array([_ratio(visit.state) for visit in states])


def _ratio(state: CenteredState) -> float:
    residual = state.residual.norm().log10() + state.exponent.item() * np.log10(2)
    return float(residual - (TOKENS**0.5 * state.shared.norm()).log10())


def _dataset(kind: str, dimension: str, values: tuple[float, ...], log10: np.ndarray) -> xr.Dataset:
    factor = 10 ** ((log10[:, -1] - log10[:, 0]) / (log10.shape[1] - 1))
    return xr.Dataset(
        {
            f"log10_{kind}_ratio": ((dimension, "skip_layer"), log10),
            f"{kind}_factor": (dimension, factor),
        },
        coords={dimension: list(values), "skip_layer": np.arange(log10.shape[1])},
    )
