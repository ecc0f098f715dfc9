"""What counting paths needs of a model, and the nine architectures of Figure 5."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """A stack of attention layers that have the same number of heads.

    Attributes:
        name: How tables and charts call it.
        layers: Number of attention layers.
        heads: Number of (query) heads of every layer.
        note: Which stack of the model it is, where there are several; else empty.
    """

    name: str
    layers: int
    heads: int
    note: str = ""


ENCODER = "encoder of an encoder-decoder"

FIGURE_5 = (
    Stack("GPT-3", 96, 96),
    Stack("T5-11B", 24, 128, ENCODER),
    Stack("T5-3B", 24, 32, ENCODER),
    Stack("ViT-H", 32, 16),
    Stack("BERT-large, ViT-L", 24, 16),
    Stack("BERT-base, ViT-B", 12, 12),
    Stack("DistilBERT", 6, 12),
    Stack("MobileBERT", 12, 4, "12 layers as published in Figure 5; the released model has 24"),
    Stack("DeiT-T", 12, 3),
)
"""The architectures of Figure 5, with the numbers of layers and heads that it shows."""

_BY_NAME = {part.casefold(): s for s in FIGURE_5 for part in (s.name, *s.name.split(", "))}


def built_in(name: str) -> Stack | None:
    """Returns the architecture of Figure 5 of that name, in any case; "ViT-B" will do."""
    return _BY_NAME.get(name.casefold())
