"""Small transformers to train: blocks of the one `Transformer`, with tensors that take gradients.

A network is what stands in front of the blocks, the blocks, and a linear map that reads their
output. Its pass is `apply_block` in `Dense` arithmetic, so that what is trained is what everything
else measures. Cost: that of the pass; nothing is copied.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rankcollapse.errors import TokenizerError
from rankcollapse.streams import Dense
from rankcollapse.transformer import (
    MLP,
    Architecture,
    Attention,
    Block,
    Embedding,
    Layout,
    Linear,
    Norm,
    Transformer,
    Variant,
    apply_block,
)

EPS = 1e-12  # of the norms, as in BERT
SMALL = 0.02

Init = Literal["published", "pytorch"]


@dataclass(frozen=True)
class Points:
    """norm(linear(point)): how tokens enter that are points of the plane and not ids."""

    linear: Linear
    norm: Norm

    def __call__(
        self, points: Float[Tensor, "batch token coordinate"]
    ) -> Float[Tensor, "batch token width"]:
        """The state that enters the first block."""
        return self.norm(self.linear(points))


@dataclass(frozen=True)
class Words:
    """norm(tokens[id] + positions[p]), the positions left out where there are none."""

    embedding: Embedding

    def __call__(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token width"]:
        """The state that enters the first block."""
        return self.embedding(ids, torch.arange(ids.shape[1]).expand_as(ids))


@dataclass(frozen=True)
class Network:
    """Input layer, blocks, read-out; `variant` says what of the blocks is off."""

    entry: Points | Words
    transformer: Transformer
    readout: Linear
    variant: Variant

    def __call__(
        self, inputs: Tensor, arithmetic: Dense | None = None
    ) -> Float[Tensor, "batch token output"]:
        """The read-out of every token, in plain `Dense` arithmetic unless another one is given."""
        x = self.entry(inputs)
        layout, arithmetic = Layout.contiguous(x.shape[1]), arithmetic or Dense(x.dtype)
        x = arithmetic.enter(x)
        for block in self.transformer.blocks:
            x = apply_block(x, block, layout, self.variant, arithmetic)
        return self.readout(x)

    def parameters(self) -> list[Tensor]:
        """Every tensor that training changes."""
        return list(_tensors((self.entry, list(self.transformer.blocks), self.readout)))

    def on(self, inputs: Tensor) -> tuple[Transformer, dict[str, np.ndarray]]:
        """The transformer with `inputs` for its vocabulary, and their ids.

        Every token of `inputs` is a row of the embedding by itself, so analyses that take ids serve
        for points of the plane as well.
        """
        with torch.no_grad():
            states = self.entry(inputs)
        count = states.shape[0] * states.shape[1]
        table = Embedding(states.flatten(0, 1))
        architecture = replace(self.transformer.architecture, vocabulary=count, positions=None)
        model = replace(self.transformer, architecture=architecture, read_embedding=lambda: table)
        return model, {"input_ids": np.arange(count).reshape(states.shape[:2])}


def network(
    generator: torch.Generator,
    *,
    layers: int,
    heads: int,
    width: int,
    outputs: int,
    vocabulary: int | None = None,
    positions: int | None = None,
    mlp: int | None = None,
    variant: str = "transformer",
    init: Init = "published",
    dtype: torch.dtype = torch.float32,
) -> Network:
    """Makes an untrained network with norms behind its sub-layers ("post").

    Args:
        generator: Draws the initial tensors.
        layers: Number of blocks.
        heads: Heads per block; they share the width among them.
        width: Features per token.
        outputs: Numbers read from every token.
        vocabulary: Number of token ids; None for points of the plane.
        positions: Longest sequence where tokens know their position, None where they do not.
        mlp: Inner width of the GELU MLP, None for blocks without one.
        variant: What is off in the blocks, such as "san" (docs/variants.md).
        init: "published" for the paper's code: values and outputs of heads uniform in ±1/√in, all
            else normal with BERT's deviation 0.02, biases zero. "pytorch" for what PyTorch does:
            linear maps with their biases uniform in ±1/√in, embeddings standard normal. Norms are
            the identity.
        dtype: Of all tensors.
    """
    make = _Maker(generator, init, dtype)
    blocks = [make.block(heads, width, mlp) for _ in range(layers)]
    if vocabulary is None:
        entry: Points | Words = Points(make.linear(2, width), make.norm(width))
    else:
        table = make.normal(vocabulary, width)
        places = None if positions is None else make.normal(positions, width)
        entry = Words(Embedding(table, places, norm=make.norm(width)))
    architecture = Architecture(layers, heads, width, vocabulary or 0, positions, "post")
    transformer = Transformer(
        name=f"{layers} layers, {heads} heads, width {width}",
        family="experiment",
        architecture=architecture,
        blocks=blocks,
        final_norm=None,
        read_embedding=lambda: Embedding(torch.empty(0, width, dtype=dtype)),
        read_tokenizer=_no_tokenizer,
        dtype=dtype,
    )
    return Network(entry, transformer, make.linear(width, outputs), Variant.parse(variant))


@dataclass(frozen=True)
class _Maker:
    """Fresh tensors from one generator."""

    generator: torch.Generator
    init: Init
    dtype: torch.dtype

    def normal(self, *shape: int) -> Tensor:
        return self._normal(1.0 if self.init == "pytorch" else SMALL, *shape)

    def linear(self, inputs: int, outputs: int) -> Linear:
        if self.init == "pytorch":
            return self.mixing(inputs, outputs)
        return Linear(self._normal(SMALL, outputs, inputs), self._zeros(outputs))

    def mixing(self, inputs: int, outputs: int) -> Linear:
        """The maps of a head's values and of its output."""
        weight = self._uniform(inputs, outputs, inputs)
        pytorch = self.init == "pytorch"
        return Linear(weight, self._uniform(inputs, outputs) if pytorch else self._zeros(outputs))

    def _normal(self, deviation: float, *shape: int) -> Tensor:
        x = torch.randn(*shape, generator=self.generator, dtype=self.dtype)
        return (deviation * x).requires_grad_()

    def _uniform(self, inputs: int, *shape: int) -> Tensor:
        x = torch.rand(*shape, generator=self.generator, dtype=self.dtype)
        return ((2 * x - 1) / math.sqrt(inputs)).requires_grad_()

    def _zeros(self, size: int) -> Tensor:
        return torch.zeros(size, dtype=self.dtype, requires_grad=True)

    def norm(self, width: int) -> Norm:
        one = torch.ones(width, dtype=self.dtype, requires_grad=True)
        return Norm("layer", EPS, one, self._zeros(width))

    def block(self, heads: int, width: int, mlp: int | None) -> Block:
        query, key = self.linear(width, width), self.linear(width, width)
        value, output = self.mixing(width, width), self.mixing(width, width)
        attention = Attention(
            query, key, value, output, heads, heads, scale=(width // heads) ** -0.5
        )
        inner = None
        if mlp is not None:
            inner = MLP(self.linear(width, mlp), self.linear(mlp, width), "gelu")
        mlp_norm = None if mlp is None else self.norm(width)
        return Block(attention, inner, self.norm(width), mlp_norm, "post")


def _tensors(part: Any) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _tensors(each)
    elif is_dataclass(part):
        for f in fields(part):
            yield from _tensors(getattr(part, f.name))


def _no_tokenizer() -> Any:
    raise TokenizerError("a network of an experiment has no tokenizer: give ids.")
