"""Every bound against its formula in plain numpy, and no measured residual above any of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcollapse.metrics import composite_norm
from rankcollapse.streams import Centered, Dense
from rankcollapse.theory import (
    BOUNDS,
    LARGEST_DELTA,
    HeadNorms,
    LogNorms,
    NearRankOne,
    attention_bounds,
    recentering,
)
from rankcollapse.transformer import Attention, Layout, Linear
from tests.theory.bounding import (
    KINDS,
    POSITIONAL,
    Array,
    Explicit,
    Maker,
    about_mean,
    norms,
    with_delta,
)

UNCONDITIONAL = [bound for bound in BOUNDS if bound != "lemma_a2"]
ROUNDING = 1e-9


def bounds_of(x: torch.Tensor, attention: Attention) -> LogNorms:
    entered = Centered().enter(x)
    near = NearRankOne.of(entered, attention, Layout.contiguous(x.shape[1]))
    return attention_bounds(entered, near, HeadNorms.of(attention))


def measured(x: torch.Tensor, attention: Attention) -> LogNorms:
    layout = Layout.contiguous(x.shape[1])
    return LogNorms.of(Centered().attend(Centered().enter(x), attention, layout))


def formulas(of: Explicit) -> tuple[dict[str, tuple[float, float]], float]:
    """(bound on ‖·‖₁, bound on ‖·‖∞) by name about the mean, and the one on ‖·‖_F."""
    n, heads = len(of.residual), len(of.values)
    column, row, frobenius = norms(of.residual)
    cost = 2 * (1 - 1 / n)
    gamma = np.sqrt(of.delta.sum(1) / of.delta.max(1))
    betas = [
        abs(of.scale) * norms(w)[0] * math.sqrt(norms(v)[0] * norms(v)[1])
        for w, v in zip(of.query_key, of.values, strict=True)
    ]
    lemma = 4 * gamma.max() * heads * max(betas) * math.sqrt(column * row) ** 3
    found = dict.fromkeys(BOUNDS, (0.0, 0.0)) | {"lemma_a2": (cost * lemma, cost * lemma)}
    spectral = 0.0
    for h in range(heads):
        w = of.values[h]
        w_column, w_row, _ = norms(w)
        s = abs(of.scale) * norms(of.query_key[h])[0] * column * row
        delta = of.delta[h].max()
        kappa = (math.exp(delta) - 1) / delta
        t = 2 * np.tanh(of.delta[h] / 4)
        y = of.residual @ w
        ranges = [max(feature) - min(feature) for feature in y.T]
        tau = of.dobrushin[h]
        terms = {
            "two_norms": (4 * gamma[h] ** 2 * s * column * w_column, 4 * s * row * w_row),
            "gamma_free": (
                2 * of.weights[h].max() * kappa * s * column * w_column,
                s * row * w_row,
            ),
            "tanh": (t.sum() / 2 * column * w_column, t.max() * row * w_row),
            "values": (t.sum() / 2 * norms(y)[0], t.max() * norms(y)[1]),
            "dobrushin": (
                n / 2 * tau * max(ranges) / cost,
                (1 - 1 / n) * tau * min(sum(ranges), 2 * norms(y)[1]) / cost,
            ),
        }
        for name, (a, b) in terms.items():
            found[name] = (found[name][0] + cost * a, found[name][1] + cost * b)
        spectral += of.spectral[h] * np.linalg.norm(w, 2)
    return found, spectral * frobenius


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tokens", "heads", "largest"), [(2, 1, 0.3), (5, 4, 8.0), (7, 2, 1.5)])
def test_bounds_are_their_formulas(kind: str, tokens: int, heads: int, largest: float) -> None:
    maker = Maker(tokens)
    x = maker.normal(2, tokens, 4) - 1
    attention = with_delta(maker.attention(4, heads, 3, kind, -0.4), x[0].numpy(), largest)
    found = bounds_of(x, attention)
    for n, each in enumerate(x.numpy()):
        expected, frobenius = formulas(Explicit.of(each, attention))
        for b, name in enumerate(BOUNDS):
            got = np.exp([float(found.column[b, n]), float(found.row[b, n])])
            np.testing.assert_allclose(got, expected[name], rtol=1e-11, err_msg=name)
            composite = math.sqrt(expected[name][0] * expected[name][1])
            assert float(found.composite[b, n].exp()) == pytest.approx(composite, rel=1e-11)
        assert float(found.frobenius[n].exp()) == pytest.approx(frobenius, rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_measured_residual_is_that_of_attention(kind: str) -> None:
    maker = Maker(9)
    x, attention = maker.normal(2, 6, 4), maker.attention(4, 2, 2, kind)
    y = Dense(torch.float64).attend(x, attention, Layout.contiguous(6))
    found = measured(x, attention)
    for n, each in enumerate(y.numpy()):
        expected = np.log(norms(about_mean(each)))
        for b in range(len(BOUNDS)):
            got = [float(v) for v in (found.column[b, n], found.row[b, n], found.frobenius[n])]
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    tokens=st.integers(1, 32),
    width=st.integers(1, 32),
    heads=st.integers(1, 32),
    size=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    log_delta=st.floats(-6, 3),
    outlier=st.sampled_from([1.0, 30.0]),
)
def test_nothing_measured_exceeds_a_bound(
    seed: int,
    tokens: int,
    width: int,
    heads: int,
    size: int,
    kind: str,
    log_delta: float,
    outlier: float,
) -> None:
    maker = Maker(seed)
    x = maker.normal(1, tokens, width)
    x[:, 0] *= outlier
    attention = maker.attention(width, heads, size, kind)
    attention = with_delta(attention, x[0].numpy(), min(math.exp(log_delta), 20.0))
    bounds, truth = bounds_of(x, attention), measured(x, attention)
    assert not torch.stack([bounds.column, bounds.row]).isnan().any()
    assert (truth.frobenius <= bounds.frobenius + ROUNDING).all()
    # Masks and positions leave the two that ask nothing of P.
    for b, name in enumerate(BOUNDS):
        if name != "lemma_a2" and (kind not in POSITIONAL or name == "dobrushin"):
            assert (truth.column[b] <= bounds.column[b] + ROUNDING).all(), name
            assert (truth.row[b] <= bounds.row[b] + ROUNDING).all(), name
    paper, sound = BOUNDS.index("lemma_a2"), BOUNDS.index("two_norms")
    if kind in POSITIONAL:
        return
    if heads == 1 or bool((bounds.composite[sound] <= bounds.composite[paper]).all()):
        assert (truth.composite[paper] <= bounds.composite[paper] + ROUNDING).all()


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    tokens=st.integers(2, 12),
    heads=st.integers(1, 4),
    sharpness=st.floats(0, 12),
)
def test_two_bounds_ask_nothing_of_the_attention_matrix(
    seed: int, tokens: int, heads: int, sharpness: float
) -> None:
    maker = Maker(seed)
    attention = maker.attention(5, heads, 3)
    x = Centered().enter(maker.normal(1, tokens, 5))
    p = (sharpness * maker.normal(1, heads, tokens, tokens)).softmax(-1)
    near = given_matrices(p)
    bounds = attention_bounds(x, near, HeadNorms.of(attention))
    y = sum(
        each @ x.values[0] @ w
        for each, w in zip(p[0], HeadNorms.of(attention).value_output, strict=True)
    )
    assert isinstance(y, torch.Tensor)
    found = norms(about_mean(y.numpy()))
    limits = (bounds.column[-1], bounds.row[-1], bounds.frobenius)
    assert BOUNDS[-1] == "dobrushin"
    for value, limit in zip(found, limits, strict=True):
        assert value <= float(limit.exp()) * (1 + ROUNDING) + 1e-12


def given_matrices(p: torch.Tensor) -> NearRankOne:
    """τ and ‖ΠPΠ‖₂ of any row-stochastic matrices; the rest says nothing."""
    tokens = p.shape[-1]
    pi = torch.eye(tokens).double() - 1 / tokens
    centered = pi @ p @ pi
    tau = (p.unsqueeze(3) - p.unsqueeze(2)).abs().sum(-1).amax((2, 3)) / 2
    return NearRankOne(
        log_delta=torch.zeros(p.shape[:3], dtype=torch.float64),
        log_gamma=torch.zeros(p.shape[:2], dtype=torch.float64),
        largest_weight=torch.ones(p.shape[:2], dtype=torch.float64),
        log_dobrushin=tau.log(),
        log_spectral=torch.linalg.matrix_norm(centered, 2).log(),
        centered=centered,
    )


def test_dobrushins_bound_is_attained() -> None:
    """Two tokens that keep to themselves: P = I, τ = 1, and the residual passes unchanged."""
    maker = Maker(0)
    x = Centered().enter(maker.normal(1, 2, 3))
    identity = torch.eye(2, dtype=torch.float64).expand(1, 1, 2, 2)
    norms_of = replace(
        HeadNorms.of(maker.attention(3, 1, 3)),
        value=torch.eye(3, dtype=torch.float64).unsqueeze(0),
        output=torch.eye(3, dtype=torch.float64).unsqueeze(0),
        spectral=torch.ones(1, dtype=torch.float64),
    )
    bounds, before = attention_bounds(x, given_matrices(identity), norms_of), LogNorms.of(x)
    for got, expected in (
        (bounds.column[-1], before.column[-1]),
        (bounds.row[-1], before.row[-1]),
        (bounds.frobenius, before.frobenius),
    ):
        torch.testing.assert_close(got, expected)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), heads=st.integers(1, 8), delta=st.floats(1e-3, LARGEST_DELTA))
def test_order_of_the_bounds(seed: int, heads: int, delta: float) -> None:
    """One proof sharpens another: values ≤ tanh ≤ two norms, for one head the lemma itself."""
    maker = Maker(seed)
    x = maker.normal(1, 6, 5)
    attention = with_delta(maker.attention(5, heads, 3), x[0].numpy(), delta)
    found = bounds_of(x, attention)
    at = {name: b for b, name in enumerate(BOUNDS)}
    for norm in (found.column, found.row):
        assert (norm[at["values"]] <= norm[at["tanh"]] + 1e-12).all()
        assert (norm[at["tanh"]] <= norm[at["two_norms"]] - math.log(4) + 1e-12).all()
    if heads == 1:
        torch.testing.assert_close(
            found.composite[at["lemma_a2"]], found.composite[at["two_norms"]]
        )
        slack = found.composite[at["lemma_a2"]] - found.composite[at["tanh"]]
        assert (slack >= math.log(4 * math.sqrt(2)) - 1e-12).all()


@pytest.mark.parametrize("kind", ["content", "grouped"])
def test_bounds_are_cubic_far_below_rounding(kind: str) -> None:
    """A residual 2^-600 times as large has bounds 2^-1800 times as large, as the measured one."""
    maker = Maker(12)
    x = Centered().enter(maker.normal(1, 6, 4))
    attention = maker.attention(4, 4, 2, kind)
    layout, heads = Layout.contiguous(6), HeadNorms.of(attention)
    at = [replace(x, exponent=x.exponent - shift) for shift in (600.0, 1200.0)]
    found = [attention_bounds(y, NearRankOne.of(y, attention, layout), heads) for y in at]
    truth = [LogNorms.of(Centered().attend(y, attention, layout)) for y in at]
    for name in ("column", "row", "frobenius"):
        for pair in (found, truth):
            drop = getattr(pair[0], name) - getattr(pair[1], name)
            torch.testing.assert_close(
                drop, torch.full_like(drop, 1800 * math.log(2)), rtol=1e-12, atol=0
            )
        for y, b in zip(truth, found, strict=True):
            assert (getattr(y, name) <= getattr(b, name) + ROUNDING).all()


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_tokens_have_bounds_of_zero(kind: str, tokens: int) -> None:
    attention = Maker(1).attention(4, 2, 2, kind)
    found = bounds_of(torch.ones(1, tokens, 4, dtype=torch.float64), attention)
    for log in (found.column, found.row, found.frobenius):
        assert (log == -torch.inf).all()


def test_values_of_zero_have_bounds_of_zero() -> None:
    maker = Maker(2)
    attention = maker.attention(4, 2, 2)
    nothing = replace(attention.value, weight=torch.zeros_like(attention.value.weight))
    found = bounds_of(maker.normal(1, 5, 4), replace(attention, value=nothing))
    for log in (found.column, found.row, found.frobenius):
        assert (log == -torch.inf).all()


@pytest.mark.parametrize("tokens", [2, 3, 10, 1000])
def test_the_cost_of_the_mean(tokens: int) -> None:
    assert math.exp(recentering(tokens)) == pytest.approx(2 * (1 - 1 / tokens), rel=1e-15)
    single: Array = np.zeros((tokens, 1))
    single[0] = 1.0
    assert norms(about_mean(single))[0] == pytest.approx(2 * (1 - 1 / tokens), rel=1e-14)
    assert recentering(1) == -math.inf


def test_lemma_a2_does_not_follow_by_adding_composite_norms() -> None:
    """Two heads alike but for W: one has a full row, one a full column of ones."""
    wide, tall = (torch.zeros(1, 9, 9, dtype=torch.float64) for _ in range(2))
    wide[0, 0], tall[0, :, 0] = 1, 1
    assert composite_norm(wide + tall) > composite_norm(wide) + composite_norm(tall)
    maker = Maker(3)
    attention, eye = maker.attention(9, 2, 9), torch.eye(9, dtype=torch.float64)
    query, key = (Linear(part.weight[:9].repeat(2, 1)) for part in (attention.query, attention.key))
    value, output = Linear(torch.cat([wide[0].T, tall[0].T])), Linear(torch.cat([eye, eye], 1))
    attention = replace(attention, query=query, key=key, value=value, output=output)
    found = bounds_of(maker.normal(1, 4, 9), attention)
    at = {name: float(found.composite[b]) for b, name in enumerate(BOUNDS)}
    # ‖W_1‖₁ + ‖W_2‖₁ = 10, the same for rows, and 2 max ‖W_h‖₁,∞ = 6.
    assert at["two_norms"] - at["lemma_a2"] == pytest.approx(math.log(10 / 6), rel=1e-12)
