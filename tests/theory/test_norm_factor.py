"""What a norm does to the residual never exceeds its factor, in any of the three norms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcollapse.streams import Centered
from rankcollapse.streams.centered import state
from rankcollapse.theory import LogNorms, norm_factor, recentering
from rankcollapse.transformer import Norm
from tests.theory.bounding import Array, Maker, norms


def change(x: torch.Tensor, norm: Norm) -> tuple[Array, Array]:
    """‖N(X) − 1N(x̄)ᵀ‖ over ‖X − 1x̄ᵀ‖ in the three norms, and the factors."""
    entered = Centered().enter(x)
    mean = x.mean(1, keepdim=True)
    before, after = norms((x - mean)[0].numpy()), norms((norm(x) - norm(mean))[0].numpy())
    factors = np.array([float(factor) for factor in norm_factor(entered, norm)])
    return np.array(after) / np.array(before), factors


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["layer", "rms"]),
    plain=st.booleans(),
    tokens=st.integers(2, 12),
    width=st.integers(2, 12),
    log_eps=st.floats(-12, 0),
    spread=st.sampled_from([1e-3, 0.3, 1.0, 30.0]),
    case=st.sampled_from(["random", "tiny token", "opposite", "one feature", "huge weight"]),
)
def test_nothing_measured_exceeds_the_factor(
    seed: int,
    kind: str,
    plain: bool,
    tokens: int,
    width: int,
    log_eps: float,
    spread: float,
    case: str,
) -> None:
    maker = Maker(seed)
    norm = maker.norm(width, kind, 10**log_eps, plain)
    x = maker.normal(1, 1, width) + maker.normal(1, tokens, width, scale=spread)
    if case == "tiny token":  # which the norm enlarges most
        x[:, 0] *= 1e-4
    elif case == "opposite":  # tokens on both sides of zero
        x = x - x.mean(1, keepdim=True) * 0.99
    elif case == "one feature":
        x[:, :, 1:] *= 1e-3
    elif case == "huge weight" and norm.weight is not None:
        norm.weight[0] *= 1e4
    ratios, factors = change(x, norm)
    assert (ratios <= factors * (1 + 1e-9)).all()


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_factors_are_their_formulas(kind: str, plain: bool) -> None:
    maker = Maker(5)
    n, d, eps = 4, 3, 0.1
    norm, x = maker.norm(d, kind, eps, plain), maker.normal(1, n, d) + 1
    c = np.eye(d) - np.ones((d, d)) / d if kind == "layer" else np.eye(d)
    g = np.ones(d) if norm.weight is None else np.abs(norm.weight.numpy())
    tokens = x[0].numpy()
    m = tokens.mean(0) @ c
    sigma_m = math.sqrt(np.mean(m**2) + eps)
    sigmas = [math.sqrt(np.mean((row @ c) ** 2) + eps) for row in tokens]
    w = np.array([np.abs(m + t @ c) / (sigma_m + s) for t, s in zip(tokens, sigmas, strict=True)])
    unit = np.abs(m) / sigma_m
    expected = (
        norms(c)[0] / min(sigmas) * (max(g) + max(g * unit) * np.mean(w.max(0))),
        norms(c)[0] / min(sigmas) * (max(g) + np.mean(g * unit) * w.max()),
        (max(g) + math.sqrt(np.mean((g * unit) ** 2) * (w**2).mean(1).max())) / min(sigmas),
    )
    for got, value in zip(norm_factor(Centered().enter(x), norm), expected, strict=True):
        assert float(got) == pytest.approx(value, rel=1e-12)


def test_an_rms_norm_of_a_large_eps_attains_its_factor() -> None:
    """x/√eps is linear: about a mean of zero nothing is left but the weight over σ."""
    norm = Norm("rms", 1e6, torch.tensor([3.0, 1.0], dtype=torch.float64), None)
    x = torch.tensor([[[0.5, 0.0], [-0.5, 0.0]]], dtype=torch.float64)
    ratios, factors = change(x, norm)
    np.testing.assert_allclose(ratios, factors, rtol=1e-6)
    np.testing.assert_allclose(factors, 3e-3, rtol=1e-6)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_far_below_rounding(kind: str) -> None:
    maker = Maker(6)
    norm = maker.norm(5, kind)
    shared, residual = maker.normal(2, 5), maker.normal(2, 4, 5)
    x = state(shared, residual, torch.tensor([-1000.0, -1e6]).double())
    before, after = LogNorms.of(x), LogNorms.of(Centered().normalize(x, norm))
    column, row, frobenius = norm_factor(x, norm)
    cost = recentering(4)
    assert (after.column[0] <= before.column[0] + column.log() + cost).all()
    assert (after.row[0] <= before.row[0] + row.log() + cost).all()
    assert (after.frobenius <= before.frobenius + frobenius.log()).all()
    # The factors are those at the shared row alone.
    there = norm_factor(Centered().enter(shared.unsqueeze(1)), norm)
    for got, expected in zip((column, row, frobenius), there, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=0)
