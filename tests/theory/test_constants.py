"""Norms of heads against matrices written out, and Lipschitz constants that no pair exceeds."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcollapse.streams import Dense
from rankcollapse.theory import HeadNorms, Lipschitz
from rankcollapse.transformer import MLP, Layout, Linear
from rankcollapse.transformer.activations import ACTIVATIONS
from tests.streams import multiprecision
from tests.theory.bounding import Maker, head_matrices, norms

SMOOTH = [name for name in ACTIVATIONS if name not in ("relu", "relu2")]
EXACT = {
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "swish": "silu",
}


@pytest.mark.parametrize(
    ("kind", "width", "heads", "size"),
    [
        ("content", 5, 1, 3),
        ("content", 8, 4, 2),
        ("grouped", 6, 4, 5),
        ("grouped", 4, 6, 3),
        ("content", 3, 2, 7),
        ("content", 1, 1, 1),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_norms_of_heads_are_those_of_their_matrices(
    kind: str, width: int, heads: int, size: int, dtype: torch.dtype
) -> None:
    attention = Maker(width).attention(width, heads, size, kind, scale=-0.7)
    parts = {
        name: Linear(getattr(attention, name).weight.to(dtype))
        for name in ("query", "key", "value", "output")
    }
    attention = replace(attention, **parts)
    assert (attention.key_heads < heads) == (kind == "grouped")
    found = HeadNorms.of(attention)
    query_key, values, _ = head_matrices(attention)
    expected = {
        "query_key": [0.7 * norms(w)[0] for w in query_key],
        "column": [norms(w)[0] for w in values],
        "row": [norms(w)[1] for w in values],
        "spectral": [np.linalg.norm(w, 2) for w in values],
        "composite": [math.sqrt(norms(w)[0] * norms(w)[1]) for w in values],
        "value_output": values,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), np.stack(value), rtol=1e-12, atol=1e-15)


def test_the_matrices_of_heads_add_up_to_what_attention_does_to_equal_tokens() -> None:
    attention = Maker(3).attention(6, 4, 5, "grouped")
    plain = replace(
        attention, value=Linear(attention.value.weight), output=Linear(attention.output.weight)
    )
    x = Maker(4).normal(1, 1, 6)
    torch.testing.assert_close(
        Dense(torch.float64).attend(x, plain, Layout.contiguous(1)),
        x @ HeadNorms.of(attention).value_output.sum(0),
    )


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    activation=st.sampled_from([*SMOOTH, "relu"]),
    tokens=st.integers(1, 6),
    width=st.integers(1, 6),
    hidden=st.integers(1, 8),
    size=st.sampled_from([1e-3, 0.1, 1.0, 10.0]),
    sparse=st.booleans(),
    projections=st.booleans(),
)
def test_no_pair_of_token_matrices_exceeds_the_constants(
    seed: int,
    activation: str,
    tokens: int,
    width: int,
    hidden: int,
    size: float,
    sparse: bool,
    projections: bool,
) -> None:
    maker = Maker(seed)
    mlp = maker.mlp(width, hidden, activation)
    x, change = maker.normal(tokens, width), maker.normal(tokens, width, scale=size)
    if sparse:
        change = change * (maker.normal(tokens, width) > 0.5)
    function = mlp if projections else mlp.activate
    before, after = norms(change.numpy()), norms((function(x + change) - function(x)).numpy())
    constants = Lipschitz.of(mlp, projections)
    limits = (constants.column, constants.row, constants.spectral)
    for limit, a, b in zip(limits, before, after, strict=True):
        assert b <= limit * a * (1 + 1e-9) + 1e-12


def test_the_constants_are_attained_where_the_relu_is_linear() -> None:
    maker = Maker(0)
    up, down = maker.normal(5, 3).abs(), maker.normal(3, 5).abs()
    mlp = MLP(Linear(up), Linear(down), "relu")
    found = Lipschitz.of(mlp)
    gain = (down @ up).numpy()
    x = torch.full((2, 3), 9.0, dtype=torch.float64)
    # Sums over tokens grow most where all features change alike, single tokens where one does.
    alike = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    column = norms((mlp(x + alike) - mlp(x)).numpy())[0] / norms(alike.numpy())[0]
    single = torch.zeros(2, 3, dtype=torch.float64)
    single[1, gain.sum(0).argmax()] = 1.0
    row = norms((mlp(x + single) - mlp(x)).numpy())[1] / norms(single.numpy())[1]
    assert (column, row) == pytest.approx((found.column, found.row), rel=1e-12)
    assert (gain.sum(1).max(), gain.sum(0).max()) == pytest.approx((column, row), rel=1e-12)
    assert found.composite == pytest.approx(math.sqrt(column * row), rel=1e-12)
    # ‖V‖₂‖U‖₂ = ‖VU‖₂ where V is Uᵀ; its first singular vector is positive, as U is.
    twin = MLP(Linear(up), Linear(up.T), "relu")
    direction = torch.linalg.svd(up).Vh[0].abs().unsqueeze(0)
    attained = norms((twin(x[:1] + direction) - twin(x[:1])).numpy())[2]
    assert attained == pytest.approx(Lipschitz.of(twin).spectral, rel=1e-12)


def test_a_smooth_activation_reaches_its_slope_and_enters_the_constants() -> None:
    mlp = MLP(Linear(torch.eye(2).double()), Linear(torch.eye(2).double()), "gelu")
    x = torch.full((1, 2), math.sqrt(2), dtype=torch.float64)
    step = torch.tensor([[1e-4, 0.0]], dtype=torch.float64)
    found = Lipschitz.of(mlp)
    reached = float((mlp(x + step) - mlp(x - step)).abs().sum()) / 2e-4
    for constant in (found.column, found.row, found.spectral):
        assert constant == pytest.approx(reached, rel=1e-7)
    assert Lipschitz.of(mlp, projections=False) == found


@pytest.mark.parametrize(("activation", "gated"), [("silu", True), ("relu2", False)])
def test_products_of_the_input_have_no_constant(activation: str, gated: bool) -> None:
    mlp = Maker(0).mlp(3, 4, activation, gated)
    assert Lipschitz.of(mlp) == Lipschitz(math.inf, math.inf, math.inf)
    alone = Lipschitz.of(mlp, projections=False)
    slope = ACTIVATIONS[activation].slope
    assert alone == Lipschitz(slope, slope, slope)


@pytest.mark.parametrize("name", [*SMOOTH, "relu"])
def test_the_slope_is_the_largest_derivative(name: str) -> None:
    activation = ACTIVATIONS[name]
    grid = torch.linspace(-30, 30, 600_001, dtype=torch.float64)
    sizes = activation.derivative(grid).abs()
    assert float(sizes.max()) <= activation.slope * (1 + 1e-15)
    if name == "relu":
        assert activation.slope == 1.0
        return
    function = multiprecision.ACTIVATIONS[EXACT.get(name, name)]
    with mp.workdps(40):
        near = mp.mpf(float(grid[sizes.argmax()]))
        place = mp.findroot(lambda x: mp.diff(function, x, 2), near)
        largest = abs(mp.diff(function, place))
        assert 0 <= mp.mpf(activation.slope) - largest <= mp.mpf("1e-12")
