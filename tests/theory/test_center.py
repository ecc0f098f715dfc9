"""The centres against brute force, exact fractions, and solvers that know nothing of the method."""

import dataclasses
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from rankcollapse.errors import InputError, OptionError
from rankcollapse.metrics import composite_norm
from rankcollapse.theory import optimal_center
from rankcollapse.theory.center import LARGEST, Residual, residual

Array = NDArray[np.float64]

shapes = st.tuples(st.integers(1, 7), st.integers(1, 5))
whole = arrays(np.float64, shapes, elements=st.integers(-4, 4).map(float))
real = arrays(np.float64, shapes, elements=st.floats(-8, 8, width=16))
matrices = whole | real


def norms(x: Array, c: Array) -> tuple[float, float]:
    size = np.abs(x - c)
    return float(size.sum(0).max()), float(size.sum(1).max())


def composite(x: Array, c: Array) -> float:
    return math.sqrt(math.prod(norms(x, c)))


def program(x: Array, p: float, q: float) -> Array:
    """A centre that minimises p‖·‖₁ + q‖·‖∞, by the textbook program: one bound for each entry."""
    n, d = x.shape
    entries, size = n * d, n * d + d + 2
    rows, right = [], []
    for (i, j), sign in itertools.product(np.ndindex(n, d), (1, -1)):
        row = np.zeros(size)
        row[i * d + j], row[entries + j] = -1, -sign
        rows.append(row)
        right.append(-sign * x[i, j])
    for chosen, norm in [
        *((np.arange(n) * d + j, -2) for j in range(d)),
        *((np.arange(d) + i * d, -1) for i in range(n)),
    ]:
        row = np.zeros(size)
        row[chosen], row[norm] = 1, -1
        rows.append(row)
        right.append(0.0)
    cost = np.zeros(size)
    cost[-2:] = p, q
    found = linprog(cost, np.array(rows), right, bounds=(None, None))
    assert found.status == 0
    return found.x[entries:-2]


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def test_mean_and_median_by_hand() -> None:
    x = torch.tensor([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]])
    mean, median = residual(x), residual(x, "median")
    assert mean.center.tolist() == [3, 20]
    assert mean.matrix.tolist() == [[-2, -10], [-1, -10], [3, 20]]
    assert mean.norm == pytest.approx(math.sqrt(40 * 23))
    assert median.center.tolist() == [2, 10]
    assert median.matrix.tolist() == [[-1, 0], [0, 0], [4, 30]]
    assert median.norm == pytest.approx(math.sqrt(30 * 34))
    # Half the distance of the first token from the last, times the median's ‖·‖₁.
    assert mean.lower == pytest.approx(math.sqrt(30 * 35 / 2))
    assert median.lower == mean.lower


def test_optimal_by_hand() -> None:
    """At c = 3t, a b = 9 (1 + 4t) max(1 − t, t) is smallest at t = 0."""
    x = np.zeros((6, 1))
    x[0] = 3
    found = residual(x, "optimal")
    assert found.norm == pytest.approx(3)
    assert found.center.numpy() == pytest.approx([0], abs=1e-9)
    assert found.gap <= 1e-6


def test_the_mean_is_the_default_and_agrees_with_the_other_measures() -> None:
    x = torch.from_numpy(random(0, 7, 5))
    assert residual(x).norm == residual(x, "mean").norm
    rest = x - x.mean(0)
    assert residual(x).norm == pytest.approx(float(composite_norm(rest[None])))
    torch.testing.assert_close(residual(x).matrix, rest)


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_optimal_against_a_grid_and_local_refinement(shape: tuple[int, int], seed: int) -> None:
    x = random(seed, *shape)
    axes = [np.linspace(low, high, 41) for low, high in zip(x.min(0), x.max(0), strict=True)]
    grid = sorted(itertools.product(*axes), key=lambda c: composite(x, np.array(c)))
    refined = [
        minimize(lambda c: composite(x, c), c, method="Nelder-Mead", options={"xatol": 1e-10})
        for c in grid[:5]
    ]
    brute = min(found.fun for found in refined)
    found = residual(x, "optimal")
    assert found.gap <= 1e-6
    assert found.lower <= brute
    assert found.norm <= brute * (1 + 1e-6)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=40))
def test_one_feature_against_exact_fractions(entries: list[int]) -> None:
    """In one dimension a·b is concave between the entries and their mid-range: best at one."""
    x = [Fraction(entry) for entry in entries]
    candidates = [*x, (min(x) + max(x)) / 2]
    exact = min(
        sum(abs(entry - c) for entry in x) * max(abs(entry - c) for entry in x) for c in candidates
    )
    found = residual(np.array(entries, dtype=float)[:, None], "optimal")
    assert Fraction(found.lower) ** 2 <= exact
    assert found.norm == pytest.approx(math.sqrt(exact), rel=1e-6)
    assert found.lower == pytest.approx(math.sqrt(exact), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_a_generic_solver_in_its_own_direction(seed: int) -> None:
    """At the minimum of √(ab), a' / a + b' / b is at least 2, and 2 there: SLSQP finds no less."""
    x = random(seed, 5, 3)
    n, d = x.shape
    c = residual(x, "optimal").center.numpy()
    a, b = norms(x, c)

    def slack(v: Array) -> Array:
        t = v[d:-2].reshape(n, d)
        off = x - v[:d]
        return np.concatenate(
            [(t - off).ravel(), (t + off).ravel(), v[-2] - t.sum(0), v[-1] - t.sum(1)]
        )

    start = x.mean(0)
    first = np.concatenate([start, np.abs(x - start).ravel(), norms(x, start)])
    solved = minimize(
        lambda v: v[-2] / a + v[-1] / b,
        first,
        method="SLSQP",
        constraints={"type": "ineq", "fun": slack},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solved.success
    assert solved.fun == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("weight", [0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_no_supporting_centre_beats_the_bound(weight: float) -> None:
    for seed in range(3):
        x = random(seed, 6, 4)
        found = residual(x, "optimal")
        c = program(x, weight, 1 / weight)
        assert found.lower <= composite(x, c)
        assert found.norm <= composite(x, c) * (1 + 1e-6)


def test_alternation_can_be_stuck_where_the_optimum_is_not() -> None:
    """Minimise a / a₀ + b / b₀ with (a₀, b₀) from the last centre, and so on, from the mean."""
    x = np.array([[3.0], [0], [4], [4]])
    c = x.mean(0)
    for _ in range(10):
        a, b = norms(x, c)
        c = program(x, 1 / a, 1 / b)
    assert c == pytest.approx([3])
    assert composite(x, c) == pytest.approx(math.sqrt(15))
    found = residual(x, "optimal")
    assert found.center.numpy() == pytest.approx([2])
    assert found.norm == pytest.approx(math.sqrt(14))


@given(matrices)
@settings(deadline=None)
def test_the_mean_is_near_the_best_in_either_norm(x: Array) -> None:
    n = len(x)
    mean = norms(x, x.mean(0))
    first = norms(x, np.median(x, 0))[0]
    second = norms(x, program(x, 0, 1))[1]
    assert mean[0] <= 2 * (1 - 1 / n) * first + 1e-6
    assert mean[1] <= 2 * (1 - 1 / n) * second + 1e-6
    assert first <= norms(x, program(x, 1, 0))[0] + 1e-6
    if n > 1:
        assert residual(x).gap <= 1 - 2 / n + 1e-9


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_single_row_attains_the_factor_in_both_norms(n: int) -> None:
    x = np.zeros((n, 2))
    x[0] = 1, -3
    mean = norms(x, x.mean(0))
    assert mean[0] / norms(x, np.median(x, 0))[0] == pytest.approx(2 * (1 - 1 / n))
    assert mean[1] / norms(x, x[0] / 2)[1] == pytest.approx(2 * (1 - 1 / n))


@given(matrices, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_bounds_and_order(x: Array, seed: int) -> None:
    mean, median, optimal = (residual(x, c) for c in ("mean", "median", "optimal"))
    assert optimal.norm <= min(mean.norm, median.norm)
    assert optimal.gap <= 1e-6
    other = x.mean(0) + np.random.default_rng(seed).normal(size=x.shape[1])
    for found in (mean, median, optimal):
        assert found.lower <= found.norm
        assert found.lower <= optimal.norm
        assert found.lower <= composite(x, other)
        assert found.gap >= 0
        assert composite(x, found.center.numpy()) == pytest.approx(found.norm, abs=1e-12)
        assert found.matrix.numpy() == pytest.approx(x - found.center.numpy(), abs=1e-12)


@given(matrices, st.integers(0, 2**32 - 1), st.sampled_from(["mean", "median", "optimal"]))
@settings(deadline=None)
def test_order_and_shift_of_tokens_do_not_matter(x: Array, seed: int, center: str) -> None:
    rng = np.random.default_rng(seed)
    found = residual(x, center)
    permuted = residual(x[rng.permutation(len(x))], center)
    shifted = residual(x + rng.integers(-9, 9, x.shape[1]), center)
    assert permuted.norm == pytest.approx(found.norm, rel=2e-6, abs=1e-12)
    assert shifted.norm == pytest.approx(found.norm, rel=2e-6, abs=1e-12)


@pytest.mark.parametrize("center", ["mean", "median", "optimal"])
@pytest.mark.parametrize("exponent", [600, 1000, -600, -1000])
def test_scale_does_not_matter(center: str, exponent: int) -> None:
    x = random(1, 9, 6)
    found, scaled = residual(x, center), residual(np.ldexp(x, exponent), center)
    assert scaled.norm == math.ldexp(found.norm, exponent)
    assert scaled.lower == math.ldexp(found.lower, exponent)
    assert scaled.gap == found.gap
    assert scaled.center.numpy() == pytest.approx(np.ldexp(found.center.numpy(), exponent))


@pytest.mark.parametrize("scale", [1e-318, 1e-300, 1e300])
def test_the_ends_of_float64(scale: float) -> None:
    found = residual(random(2, 9, 6) * scale, "optimal")
    assert found.gap <= 1e-6
    assert 0 < found.lower <= found.norm < math.inf


def test_columns_of_very_different_scales() -> None:
    x = random(3, 9, 5) * np.array([1, 1e-5, 1e-12, 1e-100, 1e-200])
    assert residual(x, "optimal").gap <= 1e-6


def test_a_large_common_row_does_not_swamp_the_residual() -> None:
    x = random(4, 8, 5).round(3)
    exact = residual(x * 2.0**-20, "optimal")
    found = residual(np.round(x * 2.0**20) * 2.0**-40 + 2.0**10, "optimal")
    assert found.gap <= 1e-6
    assert found.norm == pytest.approx(exact.norm, rel=1e-4)


@pytest.mark.parametrize("center", ["mean", "median", "optimal"])
@pytest.mark.parametrize(
    "x", [np.array([[3.0, -1e300]]), np.full((5, 3), 0.1), np.zeros((4, 1)), np.full((1, 1), 7)]
)
def test_equal_tokens_have_no_residual(center: str, x: Array) -> None:
    found = residual(x, center)
    assert (found.norm, found.lower, found.gap) == (0, 0, 0)
    assert found.center.tolist() == x[0].tolist()
    assert not found.matrix.any()


def test_a_constant_column_stays_out() -> None:
    x = random(5, 6, 3)
    constant = np.insert(x, 1, 1e6, axis=1)
    found = residual(constant, "optimal")
    assert found.norm == pytest.approx(residual(x, "optimal").norm, rel=2e-6)
    assert found.center[1] == 1e6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_other_types_are_computed_in_float64(dtype: torch.dtype) -> None:
    x = (torch.arange(12).reshape(4, 3) ** 2 % 7).to(dtype)
    found = residual(x, "optimal")
    assert found.matrix.dtype == found.center.dtype == torch.float64
    assert found.norm == residual(x.double(), "optimal").norm
    assert residual(x.tolist(), "optimal").norm == found.norm


def test_a_tensor_of_a_graph_is_detached_and_left_alone() -> None:
    x = torch.randn(4, 3, requires_grad=True)
    kept = x.detach().clone()
    assert not residual(x, "optimal").matrix.requires_grad
    assert torch.equal(x, kept)


@pytest.mark.parametrize("seed", range(4))
def test_random_matrices_gain_a_few_percent(seed: int) -> None:
    x = random(seed, 32, 64)
    optimal = residual(x, "optimal").norm
    assert 0.02 < 1 - optimal / residual(x).norm < 0.11
    assert 0.02 < 1 - optimal / residual(x, "median").norm < 0.11


def test_many_tokens_of_few_features_and_few_of_many() -> None:
    for shape in [(300, 3), (3, 300)]:
        assert residual(random(6, *shape), "optimal").gap <= 1e-6


@pytest.mark.parametrize("tolerance", [0.05, 1e-3, 1e-15])
def test_the_tolerance_is_kept_or_the_precision_of_the_solver(tolerance: float) -> None:
    found = residual(random(7, 20, 30), "optimal", tolerance=tolerance)
    assert 0 <= found.gap <= max(tolerance, 1e-8)


def test_the_bound_does_not_rely_on_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multipliers and weights that are far off cost sharpness, never soundness."""
    x = random(8, 6, 4)
    exact = residual(x, "optimal")
    rng = np.random.default_rng(0)
    solve = linprog

    def sloppy(*arguments: object, **options: object) -> object:
        found = solve(*arguments, **options)  # pyright: ignore
        found.ineqlin.marginals *= rng.uniform(0.3, 3, len(found.ineqlin.marginals))
        found.x *= rng.uniform(0.5, 1, len(found.x))
        return found

    monkeypatch.setattr(optimal_center, "linprog", sloppy)
    for _ in range(20):
        found = residual(x, "optimal")
        assert found.lower <= exact.norm <= found.norm * (1 + 1e-6)


def test_a_solver_that_fails_leaves_an_honest_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(9, 6, 4)
    exact, mean, median = (residual(x, c) for c in ("optimal", "mean", "median"))

    class Failed:
        status = 4

    monkeypatch.setattr(optimal_center, "linprog", lambda *_, **__: Failed())
    found = residual(x, "optimal")
    assert found.norm == pytest.approx(min(mean.norm, median.norm))
    assert found.lower == pytest.approx(mean.lower)
    assert found.norm / (1 + found.gap) <= exact.norm


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([[1.0, math.nan]], InputError, "NaN or infinity"),
        (torch.tensor([[math.inf]]), InputError, "NaN or infinity"),
        (np.zeros(3), InputError, r"\(3,\)"),
        (torch.zeros(2, 3, 4), InputError, r"\(2, 3, 4\)"),
        (np.zeros((0, 3)), InputError, r"\(0, 3\)"),
        (np.array([[1j]]), InputError, "complex128"),
        (torch.tensor([[1j]]), InputError, "complex64"),
        (np.array([["a"]]), InputError, "real numbers"),
        (np.full((2, 2), 1e308), InputError, "1.0e\\+308"),
        ([[1.0], [2.0, 3.0]], InputError, "rows of different lengths"),
        (torch.eye(2).to_sparse(), InputError, "sparse"),
        (torch.empty(2, 2, device="meta"), InputError, "without data"),
    ],
)
def test_what_is_no_matrix_is_refused(x: Array, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        residual(x)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(OptionError, match="'mode' does not exist: choose one of mean, median"):
        residual(np.eye(2), "mode")
    for tolerance in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(OptionError, match="has to be a positive number"):
            residual(np.eye(2), "optimal", tolerance=tolerance)


def test_a_matrix_too_large_for_the_optimal_centre_is_refused() -> None:
    x = torch.zeros(LARGEST // 100 + 1, 100)
    said = re.escape(f"{len(x)} × 100 = {x.numel()} entries") + f".*{LARGEST}.*median"
    with pytest.raises(OptionError, match=said):
        residual(x, "optimal")
    assert residual(x, "median").norm == residual(x).norm == 0


def test_the_result_is_frozen_and_says_what_it_is() -> None:
    found = residual(np.array([[1.0, 3, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]))
    assert repr(found) == "Residual(4 tokens × 3, norm=3.67423, lower=2.44949, gap=5.0e-01)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.norm = 0  # pyright: ignore
    assert isinstance(found, Residual)
