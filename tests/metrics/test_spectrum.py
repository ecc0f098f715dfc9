"""Singular values against SciPy's, and the two ranks made of them."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankcollapse.metrics import TokenMatrix, effective_rank, singular_values, stable_rank
from tests.metrics.reference import effective, garbage, normal, stable


def svdvals(x: torch.Tensor) -> np.ndarray:
    return np.asarray(scipy.linalg.svdvals(x.numpy()))


def with_values(values: list[float], n: int, d: int, seed: int = 0) -> torch.Tensor:
    """A random n × d matrix with these singular values."""
    left = torch.linalg.qr(normal(n, len(values), seed=seed)).Q
    right = torch.linalg.qr(normal(d, len(values), seed=seed + 1)).Q
    return (left * torch.tensor(values, dtype=torch.float64)) @ right.mT


@pytest.mark.parametrize("shape", [(2, 1), (2, 7), (7, 2), (5, 5), (6, 30), (30, 6)])
def test_singular_values(shape):
    x = normal(3, *shape)
    values = singular_values(x)
    assert values.shape == (3, min(shape))
    for sample in range(3):
        np.testing.assert_allclose(values[sample], svdvals(x[sample]), rtol=1e-12)


@pytest.mark.parametrize("shape", [(6, 12), (12, 6), (6, 6)])
def test_small_singular_values_are_not_squared_away(shape):
    wanted = [1.0, 1e-3, 1e-6, 1e-9, 1e-12]
    values = singular_values(with_values(wanted, *shape)[None])[0]
    np.testing.assert_allclose(values[:5], wanted, rtol=1e-2)
    np.testing.assert_allclose(values[:4], wanted[:4], rtol=1e-5)
    assert float(values[5]) < 1e-15


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_extreme_sizes(scale):
    x = normal(2, 5, 8) * scale
    matrix = TokenMatrix.of(x)
    for sample in range(2):
        expected = svdvals(x[sample] / scale)
        values = singular_values(matrix.values)
        assert float(effective_rank(values)[sample]) == pytest.approx(
            effective(expected), rel=1e-12
        )
        assert float(stable_rank(values)[sample]) == pytest.approx(stable(expected), rel=1e-12)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_ranks_of_half_and_single_precision_states(shape):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = normal(1, *shape).to(dtype)
        values = singular_values(TokenMatrix.of(x).values)
        assert values.dtype == torch.float64
        expected = svdvals(x[0].double())
        assert float(effective_rank(values)) == pytest.approx(effective(expected), rel=1e-12)


def test_a_matrix_that_is_not_finite_spoils_only_itself():
    for bad in (math.nan, math.inf):
        x = normal(3, 4, 6)
        x[1, 2, 3] = bad
        values = singular_values(x)
        for rank in (effective_rank, stable_rank):
            assert torch.isnan(rank(values)).tolist() == [False, True, False]
        np.testing.assert_allclose(values[2], svdvals(x[2]), rtol=1e-12)


def test_zero_matrix_has_no_rank():
    values = singular_values(torch.zeros(1, 3, 4))
    assert math.isnan(float(effective_rank(values)))
    assert math.isnan(float(stable_rank(values)))


def test_ranks_from_their_formulas():
    values = torch.tensor([[4.0, 2.0, 1.0, 0.5], [1.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
    for row, ours in zip(values.tolist(), effective_rank(values).tolist(), strict=True):
        assert ours == pytest.approx(math.exp(scipy.stats.entropy(row)), rel=1e-14)
    squares = (16 + 4 + 1 + 0.25) / 16
    assert stable_rank(values).tolist() == pytest.approx([squares, 3.0], rel=1e-14)


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e308])
def test_ranks_of_extreme_singular_values(scale):
    values = torch.tensor([[1.0, 0.5, 0.1]], dtype=torch.float64)
    assert float(stable_rank(values * scale)) == pytest.approx(1.26, rel=1e-12)
    if scale < 1e308:  # whose sum is beyond the largest float
        assert float(effective_rank(values * scale)) == pytest.approx(
            float(effective_rank(values)), rel=1e-12
        )


@pytest.mark.parametrize("filling", [0.0, 3.0, 1e308, math.nan, math.inf])
def test_padding_changes_no_number(filling):
    x, mask = garbage(normal(3, 7, 4), [7, 2, 5], filling)
    matrix = TokenMatrix.of(x, mask)
    for sample, length in enumerate([7, 2, 5]):
        alone = TokenMatrix.of(x[sample : sample + 1, :length])
        for part in ("values", "residual"):
            padded, clean = (singular_values(getattr(m, part)) for m in (matrix, alone))
            for rank in (effective_rank, stable_rank):
                assert float(rank(padded)[sample]) == pytest.approx(float(rank(clean)), rel=1e-12)


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4),
    st.sampled_from([(4, 4), (5, 9), (9, 5)]),
    st.integers(0, 100),
)
def test_ranks_lie_between_one_and_the_rank(wanted, shape, seed):
    x = with_values(wanted, *shape, seed=seed)[None]
    values = singular_values(x)
    one, rank = 1 - 1e-9, len(wanted) * (1 + 1e-9)
    assert one <= float(effective_rank(values)) <= rank
    assert one <= float(stable_rank(values)) <= rank
    assert float(effective_rank(values)) == pytest.approx(effective(np.array(wanted)), rel=1e-9)
    assert float(stable_rank(values)) == pytest.approx(stable(np.array(wanted)), rel=1e-9)


def test_rank_one_state_and_its_residual():
    direction = normal(1, 1, 6)
    x = torch.tensor([1.0, 2.0, 4.0, -1.0], dtype=torch.float64)[:, None] * direction
    matrix = TokenMatrix.of(x)
    for part in (matrix.values, matrix.residual):
        assert float(effective_rank(singular_values(part))) == pytest.approx(1, rel=1e-12)
        assert float(stable_rank(singular_values(part))) == pytest.approx(1, rel=1e-12)


def test_against_high_precision():
    x = normal(1, 4, 5, seed=4)
    theirs = sorted(map(float, mp.svd_r(mp.matrix(x[0].tolist()), compute_uv=False)), reverse=True)
    np.testing.assert_allclose(singular_values(x)[0], theirs, rtol=1e-14)
