"""The arithmetic that keeps one tensor per source and path length (docs/theory.md §2).

A state is Σ over (source, length) of terms. Attention takes every term one length further, with the
attention matrices of the real state; norms act with the real state's scales and are then linear; an
MLP's output is a new source of length 0, since an MLP is not linear in its input. Cost: a layer
takes a value and an output product per term, L(L + 1)/2 of each in all for one source, beside the
pass.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.transformer.attention import attention_rows, heads_of
from rankcollapse.transformer.parts import MLP, Attention, Linear, Norm
from rankcollapse.transformer.scores import Layout

State = Float[Tensor, "batch token width"]
Key = tuple[str, int]
SOURCES = ("input", "mlp", "bias")


@dataclass(frozen=True)
class GradedState:
    """The real state, and the terms (source, length) that add up to it; absent terms are zero."""

    total: State
    terms: dict[Key, State]


class Graded:
    """One tensor per (source, length), in the model's dtype."""

    name = "graded"

    def __init__(self, dtype: torch.dtype) -> None:
        self.floor = 4 * torch.finfo(dtype).eps

    def enter(self, x: State) -> GradedState:
        """All of it is the input, of length 0."""
        return GradedState(x, {("input", 0): x})

    def attend(self, x: GradedState, attention: Attention, layout: Layout) -> GradedState:
        """(source, l) ↦ (source, l + 1), with P_h of the real state; biases are a source."""
        p = torch.cat([rows for _, rows in attention_rows(x.total, attention, layout)], dim=2)
        terms = {
            (source, length + 1): through_heads(p, term, attention)
            for (source, length), term in x.terms.items()
        }
        bias = attention_bias(attention)
        if bias is not None:
            terms[("bias", 0)] = bias.expand_as(x.total)
        total = through_heads(p, x.total, attention)
        return GradedState(total if bias is None else total + bias, terms)

    def mlp(self, x: GradedState, mlp: MLP) -> GradedState:
        """A new source, of length 0."""
        total = mlp(x.total)
        return GradedState(total, {("mlp", 0): total})

    def activate(self, x: GradedState, mlp: MLP) -> GradedState:
        """A new source, of length 0."""
        total = mlp.activate(x.total)
        return GradedState(total, {("mlp", 0): total})

    def normalize(self, x: GradedState, norm: Norm) -> GradedState:
        """Linear, with the scale of the real state as given; the norm's bias is a source."""
        scale = norm_scale(x.total, norm)
        terms = {key: frozen_norm(term, norm, scale) for key, term in x.terms.items()}
        if norm.bias is not None:
            before = terms.get(("bias", 0))
            bias = norm.bias.expand_as(x.total)
            terms[("bias", 0)] = bias if before is None else before + bias
        return GradedState(norm(x.total), terms)

    def add(self, x: GradedState, y: GradedState) -> GradedState:
        """Term by term."""
        terms = dict(x.terms)
        for key, term in y.terms.items():
            terms[key] = terms[key] + term if key in terms else term
        return GradedState(x.total + y.total, terms)

    def tokens(self, x: GradedState, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """Those of the real state."""
        return TokenMatrix.of(x.total, mask)

    def plain(self, x: GradedState) -> State:
        """The real state."""
        return x.total


def through_heads(
    p: Float[Tensor, "batch head token token"], x: State, attention: Attention
) -> State:
    """Σ_h P_h X W_V,h W_O,h for given P, without biases."""
    value = heads_of(Linear(attention.value.weight), x, attention.key_heads)
    value = value.repeat_interleave(attention.heads // attention.key_heads, dim=1)
    return (p @ value).transpose(1, 2).flatten(2) @ attention.output.weight.T


def attention_bias(attention: Attention) -> Float[Tensor, " width"] | None:
    """Returns Σ_h (b_O,h + b_V,h W_O,h): rows of P sum to 1, so value biases pass."""
    bias = attention.output.bias
    if attention.value.bias is not None:
        groups = attention.heads // attention.key_heads
        value = attention.value.bias.unflatten(0, (attention.key_heads, -1))
        value = value.repeat_interleave(groups, dim=0).flatten()
        through = attention.output.weight @ value
        bias = through if bias is None else bias + through
    return bias


def norm_scale(x: State, norm: Norm) -> Float[Tensor, "batch token 1"]:
    """1 / √(var + eps) of every token of the real state (mean square for RMSNorm)."""
    if norm.kind == "layer":
        return (x.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()
    return (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt()


def frozen_norm(x: State, norm: Norm, scale: Float[Tensor, "batch token 1"]) -> State:
    """The norm without its bias and with `scale` given: linear in `x`."""
    centered = x - x.mean(-1, keepdim=True) if norm.kind == "layer" else x
    scaled = centered * scale
    return scaled if norm.weight is None else scaled * norm.weight
