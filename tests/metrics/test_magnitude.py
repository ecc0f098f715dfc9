"""Largest token over the median, against sorting."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankcollapse.metrics import TokenMatrix, largest_token_ratio
from tests.metrics.reference import exact_largest_ratio, garbage, normal


def ratio(x, *mask) -> torch.Tensor:
    return largest_token_ratio(TokenMatrix.of(torch.as_tensor(x), *mask))


@pytest.mark.parametrize("tokens", [2, 3, 4, 9, 10])
@pytest.mark.parametrize("scale", [1.0, 1e200, 2e306, 1e-300])
def test_odd_and_even_numbers_of_tokens(tokens, scale):
    x = normal(2, tokens, 3) * scale
    for sample in range(2):
        expected = float(exact_largest_ratio(x[sample]))
        assert float(ratio(x)[sample]) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_other_dtypes_are_measured_in_float64(dtype):
    x = (200 * normal(1, 12, 5)).to(dtype)  # squares overflow in float16
    assert float(ratio(x)) == pytest.approx(float(exact_largest_ratio(x[0])), rel=1e-13)


def test_massive_activation():
    x = normal(1, 11, 8)
    x[0, 0, 3] = 1e5
    assert float(ratio(x)) == pytest.approx(float(exact_largest_ratio(x[0])), rel=1e-13)
    assert float(ratio(x)) > 1e4


def test_zero_tokens():
    x = torch.zeros(1, 5, 2)
    assert math.isnan(float(ratio(x)))
    x[0, 0] = 1
    assert float(ratio(x)) == math.inf
    x[0, 1:3] = 1
    assert float(ratio(x)) == pytest.approx(1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite(bad):
    x = normal(2, 5, 3)
    x[0, 2, 1] = bad
    values = ratio(x)
    assert not math.isfinite(float(values[0]))
    assert float(values[1]) == pytest.approx(float(exact_largest_ratio(x[1])), rel=1e-13)


@pytest.mark.parametrize("filling", [0.0, 3.0, 1e308, math.nan, math.inf])
def test_padding_changes_no_number(filling):
    x, mask = garbage(normal(3, 8, 4), [8, 2, 5], filling)
    for sample, length in enumerate([8, 2, 5]):
        expected = float(exact_largest_ratio(x[sample, :length]))
        assert float(ratio(x, mask)[sample]) == pytest.approx(expected, rel=1e-13)


@given(
    st.integers(2, 9).flatmap(lambda n: arrays(np.float64, (1, n, 3), elements=st.floats(1, 100))),
    st.randoms(use_true_random=False),
)
def test_at_least_one_and_without_order(array, random):
    order = list(range(array.shape[1]))
    random.shuffle(order)
    assert float(ratio(array)) >= 1 - 1e-12
    assert float(ratio(array[:, order])) == pytest.approx(float(ratio(array)), rel=1e-13)
