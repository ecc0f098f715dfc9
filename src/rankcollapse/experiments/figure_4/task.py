"""A token classification task of Figure 4: what a network is given and what it is to say."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Samples:
    """Sequences of one length, with one label per token.

    Attributes:
        inputs: Token ids, or points of the plane.
        labels: Classes, counted from 0.
    """

    inputs: Int[Tensor, "sample token"] | Float[Tensor, "sample token coordinate"]
    labels: Int[Tensor, "sample token"]

    def first(self, count: int) -> "Samples":
        """The first `count` sequences."""
        return Samples(self.inputs[:count], self.labels[:count])


@dataclass(frozen=True)
class Task:
    """Sequences to train and to test on.

    Attributes:
        name: As in the figure.
        train: Sequences to train on.
        test: Sequences to test on; those of `train` again where memory is what is tested.
        classes: Number of labels.
        vocabulary: Number of token ids, None for points of the plane.
        positions: Whether tokens know their position.
    """

    name: str
    train: Samples
    test: Samples
    classes: int
    vocabulary: int | None
    positions: bool
