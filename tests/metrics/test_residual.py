"""Norms and residuals against 60-digit arithmetic, and what the theory says about them."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankcollapse.metrics import (
    TokenMatrix,
    absolute_residual,
    composite_norm,
    frobenius_norm,
    log10_relative_residual,
    relative_residual,
    relative_residual_frobenius,
)
from tests.metrics.reference import (
    exact,
    exact_composite,
    exact_frobenius,
    exact_relative,
    exact_residual,
    garbage,
    normal,
)

Entry = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6)
Matrices = st.tuples(st.integers(2, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, (1, *shape), elements=Entry)
)
EPS = float(np.finfo(np.float64).eps)
ALL = (absolute_residual, relative_residual, log10_relative_residual, relative_residual_frobenius)


def of(x, *mask) -> TokenMatrix:
    return TokenMatrix.of(torch.as_tensor(x), *mask)


@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (7, 3), (4, 4), (13, 1)])
def test_norms(shape):
    x = normal(3, *shape)
    for sample, row in enumerate(x):
        values = exact(row)
        assert float(composite_norm(x)[sample]) == pytest.approx(
            float(exact_composite(values)), rel=1e-14
        )
        assert float(frobenius_norm(x)[sample]) == pytest.approx(
            float(exact_frobenius(values)), rel=1e-14
        )


def test_composite_norm_sums_columns_over_tokens_and_rows_over_features():
    x = torch.tensor([[[3.0, 0.0, -1.0], [1.0, 0.0, -2.0]]])  # columns 4, 0, 3; rows 4, 3
    assert float(composite_norm(x)) == pytest.approx(4.0)
    x = torch.tensor([[[1.0, 0.0], [-2.0, 0.0], [6.0, 0.0]]])  # columns 9, 0; rows 1, 2, 6
    assert float(composite_norm(x)) == pytest.approx(math.sqrt(54))


@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (7, 3), (4, 9)])
@pytest.mark.parametrize("scale", [1.0, 1e200, 2e306, 1e-200, 1e-300])
def test_residuals(shape, scale):
    x = (normal(3, *shape, seed=1) + 0.3) * scale
    matrix = of(x)
    for sample, row in enumerate(x):
        values = exact(row)
        residual = exact_residual(values)
        expected = {
            absolute_residual: exact_composite(residual),
            relative_residual: exact_relative(row),
            log10_relative_residual: mp.log10(exact_relative(row)),
            relative_residual_frobenius: exact_frobenius(residual) / exact_frobenius(values),
        }
        for metric, value in expected.items():
            assert float(metric(matrix)[sample]) == pytest.approx(
                float(value), rel=1e-13, abs=1e-13 if metric is log10_relative_residual else 0
            ), metric.__name__


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_other_dtypes_are_measured_in_float64(dtype):
    x = (10 + normal(2, 40, 6)).to(dtype)
    for sample in range(2):
        value = relative_residual(of(x))
        assert value.dtype == torch.float64
        assert float(value[sample]) == pytest.approx(float(exact_relative(x[sample])), rel=1e-13)


def test_subnormal_numbers():
    tiny = 5e-324
    x = torch.tensor([[[3 * tiny, 0.0], [tiny, 2 * tiny]]], dtype=torch.float64)
    assert float(relative_residual(of(x))) == pytest.approx(float(exact_relative(x[0])), rel=1e-14)
    assert float(log10_relative_residual(of(x))) == pytest.approx(
        float(mp.log10(exact_relative(x[0]))), rel=1e-13
    )


def test_absolute_residual_is_finite_up_to_the_largest_float():
    x = torch.tensor([[[1e308], [-1e308]]], dtype=torch.float64)
    assert float(absolute_residual(of(x))) == pytest.approx(math.sqrt(2) * 1e308, rel=1e-14)


def test_one_huge_feature():
    x = normal(1, 9, 6)
    x[:, :, 2] += 1e6
    values = exact(x[0])
    assert float(relative_residual(of(x))) == pytest.approx(float(exact_relative(x[0])), rel=1e-9)
    assert float(absolute_residual(of(x))) == pytest.approx(
        float(exact_composite(exact_residual(values))), rel=1e-9
    )
    x[:, 0, 2] = 1e300
    assert float(relative_residual(of(x))) == pytest.approx(float(exact_relative(x[0])), rel=1e-14)


@pytest.mark.parametrize("exponent", range(-16, -1))
def test_residual_down_to_rounding(exponent):
    shared = normal(1, 1, 5, seed=2)
    x = shared + 10.0**exponent * normal(1, 6, 5, seed=3)
    assert abs(float(relative_residual(of(x))) - float(exact_relative(x[0]))) <= 4 * EPS


@pytest.mark.parametrize("steps", [1, 2, 5, 1000])
def test_residual_of_neighbouring_floats_is_exact(steps):
    x = torch.tensor([[[1.0], [1.0 + 2 * steps * EPS]]], dtype=torch.float64)
    assert float(relative_residual(of(x))) == pytest.approx(steps * EPS, rel=1e-12)


def test_log10_where_the_ratio_has_no_float():
    x = of(normal(1, 4, 3))
    far = replace(x, residual_exponent=x.residual_exponent - 5000)
    expected = float(log10_relative_residual(x)) - 5000 * math.log10(2)
    assert float(log10_relative_residual(far)) == pytest.approx(expected, rel=1e-14)
    assert float(relative_residual(far)) == 0
    assert float(absolute_residual(far)) == 0


@pytest.mark.parametrize("value", [1.0, -3.5, 0.1, 1e300, 1e-310])
@pytest.mark.parametrize("tokens", [2, 4, 64, 100])
def test_identical_tokens(value, tokens):
    x = torch.full((1, tokens, 3), value, dtype=torch.float64)
    assert float(relative_residual(of(x))) == 0
    assert float(absolute_residual(of(x))) == 0
    assert float(relative_residual_frobenius(of(x))) == 0
    assert float(log10_relative_residual(of(x))) == -math.inf


@pytest.mark.parametrize("tokens", [3, 7, 128])
def test_identical_tokens_of_any_numbers(tokens):
    x = normal(1, 1, 50).expand(1, tokens, 50)
    mask = torch.arange(tokens + 2) < tokens
    padded = torch.cat([x, normal(1, 2, 50)], 1)
    for matrix in (of(x), of(padded, mask[None])):
        assert float(relative_residual(matrix)) == 0
        assert float(log10_relative_residual(matrix)) == -math.inf


def test_zero_and_not_finite_states_have_no_relative_residual():
    zero = torch.zeros(1, 3, 2)
    assert float(absolute_residual(of(zero))) == 0
    assert all(math.isnan(float(metric(of(zero)))) for metric in ALL[1:])
    for bad in (math.nan, math.inf, -math.inf):
        x = normal(2, 3, 2)
        x[0, 1, 1] = bad
        for metric in ALL:
            values = metric(of(x))
            assert math.isnan(float(values[0])), metric.__name__
            assert float(values[1]) == pytest.approx(float(metric(of(x[1:]))), rel=1e-14)


def test_a_zero_token_is_a_token():
    x = normal(1, 4, 3)
    x[0, 2] = 0
    assert float(relative_residual(of(x))) == pytest.approx(float(exact_relative(x[0])), rel=1e-14)


@pytest.mark.parametrize("filling", [0.0, 3.0, -1e308, math.nan, math.inf])
@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.__name__)
def test_padding_changes_no_number(metric, filling):
    x, mask = garbage(normal(3, 7, 4), [7, 2, 5], filling)
    padded = metric(of(x, mask))
    for sample, length in enumerate([7, 2, 5]):
        alone = metric(of(x[sample : sample + 1, :length]))
        assert float(padded[sample]) == pytest.approx(float(alone), rel=1e-13, abs=1e-14)


@given(Matrices, st.integers(-900, 900), st.sampled_from([-1.0, 1.0]))
def test_homogeneous(array, exponent, sign):
    x = torch.from_numpy(array)
    scaled = torch.ldexp(sign * x, torch.tensor(exponent))
    size, big = float(absolute_residual(of(x))), float(absolute_residual(of(scaled)))
    if size > 1e-9:
        assert big == pytest.approx(math.ldexp(size, exponent), rel=1e-13)
    if bool(x.any()):
        for metric in (relative_residual, relative_residual_frobenius):
            assert float(metric(of(scaled))) == pytest.approx(float(metric(of(x))), rel=1e-13)


@given(Matrices, Entry)
def test_norms_are_homogeneous_and_positive(array, factor):
    x = torch.from_numpy(array)
    for norm in (composite_norm, frobenius_norm):
        assert float(norm(factor * x)) == pytest.approx(abs(factor) * float(norm(x)), rel=1e-12)
        assert (float(norm(x)) > 0) == bool(x.any())


@given(Matrices)
def test_norms_lie_between_the_bounds_that_entries_imply(array):
    x = torch.from_numpy(array)
    n, d = array.shape[1:]
    largest, total = np.abs(array).max(), np.abs(array).sum()
    value = float(composite_norm(x))
    assert largest * (1 - 1e-12) <= value <= largest * math.sqrt(n * d) * (1 + 1e-12)
    assert value <= total * (1 + 1e-12)
    # The largest singular value is at most √(‖X‖₁ ‖X‖∞).
    assert np.linalg.norm(array[0], 2) <= value * (1 + 1e-12)


@given(Matrices)
def test_log10_is_the_logarithm_of_the_ratio(array):
    x = of(array)
    ratio = float(relative_residual(x))
    if ratio > 0:
        expected = math.log10(ratio)
        assert float(log10_relative_residual(x)) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@given(Matrices, st.randoms(use_true_random=False))
def test_order_of_tokens_and_features_does_not_matter(array, random):
    rows, columns = (list(range(size)) for size in array.shape[1:])
    random.shuffle(rows)
    random.shuffle(columns)
    size = np.abs(array).max()
    for metric in (absolute_residual, relative_residual_frobenius, relative_residual):
        unit = size if metric is absolute_residual else 1
        assert float(metric(of(array[:, rows][:, :, columns]))) == pytest.approx(
            float(metric(of(array))), rel=1e-12, abs=1e-14 * unit * array.size, nan_ok=True
        )


@given(Matrices, st.floats(-1e3, 1e3))
def test_absolute_residual_ignores_a_shared_vector(array, shift):
    vector = shift * np.linspace(1, 2, array.shape[2])
    size = np.abs(array).max() + np.abs(vector).max()
    assert float(absolute_residual(of(array + vector))) == pytest.approx(
        float(absolute_residual(of(array))), abs=1e-14 * size * array.size
    )


@given(Matrices)
def test_frobenius_ratio_is_at_most_one(array):
    if array.any():
        assert 0 <= float(relative_residual_frobenius(of(array))) <= 1 + 1e-12


def test_composite_norm_has_no_triangle_inequality():
    x = torch.tensor([[[1.0, 1.0], [0.0, 0.0]]], dtype=torch.float64)  # ‖·‖₁ = 1, ‖·‖∞ = 2
    y = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], dtype=torch.float64)  # ‖·‖₁ = 2, ‖·‖∞ = 1
    total = float(composite_norm(x + y))  # ‖·‖₁ = 3, ‖·‖∞ = 3
    assert total == pytest.approx(3.0)
    assert total > float(composite_norm(x)) + float(composite_norm(y)) + 0.17


def smallest_infinity_norm(x: np.ndarray) -> float:
    """Min over c of max_i Σ_j |x_ij − c_j|, as a linear program in (c, |x − c|, the maximum)."""
    n, d = x.shape
    sizes = d + n * d + 1
    cost = np.zeros(sizes)
    cost[-1] = 1
    rows, limits = [], []
    for i in range(n):
        for j in range(d):
            for sign in (1.0, -1.0):
                row = np.zeros(sizes)
                row[j], row[d + i * d + j] = -sign, -1
                rows.append(row)
                limits.append(-sign * x[i, j])
        row = np.zeros(sizes)
        row[d + i * d : d + (i + 1) * d], row[-1] = 1, -1
        rows.append(row)
        limits.append(0.0)
    bounds = [(None, None)] * d + [(0, None)] * (n * d + 1)
    return float(scipy.optimize.linprog(cost, np.array(rows), limits, bounds=bounds).fun)


def smallest_one_norm(x: np.ndarray) -> float:
    """Min over c of max_j Σ_i |x_ij − c_j|: each column's median."""
    return float(np.abs(x - np.median(x, 0)).sum(0).max())


def mean_norms(x: np.ndarray) -> tuple[float, float]:
    size = of(x[None]).residual.abs()[0]
    return float(size.sum(0).max()), float(size.sum(1).max())


@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (3, 2), (4, 3), (5, 4)])
def test_the_mean_costs_at_most_twice_the_best_centre(shape):
    n = shape[0]
    for seed in range(10):
        x = normal(*shape, seed=seed).pow(3).numpy()
        for mean, best in zip(
            mean_norms(x), (smallest_one_norm(x), smallest_infinity_norm(x)), strict=True
        ):
            assert best * (1 - 1e-9) <= mean <= 2 * (1 - 1 / n) * best * (1 + 1e-9)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_one_token_apart_is_the_worst_case_of_the_mean(n):
    x = np.zeros((n, 2))
    x[0, 0] = 5
    for mean, best in zip(
        mean_norms(x), (smallest_one_norm(x), smallest_infinity_norm(x)), strict=True
    ):
        assert mean == pytest.approx(2 * (1 - 1 / n) * best, rel=1e-9)
