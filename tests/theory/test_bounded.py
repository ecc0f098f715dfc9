"""Blocks of every kind: what was measured lies between the bounds, whatever is switched off."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcollapse.streams import Centered
from rankcollapse.theory import BOUNDS, Bounded, BoundedState, LogNorms
from rankcollapse.theory.bounded import log_difference
from rankcollapse.transformer import PARTS, Block, Layout, Linear, Variant, apply_block, sweep
from tests.theory.bounding import KINDS, POSITIONAL, Maker

BLOCK_PARTS = [part for part in PARTS if part != "final_norm"]
SUBSETS = [
    frozenset(part for part, off in zip(BLOCK_PARTS, bits, strict=True) if off)
    for bits in product([False, True], repeat=len(BLOCK_PARTS))
]
ROUNDING = 1e-9


def block(
    maker: Maker,
    kind: str = "content",
    placement: str = "post",
    norm: str | None = "layer",
    activation: str = "gelu",
    gain: float = 1.0,
    gated: bool = False,
) -> Block:
    attention = maker.attention(4, 2, 3, kind)
    value = replace(attention.value, weight=gain * attention.value.weight)
    norms = [maker.norm(4, norm) if norm else None for _ in range(2)]
    mlp = maker.mlp(4, 6, activation, gated)
    return Block(replace(attention, value=value), mlp, *norms, placement)  # type: ignore[arg-type]


def through(
    x: torch.Tensor, of: Block, variant: Variant, shift: float = 0.0
) -> tuple[BoundedState, LogNorms]:
    """The bounds at the block's output, and what is measured there.

    The residuals of all samples but the first enter 2^`shift` as large as they are in `x`.
    """
    layout, bounded = Layout.contiguous(x.shape[1]), Bounded.of(of, variant)
    entered = Centered().enter(x)
    exponent = entered.exponent + shift
    exponent[0] -= shift
    entered = replace(entered, exponent=exponent)
    y = apply_block(BoundedState.known(entered), of, layout, variant, bounded)
    return y, LogNorms.of(y.real)


def check(y: BoundedState, truth: LogNorms, kind: str) -> None:
    assert (truth.frobenius <= y.upper.frobenius + ROUNDING).all()
    assert not (y.lower > truth.frobenius + ROUNDING).any()
    for b, name in enumerate(BOUNDS):
        if name == "lemma_a2" or (kind in POSITIONAL and name != "dobrushin"):
            continue
        assert (truth.column[b] <= y.upper.column[b] + ROUNDING).all(), name
        assert (truth.row[b] <= y.upper.row[b] + ROUNDING).all(), name


@pytest.mark.parametrize("norm", ["layer", "rms", None])
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_measured_lies_between_the_bounds(placement: str, norm: str | None) -> None:
    """Every subset of the parts that can be off, one after the other kind of attention."""
    said = 0
    for n, off in enumerate(SUBSETS):
        maker, kind = Maker(n), KINDS[n % len(KINDS)]
        activation = ("gelu", "relu", "tanh", "silu")[n % 4]
        of = block(maker, kind, placement, norm, activation, gain=(0.1, 1.0)[n % 2])
        variant = Variant("some parts", off)
        y, truth = through(maker.normal(2, 5, 4), of, variant, shift=-300.0)
        check(y, truth, kind)
        skip, mlp = "attention_skip" in variant, "mlp" in variant
        stated = skip and (norm is None or placement == "pre" or "attention_norm" in off)
        stated &= not mlp or "mlp_skip" in variant
        stated &= norm is None or placement == "pre" or "mlp_norm" in off or not mlp
        assert (y.lower.isnan() != stated).all()
        said += int((y.lower > -torch.inf).sum())
        adds = skip or (mlp and "mlp_skip" in variant)
        assert (y.upper.column[BOUNDS.index("lemma_a2")].isnan() == adds).all()
        others = y.upper.column[1:], y.upper.row[1:], y.upper.frobenius
        assert not any(part.isnan().any() for part in others)
    assert said >= 10


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("variant", ["transformer", "san", "san+mlp", "san-mlp_projections"])
def test_the_state_is_that_of_centered_arithmetic(variant: str, placement: str) -> None:
    of, chosen = block(Maker(0), placement=placement), Variant.parse(variant)
    layout, bounded = Layout.contiguous(5), Bounded.of(of, chosen)
    x = Maker(1).normal(2, 5, 4)
    y = apply_block(bounded.enter(x), of, layout, chosen, bounded)
    plain = apply_block(Centered().enter(x), of, layout, chosen, Centered())
    for name in ("shared", "residual", "exponent"):
        assert torch.equal(getattr(y.real, name), getattr(plain, name))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    placement=st.sampled_from(["post", "pre"]),
    norm=st.sampled_from(["layer", "rms", None]),
    off=st.sampled_from(SUBSETS),
    activation=st.sampled_from(["gelu", "relu", "tanh", "quick_gelu", "gelu_new"]),
    gain=st.sampled_from([0.03, 0.3, 3.0]),
    shift=st.sampled_from([0.0, -3.0, -40.0, -2000.0]),
    tokens=st.integers(2, 8),
)
def test_measured_lies_between_the_bounds_of_any_block(
    seed: int,
    kind: str,
    placement: str,
    norm: str | None,
    off: frozenset[str],
    activation: str,
    gain: float,
    shift: float,
    tokens: int,
) -> None:
    maker = Maker(seed)
    of = block(maker, kind, placement, norm, activation, gain)
    y, truth = through(maker.normal(2, tokens, 4), of, Variant("some parts", off), shift)
    check(y, truth, kind)


def test_lemma_a2_goes_through_norms_and_mlps_as_a_composite_norm() -> None:
    for seed in range(20):
        maker = Maker(seed)
        of = block(maker, activation="relu")
        y, truth = through(maker.normal(3, 5, 4), of, Variant.parse("san+mlp"), shift=-2.0)
        sound, paper = (y.upper.composite[BOUNDS.index(name)] for name in ("two_norms", "lemma_a2"))
        where = sound <= paper
        assert (truth.composite[0] <= paper + ROUNDING)[where].all()
        assert not paper.isnan().any()


@pytest.mark.parametrize("shift", [0.0, -500.0])
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_zero_keep_the_residual(kind: str, shift: float) -> None:
    """Claim 3.1: with W_V = 0 and a skip the lower bound, the upper one and the residual agree."""
    of = block(Maker(1), kind, norm=None, gain=0.0)
    x = Maker(2).normal(2, 5, 4)
    y, truth = through(x, of, Variant.parse("san+skip"), shift)
    before = LogNorms.of(Centered().enter(x))
    expected = before.frobenius + math.log(2) * torch.tensor([0.0, shift], dtype=torch.float64)
    torch.testing.assert_close(truth.frobenius, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(y.lower, truth.frobenius, rtol=0, atol=1e-12)
    torch.testing.assert_close(y.upper.frobenius, truth.frobenius, rtol=0, atol=1e-12)
    for norm in ("column", "row"):
        got, real = getattr(y.upper, norm)[1:], getattr(truth, norm)[1:]
        torch.testing.assert_close(got, real, rtol=0, atol=1e-12)


def test_each_operation_is_its_formula() -> None:
    """For a = x + A(x), y = a + M(a): norms add, constants multiply, the mean costs once."""
    of = block(Maker(3), norm=None, activation="tanh", gain=0.01)
    assert of.mlp is not None
    of = replace(of, mlp=replace(of.mlp, down=Linear(0.01 * of.mlp.down.weight)))
    variant = Variant.parse("transformer")
    bounded, layout = Bounded.of(of, variant), Layout.contiguous(4)
    x = bounded.enter(Maker(4).normal(2, 4, 4))
    attended = bounded.attend(x, of.attention, layout)
    mlp = bounded.lipschitz
    assert mlp is not None and of.mlp is not None
    y = apply_block(x, of, layout, variant, bounded)
    cost = 2 * (1 - 1 / 4)
    for norm, factor in (("column", mlp.column), ("row", mlp.row)):
        a = getattr(x.upper, norm)[1:].exp() + getattr(attended.upper, norm)[1:].exp()
        torch.testing.assert_close(getattr(y.upper, norm)[1:].exp(), a * (1 + cost * factor))
    r, s = x.upper.frobenius.exp(), attended.upper.frobenius.exp()
    torch.testing.assert_close(y.upper.frobenius.exp(), (r + s) * (1 + mlp.spectral))
    torch.testing.assert_close(y.lower.exp(), r - s - mlp.spectral * (r + s))
    assert y.near is not None and y.attended is not None
    torch.testing.assert_close(y.attended.column, attended.upper.column)


def test_one_without_projections_uses_the_activation_alone() -> None:
    of = block(Maker(5), norm=None, activation="gelu")
    variant = Variant("activation", frozenset({"attention_skip", "mlp_skip", "mlp_projections"}))
    y, truth = through(Maker(6).normal(1, 2, 4), of, variant)
    check(y, truth, "content")
    before, _ = through(Maker(6).normal(1, 2, 4), of, Variant.parse("san"))
    # For two tokens the mean costs nothing.
    gain = torch.full_like(y.upper.column, math.log(1.128904145185155))
    torch.testing.assert_close(y.upper.column - before.upper.column, gain)


@pytest.mark.parametrize("tokens", [1, 4])
@pytest.mark.parametrize(("activation", "gated"), [("silu", True), ("relu2", False)])
def test_maps_without_a_constant_bound_nothing_but_equal_tokens(
    activation: str, gated: bool, tokens: int
) -> None:
    of = block(Maker(7), activation=activation, gated=gated)
    x = Maker(8).normal(2, tokens, 4)
    x[1] = x[1, 0]
    y, _ = through(x, of, Variant.parse("san+mlp"))
    expected = [math.inf if tokens > 1 else -math.inf, -math.inf]
    for log in (*y.upper.column, *y.upper.row, y.upper.frobenius):
        assert log.tolist() == expected


@pytest.mark.parametrize("variant", ["san", "san+mlp", "san+skip", "transformer"])
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_equal_tokens_stay_equal(placement: str, variant: str) -> None:
    of = block(Maker(9), placement=placement)
    y, truth = through(Maker(10).normal(1, 1, 4).expand(1, 3, 4), of, Variant.parse(variant))
    assert (truth.composite == -torch.inf).all()
    for log in (y.upper.column[1:], y.upper.row[1:], y.upper.frobenius):
        assert (log == -torch.inf).all()
    assert not (y.lower > -torch.inf).any()


def test_a_sweep_over_layers_uses_it_as_any_other_arithmetic() -> None:
    of = block(Maker(11), norm=None, gain=0.2)
    x, layout = Maker(12).normal(2, 4, 4), Layout.contiguous(4)
    variant = Variant.parse("san+skip")
    visits = list(sweep([x], [layout], [of, of], None, [variant], Bounded.of(of, variant)))
    for visit in visits:
        truth = LogNorms.of(visit.state.real)
        check(visit.state, truth, "content")
        plain = Bounded.of(of, variant).plain(visit.state)
        torch.testing.assert_close(plain, Centered().plain(visit.state.real))


def test_differences_of_logarithms() -> None:
    inf, nan = math.inf, math.nan
    a = torch.tensor([0.0, 0.0, 1.0, -inf, -inf, nan, 0.0, -800.0], dtype=torch.float64)
    b = torch.tensor([-1.0, 0.0, 2.0, -inf, 3.0, 0.0, -inf, -801.0], dtype=torch.float64)
    got = log_difference(a, b)
    expected = math.log(1 - math.exp(-1))
    torch.testing.assert_close(
        got,
        torch.tensor([expected, -inf, -inf, -inf, -inf, nan, 0.0, -800 + expected]).double(),
        equal_nan=True,
        rtol=1e-6,
        atol=0,
    )
    assert float(got[0]) == pytest.approx(expected, rel=1e-15)
