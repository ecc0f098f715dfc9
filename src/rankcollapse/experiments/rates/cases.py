"""Networks whose rate is known: one head, W_V W_O = I, no norm, no skip.

Then R' = Π P R: with positions in the scores the residual shrinks by |λ₂(P)| per layer in the end,
and without by the cube.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Generator, Tensor

from rankcollapse.experiments.initial import weight
from rankcollapse.experiments.trajectory import visits
from rankcollapse.experiments.xformers.mechanisms.alibi import Alibi
from rankcollapse.experiments.xformers.mechanisms.patterns import Mask, window
from rankcollapse.metrics import log10_relative_residual, second_eigenvalue
from rankcollapse.streams import Centered, CenteredState
from rankcollapse.transformer import Attention, Block, Layout, Linear
from rankcollapse.transformer.attention import attention_rows
from rankcollapse.transformer.rotary import Rotary
from rankcollapse.transformer.scores import RelativePositions, ScoreTerm

TOKENS, WIDTH = 32, 32
MEASURED = 20
"""The factor per layer is that of so many last layers."""
FOLLOWED = 8
"""So many layers of content alone; the logarithm of the residual triples in each."""
SMALL = 0.01
"""Scores of query and key that leave attention to what else acts in it."""


@dataclass(frozen=True)
class Case:
    """One mechanism with one value of its parameter.

    Attributes:
        name: As in tables and charts.
        mechanism: "content", "causal", "band", "alibi", "rotary" or "relative".
        parameter: Width of the band, slope of ALiBi; otherwise unused.
        scores: Standard deviation of q_iᵀk_j √scale over pairs of the first layer, about.
        factor: Known |λ₂| for scores near zero, None where it depends on the weights.
    """

    name: str
    mechanism: str
    parameter: float = 0.0
    scores: float = SMALL
    factor: float | None = None


CASES = (
    Case("content alone", "content", scores=1.0),
    Case("causal mask", "causal", factor=0.5),
    Case("band of 9", "band", 9, factor=0.96),
    Case("band of 13", "band", 13),
    Case("band of 17", "band", 17),
    Case("ALiBi 0.125", "alibi", 0.125),
    Case("ALiBi 0.25", "alibi", 0.25, factor=0.85),
    Case("ALiBi 0.5", "alibi", 0.5),
    Case("rotary, scores 0.5", "rotary", scores=0.5),
    Case("rotary, scores 1", "rotary", scores=1.0),
    Case("rotary, scores 2", "rotary", scores=2.0),
    Case("relative, scores 0.25", "relative", scores=0.25),
    Case("relative, scores 0.5", "relative", scores=0.5),
    Case("relative, scores 1", "relative", scores=1.0),
)


def block(case: Case, generator: Generator) -> Block:
    """The layer of a case, which is applied again and again."""
    d = WIDTH
    std = (case.scores / d) ** 0.5
    query, key, relative = (weight(d, d, std, generator) for _ in range(3))
    offset = weight(1, d, case.scores**0.5, generator)
    scale = d**-0.5
    terms: tuple[ScoreTerm, ...] = ()
    if case.mechanism == "band":
        terms = (Mask(window(TOKENS, int(case.parameter))),)
    elif case.mechanism == "alibi":
        terms = (Alibi(case.parameter, scale),)
    elif case.mechanism == "relative":
        terms = (RelativePositions(relative, offset),)
    identity = Linear(torch.eye(d, dtype=torch.float64))
    attention = Attention(
        Linear(query),
        Linear(key),
        identity,
        identity,
        heads=1,
        key_heads=1,
        scale=scale,
        causal=case.mechanism == "causal",
        terms=terms,
        rotary=Rotary(10000.0, d) if case.mechanism == "rotary" else None,
    )
    return Block(attention, None, None, None, "post")


def measure(case: Case, seed: int, layers: int) -> xr.Dataset:
    """Residual through depth, its factor per layer in the end, and |λ₂| between equal tokens.

    Content alone has no factor, and is NaN beyond the layers that are followed.
    """
    generator = torch.Generator().manual_seed(seed)
    layer = block(case, generator)
    rows = torch.randn(1, TOKENS, WIDTH, generator=generator, dtype=torch.float64)
    x = rows + torch.randn(WIDTH, generator=generator, dtype=torch.float64)
    content = case.mechanism == "content"
    repeated = [layer] * (FOLLOWED if content else layers)
    arithmetic = Centered()
    states = [visit.state for visit in visits(x, repeated, "san", arithmetic)]
    y = np.full(layers + 1, np.nan)
    y[: len(states)] = [log10_relative_residual(arithmetic.tokens(s, None)).item() for s in states]
    factor = np.nan if content else 10 ** ((y[-1] - y[-1 - MEASURED]) / MEASURED)
    predicted = np.nan if content else between_equal_tokens(states[-1], layer)
    return xr.Dataset(
        {
            "log10_relative_residual": ("layer", y),
            "factor": ((), factor),
            "lambda2": ((), predicted),
        },
        coords={"layer": np.arange(layers + 1)},
    )


def between_equal_tokens(state: CenteredState, layer: Block) -> float:
    """|λ₂| of P where every token is the shared row."""
    x: Float[Tensor, "batch token width"] = state.shared.unsqueeze(1).expand_as(state.residual)
    rows = attention_rows(x, layer.attention, Layout.contiguous(x.shape[1]))
    return second_eigenvalue(torch.cat([p for _, p in rows], dim=2)).item()
