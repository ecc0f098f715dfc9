"""The forward pass once more, token by token in mpmath, written from docs/theory.md."""

from typing import Any

import mpmath as mp
from torch import Tensor

from rankcollapse.transformer import MLP, Attention, Block, Linear, Norm, Variant
from rankcollapse.transformer.scores import RelativePositions

Row = list[Any]
Rows = list[Row]


def exact(x: Tensor) -> Any:
    """A tensor as nested lists of mpf, exactly."""
    return [exact(part) for part in x] if x.ndim else mp.mpf(float(x))


def linear(x: Rows, part: Linear) -> Rows:
    weight = exact(part.weight)
    bias = exact(part.bias) if part.bias is not None else [mp.mpf(0)] * len(weight)
    return [[mp.fdot(row, w) + b for w, b in zip(weight, bias, strict=True)] for row in x]


def plus(x: Rows, y: Rows) -> Rows:
    return [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(x, y, strict=True)]


def norm(x: Rows, part: Norm) -> Rows:
    result = []
    for row in x:
        center = mp.fsum(row) / len(row) if part.kind == "layer" else mp.mpf(0)
        moved = [value - center for value in row]
        spread = mp.sqrt(mp.fsum(v * v for v in moved) / len(row) + mp.mpf(part.eps))
        weight = exact(part.weight) if part.weight is not None else [1] * len(row)
        bias = exact(part.bias) if part.bias is not None else [0] * len(row)
        result.append([v / spread * w + b for v, w, b in zip(moved, weight, bias, strict=True)])
    return result


ACTIVATIONS = {
    "gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    "gelu_new": lambda x: (
        x * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))) / 2
    ),
    "quick_gelu": lambda x: x / (1 + mp.exp(-mp.mpf(1.702) * x)),
    "relu": lambda x: max(x, mp.mpf(0)),
    "relu2": lambda x: max(x, mp.mpf(0)) ** 2,
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "tanh": mp.tanh,
}


def mlp(x: Rows, part: MLP) -> Rows:
    act = ACTIVATIONS[part.activation]
    hidden = linear(x, part.up)
    if part.gate is None:
        hidden = [[act(v) for v in row] for row in hidden]
    else:
        gate = linear(x, part.gate)
        hidden = [
            [act(g) * u for g, u in zip(*rows, strict=True)]
            for rows in zip(gate, hidden, strict=True)
        ]
    return linear(hidden, part.down)


def rotated(row: Row, position: int, base: float, size: int) -> Row:
    half = size // 2
    result = list(row)
    for k in range(half):
        angle = position * mp.mpf(base) ** (-mp.mpf(2 * k) / size)
        a, b = row[k], row[k + half]
        result[k] = a * mp.cos(angle) - b * mp.sin(angle)
        result[k + half] = b * mp.cos(angle) + a * mp.sin(angle)
    return result


def attention(x: Rows, part: Attention) -> Rows:
    query, key, value = (linear(x, p) for p in (part.query, part.key, part.value))
    size = len(query[0]) // part.heads
    merged: Rows = [[] for _ in x]
    for head in range(part.heads):
        group = head // (part.heads // part.key_heads)
        q = [row[head * size : (head + 1) * size] for row in query]
        k, v = ([row[group * size : (group + 1) * size] for row in p] for p in (key, value))
        if part.rotary:
            turn = (part.rotary.base, part.rotary.size)
            q, k = ([rotated(row, i, *turn) for i, row in enumerate(p)] for p in (q, k))
        for i in range(len(x)):
            scores = [mp.fdot(q[i], k[j]) for j in range(i + 1 if part.causal else len(x))]
            for term in part.terms:
                assert isinstance(term, RelativePositions)
                offset = exact(term.offset)[head]
                biased = [a + b for a, b in zip(q[i], offset, strict=True)]
                for j in range(len(scores)):
                    scores[j] += mp.fdot(biased, relative_key(term, i - j, head, size))
            powers = [mp.exp(mp.mpf(part.scale) * s) for s in scores]
            total = mp.fsum(powers)
            for f in range(size):
                merged[i].append(mp.fsum(p * v[j][f] for j, p in enumerate(powers)) / total)
    return linear(merged, part.output)


def relative_key(term: Any, distance: int, head: int, size: int) -> Row:
    """W_R r_{i−j}; the sinusoids are inputs here, since the model's own are float32."""
    import torch

    sinusoid = exact(term.sinusoids(torch.tensor([distance]))[0])
    weight = exact(term.weight)[head * size : (head + 1) * size]
    return [mp.fdot(row, sinusoid) for row in weight]


def block(x: Rows, part: Block, variant: Variant) -> Rows:
    """The formulas of docs/variants.md."""
    post = part.placement == "post"
    weights: Any
    function: Any
    for name, function, weights, normed in (
        ("attention", attention, part.attention, part.attention_norm),
        ("mlp", mlp, part.mlp, part.mlp_norm),
    ):
        if weights is None or (name == "mlp" and name not in variant):
            continue
        kept = normed if f"{name}_norm" in variant else None
        y = function(norm(x, kept) if kept and not post else x, weights)
        y = plus(x, y) if f"{name}_skip" in variant else y
        x = norm(y, kept) if kept and post else y
    return x


def residual(x: Rows) -> Rows:
    means = [mp.fsum(column) / len(x) for column in zip(*x, strict=True)]
    return [[v - m for v, m in zip(row, means, strict=True)] for row in x]


def composite(x: Rows) -> Any:
    rows = max(mp.fsum(abs(v) for v in row) for row in x)
    columns = max(mp.fsum(abs(v) for v in column) for column in zip(*x, strict=True))
    return mp.sqrt(rows * columns)
