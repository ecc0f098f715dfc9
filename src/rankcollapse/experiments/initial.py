"""Blocks and states at random initialisation, at any size and without a checkpoint.

Weights are BERT's: independent normal entries, biases zero, LayerNorm at one and zero. Everything
comes from the generator that is passed, in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from rankcollapse.transformer import MLP, Attention, Block, Linear, Norm
from rankcollapse.transformer.scores import ScoreTerm

_EPS = 1e-12  # BERT's


@dataclass(frozen=True)
class Size:
    """How large a network is; `mlp` is the width of the MLP's hidden layer, 0 for none."""

    layers: int
    heads: int
    width: int
    mlp: int = 0


def weight(
    rows: int, columns: int, std: float | None, generator: Generator
) -> Float[Tensor, "out in"]:
    """Independent normal entries; without `std` the variance is one over the inputs."""
    size = columns**-0.5 if std is None else std
    return size * torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def random_blocks(
    size: Size,
    generator: Generator,
    *,
    std: float | None = 0.02,
    gain: float = 1.0,
    terms: Sequence[tuple[ScoreTerm, ...]] | None = None,
    activation: str = "gelu",
    norms: bool = True,
    placement: Literal["pre", "post"] = "post",
) -> list[Block]:
    """Blocks with random weights.

    Args:
        size: Layers, heads and widths.
        generator: Source of all weights. The number of draws depends on `size` alone, so that
            networks which differ in anything else have the same weights.
        std: Standard deviation of all weights; None for (number of inputs)^−½, which keeps sizes.
        gain: Factor on query and key weights: scores grow with its square.
        terms: For each layer what is added to its scores.
        activation: Of the MLP.
        norms: Whether there are LayerNorms.
        placement: Where they stand.
    """
    d = size.width
    norm = Norm("layer", _EPS) if norms else None
    blocks = []
    for layer in range(size.layers):
        query, key, value, output = (weight(d, d, std, generator) for _ in range(4))
        attention = Attention(
            Linear(gain * query),
            Linear(gain * key),
            Linear(value),
            Linear(output),
            heads=size.heads,
            key_heads=size.heads,
            scale=(d // size.heads) ** -0.5,
            terms=() if terms is None else terms[layer],
        )
        mlp = None
        if size.mlp:
            up = Linear(weight(size.mlp, d, std, generator))
            mlp = MLP(up, Linear(weight(d, size.mlp, std, generator)), activation)
        blocks.append(Block(attention, mlp, norm, norm if mlp else None, placement))
    return blocks


def embedded(
    samples: int, tokens: int, width: int, generator: Generator
) -> Float[Tensor, "batch token width"]:
    """LN(word + position + type) as BERT makes it at initialisation, no word coming twice."""
    shape = samples, tokens, width
    words = torch.randn(shape, generator=generator, dtype=torch.float64)
    positions = torch.randn(shape[1:], generator=generator, dtype=torch.float64)
    segment = torch.randn(width, generator=generator, dtype=torch.float64)
    return F.layer_norm(words + positions + segment, (width,))
