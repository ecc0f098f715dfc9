"""Mean pairwise cosine against a double loop over pairs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankcollapse.metrics import TokenMatrix, token_cosine
from tests.metrics.reference import exact_cosine, garbage, normal

Entry = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6)
Matrices = st.tuples(st.integers(2, 6), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, (1, *shape), elements=Entry)
)


def cosine(x, *mask) -> torch.Tensor:
    return token_cosine(TokenMatrix.of(torch.as_tensor(x), *mask))


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (6, 3), (9, 5)])
@pytest.mark.parametrize("scale", [1.0, 1e200, 2e306, 1e-300])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_all_pairs(shape, scale, shift):
    x = (normal(2, *shape) + shift) * scale
    for sample in range(2):
        assert float(cosine(x)[sample]) == pytest.approx(float(exact_cosine(x[sample])), abs=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_other_dtypes_are_measured_in_float64(dtype):
    x = normal(1, 12, 5).to(dtype)
    assert float(cosine(x)) == pytest.approx(float(exact_cosine(x[0])), abs=1e-14)


def test_token_size_does_not_matter():
    x = normal(1, 5, 3)
    sizes = torch.tensor([1e-40, 1.0, 1e3, 7.0, 1e40], dtype=torch.float64)[:, None]
    assert float(cosine(x * sizes)) == pytest.approx(float(cosine(x)), abs=1e-14)


def test_one_huge_feature():
    x = normal(1, 7, 4)
    x[:, :, 1] = 1e9
    assert float(cosine(x)) == pytest.approx(float(exact_cosine(x[0])), abs=1e-14)


def test_one_direction_and_opposite_ones():
    x = normal(1, 1, 6)
    same = x * torch.tensor([1.0, 2.0, 5.0, 1e10], dtype=torch.float64)[:, None]
    assert float(cosine(same)) == pytest.approx(1, abs=1e-14)
    assert float(cosine(torch.cat([x, -x], 1))) == pytest.approx(-1, abs=1e-14)


def test_a_zero_token_has_cosine_zero_with_every_other():
    x = normal(1, 4, 3).abs()
    x[0, 1] = 0
    assert float(cosine(x)) == pytest.approx(float(exact_cosine(x[0])), abs=1e-14)
    assert math.isnan(float(cosine(torch.zeros(1, 3, 2))))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite(bad):
    x = normal(2, 4, 3)
    x[0, 2, 1] = bad
    assert math.isnan(float(cosine(x)[0]))
    assert float(cosine(x)[1]) == pytest.approx(float(exact_cosine(x[1])), abs=1e-14)


@pytest.mark.parametrize("filling", [0.0, 3.0, 1e308, math.nan, math.inf])
def test_padding_changes_no_number(filling):
    x, mask = garbage(normal(3, 7, 4), [7, 2, 5], filling)
    for sample, length in enumerate([7, 2, 5]):
        expected = float(exact_cosine(x[sample, :length]))
        assert float(cosine(x, mask)[sample]) == pytest.approx(expected, abs=1e-14)


@given(Matrices)
def test_bounds(array):
    n = array.shape[1]
    value = float(cosine(array))
    if not array.any():
        assert math.isnan(value)
        return
    # Σ over pairs of u_iᵀu_j ≥ −Σ‖u_i‖², so n tokens cannot all point away from each other.
    assert -1 / (n - 1) - 1e-12 <= value <= 1 + 1e-12
    assert value == pytest.approx(float(exact_cosine(torch.from_numpy(array[0]))), abs=1e-13)
