"""δ, γ, q, τ and ‖ΠPΠ‖₂ against matrices written out, for residuals of every size."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcollapse.streams import Centered, CenteredState
from rankcollapse.streams.centered import state
from rankcollapse.theory import LARGEST_DELTA, NearRankOne
from rankcollapse.transformer import Attention, Layout, Linear
from tests.streams.multiprecision import exact
from tests.theory.bounding import KINDS, Explicit, Maker, head_matrices, softmax, with_delta

TOKENS, WIDTH = 5, 4


def near(x: CenteredState, attention: Attention) -> NearRankOne:
    return NearRankOne.of(x, attention, Layout.contiguous(x.residual.shape[1]))


@pytest.mark.parametrize("largest", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("kind", KINDS)
def test_residuals_of_order_one(kind: str, largest: float) -> None:
    maker = Maker(1)
    attention = maker.attention(WIDTH, 4, 2, kind)
    x = maker.normal(3, TOKENS, WIDTH) + 2
    attention = with_delta(attention, x[1].numpy(), largest)
    found = near(Centered().enter(x), attention)
    for n, tokens in enumerate(x.numpy()):
        expected = Explicit.of(tokens, attention)
        if kind in ("content", "grouped"):  # E and q are those of P itself
            p = softmax(np.log(expected.weights)[:, None] + expected.scores)
            np.testing.assert_allclose(p, expected.attention, rtol=1e-9, atol=1e-14)
        delta = expected.delta
        for name, value in {
            "log_delta": np.log(delta),
            "log_largest_delta": np.log(delta.max(1)),
            "log_gamma": np.log(np.sqrt(delta.sum(1) / delta.max(1))),
            "log_t": np.log(2 * np.tanh(delta / 4)),
            "log_kappa": np.log(np.expm1(delta.max(1)) / delta.max(1)),
            "largest_weight": expected.weights.max(1),
            "log_dobrushin": np.log(expected.dobrushin),
            "log_spectral": np.log(expected.spectral),
            "centered": expected.centered,
        }.items():
            got = getattr(found, name)[n].numpy()
            np.testing.assert_allclose(got, value, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("exponent", [-100, -665])  # 1e-30, 1e-200
@pytest.mark.parametrize("kind", ["content", "grouped", "causal"])
def test_residuals_far_below_rounding(kind: str, exponent: int) -> None:
    maker = Maker(2)
    attention = maker.attention(WIDTH, 2, 3, kind)
    x = state(
        maker.normal(1, WIDTH), maker.normal(1, TOKENS, WIDTH), torch.tensor([exponent]).double()
    )
    found = near(x, attention)
    with mp.workdps(3 * round(0.31 * -exponent) + 30):
        for head, expected in enumerate(in_many_digits(x, attention)):
            for name, value in expected.items():
                got = getattr(found, name)[0, head].numpy()
                np.testing.assert_allclose(got, value, rtol=1e-13, atol=1e-11, err_msg=name)
    second_order = 2 * exponent * math.log(2) + 5
    assert (found.log_largest_delta < second_order).all()
    assert (found.log_dobrushin < second_order).all() == (kind != "causal")


def in_many_digits(x: CenteredState, attention: Attention) -> list[dict[str, Any]]:
    """The same by definition, from scores, softmax and differences in mpmath."""
    tokens = x.residual.shape[1]
    scale = mp.mpf(2) ** int(x.exponent[0])
    shared, rows = exact(x.shared[0]), exact(x.residual[0])
    means = [mp.fsum(column) / tokens for column in zip(*rows, strict=True)]
    r = mp.matrix([[scale * (v - m) for v, m in zip(row, means, strict=True)] for row in rows])
    m = mp.matrix([s + scale * mean for s, mean in zip(shared, means, strict=True)])
    query_key, _, biases = head_matrices(attention)
    found = []
    for w_qk, bias in zip(query_key, biases, strict=True):
        w, factor = mp.matrix(w_qk.tolist()), mp.mpf(attention.scale)
        e = factor * (r * w * r.T)
        logits = factor * (r * (w.T * m + mp.matrix(bias.tolist())))
        q = rows_of(logits.T)
        p = mp.zeros(tokens)
        for i in range(tokens):
            count = i + 1 if attention.causal else tokens
            p[i, :count] = rows_of((logits.T + e[i, :])[:, :count])
        delta = [max(e[i, :]) - min(e[i, :]) for i in range(tokens)]
        apart = max(
            mp.fsum(abs(v) for v in p[i, :] - p[k, :]) / 2
            for i in range(tokens)
            for k in range(tokens)
        )
        pi = mp.eye(tokens) - mp.ones(tokens) / tokens
        centered = pi * p * pi
        unit = max(abs(v) for v in centered)
        scaled = np.array((centered / unit).tolist(), dtype=float)
        found.append(
            {
                "log_delta": np.array([float(mp.log(v)) for v in delta]),
                "log_gamma": float(mp.log(mp.fsum(delta) / max(delta)) / 2),
                "log_t": np.array([float(mp.log(2 * mp.tanh(v / 4))) for v in delta]),
                "largest_weight": float(max(q)),
                "log_dobrushin": float(mp.log(apart)),
                "log_spectral": float(mp.log(unit)) + math.log(np.linalg.norm(scaled, 2)),
            }
        )
    return found


def rows_of(scores: Any) -> Any:
    powers = [mp.exp(v) for v in scores]
    return mp.matrix([[v / mp.fsum(powers) for v in powers]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [1, 4])
def test_equal_tokens_leave_nothing_and_no_nan(kind: str, tokens: int) -> None:
    attention = Maker(3).attention(WIDTH, 2, 2, kind)
    x = torch.full((1, tokens, WIDTH), 0.7, dtype=torch.float64)
    found = near(Centered().enter(x), attention)
    for log in (found.log_delta, found.log_largest_delta, found.log_t):
        assert (log == -torch.inf).all()
    assert (found.log_gamma == 0).all() and (found.log_kappa == 0).all()
    torch.testing.assert_close(found.largest_weight, torch.full((1, 2), 1 / tokens).double())
    collapsed = kind in ("content", "grouped") or tokens == 1
    for log in (found.log_dobrushin, found.log_spectral):
        assert not log.isnan().any() and (log == -torch.inf).all() == collapsed


def test_one_sample_does_not_disturb_another() -> None:
    attention = Maker(4).attention(WIDTH, 2, 2)
    x = Maker(5).normal(1, TOKENS, WIDTH)
    alone = Centered().enter(x)
    beside = CenteredState(
        alone.shared.expand(2, -1),
        alone.residual.expand(2, -1, -1),
        alone.exponent + torch.tensor([0.0, -900.0], dtype=torch.float64),
    )
    first, both = near(alone, attention), near(beside, attention)
    for name in ("log_delta", "log_dobrushin", "log_spectral", "largest_weight", "log_kappa"):
        torch.testing.assert_close(getattr(both, name)[:1], getattr(first, name))


@pytest.mark.parametrize("shift", [0, -40])
def test_one_token_with_nearly_all_the_weight(shift: int) -> None:
    """1 − q_max is far below rounding, and so is τ, which then must come from the other tokens."""
    width = 3
    query = Linear(torch.eye(width).double(), torch.tensor([45.0 * 2.0**-shift, 0, 0]).double())
    key = Linear(torch.eye(width).double())
    attention = Attention(query, key, key, key, 1, 1, 1.0)
    x = state(
        torch.zeros(1, width).double(),
        torch.tensor([[[1.0, 0.3, -0.5], [-0.4, 0.8, 0.2], [-0.6, -1.1, 0.3]]]).double(),
        torch.tensor([float(shift)]).double(),
    )
    found = near(x, attention)
    with mp.workdps(120):
        (expected,) = in_many_digits(x, attention)
    assert expected["largest_weight"] == 1.0
    for name in ("log_dobrushin", "log_spectral"):
        assert float(getattr(found, name)) == pytest.approx(expected[name], rel=1e-12)


@pytest.mark.parametrize("log10", [-30, -8, -7.9, -7.8, -5, 0, 1, 2.5])
def test_functions_of_delta_across_their_switch(log10: float) -> None:
    """Both ln t and ln κ change their formula at δ = e^-18, and have to be exact there."""
    delta = mp.mpf(10) ** log10
    log = torch.tensor([[[float(mp.log(delta))]]], dtype=torch.float64)
    none = torch.zeros(1, 1, dtype=torch.float64)
    found = NearRankOne(log, none, none, none, none, none.view(1, 1, 1, 1))
    with mp.workdps(60):
        t = mp.log(2 * mp.tanh(delta / 4))
        kappa = mp.log(mp.expm1(delta) / delta)
    assert float(found.log_t) == pytest.approx(float(t), abs=1e-13)
    assert float(found.log_kappa) == pytest.approx(float(kappa), rel=1e-13, abs=1e-14)


def test_the_largest_delta_is_the_root_of_the_lemma() -> None:
    with mp.workdps(30):
        root = mp.findroot(lambda x: mp.exp(x) - 1 - 2 * x, 1.25)
        assert abs(LARGEST_DELTA - root) < 1e-15


def rows(delta: float, share: float, tokens: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Weights q and a row of P for E = (δ, 0, …, 0), token 1 having the given share of q."""
    q = np.array([share, *[(1 - share) / (tokens - 1)] * (tokens - 1)])
    e = np.array([delta, *[0.0] * (tokens - 1)])
    return q, softmax(np.log(q) + e)


def test_lemma_a3_ends_where_it_says() -> None:
    for delta, holds in ((LARGEST_DELTA * 0.999, True), (LARGEST_DELTA * 1.001, False)):
        q, p = rows(delta, 1e-9)
        assert (p <= (1 + 2 * delta) * q).all() == holds
        assert (p >= (1 - delta) * q).all()


@pytest.mark.parametrize("delta", [1e-3, 0.5, 4.0, 20.0])
def test_the_tanh_bound_is_attained_by_two_values(delta: float) -> None:
    share = 1 / (1 + math.exp(delta / 2))
    q, p = rows(delta, share, tokens=5)
    t = 2 * math.tanh(delta / 4)
    assert np.abs(p - q).sum() == pytest.approx(t, rel=1e-12)
    assert abs(p[0] - q[0]) == pytest.approx(t / 2, rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    tokens=st.integers(2, 32),
    delta=st.floats(1e-3, 20),
    spread=st.floats(0, 10),
    two=st.booleans(),
)
def test_the_tanh_inequality(
    seed: int, tokens: int, delta: float, spread: float, two: bool
) -> None:
    generator = np.random.default_rng(seed)
    e = generator.random(tokens)
    e = delta * (np.round(e) if two else (e - e.min()) / np.ptp(e))
    q = softmax(spread * generator.standard_normal(tokens))
    p = softmax(np.log(q) + e)
    t = 2 * math.tanh(np.ptp(e) / 4)
    assert np.abs(p - q).sum() <= t + 1e-14
    assert np.abs(p - q).max() <= t / 2 + 1e-14
