"""The one model: an embedding, a sequence of blocks, perhaps a final norm.

`blocks` may be a plain list, or read each block from disk when indexed, so that only the block in
use is in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rankcollapse.transformer.parts import Block, Linear, Norm


@dataclass(frozen=True)
class Architecture:
    """The sizes that inputs and results are checked against.

    Attributes:
        layers: Number of blocks L.
        heads: Query heads per block H.
        width: Features per token d.
        vocabulary: Number of token ids.
        positions: Longest sequence with a position of its own, None where there is no limit.
        placement: Where the norms sit, "pre" or "post".
        segments: Number of segment ids, 0 where the family has none.
    """

    layers: int
    heads: int
    width: int
    vocabulary: int
    positions: int | None
    placement: Literal["pre", "post"]
    segments: int = 0


@dataclass(frozen=True)
class Embedding:
    """norm(tokens[id] + positions[p] + types[t]), projected to the width where a family does so."""

    tokens: Float[Tensor, "vocabulary size"]
    positions: Float[Tensor, "position size"] | None = None
    types: Float[Tensor, "type size"] | None = None
    default_type: int | None = None
    norm: Norm | None = None
    projection: Linear | None = None

    def __call__(
        self,
        ids: Int[Tensor, "batch token"],
        positions: Int[Tensor, "batch token"],
        types: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token width"]:
        """The state that enters the first block."""
        x = self.tokens[ids]
        if self.types is not None and types is not None:
            x = x + self.types[types]
        elif self.types is not None and self.default_type is not None:
            x = x + self.types[self.default_type]
        if self.positions is not None:
            x = x + self.positions[positions]
        if self.norm is not None:
            x = self.norm(x)
        return x if self.projection is None else self.projection(x)


@dataclass(frozen=True)
class Transformer:
    """A transformer as this package sees it, made by `load` or from blocks of your own.

    Attributes:
        name: What the user called it: a hub id, a folder, a class.
        family: The adapter that made it, such as "bert".
        architecture: Its sizes.
        blocks: Its blocks, each read when it is indexed.
        final_norm: The norm after the last block, None where there is none.
        read_embedding: Reads the embedding; it is not kept.
        dtype: The dtype that the pass runs in.
        device: Where the pass runs.
        read_tokenizer: Loads the Hugging Face tokenizer, or raises `TokenizerError`.
        origin: How it was made: `init`, `seed`, `revision`.
    """

    name: str
    family: str
    architecture: Architecture
    blocks: Sequence[Block]
    final_norm: Norm | None
    read_embedding: Callable[[], Embedding]
    read_tokenizer: Callable[[], Any]
    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    origin: dict[str, Any] = field(default_factory=dict)

    def to(self, dtype: torch.dtype) -> "Transformer":
        """The same model with a pass in another dtype; each block is cast when it is read."""
        if dtype == self.dtype:
            return self
        return replace(
            self,
            dtype=dtype,
            blocks=CastBlocks(self.blocks, dtype),
            final_norm=cast(self.final_norm, dtype),
            read_embedding=lambda: cast(self.read_embedding(), dtype),
        )

    def __repr__(self) -> str:
        a = self.architecture
        return (
            f"Transformer({self.name!r}, family={self.family!r}, layers={a.layers}, "
            f"heads={a.heads}, width={a.width}, norm={a.placement!r}, "
            f"dtype={str(self.dtype).removeprefix('torch.')}, device={self.device})"
        )


@dataclass(frozen=True)
class CastBlocks(Sequence[Block]):
    """Blocks in another dtype, cast one at a time."""

    blocks: Sequence[Block]
    dtype: torch.dtype

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: Any) -> Any:
        return cast(self.blocks[index], self.dtype)


def cast(part: Any, dtype: torch.dtype) -> Any:
    """A tensor, or every tensor within parts, lists and tuples, in `dtype`."""
    if isinstance(part, Tensor):
        return part.to(dtype) if part.is_floating_point() else part
    if isinstance(part, list | tuple):
        return type(part)(cast(each, dtype) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        changes = {f.name: cast(getattr(part, f.name), dtype) for f in fields(part)}
        return replace(part, **changes)
    return part
