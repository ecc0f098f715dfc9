"""The model and its one forward pass."""

from rankcollapse.transformer.forward import Arithmetic, Visit, apply_block, attention_input, sweep
from rankcollapse.transformer.model import Architecture, Embedding, Transformer
from rankcollapse.transformer.parts import MLP, Attention, Block, Linear, Norm
from rankcollapse.transformer.scores import Layout
from rankcollapse.transformer.variants import NAMED, PARTS, Variant, parse_variants

__all__ = [
    "MLP",
    "NAMED",
    "PARTS",
    "Architecture",
    "Arithmetic",
    "Attention",
    "Block",
    "Embedding",
    "Layout",
    "Linear",
    "Norm",
    "Transformer",
    "Variant",
    "Visit",
    "apply_block",
    "attention_input",
    "parse_variants",
    "sweep",
]
