"""Ordinary floating point: what the model computes. Cost: the forward pass itself."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.transformer.attention import attend
from rankcollapse.transformer.parts import MLP, Attention, Norm
from rankcollapse.transformer.scores import Layout

State = Float[Tensor, "batch token width"]


class Dense:
    """One tensor per batch, in the model's dtype."""

    name = "dense"

    def __init__(self, dtype: torch.dtype) -> None:
        self.floor = 4 * torch.finfo(dtype).eps
        """Relative residuals up to this are rounding: identical rows rounded differently."""

    def enter(self, x: State) -> State:
        """The state as it is."""
        return x

    def attend(self, x: State, attention: Attention, layout: Layout) -> State:
        """Σ_h P_h X W_h + 1bᵀ, fused where the scores have no further terms."""
        return attend(x, attention, layout)

    def mlp(self, x: State, mlp: MLP) -> State:
        """The MLP of every token."""
        return mlp(x)

    def activate(self, x: State, mlp: MLP) -> State:
        """The MLP's activation alone."""
        return mlp.activate(x)

    def normalize(self, x: State, norm: Norm) -> State:
        """The norm of every token."""
        return norm(x)

    def add(self, x: State, y: State) -> State:
        """X + y."""
        return x + y

    def tokens(self, x: State, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """Values and their residual, subtracted in float64."""
        return TokenMatrix.of(x, mask)

    def plain(self, x: State) -> State:
        """The state as it is."""
        return x
