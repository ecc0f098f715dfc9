"""Attention layers of every kind, and what theory says of them, written out in numpy.

Nothing here comes from `rankcollapse.theory`: matrices are formed head by head, and every quantity
follows its definition in docs/theory.md, without logarithms and without care for small residuals.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from rankcollapse.transformer import MLP, Attention, Layout, Linear, Norm
from rankcollapse.transformer.attention import attention_rows
from rankcollapse.transformer.rotary import Rotary
from rankcollapse.transformer.scores import RelativePositions

Array = NDArray[np.float64]
KINDS = ("content", "grouped", "causal", "relative", "rotary")
POSITIONAL = ("causal", "relative", "rotary")


class Maker:
    """Random parts, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.randn(*shape, generator=self.generator, dtype=torch.float64)

    def linear(self, inputs: int, outputs: int) -> Linear:
        return Linear(self.normal(outputs, inputs, scale=inputs**-0.5), self.normal(outputs))

    def attention(
        self, width: int, heads: int, size: int, kind: str = "content", scale: float | None = None
    ) -> Attention:
        """With key heads that two or more queries share where `kind` is "grouped"."""
        divisors = [g for g in range(2, heads + 1) if heads % g == 0] if kind == "grouped" else []
        key_heads = heads // min(divisors, default=1)
        inner, shared = heads * size, key_heads * size
        terms = (RelativePositions(self.normal(inner, 4), self.normal(heads, size)),)
        return Attention(
            self.linear(width, inner),
            self.linear(width, shared),
            self.linear(width, shared),
            self.linear(inner, width),
            heads=heads,
            key_heads=key_heads,
            scale=size**-0.5 if scale is None else scale,
            causal=kind == "causal",
            terms=terms if kind == "relative" else (),
            rotary=Rotary(100.0, size // 2 * 2) if kind == "rotary" else None,
        )

    def mlp(self, width: int, hidden: int, activation: str, gated: bool = False) -> MLP:
        gate = self.linear(width, hidden) if gated else None
        return MLP(self.linear(width, hidden), self.linear(hidden, width), activation, gate)

    def norm(self, width: int, kind: str, eps: float = 1e-5, plain: bool = False) -> Norm:
        weight, bias = (None, None) if plain else (self.normal(width), self.normal(width))
        return Norm(kind, eps, weight, bias)  # type: ignore[arg-type]


def head_matrices(attention: Attention) -> tuple[list[Array], list[Array], list[Array]]:
    """W_QK, W and W_K b_Q of every head, slice by slice."""
    size = len(attention.query.weight) // attention.heads
    query_key, values, biases = [], [], []
    for head in range(attention.heads):
        group = head * attention.key_heads // attention.heads
        own = slice(head * size, (head + 1) * size)
        shared = slice(group * size, (group + 1) * size)
        w_q = attention.query.weight[own].double().numpy().T
        w_k = attention.key.weight[shared].double().numpy().T
        w_v = attention.value.weight[shared].double().numpy().T
        w_o = attention.output.weight[:, own].double().numpy().T
        query_key.append(w_q @ w_k.T)
        values.append(w_v @ w_o)
        bias = attention.query.bias
        biases.append(w_k @ (np.zeros(size) if bias is None else bias[own].double().numpy()))
    return query_key, values, biases


@dataclass(frozen=True)
class Explicit:
    """R, and per head E, q, P, W_QK and W_h, for one matrix of tokens."""

    residual: Array
    scores: Array
    weights: Array
    attention: Array
    query_key: list[Array]
    values: list[Array]
    scale: float

    @classmethod
    def of(cls, x: Array, attention: Attention) -> "Explicit":
        mean = x.mean(0)
        residual = x - mean
        query_key, values, biases = head_matrices(attention)
        scores = [attention.scale * residual @ w @ residual.T for w in query_key]
        logits = [
            attention.scale * residual @ (w.T @ mean + b)
            for w, b in zip(query_key, biases, strict=True)
        ]
        layout = Layout.contiguous(len(x))
        rows = attention_rows(torch.from_numpy(x)[None], attention, layout)
        p = torch.cat([part for _, part in rows], dim=2)[0].numpy()
        return cls(
            residual,
            np.stack(scores),
            np.stack([softmax(r) for r in logits]),
            p,
            query_key,
            values,
            attention.scale,
        )

    @property
    def delta(self) -> Array:
        """δ_i of every head, over every pair j, j'."""
        return np.abs(self.scores[:, :, :, None] - self.scores[:, :, None, :]).max((2, 3))

    @property
    def dobrushin(self) -> Array:
        return np.array(
            [max(np.abs(a - b).sum() / 2 for a in p for b in p) for p in self.attention]
        )

    @property
    def centered(self) -> Array:
        n = len(self.residual)
        pi = np.eye(n) - np.ones((n, n)) / n
        return pi @ self.attention @ pi

    @property
    def spectral(self) -> Array:
        return np.array([np.linalg.norm(p, 2) for p in self.centered], dtype=np.float64)


def softmax(r: Array) -> Array:
    powers = np.exp(r - r.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def norms(y: Array) -> tuple[float, float, float]:
    """‖·‖₁, ‖·‖∞ and ‖·‖_F of a matrix."""
    size = np.abs(y)
    return float(size.sum(0).max()), float(size.sum(1).max()), float(np.sqrt((y**2).sum()))


def about_mean(y: Array) -> Array:
    return y - y.mean(0)


def with_delta(attention: Attention, x: Array, largest: float) -> Attention:
    """The same layer, its scores scaled so that the largest δ of any head is `largest`."""
    scores = Explicit.of(x, attention).scores
    found = float(np.ptp(scores, axis=-1).max())
    return replace(attention, scale=attention.scale * largest / found) if found else attention
