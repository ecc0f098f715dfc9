"""What an adapter says: how a family's configuration and checkpoint map onto the one model."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from rankcollapse.errors import UnsupportedModelError
from rankcollapse.families.tensors import Tensors
from rankcollapse.transformer import Architecture, Block, Embedding, Norm
from rankcollapse.transformer.activations import ACTIVATIONS


class Family(ABC):
    """One family. It is right when `Dense` equals Hugging Face's hidden states at every layer."""

    title: ClassVar[str]
    """Its name in print."""
    model_types: ClassVar[tuple[str, ...]]
    """The `model_type` values of configurations that it takes."""
    covers: ClassVar[str]
    """One sentence: what the adapter covers and what it refuses."""
    prefix: ClassVar[str]
    """What stands before the base model's tensor names in a model with a head."""
    probe: ClassVar[str]
    """A tensor that every checkpoint of the family has."""

    @abstractmethod
    def architecture(self, config: Any) -> Architecture:
        """The sizes.

        Raises:
            UnsupportedModelError: The configuration asks for what the adapter does not cover.
        """

    @abstractmethod
    def embedding(self, config: Any, read: Tensors) -> Embedding:
        """Reads what makes the state that enters the first block."""

    @abstractmethod
    def block(self, config: Any, read: Tensors, index: int) -> Block:
        """Reads block `index`, counted from 0."""

    def final_norm(self, config: Any, read: Tensors) -> Norm | None:
        """Reads the norm after the last block, where the family has one."""
        return None


def require(condition: bool, setting: str, value: object, remedy: str) -> None:
    """Raises `UnsupportedModelError` unless `condition`, naming the configuration's setting."""
    if not condition:
        raise UnsupportedModelError(f"{setting}={value!r} is not covered: {remedy}.")


def activation(config: Any, setting: str) -> str:
    """The configuration's activation, if it has a name that is known here."""
    name = getattr(config, setting)
    require(
        isinstance(name, str) and name in ACTIVATIONS,
        setting,
        name,
        f"covered activations are {', '.join(ACTIVATIONS)}",
    )
    return name


def check_sizes(architecture: Architecture) -> None:
    """Raises `UnsupportedModelError` where a size is no positive whole number."""
    for name in ("layers", "heads", "width", "vocabulary"):
        size = getattr(architecture, name)
        require(isinstance(size, int) and size > 0, name, size, "use a positive whole number")


def head_size(width: int, heads: int) -> int:
    """Features per head.

    Raises:
        UnsupportedModelError: The width is not a multiple of the number of heads.
    """
    whole = heads > 0 and width % heads == 0
    require(whole, "number of heads", heads, f"it has to divide the width, which is {width}")
    return width // heads
