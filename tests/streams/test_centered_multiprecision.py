"""`Centered` against arithmetic of a thousand digits, on networks of every kind it covers."""

import mpmath as mp
import pytest
import torch

from rankcollapse.metrics import log10_relative_residual
from rankcollapse.streams import Centered
from rankcollapse.transformer import MLP, Attention, Block, Layout, Linear, Norm, Variant, sweep
from rankcollapse.transformer.rotary import Rotary
from rankcollapse.transformer.scores import RelativePositions
from tests.streams import multiprecision

TOKENS, WIDTH, HEADS, DIGITS = 5, 8, 2, 1400


def random(*shape: int, scale: float = 0.5) -> torch.Tensor:
    return scale * torch.randn(*shape, dtype=torch.float64)


def linear(inputs: int, outputs: int) -> Linear:
    return Linear(random(outputs, inputs, scale=inputs**-0.5), random(outputs, scale=0.3))


def norm(kind: str) -> Norm:
    bias = random(WIDTH, scale=0.3) if kind == "layer" else None
    return Norm(kind, 1e-5, 1 + random(WIDTH, scale=0.2), bias)  # type: ignore[arg-type]


def mlp(activation: str, gated: bool) -> MLP:
    gate = linear(WIDTH, 12) if gated else None
    return MLP(linear(WIDTH, 12), linear(12, WIDTH), activation, gate)


def attention(kind: str) -> Attention:
    key_heads = 1 if kind == "grouped" else HEADS
    size = WIDTH // HEADS
    parts = [
        linear(WIDTH, WIDTH),
        linear(WIDTH, key_heads * size),
        linear(WIDTH, key_heads * size),
        linear(WIDTH, WIDTH),
    ]
    terms = (RelativePositions(random(WIDTH, WIDTH), random(HEADS, size)),)
    return Attention(
        *parts,
        heads=HEADS,
        key_heads=key_heads,
        scale=size**-0.5,
        causal=kind == "causal",
        terms=terms if kind == "relative" else (),
        rotary=Rotary(100.0, 4) if kind == "rotary" else None,
    )


CASES = {
    "attention alone": ("plain", None, None, "post", "san"),
    "grouped queries": ("grouped", None, None, "post", "san"),
    "LayerNorm": ("plain", "layer", None, "post", "san"),
    "LayerNorm before": ("plain", "layer", None, "pre", "san"),
    "RMSNorm before": ("plain", "rms", None, "pre", "san"),
    "GELU MLP": ("plain", "layer", ("gelu", False), "post", "san+mlp"),
    "GELU MLP with its skip": ("plain", "layer", ("gelu", False), "post", "-attention_skip"),
    "tanh GELU MLP": ("plain", "layer", ("gelu_new", False), "post", "san+mlp"),
    "quick GELU MLP": ("plain", "layer", ("quick_gelu", False), "post", "san+mlp"),
    "tanh MLP": ("plain", "layer", ("tanh", False), "post", "san+mlp"),
    "ReLU MLP": ("plain", "layer", ("relu", False), "post", "san+mlp"),
    "squared ReLU MLP": ("plain", "layer", ("relu2", False), "post", "san+mlp"),
    "SiLU gated MLP": ("grouped", "rms", ("silu", True), "pre", "san+mlp"),
    "activation alone": ("plain", "layer", ("gelu", False), "post", "san-"),
    "causal": ("causal", "layer", None, "pre", "san"),
    "rotary": ("rotary", "rms", ("silu", True), "pre", "san+mlp"),
    "relative positions": ("relative", "layer", ("gelu", False), "post", "san+mlp"),
    "all skips": ("plain", "layer", ("gelu", False), "post", "transformer"),
    "all skips, pre": ("causal", "rms", ("silu", True), "pre", "transformer"),
    "no norm": ("plain", None, ("relu", False), "post", "transformer"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_residual_against_a_thousand_digits(name: str, seed: int) -> None:
    kind, normed, hidden, placement, spelled = CASES[name]
    torch.manual_seed(seed)
    cubic = kind in ("plain", "grouped") and spelled != "transformer"
    layers = 14 if cubic else 6
    blocks = [
        Block(
            attention(kind),
            mlp(*hidden) if hidden else None,
            norm(normed) if normed else None,
            norm(normed) if normed and hidden else None,
            placement,  # type: ignore[arg-type]
        )
        for _ in range(layers)
    ]
    if spelled == "san-":
        variant = Variant("tested", frozenset({"attention_skip", "mlp_skip", "mlp_projections"}))
        blocks = [b for b in blocks]
    else:
        variant = Variant.parse(spelled)
    x = random(1, TOKENS, WIDTH, scale=1.0) + 2 * random(1, 1, WIDTH)
    visits = sweep([x], [Layout.contiguous(TOKENS)], blocks, None, [variant], Centered())
    with mp.workdps(DIGITS):
        truth = multiprecision.exact(x[0])
        lowest = mp.mpf(1)
        for visit in visits:
            if visit.layer:
                truth = activation_or_block(truth, blocks[int(visit.layer) - 1], variant)
            expected = multiprecision.residual(truth)
            scale = mp.mpf(2) ** int(visit.state.exponent[0])
            ours = [
                [v * scale for v in row] for row in multiprecision.exact(visit.state.residual[0])
            ]
            error = multiprecision.plus(ours, [[-v for v in row] for row in expected])
            size = multiprecision.composite(expected)
            relative = size / multiprecision.composite(truth)
            assert multiprecision.composite(error) <= mp.mpf("1e-10") * size, visit.layer
            measured = float(log10_relative_residual(Centered().tokens(visit.state, None))[0])
            assert abs(measured - float(mp.log10(relative))) <= 1e-10 * max(1, abs(measured))
            lowest = min(lowest, relative)
            if lowest < mp.mpf("1e-420"):  # the next cube needs more digits than there are
                break
        assert not cubic or lowest < mp.mpf("1e-300")


def activation_or_block(
    x: multiprecision.Rows, part: Block, variant: Variant
) -> multiprecision.Rows:
    if "mlp_projections" in variant:
        return multiprecision.block(x, part, variant)
    first = multiprecision.block(x, part, Variant("first", variant.off | {"mlp"}))
    assert part.mlp is not None and part.mlp_norm is not None
    act = multiprecision.ACTIVATIONS[part.mlp.activation]
    return multiprecision.norm([[act(v) for v in row] for row in first], part.mlp_norm)
