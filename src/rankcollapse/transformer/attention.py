"""Attention on ordinary tensors: fused where nothing is added to the scores, else by rows.

Memory: the fused path holds no n × n matrix; the other holds one block of query rows of P, at most
about 16 MiB of it, whatever n is.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rankcollapse.transformer.parts import Attention, Linear
from rankcollapse.transformer.scores import Layout

_ROW_BLOCK = 2**21  # entries of P held at a time


def attend(
    x: Float[Tensor, "batch token width"], attention: Attention, layout: Layout
) -> Float[Tensor, "batch token width"]:
    """Σ_h P_h X W_V,h W_O,h + b, with P from `x` itself (docs/theory.md §1)."""
    value = heads_of(attention.value, x, attention.key_heads)
    if attention.terms:
        value = value.repeat_interleave(attention.heads // attention.key_heads, dim=1)
        mixed = torch.cat([rows @ value for _, rows in attention_rows(x, attention, layout)], dim=2)
    else:
        mixed = F.scaled_dot_product_attention(
            *queries_and_keys(x, attention, layout),
            value,
            is_causal=attention.causal,
            scale=attention.scale,
            enable_gqa=attention.heads != attention.key_heads,
        )
    return attention.output(mixed.transpose(1, 2).flatten(2))


def attention_rows(
    x: Float[Tensor, "batch token width"], attention: Attention, layout: Layout
) -> Iterator[tuple[slice, Float[Tensor, "batch head row token"]]]:
    """The attention matrices P_h of `x`, a block of query rows at a time."""
    query, key = queries_and_keys(x, attention, layout)
    key = key.repeat_interleave(attention.heads // attention.key_heads, dim=1)
    tokens = query.shape[2]
    for rows in row_blocks(*query.shape[:3]):
        scores = query[:, :, rows] @ key.mT
        for term in attention.terms:
            scores += term.scores(query[:, :, rows], layout, rows)
        scores *= attention.scale
        if attention.causal:
            scores.masked_fill_(later_tokens(rows, tokens, x.device), -torch.inf)
        yield rows, scores.softmax(-1)


def row_blocks(batch: int, heads: int, tokens: int) -> Iterator[slice]:
    """Slices of query rows, so many at a time that their part of P stays small."""
    step = max(1, _ROW_BLOCK // (batch * heads * tokens))
    for start in range(0, tokens, step):
        yield slice(start, min(start + step, tokens))


def queries_and_keys(
    x: Float[Tensor, "batch token width"], attention: Attention, layout: Layout
) -> tuple[Float[Tensor, "batch head token size"], Float[Tensor, "batch key_head token size"]]:
    """Queries and keys of every head, turned by position where the family does so."""
    query = heads_of(attention.query, x, attention.heads)
    key = heads_of(attention.key, x, attention.key_heads)
    if attention.rotary is None:
        return query, key
    return attention.rotary(query, layout), attention.rotary(key, layout)


def later_tokens(rows: slice, tokens: int, device: torch.device) -> Tensor:
    """True where token j comes after query i, for i in `rows`."""
    steps = torch.arange(tokens, device=device)
    return steps > steps[rows, None]


def heads_of(
    linear: Linear, x: Float[Tensor, "batch token width"], heads: int
) -> Float[Tensor, "batch head token size"]:
    """Projects and splits into heads."""
    return linear(x).unflatten(-1, (heads, -1)).transpose(1, 2)
