"""Attention that is not a softmax over all keys, as arithmetics of the one forward pass."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.streams import Centered, CenteredState, Dense
from rankcollapse.transformer import Attention, Layout
from rankcollapse.transformer.attention import heads_of

Mixed = tuple[
    Float[Tensor, "batch head size"],
    Float[Tensor, "batch head token size"],
    Float[Tensor, " batch"],
]


@runtime_checkable
class Mechanism(Protocol):
    """What takes the place of P_h, in two forms that have to agree."""

    def operator(
        self, x: Float[Tensor, "batch token width"], attention: Attention
    ) -> Float[Tensor, "batch head token token"]:
        """The n × n matrix that the values of each head are multiplied by."""
        ...

    def mix(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
    ) -> Mixed:
        """The same for a state in two parts, free of cancellation.

        With v̄ the values of the shared row and 2^e `value` those of the residual, the output is
        1(v̄ + mean)ᵀ + 2^exponent · residual.

        Returns:
            Mean, residual and exponent.
        """
        ...


class PlainMechanism(Dense):
    """The mechanism by its n × n matrix."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(torch.float64)
        self.mechanism = mechanism

    def attend(
        self, x: Float[Tensor, "batch token width"], attention: Attention, layout: Layout
    ) -> Float[Tensor, "batch token width"]:
        """Σ_h P_h (X W_V,h + 1b_V,hᵀ) W_O,h + 1b_Oᵀ, P_h the mechanism's matrix."""
        value = heads_of(attention.value, x, attention.key_heads)
        mixed = self.mechanism.operator(x, attention) @ value
        return attention.output(mixed.transpose(1, 2).flatten(2))


class CenteredMechanism(Centered):
    """The mechanism on shared row and residual, with no smallest residual."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def _mix_content(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
        layout: Layout,
    ) -> Mixed:
        return self.mechanism.mix(x, value, attention)
