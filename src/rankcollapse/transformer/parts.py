"""The weights of one block, named by what they do; families fill these in.

Costs nothing: tensors are held as they come, views of a checkpoint included.
"""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rankcollapse.transformer.activations import ACTIVATIONS
from rankcollapse.transformer.rotary import Rotary
from rankcollapse.transformer.scores import ScoreTerm


@dataclass(frozen=True)
class Linear:
    """x ↦ x Wᵀ + b, with W stored as PyTorch stores it (a transposed view costs nothing)."""

    weight: Float[Tensor, "out in"]
    bias: Float[Tensor, " out"] | None = None

    def __call__(self, x: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """Applies the map to every row."""
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """LayerNorm (x − mean)/√(var + eps) · weight + bias, or RMSNorm x/√(mean x² + eps) · weight."""

    kind: Literal["layer", "rms"]
    eps: float
    weight: Float[Tensor, " width"] | None = None
    bias: Float[Tensor, " width"] | None = None

    def __call__(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Normalises every row."""
        if self.kind == "layer":
            return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        y = F.rms_norm(x, x.shape[-1:], self.weight, self.eps)
        return y if self.bias is None else y + self.bias


@dataclass(frozen=True)
class Attention:
    """Σ_h P_h X W_V,h W_O,h + bias, P_h = softmax(scale (Q_h K_hᵀ + Σ terms)): docs/theory.md §1.

    Attributes:
        query: Maps the width to heads × head size; `key` and `value` to key_heads × head size.
        output: Maps heads × head size back to the width.
        heads: Number of query heads H.
        key_heads: Number of key and value heads; each serves heads / key_heads queries.
        scale: Factor on all scores, usually (head size)^−½.
        causal: Whether token i attends to tokens j ≤ i only.
        terms: What is added to the content scores before scaling, such as relative positions.
        rotary: The rotation of queries and keys by position, where there is one.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int
    key_heads: int
    scale: float
    causal: bool = False
    terms: tuple[ScoreTerm, ...] = ()
    rotary: Rotary | None = None

    @property
    def positional(self) -> bool:
        """Whether P depends on position even where all tokens are equal (docs/theory.md §5)."""
        return self.causal or bool(self.terms) or self.rotary is not None


@dataclass(frozen=True)
class MLP:
    """down(act(up x)), or down(act(gate x) ∘ up x) where there is a gate."""

    up: Linear
    down: Linear
    activation: str
    gate: Linear | None = None

    def activate(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """The activation alone."""
        return ACTIVATIONS[self.activation].function(x)

    def __call__(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Applies the MLP to every row."""
        if self.gate is None:
            return self.down(self.activate(self.up(x)))
        return self.down(self.activate(self.gate(x)) * self.up(x))


@dataclass(frozen=True)
class Block:
    """An attention sub-layer, then an MLP sub-layer; `placement` says where their norms sit.

    With "post": a = N₁(x + A(x)), y = N₂(a + M(a)). With "pre": a = x + A(N₁ x), y = a + M(N₂ a).
    """

    attention: Attention
    mlp: MLP | None
    attention_norm: Norm | None
    mlp_norm: Norm | None
    placement: Literal["pre", "post"]
