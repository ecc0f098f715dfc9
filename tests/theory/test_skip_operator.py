"""The map of the residual by a layer with a skip connection, against the layer itself."""

import math

import numpy as np
import pytest
import torch

from rankcollapse.streams import Centered, Dense
from rankcollapse.theory import (
    HeadNorms,
    NearRankOne,
    log_smallest_singular_value,
    skip_operator,
)
from rankcollapse.transformer import Layout
from tests.theory.bounding import KINDS, Array, Maker, about_mean

SIZES = [(2, 1, 1), (2, 3, 1), (3, 2, 2), (5, 4, 4), (7, 3, 2)]


def given_layer(
    tokens: int, width: int, heads: int, kind: str = "content", gain: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, Array, Array, Array]:
    """Operator, an orthonormal basis of centred columns, P, W and a centred residual."""
    maker = Maker(tokens + 10 * width)
    attention = maker.attention(width, heads, 3, kind)
    x = maker.normal(1, tokens, width)
    near = NearRankOne.of(Centered().enter(x), attention, Layout.contiguous(tokens))
    weights = gain * HeadNorms.of(attention).value_output
    p = maker.normal(heads, tokens, tokens).softmax(-1) if kind == "any" else near.centered[0]
    pi = np.eye(tokens) - np.ones((tokens, tokens)) / tokens
    return (
        skip_operator(torch.from_numpy(pi @ p.numpy() @ pi), weights),
        weights,
        p.numpy(),
        weights.numpy(),
        about_mean(maker.normal(tokens, width).numpy()),
    )


def applied(r: Array, p: Array, w: Array) -> Array:
    """R + Σ_h ΠP_hΠ R W_h, R centred."""
    return about_mean(r + sum(a @ r @ b for a, b in zip(p, w, strict=True)))


def full_matrix(tokens: int, width: int, p: Array, w: Array) -> Array:
    """The map on all n·d entries of a matrix that is centred first, one basis matrix at a time."""
    columns = []
    for k in range(tokens * width):
        unit = np.zeros(tokens * width)
        unit[k] = 1
        columns.append(applied(about_mean(unit.reshape(tokens, width)), p, w).ravel())
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("kind", ["any", "content", "causal"])
@pytest.mark.parametrize(("tokens", "width", "heads"), SIZES)
def test_singular_values_are_those_of_the_map(
    kind: str, tokens: int, width: int, heads: int
) -> None:
    operator, _, p, w, _ = given_layer(tokens, width, heads, kind)
    size = (tokens - 1) * width
    assert operator.shape == (size, size)
    expected = np.linalg.svd(full_matrix(tokens, width, p, w), compute_uv=False)
    got = torch.linalg.svdvals(operator).numpy()
    np.testing.assert_allclose(got, expected[:size], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(expected[size:], 0, atol=1e-13)  # what all tokens share is lost
    log = log_smallest_singular_value(operator)
    assert math.exp(log) == pytest.approx(expected[size - 1], rel=1e-10)


@pytest.mark.parametrize(("tokens", "width", "heads"), SIZES)
def test_the_smallest_singular_value_is_a_bound_and_is_attained(
    tokens: int, width: int, heads: int
) -> None:
    operator, _, p, w, r = given_layer(tokens, width, heads, "any")
    smallest = math.exp(log_smallest_singular_value(operator))
    kept = np.linalg.norm(applied(r, p, w)) / np.linalg.norm(r)
    assert kept >= smallest * (1 - 1e-12)
    _, _, right = np.linalg.svd(full_matrix(tokens, width, p, w))
    worst = right[(tokens - 1) * width - 1].reshape(tokens, width)
    np.testing.assert_allclose(worst.sum(0), 0, atol=1e-12)
    assert np.linalg.norm(applied(worst, p, w)) == pytest.approx(smallest, rel=1e-10)


@pytest.mark.parametrize("gain", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("tokens", "width", "heads"), SIZES)
def test_weyls_bound_is_below(tokens: int, width: int, heads: int, gain: float) -> None:
    operator, _, p, w, _ = given_layer(tokens, width, heads, "any", gain)
    pi = np.eye(tokens) - np.ones((tokens, tokens)) / tokens
    weyl = 1 - sum(
        np.linalg.norm(pi @ a @ pi, 2) * np.linalg.norm(b, 2) for a, b in zip(p, w, strict=True)
    )
    assert weyl <= math.exp(log_smallest_singular_value(operator)) + 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_layer(kind: str) -> None:
    """X + SA(X) has the residual that the operator says, biases and the mean notwithstanding."""
    maker = Maker(8)
    attention, layout = maker.attention(4, 2, 2, kind), Layout.contiguous(5)
    x = maker.normal(1, 5, 4) + 3
    near = NearRankOne.of(Centered().enter(x), attention, layout)
    weights = HeadNorms.of(attention).value_output
    y = (x + Dense(torch.float64).attend(x, attention, layout))[0].numpy()
    r = about_mean(x[0].numpy())
    expected = applied(r, near.centered[0].numpy(), weights.numpy())
    np.testing.assert_allclose(about_mean(y), expected, atol=1e-12)
    smallest = math.exp(log_smallest_singular_value(skip_operator(near.centered[0], weights)))
    assert np.linalg.norm(about_mean(y)) >= smallest * np.linalg.norm(r)


def test_composed_layers_are_the_product() -> None:
    first, _, p, w, r = given_layer(4, 3, 2, "any")
    second, _, p2, w2, _ = given_layer(4, 3, 1, "any")
    smallest = math.exp(log_smallest_singular_value(second @ first))
    both = applied(applied(r, p, w), p2, w2)
    assert np.linalg.norm(both) >= smallest * np.linalg.norm(r)
    maps = [full_matrix(4, 3, *pair) for pair in ((p2, w2), (p, w))]
    expected = np.linalg.svd(maps[0] @ maps[1], compute_uv=False)[8]
    assert smallest == pytest.approx(expected, rel=1e-10)


def test_values_of_zero_keep_everything() -> None:
    operator, _, _, _, _ = given_layer(4, 3, 2, "any", gain=0.0)
    assert torch.equal(operator, torch.eye(9, dtype=torch.float64))
    assert log_smallest_singular_value(operator) == 0


def test_a_singular_map_keeps_nothing() -> None:
    """With P = I and W = diag(−1, 0) nothing of the first feature is left."""
    pi = torch.eye(3, dtype=torch.float64) - 1 / 3
    w = torch.diag(torch.tensor([-1.0, 0.0], dtype=torch.float64))
    operator = skip_operator(pi[None], w[None])
    np.testing.assert_allclose(torch.linalg.svdvals(operator), [1, 1, 0, 0], atol=1e-15)
    assert log_smallest_singular_value(operator) == -math.inf


def test_a_single_token_has_no_residual() -> None:
    nothing = torch.zeros(1, 1, 1, dtype=torch.float64)
    operator = skip_operator(nothing, torch.ones(1, 2, 2, dtype=torch.float64))
    assert operator.shape == (0, 0) and log_smallest_singular_value(operator) == -math.inf
