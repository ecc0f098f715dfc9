"""Entropy and |λ₂| of attention matrices against NumPy and SciPy."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankcollapse.metrics import attention_entropy, second_eigenvalue
from tests.metrics.reference import normal


def attention(batch: int, heads: int, tokens: int, causal: bool = False, spread: float = 2.0):
    scores = spread * normal(batch, heads, tokens, tokens)
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    return scores.softmax(-1)


def moduli(p: torch.Tensor) -> np.ndarray:
    return np.sort(np.abs(scipy.linalg.eigvals(p.double().numpy())))[::-1]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [2, 3, 8, 17])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_against_scipy(causal, tokens, dtype):
    p = attention(2, 3, tokens, causal).to(dtype)
    entropy, second = attention_entropy(p), second_eigenvalue(p)
    assert entropy.dtype == second.dtype == torch.float64
    assert entropy.shape == second.shape == (2, 3)
    for sample in range(2):
        for head in range(3):
            one = p[sample, head]
            # scipy normalises its rows, which in float32 sum to one up to 1e-7 only.
            row_sums = one.double().sum(-1).numpy()
            expected = scipy.stats.entropy(one.double().numpy(), axis=-1)
            expected = expected * row_sums - row_sums * np.log(row_sums)
            assert float(entropy[sample, head]) == pytest.approx(expected.mean(), rel=1e-12)
            assert float(second[sample, head]) == pytest.approx(moduli(one)[1], rel=1e-8)


def test_known_matrices():
    n = 6
    eye = torch.eye(n, dtype=torch.float64)
    uniform = torch.full((n, n), 1 / n, dtype=torch.float64)
    cycle = eye.roll(1, 0)  # eigenvalues are the roots of unity, all of modulus 1
    p = torch.stack([eye, uniform, cycle, (cycle + uniform) / 2])[None]
    entropy, second = attention_entropy(p)[0], second_eigenvalue(p)[0]
    assert entropy[:3].tolist() == pytest.approx([0, math.log(n), 0], abs=1e-12)
    assert second.tolist() == pytest.approx([1, 0, 1, 0.5], abs=1e-12)


def test_causal_and_full_heads_in_one_batch():
    p = torch.cat([attention(1, 1, 5, causal=True), attention(1, 1, 5)], dim=1)
    second = second_eigenvalue(p)[0]
    for head in range(2):
        assert float(second[head]) == pytest.approx(moduli(p[0, head])[1], rel=1e-8)


def test_causal_matrix_whose_largest_is_not_first():
    p = torch.tensor([[[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.1, 0.7]]]], dtype=torch.float64)
    assert float(second_eigenvalue(p)) == pytest.approx(0.7, rel=1e-14)


def test_differences_between_tokens_shrink_by_it():
    p = attention(1, 1, 6, spread=1.0)
    x, growth = normal(6, 2), []
    for _ in range(400):
        x = p[0, 0] @ x
        x = x - x.mean(0)
        growth.append(math.log(float(x.norm())))
        x = x / x.norm()
    rate = math.exp(sum(growth[100:]) / 300)
    assert rate == pytest.approx(float(second_eigenvalue(p)), rel=0.02)


def test_matrices_that_are_not_finite_have_no_numbers():
    p = torch.full((1, 2, 3, 3), math.nan)
    assert torch.isnan(attention_entropy(p)).all()
    assert torch.isnan(second_eigenvalue(p)).all()


@given(st.integers(2, 9), st.booleans(), st.floats(0, 30))
def test_bounds(tokens, causal, spread):
    p = attention(1, 2, tokens, causal, spread)
    assert (attention_entropy(p) >= 0).all()
    assert (attention_entropy(p) <= math.log(tokens) + 1e-12).all()
    assert (second_eigenvalue(p) >= 0).all()
    assert (second_eigenvalue(p) <= 1 + 1e-6).all()
