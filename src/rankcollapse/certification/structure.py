"""What a block is under a variant, as far as the theory's statements depend on it."""

from dataclasses import dataclass
from typing import Literal

from rankcollapse.transformer import Block, Variant


@dataclass(frozen=True)
class Structure:
    """The parts that decide which statements are about this network.

    Attributes:
        theorem: The statement in depth that has this form, None where the paper has none.
        norms: Whether a norm acts between the layers.
        linear: Whether the residual evolves linearly for given attention matrices: x + A(x) alone.
        content_only: Whether scores have no positional term.
        masked: Whether attention is causal.
    """

    theorem: Literal["theorem_2_3", "corollary_3_2", "skip"] | None
    norms: bool
    linear: bool
    content_only: bool
    masked: bool

    @classmethod
    def of(cls, block: Block, variant: Variant) -> "Structure":
        """Of one block; all blocks of a model have the same."""
        mlp = block.mlp is not None and "mlp" in variant
        norms = (block.attention_norm is not None and "attention_norm" in variant) or (
            mlp and block.mlp_norm is not None and "mlp_norm" in variant
        )
        skip = "attention_skip" in variant
        theorem = None
        if not mlp:
            theorem = "skip" if skip else "theorem_2_3"
        elif not skip and "mlp_skip" not in variant:
            theorem = "corollary_3_2"
        return cls(
            theorem=theorem,
            norms=norms,
            linear=skip and not mlp and not norms,
            content_only=not block.attention.terms and block.attention.rotary is None,
            masked=block.attention.causal,
        )
