"""Bounds in depth against the paper's formulas in many digits, and against networks."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from rankcollapse.streams import Centered
from rankcollapse.theory import (
    HeadNorms,
    LogNorms,
    NearRankOne,
    cubic_bound,
    log_contraction,
    skip_bound,
)
from rankcollapse.transformer import Attention, Layout, Linear
from tests.theory.bounding import Maker

DEPTHS = [0, 1, 2, 3, 6, 12, 24, 100, 645, 646]
# √c ρ below 1, above 1, equal to 1.
CONSTANTS = [(0.3, 0.7), (17.5, 1e-3), (2e-9, 4.0), (1e12, 1.3), (0.5, 236.0), (4.0, 0.5)]


def paper_cubic(c: float, rho: float, layers: int) -> float:
    """Ln of c^((3^L − 1)/2) ρ^(3^L), exponents as integers."""
    with mp.workdps(700):
        power = 3**layers
        return float((power - 1) // 2 * mp.log(mp.mpf(c)) + power * mp.log(mp.mpf(rho)))


def paper_skip(c: float, rho: float, layers: int) -> float:
    """Ln of the largest over l of (2c)^((3^l − 1)/2) 2^(3^l (L − l)) ρ^(3^l)."""
    with mp.workdps(700):
        return float(
            max(
                (3**k - 1) // 2 * mp.log(2 * mp.mpf(c))
                + 3**k * (layers - k) * mp.log(2)
                + 3**k * mp.log(mp.mpf(rho))
                for k in range(layers + 1)
            )
        )


@pytest.mark.parametrize("layers", DEPTHS)
@pytest.mark.parametrize(("c", "rho"), CONSTANTS)
def test_bounds_are_the_papers_formulas(c: float, rho: float, layers: int) -> None:
    for ours, paper in ((cubic_bound, paper_cubic), (skip_bound, paper_skip)):
        got = ours(np.log([c, c]), np.log([rho, rho]), layers)
        expected = paper(c, rho, layers)
        assert got.shape == (2,) and got[0] == got[1]
        if (c, rho) == (4.0, 0.5) and ours is cubic_bound:  # √c ρ = 1: what is left is 1/√c
            assert got[0] == pytest.approx(-math.log(2), rel=1e-15)
        else:
            assert got[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert np.isfinite(got).all() or layers > 640


def test_a_hundred_layers_are_finite_and_seven_hundred_are_infinite() -> None:
    log_c, log_rho = np.log([0.3, 17.0, 0.3]), np.log([0.7, 1.5, 236.0])
    sign = np.sign(log_contraction(log_c, log_rho))
    for bound in (cubic_bound, skip_bound):
        assert np.isfinite(bound(log_c, log_rho, 100)).all()
    for layers in (647, 700, 10_000):
        np.testing.assert_array_equal(cubic_bound(log_c, log_rho, layers), sign * np.inf)
    np.testing.assert_array_equal(skip_bound(log_c, log_rho, 700), np.inf)


def test_it_tends_to_zero_exactly_where_the_contraction_is_below_one() -> None:
    generator = np.random.default_rng(0)
    log_c, log_rho = generator.normal(0, 5, 500), generator.normal(0, 5, 500)
    contracts = np.exp(log_c / 2) * np.exp(log_rho) < 1
    assert 100 < contracts.sum() < 400
    np.testing.assert_array_equal(log_contraction(log_c, log_rho) < 0, contracts)
    # For Theorem 2.3 the first layers may still grow, the limit decides.
    deep, deeper = (cubic_bound(log_c, log_rho, layers) for layers in (30, 31))
    np.testing.assert_array_equal((deeper < deep) & (deep < -1e3), contracts)


def test_the_papers_condition_is_neither_necessary_nor_sufficient() -> None:
    """4γβH/√d_qk < 1 says nothing of a large residual, nor does its opposite of a small one."""
    small_c, large_c = np.log([0.9]), np.log([9.0])
    assert cubic_bound(small_c, np.log([2.0]), 8)[0] > 1e3
    assert cubic_bound(large_c, np.log([0.1]), 8)[0] < -1e3


def test_nothing_in_and_constants_of_zero_or_without_a_limit() -> None:
    inf = math.inf
    log_c = np.array([-inf, -inf, inf, inf, 0.0])
    log_rho = np.array([1.0, -inf, 1.0, -inf, -inf])
    expected = [-inf, -inf, inf, -inf, -inf]
    for layers in (1, 2, 100, 700):
        np.testing.assert_array_equal(cubic_bound(log_c, log_rho, layers), expected)
    np.testing.assert_array_equal(cubic_bound(log_c, log_rho, 0), log_rho)
    # With skips and no attention each layer may still double the bound.
    doubled = [1 + 2 * math.log(2), -inf, inf, -inf, -inf]
    np.testing.assert_allclose(skip_bound(log_c, log_rho, 2), doubled, rtol=1e-15)


def test_one_step_after_another() -> None:
    """The formulas are the recursions ρ' = cρ³ and ρ' = 2 max(ρ, cρ³), doublings first."""
    c, rho = 0.6, 1.1
    value, largest = rho, {0: rho}
    for layers in range(1, 5):
        value = c * value**3
        got = cubic_bound(np.log([c]), np.log([rho]), layers)[0]
        assert got == pytest.approx(math.log(value), rel=1e-12)
        largest[layers] = 2 * max(largest[layers - 1], c * largest[layers - 1] ** 3)
        bound = skip_bound(np.log([c]), np.log([rho]), layers)[0]
        assert bound >= math.log(largest[layers]) - 1e-12


def chain(heads: int, layers: int, seed: int) -> list[Attention]:
    maker = Maker(seed)
    return [maker.attention(6, heads, 4, scale=0.05) for _ in range(layers)]


@pytest.mark.parametrize("gain", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("heads", [1, 3])
def test_a_network_of_pure_attention_stays_within_the_theorem(
    heads: int, skip: bool, gain: float
) -> None:
    layers = 6
    attentions = chain(heads, layers, seed=heads)
    layout = Layout.contiguous(5)
    x = Centered().enter(Maker(7).normal(1, 5, 6, scale=gain))
    start = LogNorms.of(x).composite[0].numpy()
    log_c, inside = np.full(1, -np.inf), []
    for layer, attention in enumerate(attentions, 1):
        near, heads_of = NearRankOne.of(x, attention, layout), HeadNorms.of(attention)
        beta = float((heads_of.query_key * heads_of.composite).max().log())
        gamma = float(near.log_gamma.max())
        log_c = np.maximum(log_c, math.log(4 * heads) + beta + gamma)
        y = Centered().attend(x, attention, layout)
        x = Centered().add(x, y) if skip else y
        bound = (skip_bound if skip else cubic_bound)(log_c, start, layer)
        measured = LogNorms.of(x).composite[0].numpy()
        inside.append(bool((measured <= bound + 1e-9).all()))
        assert np.isfinite(bound).all() and np.isfinite(measured).all()
    assert all(inside)


def test_the_papers_constant_depends_on_scale_and_the_contraction_does_not() -> None:
    """X/s with s² W_QK has the same P, but s² times the 4γβH/√d_qk; √c ρ is the same."""
    maker = Maker(1)
    attention, x = maker.attention(5, 2, 3), maker.normal(1, 4, 5)
    values = []
    for s in (1.0, 8.0):
        query = Linear(attention.query.weight)
        scaled = replace(attention, scale=attention.scale * s**2, query=query)
        state = Centered().enter(x / s)
        heads = HeadNorms.of(scaled)
        near = NearRankOne.of(state, scaled, Layout.contiguous(4))
        c = 8 * near.log_gamma.max().exp() * (heads.query_key * heads.composite).max()
        rho = LogNorms.of(state).composite[0]
        values.append((float(c), float(log_contraction(c.log().view(1).numpy(), rho.numpy())[0])))
    assert values[1][0] == pytest.approx(64 * values[0][0], rel=1e-12)
    assert values[1][1] == pytest.approx(values[0][1], rel=1e-12)
