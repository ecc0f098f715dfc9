"""`Centered` where plain float64 can still say, its invariances, and very deep stacks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig

import rankcollapse
from rankcollapse.metrics import log10_relative_residual
from rankcollapse.streams import Centered, CenteredState, Dense
from rankcollapse.streams.differences import activation_difference
from rankcollapse.transformer import Attention, Block, Layout, Linear, Variant, sweep
from rankcollapse.transformer.activations import ACTIVATIONS
from tests.networks import ids
from tests.streams.contract import ArithmeticContract


class TestCentered(ArithmeticContract):
    def arithmetic(self) -> Centered:
        return Centered()


def stack(layers: int, width: int, heads: int, seed: int, gain: float = 1.0) -> list[Block]:
    """Pure attention, with biases."""
    torch.manual_seed(seed)

    def linear() -> Linear:
        weight = gain * torch.randn(width, width, dtype=torch.float64) * width**-0.5
        return Linear(weight, 0.1 * torch.randn(width, dtype=torch.float64))

    return [
        Block(
            Attention(
                linear(), linear(), linear(), linear(), heads, heads, (width // heads) ** -0.5
            ),
            None, None, None, "post",
        )
        for _ in range(layers)
    ]  # fmt: skip


def run(x: torch.Tensor, blocks: list[Block], off: str = "san") -> list[CenteredState]:
    layout = Layout.contiguous(x.shape[1])
    visits = sweep([x], [layout], blocks, None, [Variant.parse(off)], Centered())
    return [visit.state for visit in visits]


def test_a_thousand_layers_stay_finite_and_cubic() -> None:
    layers = 1000
    norm = rankcollapse.transformer.Norm("layer", 1e-12)  # type: ignore[attr-defined]
    blocks = [Block(b.attention, None, norm, None, "post") for b in stack(layers, 64, 1, seed=0)]
    states = run(torch.randn(1, 16, 64, dtype=torch.float64), blocks)
    logs = np.array([float(log10_relative_residual(Centered().tokens(s, None))[0]) for s in states])
    for state in states:
        assert torch.isfinite(state.shared).all()
        assert float(state.residual.abs().max()) in (0.0, pytest.approx(0.75, abs=0.25))
    assert np.isfinite(logs).all()
    deep = logs[logs > -1e307]  # beyond, the exponent itself is no float64 and stands still
    assert len(deep) > 600 and logs[-1] < -1e307
    steps = np.diff(deep)
    orders = (steps[1:] / steps[:-1])[deep[1:-1] < -100]
    assert np.abs(orders - 3).max() < 0.01


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**16), shift=st.integers(-8, 8), tokens=st.integers(2, 6))
def test_a_vector_added_to_all_tokens_moves_the_shared_row_alone(
    seed: int, shift: int, tokens: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Multiples of 1/8 times the number of tokens: sums and means are exact.
    x = torch.randint(-64, 64, (1, tokens, 4), generator=generator).double() / 8 * tokens
    v = torch.full((4,), float(shift), dtype=torch.float64)
    before, after = Centered().enter(x), Centered().enter(x + v)
    assert torch.equal(after.residual, before.residual)
    assert torch.equal(after.exponent, before.exponent)
    assert torch.equal(after.shared, before.shared + v)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_permuted_tokens_permute_the_residual(seed: int) -> None:
    blocks = stack(6, 8, 2, seed)
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    order = torch.randperm(5)
    for plain, permuted in zip(run(x, blocks), run(x[:, order], blocks), strict=True):
        shift = torch.exp2(permuted.exponent - plain.exponent).view(-1, 1, 1)
        torch.testing.assert_close(
            permuted.residual * shift, plain.residual[:, order], rtol=0, atol=1e-11
        )
        torch.testing.assert_close(permuted.shared, plain.shared, rtol=1e-12, atol=1e-12)


def test_without_queries_the_mean_is_all_that_remains() -> None:
    block = stack(1, 8, 2, seed=0)[0]
    nothing = Linear(torch.zeros(8, 8, dtype=torch.float64))
    uniform = Attention(
        nothing, block.attention.key, block.attention.value, block.attention.output, 2, 2, 1.0
    )
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    after = run(x, [Block(uniform, None, None, None, "post")])[1]
    assert float(after.residual.abs().max()) == 0.0
    assert float(log10_relative_residual(Centered().tokens(after, None))[0]) == -math.inf


@pytest.mark.parametrize("size", [30.0, 1.0, 0.06, 0.04, 1e-3, 1e-6, 1e-9, 1e-16, 1e-200])
@pytest.mark.parametrize("name", [n for n, a in ACTIVATIONS.items() if a.pieces is None])
def test_activation_differences_keep_their_digits(name: str, size: float) -> None:
    import mpmath as mp

    from tests.streams.multiprecision import ACTIVATIONS as EXACT

    aliases = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "swish": "silu"}
    function = EXACT[aliases.get(name, name)]
    torch.manual_seed(3)
    shared = 3 * torch.randn(1, 40, dtype=torch.float64)
    residual = torch.rand(1, 5, 40, dtype=torch.float64) * 2 - 1
    exponent = torch.tensor([math.log2(size)], dtype=torch.float64).round()
    got = activation_difference(ACTIVATIONS[name], shared, residual, exponent)
    largest = 0.0
    with mp.workdps(500):
        scale = mp.mpf(2) ** int(exponent)
        for token in range(5):
            for f in range(40):
                m, r = mp.mpf(float(shared[0, f])), mp.mpf(float(residual[0, token, f]))
                exact = (function(m + scale * r) - function(m)) / scale
                largest = max(largest, abs(float(got[0, token, f]) - float(exact)))
    assert largest <= 2e-13


def test_bert_base_collapses_at_order_three_and_far_below_float64() -> None:
    model = rankcollapse.load(BertConfig(), init="random", seed=0)
    inputs = {"input_ids": ids((32, 32), vocabulary=30522)}
    results = rankcollapse.inspect(model, inputs, ["san"], "centered", metrics=["residual"])
    log10 = results.log10_relative_residual.isel(variant=0).values
    order = results.local_order.isel(variant=0).values
    assert np.isfinite(log10).all() and (log10[:, 12] < -10_000).all()
    assert (np.abs(order[:, 2:][log10[:, 1:-1] < -6] - 3) <= 0.15).all()
    assert (np.abs(order[:, 2:][log10[:, 1:-1] < -100] - 3) <= 0.01).all()
    dense = results.dense_log10_relative_residual.isel(variant=0).values
    resolved = np.isfinite(dense) & (dense > math.log10(4e-16 * 1e3))
    assert resolved.sum() >= 4
    np.testing.assert_allclose(
        10 ** log10[resolved], 10 ** dense[resolved], rtol=1e-9, atol=np.finfo(float).eps
    )


@pytest.mark.parametrize("gain", [1.0, 30.0, 1e2, 1e4, 1e8])
def test_scores_far_apart_equal_plain_float64(gain: float) -> None:
    """Tokens that the shared row alone gives no weight at all may be the ones that are attended."""
    blocks = []
    for b in stack(3, 16, 2, seed=5):
        query = Linear(gain * b.attention.query.weight, gain * torch.ones(16, dtype=torch.float64))
        sharp = Attention(
            query, b.attention.key, b.attention.value, b.attention.output, 2, 2, b.attention.scale
        )
        blocks.append(Block(sharp, None, None, None, "post"))
    x = torch.randn(2, 7, 16, dtype=torch.float64) + 3
    layout = Layout.contiguous(7)
    variant = [Variant.parse("san+skip")]
    ours = sweep([x], [layout], blocks, None, variant, Centered())
    plain = sweep([x], [layout], blocks, None, variant, Dense(torch.float64))
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a.state.values, b.state, rtol=1e-9, atol=1e-9)
