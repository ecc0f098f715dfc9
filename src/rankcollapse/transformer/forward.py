"""The one forward pass, written in terms of the few operations a residual stream undergoes.

An `Arithmetic` says what those operations mean: on plain tensors, on a shared row and a residual,
on one tensor per path length. The pass is layer-major: every variant and batch goes through block
l before block l + 1 is read, so each block is read once and memory does not grow with depth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.transformer.parts import MLP, Attention, Block, Norm
from rankcollapse.transformer.scores import Layout
from rankcollapse.transformer.variants import Variant

S = TypeVar("S")


@runtime_checkable
class Arithmetic(Protocol[S]):
    """A number system for the residual stream; S is what represents a batch of states in it."""

    name: str
    floor: float
    """Relative residuals up to this are rounding; 0 where there is no such floor."""

    def enter(self, x: Float[Tensor, "batch token width"]) -> S:
        """The state that enters the first block."""
        ...

    def attend(self, x: S, attention: Attention, layout: Layout) -> S:
        """Σ_h P_h X W_h + 1bᵀ."""
        ...

    def mlp(self, x: S, mlp: MLP) -> S:
        """The MLP of every token."""
        ...

    def activate(self, x: S, mlp: MLP) -> S:
        """The MLP's activation alone, without its linear maps."""
        ...

    def normalize(self, x: S, norm: Norm) -> S:
        """The norm of every token."""
        ...

    def add(self, x: S, y: S) -> S:
        """The sum that a skip connection forms."""
        ...

    def tokens(self, x: S, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """What metrics look at."""
        ...

    def plain(self, x: S) -> Float[Tensor, "batch token width"]:
        """The states as one tensor, as far as one tensor can hold them."""
        ...


@dataclass(frozen=True)
class Visit(Generic[S]):
    """One state of one variant and batch, as the pass reaches it.

    Attributes:
        layer: 0 for the state that enters the first block, l for the output of block l,
            "final_norm" for the state after the final norm.
        variant: Index into the variants.
        batch: Index into the batches.
        state: The state itself.
        block: The block that made it, and `entered` the state that went in (None at layer 0).
    """

    layer: int | Literal["final_norm"]
    variant: int
    batch: int
    state: S
    block: Block | None = None
    entered: S | None = None


def sweep(
    states: Iterable[Tensor],
    layouts: Sequence[Layout],
    blocks: Sequence[Block],
    final_norm: Norm | None,
    variants: Sequence[Variant],
    arithmetic: Arithmetic[S],
) -> Iterator[Visit[S]]:
    """Takes every variant of every batch through the blocks, yielding each state when reached.

    `states` are what enters the first block, one (batch, token, width) tensor per layout; batches
    may differ in all but their width.
    """
    entering = [arithmetic.enter(x) for x in states]
    streams = [list(entering) for _ in variants]
    del entering
    for v, row in enumerate(streams):
        for b, x in enumerate(row):
            yield Visit(0, v, b, x)
    for index in range(len(blocks)):
        block = blocks[index]
        for v, row in enumerate(streams):
            for b, x in enumerate(row):
                row[b] = apply_block(x, block, layouts[b], variants[v], arithmetic)
                yield Visit(index + 1, v, b, row[b], block, x)
    if final_norm is not None:
        for v, row in enumerate(streams):
            for b, x in enumerate(row):
                on = "final_norm" in variants[v]
                yield Visit("final_norm", v, b, arithmetic.normalize(x, final_norm) if on else x)


def apply_block(
    x: S, block: Block, layout: Layout, variant: Variant, arithmetic: Arithmetic[S]
) -> S:
    """One block, without what the variant switches off (docs/variants.md has the formulas)."""
    post = block.placement == "post"
    norm = block.attention_norm if "attention_norm" in variant else None
    y = arithmetic.attend(attention_input(x, block, variant, arithmetic), block.attention, layout)
    if "attention_skip" in variant:
        y = arithmetic.add(x, y)
    x = arithmetic.normalize(y, norm) if norm and post else y

    if block.mlp is None or "mlp" not in variant:
        return x
    norm = block.mlp_norm if "mlp_norm" in variant else None
    y = arithmetic.normalize(x, norm) if norm and not post else x
    y = (arithmetic.mlp if "mlp_projections" in variant else arithmetic.activate)(y, block.mlp)
    if "mlp_skip" in variant:
        y = arithmetic.add(x, y)
    return arithmetic.normalize(y, norm) if norm and post else y


def attention_input(x: S, block: Block, variant: Variant, arithmetic: Arithmetic[S]) -> S:
    """The state that queries, keys and values are taken from."""
    norm = block.attention_norm if "attention_norm" in variant else None
    return arithmetic.normalize(x, norm) if norm and block.placement == "pre" else x
