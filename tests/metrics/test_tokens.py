"""`TokenMatrix`: what counts, what is centred, and that scale and padding never change a number."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankcollapse.metrics import TokenMatrix
from tests.metrics.reference import garbage, normal

Entry = st.floats(-1e3, 1e3, allow_subnormal=False)
Matrices = st.tuples(st.integers(2, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, (1, *shape), elements=Entry)
)


def unscaled(values: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """By NumPy, since `torch.ldexp` overflows at 2^1024 on its way."""
    powers = exponent.view(-1, 1, 1).numpy().astype(int)
    return torch.from_numpy(np.ldexp(values.numpy(), powers))


def test_values_and_residual_are_those_of_numpy():
    x = normal(3, 7, 5)
    m = TokenMatrix.of(x)
    array = x.numpy()
    np.testing.assert_array_equal(unscaled(m.values, m.exponent), array)
    expected = array - array.mean(1, keepdims=True)
    np.testing.assert_allclose(unscaled(m.residual, m.residual_exponent), expected, atol=1e-15)
    assert m.count.tolist() == [7, 7, 7]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_other_dtypes_are_upcast_before_anything_else(dtype):
    # In half precision a mean over 300 tokens of size 1000 would overflow, and be off by units.
    x = (1000 + 30 * normal(2, 300, 4)).to(dtype)
    m, upcast = TokenMatrix.of(x), TokenMatrix.of(x.double())
    assert m.values.dtype == m.residual.dtype == torch.float64
    assert torch.equal(m.values, upcast.values)
    assert torch.equal(m.residual, upcast.residual)


def test_mean_and_count_are_over_counted_tokens_only():
    x, mask = garbage(normal(3, 6, 4), [6, 2, 4], 1e5)
    m = TokenMatrix.of(x, mask)
    assert m.count.tolist() == [6, 2, 4]
    for sample, length in enumerate([6, 2, 4]):
        array = x[sample, :length].numpy()
        residual = unscaled(m.residual, m.residual_exponent)[sample]
        np.testing.assert_allclose(residual[:length], array - array.mean(0), atol=1e-15)
        assert not residual[length:].any()
        assert not m.values[sample, length:].any()


def test_counted_tokens_may_stand_anywhere():
    x = normal(1, 6, 4)
    mask = torch.tensor([[False, True, False, True, True, False]])
    m = TokenMatrix.of(x, mask)
    alone = TokenMatrix.of(x[:, mask[0]])
    torch.testing.assert_close(m.residual[:, mask[0]], alone.residual, rtol=0, atol=1e-15)


@pytest.mark.parametrize("filling", [0.0, -7.0, 1e308, float("nan"), float("inf"), 5e-324])
def test_what_padding_holds_is_not_seen(filling):
    x = normal(2, 6, 4)
    first, second = (TokenMatrix.of(*garbage(x, [6, 3], f)) for f in (0.0, filling))
    for name in ("values", "exponent", "residual", "residual_exponent"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name


def test_a_sample_of_extreme_size_leaves_its_neighbours_as_they_are():
    x = normal(2, 5, 3)
    beside = torch.stack([x[0], x[1] * 1e300])
    alone, together = TokenMatrix.of(x[:1]), TokenMatrix.of(beside)
    for part, exponent in (("values", "exponent"), ("residual", "residual_exponent")):
        mine = unscaled(getattr(alone, part), getattr(alone, exponent))
        other = unscaled(getattr(together, part), getattr(together, exponent))[:1]
        torch.testing.assert_close(other, mine, rtol=1e-15, atol=0)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-200, 1e200, 1e300, 1.7e308])
def test_scaled_numbers_are_of_ordinary_size(scale):
    x = torch.tensor([[[1.0, 0.5], [-1.0, 0.25], [0.0, 1.0]]], dtype=torch.float64) * scale
    m = TokenMatrix.of(x)
    for part in (m.values, m.residual):
        assert 1e-30 < float(part.abs().max()) < 1e90
    assert torch.equal(unscaled(m.values, m.exponent), x)


@given(Matrices)
def test_residual_has_no_mean_and_is_the_nearest(array):
    m = TokenMatrix.of(torch.from_numpy(array))
    residual = unscaled(m.residual, m.residual_exponent)[0].numpy()
    size = np.abs(array).max() + 1e-300
    assert np.abs(residual.sum(0)).max() <= 1e-14 * size * len(residual)
    shift = np.linspace(-1, 1, array.shape[2]) * size
    for step in (1e-3, 0.1, 1.0):
        moved = array[0] - array[0].mean(0) - step * shift
        assert np.linalg.norm(residual) <= np.linalg.norm(moved) * (1 + 1e-12)


@given(Matrices, st.floats(-1e3, 1e3), st.randoms(use_true_random=False))
def test_residual_ignores_a_shared_vector_and_follows_the_order(array, shift, random):
    order = list(range(array.shape[1]))
    random.shuffle(order)
    vector = shift * np.linspace(1, 2, array.shape[2])
    before = TokenMatrix.of(torch.from_numpy(array))
    after = TokenMatrix.of(torch.from_numpy((array + vector)[:, order]))
    size = np.abs(array).max() + np.abs(vector).max()
    np.testing.assert_allclose(
        unscaled(after.residual, after.residual_exponent),
        unscaled(before.residual, before.residual_exponent)[:, order],
        rtol=0,
        atol=1e-14 * size,
    )
