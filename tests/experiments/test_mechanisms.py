from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from rankcollapse.experiments.initial import Size, embedded, random_blocks
from rankcollapse.experiments.xformers.mechanisms import patterns, projected
from rankcollapse.experiments.xformers.mechanisms.alibi import Alibi
from rankcollapse.experiments.xformers.mechanisms.catalogue import CATALOGUE, Budget, prepare
from rankcollapse.experiments.xformers.mechanisms.kernel import (
    Elu,
    Kernel,
    PositiveRandom,
    orthogonal_directions,
)
from rankcollapse.experiments.xformers.mechanisms.mechanism import (
    CenteredMechanism,
    Mechanism,
    PlainMechanism,
)
from rankcollapse.streams import CenteredState, Dense
from rankcollapse.transformer import Attention, Layout, Linear
from rankcollapse.transformer.attention import attention_rows

TOKENS, WIDTH, HEADS = 12, 16, 2


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def attention(width: int = WIDTH, heads: int = HEADS, biases: bool = True) -> Attention:
    generator = seeded(3)

    def linear() -> Linear:
        weight = torch.randn(width, width, generator=generator, dtype=torch.float64)
        bias = torch.randn(width, generator=generator, dtype=torch.float64) if biases else None
        return Linear(weight / width**0.5, bias)

    return Attention(linear(), linear(), linear(), linear(), heads, heads, (width // heads) ** -0.5)


def states(samples: int = 2) -> Tensor:
    return embedded(samples, TOKENS, WIDTH, seeded(5))


MECHANISMS: dict[str, Mechanism] = {
    "elu": Kernel(Elu()),
    "performer": Kernel(PositiveRandom(orthogonal_directions(20, WIDTH // HEADS, seeded(1)))),
    "linformer": projected.gaussian(4, TOKENS, seeded(2)),
    "even": projected.rows_summing_to_one(projected.gaussian(4, TOKENS, seeded(2))),
    "pooling": projected.pooling(4, TOKENS),
}


def by_hand(name: str, x: np.ndarray, a: Attention) -> np.ndarray:
    """The layer of one sample, head by head and pair by pair."""
    q, k, v = (
        x @ linear.weight.numpy().T + linear.bias.numpy()  # type: ignore[union-attr]
        for linear in (a.query, a.key, a.value)
    )
    size = q.shape[1] // a.heads
    merged = []
    for head in range(a.heads):
        part = slice(head * size, (head + 1) * size)
        qs, ks, vs = q[:, part], k[:, part], v[:, part]
        if name == "elu":

            def phi(z: np.ndarray) -> np.ndarray:
                return np.where(z > 0, z + 1, np.exp(z))

            weights = np.array([[phi(qi) @ phi(kj) for kj in ks] for qi in qs])
            merged.append(weights / weights.sum(1, keepdims=True) @ vs)
        elif name == "performer":
            mechanism = MECHANISMS[name]
            assert isinstance(mechanism, Kernel) and isinstance(mechanism.features, PositiveRandom)
            directions = mechanism.features.directions.numpy()

            def feature(z: np.ndarray, directions: np.ndarray = directions) -> np.ndarray:
                z = z / size**0.25
                return np.exp(directions @ z - z @ z / 2) / len(directions) ** 0.5

            weights = np.array([[feature(qi) @ feature(kj) for kj in ks] for qi in qs])
            merged.append(weights / weights.sum(1, keepdims=True) @ vs)
        else:
            mechanism = MECHANISMS[name]
            assert isinstance(mechanism, projected.Projected)
            e = mechanism.projection.numpy()
            scores = np.exp(qs @ (e @ ks).T / size**0.5)
            merged.append(scores / scores.sum(1, keepdims=True) @ (e @ vs))
    assert a.output.bias is not None
    return np.concatenate(merged, 1) @ a.output.weight.numpy().T + a.output.bias.numpy()


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_layer_is_what_its_definition_says(name: str) -> None:
    x, a = states(), attention()
    ours = PlainMechanism(MECHANISMS[name]).attend(x, a, Layout.contiguous(TOKENS))
    for sample in range(len(x)):
        expected = by_hand(name, x[sample].numpy(), a)
        np.testing.assert_allclose(ours[sample].numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("name", MECHANISMS)
def test_both_arithmetics_agree_where_the_plain_one_resolves(name: str, size: float) -> None:
    a, layout = attention(), Layout.contiguous(TOKENS)
    x = states()
    x = x.mean(1, keepdim=True) + size * (x - x.mean(1, keepdim=True))
    centered = CenteredMechanism(MECHANISMS[name])
    ours = centered.attend(centered.enter(x), a, layout)
    expected = PlainMechanism(MECHANISMS[name]).attend(x, a, layout)
    torch.testing.assert_close(ours.values, expected, rtol=1e-12, atol=1e-12)
    residual = expected - expected.mean(1, keepdim=True)
    error = (ours.scale * ours.residual - residual).abs().max() / residual.abs().max()
    assert error < (1e-12 if size == 1 else 1e-3)


# mpmath has no types of its own.
Matrix: TypeAlias = Any
Number: TypeAlias = Any


def to_mp(x: Tensor) -> Matrix:
    return mpmath.matrix(x.tolist())


def exactly(name: str, mechanism: Mechanism, x: Matrix, a: Attention) -> Matrix:
    """One head without biases at whatever precision is set."""
    q, k, v = (x * to_mp(linear.weight).T for linear in (a.query, a.key, a.value))
    scale = mpmath.mpf(a.scale)
    n, size = x.rows, x.cols
    if isinstance(mechanism, projected.Projected):
        e = to_mp(mechanism.projection)
        keys, values = e * k, e * v
        scores = q * keys.T
        weights = scores.apply(lambda s: mpmath.exp(scale * s))
    else:
        values = v
        assert isinstance(mechanism, Kernel)
        features = mechanism.features
        if isinstance(features, PositiveRandom):
            w, root = to_mp(features.directions), mpmath.sqrt(scale)

            def phi(z: list[Number]) -> list[Number]:
                z = [root * entry for entry in z]
                half = sum(entry**2 for entry in z) / 2
                dots = [sum(w[f, c] * z[c] for c in range(size)) for f in range(w.rows)]
                return [mpmath.exp(dot - half) for dot in dots]
        else:

            def phi(z: list[Number]) -> list[Number]:
                return [entry + 1 if entry > 0 else mpmath.exp(entry) for entry in z]

        queries = [phi([q[i, c] for c in range(size)]) for i in range(n)]
        keys = [phi([k[i, c] for c in range(size)]) for i in range(n)]
        weights = mpmath.matrix(
            [[mpmath.fdot(zip(one, two, strict=True)) for two in keys] for one in queries]
        )
    for i in range(n):
        total = sum(weights[i, j] for j in range(weights.cols))
        for j in range(weights.cols):
            weights[i, j] /= total
    return weights * values * to_mp(a.output.weight).T


SMALL: dict[str, Mechanism] = {
    "elu": Kernel(Elu()),
    "performer": Kernel(PositiveRandom(orthogonal_directions(5, 3, seeded(1)))),
    "linformer": projected.gaussian(2, 4, seeded(2)),
    "pooling": projected.pooling(2, 4),
}


@pytest.mark.parametrize("exponent", [-20, -120])
@pytest.mark.parametrize("name", SMALL)
def test_residuals_far_below_rounding_are_right(name: str, exponent: int) -> None:
    mechanism, a = SMALL[name], attention(3, 1, biases=False)
    generator = seeded(9)
    shared = torch.randn(1, 3, generator=generator, dtype=torch.float64)
    residual = torch.randn(1, 4, 3, generator=generator, dtype=torch.float64)
    residual = residual - residual.mean(1, keepdim=True)
    entering = CenteredState(shared, residual, torch.tensor([float(exponent)]).double())
    leaving = CenteredMechanism(mechanism).attend(entering, a, Layout.contiguous(4))
    with mpmath.workdps(250):
        scale = mpmath.mpf(2) ** exponent
        x = scale * to_mp(residual[0])
        for i in range(4):
            # The residual's rows sum to zero only as far as float64 goes.
            center = [sum(to_mp(residual[0])[r, c] for r in range(4)) / 4 for c in range(3)]
            for c in range(3):
                x[i, c] += mpmath.mpf(shared[0, c].item()) - scale * center[c]
        y = exactly(name, mechanism, x, a)
        got = leaving.residual[0]
        size = mpmath.mpf(2) ** int(leaving.exponent.item())
        for c in range(3):
            mean = sum(y[i, c] for i in range(4)) / 4
            for i in range(4):
                expected = float((y[i, c] - mean) / size)
                assert got[i, c].item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert leaving.exponent < entering.exponent * (0.8 if name == "linformer" else 2.5)


def test_features_of_a_performer_approach_softmax() -> None:
    x, a = 0.2 * states(1), attention()  # the variance of features is exponential in scores
    softmax = torch.cat([p for _, p in attention_rows(x, a, Layout.contiguous(TOKENS))], dim=2)
    errors = []
    for features in (2**6, 2**11, 2**16):
        directions = orthogonal_directions(features, WIDTH // HEADS, seeded(1))
        approached = Kernel(PositiveRandom(directions)).operator(x, a)
        errors.append(float((approached - softmax).norm() / softmax.norm()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < min(0.02, errors[0] / 8)


def test_a_window_as_wide_as_the_input_is_softmax() -> None:
    x, a = states(), attention()
    masked = Attention(
        **{**vars(a), "terms": (patterns.Mask(patterns.window(TOKENS, 2 * TOKENS + 1)),)}
    )
    layout, dense = Layout.contiguous(TOKENS), Dense(torch.float64)
    torch.testing.assert_close(dense.attend(x, masked, layout), dense.attend(x, a, layout))


def test_patterns_allow_what_they_say() -> None:
    window = patterns.window(10, 3)[0]
    assert window.sum(1).tolist() == [2, *[3] * 8, 2]
    strided = patterns.strided(16)[0]
    assert strided[0].nonzero().flatten().tolist() == [0, 1, 2, 3, 4, 8, 12]
    random = patterns.random(20, 5, 3, seeded())
    assert bool((random.sum(-1) == 5).all())
    assert bool(random.diagonal(dim1=1, dim2=2).all())
    assert not torch.equal(random[0], random[1])
    big = patterns.big_bird(20, 3, 2, 4, 3, seeded())
    assert bool(big[:, :2].all()) and bool(big[:, :, :2].all())
    assert bool((big[:, 10] & patterns.window(20, 3)[0][10]).sum() == 9)
    assert 2 + 3 + 1 <= int(big[0, 10].sum()) <= 2 + 3 + 4


def test_what_a_pattern_forbids_gets_no_weight_and_alibi_falls_with_distance() -> None:
    x, a = states(1), attention()
    pattern = patterns.window(TOKENS, 5)
    layout = Layout.contiguous(TOKENS)
    masked = Attention(**{**vars(a), "terms": (patterns.Mask(pattern),)})
    p = torch.cat([rows for _, rows in attention_rows(x, masked, layout)], dim=2)
    assert bool((p[0][:, ~pattern[0]] == 0).all()) and bool((p[0][:, pattern[0]] > 0).all())
    equal = x[:, :1].expand_as(x)
    sloped = Attention(**{**vars(a), "terms": (Alibi(0.3, a.scale),)})
    p = torch.cat([rows for _, rows in attention_rows(equal, sloped, layout)], dim=2)
    logs = p[0, 0].log()
    assert (logs[4, 4] - logs[4, 7]).item() == pytest.approx(0.9)
    assert (logs[4, 4] - logs[4, 1]).item() == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("name", "left"), [("elu", 8), ("performer", 8), ("even", 8), ("pooling", 8), ("linformer", 2)]
)
def test_halving_a_small_residual_shows_the_order(name: str, left: float) -> None:
    a, layout = attention(), Layout.contiguous(TOKENS)
    centered = CenteredMechanism(MECHANISMS[name])
    entering = centered.enter(states(1))
    sizes = []
    for exponent in (-200.0, -201.0):
        small = CenteredState(entering.shared, entering.residual, torch.tensor([exponent]).double())
        y = centered.attend(small, a, layout)
        sizes.append(float(y.residual.norm().log2() + y.exponent))
    assert 2 ** (sizes[0] - sizes[1]) == pytest.approx(left, rel=1e-9)


def test_projections_keep_the_constant_vector_where_they_should() -> None:
    ones = torch.ones(TOKENS, dtype=torch.float64)
    for name in ("even", "pooling"):
        mechanism = MECHANISMS[name]
        assert isinstance(mechanism, projected.Projected)
        torch.testing.assert_close(mechanism.projection @ ones, ones[:4])


def test_every_mechanism_of_the_catalogue_has_the_same_weights_and_runs() -> None:
    budget = Budget(Size(2, 2, 16), 64)
    x = embedded(1, 64, 16, seeded())
    for entry in CATALOGUE:
        drawn = prepare(entry, budget, seeded(1))
        blocks = random_blocks(budget.size, seeded(2), terms=drawn.terms)
        first = random_blocks(budget.size, seeded(2))
        assert torch.equal(blocks[1].attention.value.weight, first[1].attention.value.weight)
        p = drawn.operator(x, blocks[0].attention)
        assert p.shape == (1, 2, 64, 64)
        sums = p.sum(-1)
        assert torch.allclose(sums, torch.ones_like(sums)) == entry.even, entry.name
        if entry.pattern is not None:
            assert 12 <= float((p[0, 0] > 0).double().sum(1).mean()) <= 23
