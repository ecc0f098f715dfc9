"""The linear network that a real pass leaves once its attention matrices and scales are given.

Values are those of the pass itself, but gradients flow through values and outputs of heads, skips
and norms only: P, the norms' scales and MLP outputs are constants. A gradient in this network is a
sum over all paths, so one backward pass weighs every head without listing any (docs/theory.md §2).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.streams.graded import attention_bias, frozen_norm, norm_scale
from rankcollapse.transformer.attention import attention_rows, heads_of
from rankcollapse.transformer.parts import MLP, Attention, Linear, Norm
from rankcollapse.transformer.scores import Layout

State = Float[Tensor, "batch token width"]


class Frozen:
    """Plain tensors, with what is not linear detached; keeps every head's output in `heads`."""

    name = "frozen"
    floor = 0.0

    def __init__(self) -> None:
        self.heads: list[Float[Tensor, "batch head token size"]] = []

    def enter(self, x: State) -> State:
        """The state as it is, as a leaf."""
        return x.detach().requires_grad_()

    def attend(self, x: State, attention: Attention, layout: Layout) -> State:
        """Σ_h P_h X W_h + 1bᵀ with P detached; P_h X W_V,h of every head is kept."""
        with torch.no_grad():
            p = torch.cat([rows for _, rows in attention_rows(x, attention, layout)], dim=2)
        value = heads_of(Linear(attention.value.weight), x, attention.key_heads)
        heads = p @ value.repeat_interleave(attention.heads // attention.key_heads, dim=1)
        self.heads.append(heads)
        y = heads.transpose(1, 2).flatten(2) @ attention.output.weight.T
        bias = attention_bias(attention)
        return y if bias is None else y + bias

    def mlp(self, x: State, mlp: MLP) -> State:
        """A constant."""
        return mlp(x.detach())

    def activate(self, x: State, mlp: MLP) -> State:
        """A constant."""
        return mlp.activate(x.detach())

    def normalize(self, x: State, norm: Norm) -> State:
        """Linear in the state, the scale being a constant."""
        y = frozen_norm(x, norm, norm_scale(x.detach(), norm))
        return y if norm.bias is None else y + norm.bias

    def add(self, x: State, y: State) -> State:
        """The sum."""
        return x + y

    def tokens(self, x: State, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """Values and their residual."""
        return TokenMatrix.of(x.detach(), mask)

    def plain(self, x: State) -> State:
        """The state as it is."""
        return x.detach()
