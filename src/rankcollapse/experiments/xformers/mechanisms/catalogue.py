"""The mechanisms that are compared, at equal size, each with what makes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from rankcollapse.experiments.initial import Size
from rankcollapse.experiments.xformers.mechanisms import patterns, projected
from rankcollapse.experiments.xformers.mechanisms.kernel import Elu, Kernel, PositiveRandom
from rankcollapse.experiments.xformers.mechanisms.kernel import orthogonal_directions as orthogonal
from rankcollapse.experiments.xformers.mechanisms.mechanism import CenteredMechanism, Mechanism
from rankcollapse.streams import Centered
from rankcollapse.transformer import Arithmetic, Attention, Layout
from rankcollapse.transformer.attention import attention_rows
from rankcollapse.transformer.scores import ScoreTerm

WINDOW, EVERYWHERE = 9, 2  # BigBird's window and global tokens
Group = Literal["full", "low rank or kernel", "sparse"]


@dataclass(frozen=True)
class Entry:
    """A mechanism by name.

    Attributes:
        name: As in tables and charts; n is the number of tokens.
        group: What the paper's Remark 1 would count it as.
        mechanism: Makes what takes the place of softmax, None where softmax stays.
        pattern: Makes the pattern of one layer, None where every key may be seen.
        even: Whether what multiplies the values has rows of one sum.
    """

    name: str
    group: Group
    mechanism: Callable[["Budget", Generator], Mechanism] | None = None
    pattern: Callable[["Budget", Generator], patterns.Pattern] | None = None
    even: bool = True

    @property
    def cubic(self) -> bool:
        """Whether small differences between tokens are cubed, not multiplied by a factor."""
        return self.pattern is None and self.even


@dataclass(frozen=True)
class Budget:
    """The size of the network and of its inputs; sparse patterns and low ranks get n/4 keys."""

    size: Size
    tokens: int

    @property
    def keys(self) -> int:
        """Keys per query, projected rows, or features, where a mechanism has the choice."""
        return self.tokens // 4

    @property
    def head_size(self) -> int:
        """Features of a head."""
        return self.size.width // self.size.heads


def _performer(features: Callable[[Budget], int]) -> Callable[[Budget, Generator], Mechanism]:
    return lambda b, g: Kernel(PositiveRandom(orthogonal(features(b), b.head_size, g)))


def _linformer(b: Budget, g: Generator) -> projected.Projected:
    return projected.gaussian(b.keys, b.tokens, g)


CATALOGUE = (
    Entry("softmax", "full"),
    Entry("linear attention", "low rank or kernel", lambda b, g: Kernel(Elu())),
    Entry("Performer, n/4 features", "low rank or kernel", _performer(lambda b: b.keys)),
    Entry("Performer, 2n features", "low rank or kernel", _performer(lambda b: 2 * b.tokens)),
    Entry("Linformer, random", "low rank or kernel", _linformer, even=False),
    Entry(
        "Linformer, random, E1 = 1",
        "low rank or kernel",
        lambda b, g: projected.rows_summing_to_one(_linformer(b, g)),
    ),
    Entry(
        "Linformer, mean pooling",
        "low rank or kernel",
        lambda b, g: projected.pooling(b.keys, b.tokens),
    ),
    Entry("window", "sparse", pattern=lambda b, g: patterns.window(b.tokens, b.keys + 1)),
    Entry("strided", "sparse", pattern=lambda b, g: patterns.strided(b.tokens)),
    Entry(
        "BigBird",
        "sparse",
        pattern=lambda b, g: patterns.big_bird(
            b.tokens, WINDOW, EVERYWHERE, b.keys - WINDOW - EVERYWHERE, b.size.heads, g
        ),
    ),
    Entry(
        "random keys",
        "sparse",
        pattern=lambda b, g: patterns.random(b.tokens, b.keys, b.size.heads, g),
    ),
)


@dataclass(frozen=True)
class Prepared:
    """A mechanism with everything drawn: its arithmetic and what each layer adds to the scores."""

    centered: Arithmetic[Any]
    mechanism: Mechanism | None
    terms: list[tuple[ScoreTerm, ...]]

    def operator(
        self, x: Float[Tensor, "batch token width"], attention: Attention
    ) -> Float[Tensor, "batch head token token"]:
        """The matrix that multiplies the values of each head."""
        if self.mechanism is not None:
            return self.mechanism.operator(x, attention)
        rows = attention_rows(x, attention, Layout.contiguous(x.shape[1]))
        return torch.cat([p for _, p in rows], dim=2)


def prepare(entry: Entry, budget: Budget, generator: Generator) -> Prepared:
    """Draws what a mechanism needs: one projection or set of features, a pattern per layer."""
    terms: list[tuple[ScoreTerm, ...]] = [()] * budget.size.layers
    if entry.pattern is not None:
        terms = [(patterns.Mask(entry.pattern(budget, generator)),) for _ in terms]
    if entry.mechanism is None:
        return Prepared(Centered(), None, terms)
    mechanism = entry.mechanism(budget, generator)
    return Prepared(CenteredMechanism(mechanism), mechanism, terms)
