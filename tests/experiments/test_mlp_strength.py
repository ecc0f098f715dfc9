import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.initial import Size, embedded, random_blocks
from rankcollapse.experiments.mlp_strength import mlp_strength, sensitivity
from rankcollapse.report.picture import svg
from rankcollapse.report.style import LIGHT


def silent(done: float, total: float) -> None:
    assert 0 <= done <= total


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("activation", mlp_strength.ACTIVATIONS)
def test_a_stronger_mlp_is_the_same_function_scaled_within_or_without(activation: str) -> None:
    (block,) = random_blocks(Size(1, 2, 8, 16), seeded(), std=None, activation=activation)
    x = torch.randn(3, 5, 8, generator=seeded(1), dtype=torch.float64)
    assert block.mlp is not None
    louder = mlp_strength.stronger(block, 3.0, "s·f(x)").mlp
    steeper = mlp_strength.stronger(block, 3.0, "f(s·x)").mlp
    assert louder is not None and steeper is not None
    torch.testing.assert_close(louder(x), 3 * block.mlp(x))
    torch.testing.assert_close(steeper(x), block.mlp(3 * x))


def small_network() -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    x = embedded(1, 4, 6, seeded(1))
    blocks = random_blocks(Size(2, 2, 6, 12), seeded(), std=None)
    return x, sensitivity.network(blocks, "transformer")


def jacobian(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    result = torch.autograd.functional.jacobian(function, x)
    assert isinstance(result, Tensor)
    return result.reshape(x.numel(), x.numel())


def test_the_derivative_is_the_jacobian_both_ways() -> None:
    x, function = small_network()
    matrix = jacobian(function, x)
    derivative = sensitivity.Derivative(function, x)
    v, w = torch.randn(2, *x.shape, generator=seeded(4), dtype=torch.float64)
    torch.testing.assert_close(derivative.push(v).flatten(), matrix @ v.flatten())
    torch.testing.assert_close(derivative.pull(w).flatten(), matrix.T @ w.flatten())


def test_the_worst_sensitivity_is_the_largest_singular_value() -> None:
    x, function = small_network()
    values = torch.linalg.svdvals(jacobian(function, x))
    expected = float(values[0] * x.norm() / function(x).norm())
    derivative = sensitivity.Derivative(function, x)
    ours = sensitivity.largest(derivative, 200, seeded(2))
    assert ours == pytest.approx(expected, rel=1e-4)
    assert sensitivity.largest(derivative, 3, seeded(2)) <= expected * (1 + 1e-12)


def test_the_typical_sensitivity_is_that_of_small_random_changes() -> None:
    x, function = small_network()
    derivative = sensitivity.Derivative(function, x)
    ours = sensitivity.typical(derivative, 2000, seeded(2))
    # E‖J u‖² over unit u is ‖J‖_F² / N.
    matrix = jacobian(function, x)
    expected = float(matrix.norm() / x.numel() ** 0.5 * x.norm() / function(x).norm())
    assert ours == pytest.approx(expected, rel=0.05)
    change = 1e-6 * torch.randn(x.shape, generator=seeded(3), dtype=torch.float64)
    moved = (function(x + change) - function(x)).norm() / function(x).norm()
    one = sensitivity.typical(derivative, 1, seeded(3))
    assert one == pytest.approx(float(moved / (change.norm() / x.norm())), rel=1e-4)


@pytest.fixture(scope="module")
def combined() -> xr.Dataset:
    results = {
        f"{activation}-seed{seed}": mlp_strength.measure(seed, activation, [1.0, 16.0], 2, silent)
        for activation in mlp_strength.ACTIVATIONS
        for seed in range(3)
    }
    return mlp_strength.EXPERIMENT.combine(Settings(), results)


def test_without_norms_stronger_mlps_slow_collapse_and_do_not_end_it(combined: xr.Dataset) -> None:
    y = combined["log10_relative_residual"].sel(variant="san+mlp-norm", layer=6)
    assert bool((y.sel(factor=16.0) > y.sel(factor=1.0) + 20).all())
    assert bool((y.sel(factor=1.0) < -100).all())


def test_a_norm_undoes_a_louder_mlp_where_nothing_is_added_to_it(combined: xr.Dataset) -> None:
    chosen = combined.sel(variant="san+mlp", way="s·f(x)")
    for name in ("log10_relative_residual", "sensitivity"):
        low, high = (chosen[name].sel(factor=factor).values for factor in (1.0, 16.0))
        np.testing.assert_allclose(low, high, rtol=1e-8)


def test_steeper_bounded_mlps_buy_their_residual_with_sensitivity(combined: xr.Dataset) -> None:
    chosen = combined.sel(activation="tanh", way="f(s·x)")
    rise = np.log10(chosen["sensitivity"].sel(factor=16.0) / chosen["sensitivity"].sel(factor=1.0))
    assert bool((rise > 1).all())
    y = chosen["log10_relative_residual"].sel(layer=6)
    assert bool((y.sel(factor=16.0) > y.sel(factor=1.0)).all())


def test_the_comparison_has_both_sides_of_the_trade(combined: xr.Dataset) -> None:
    rows = {row.quantity: row for row in mlp_strength.EXPERIMENT.compare(combined)}
    start = "Attention and MLP, no norms, tanh, f(s·x): decades that "
    assert rows[f"{start}residual 6 rises from s = 1 to 16"].remark == "§3.2: confirmed."
    assert rows[f"{start}sensitivity rises from s = 1 to 16"].remark == "§3.2: confirmed."
    none = "Attention and MLP, with norms, gelu, s·f(x): decades that sensitivity rises from s = "
    assert rows[f"{none}1 to 16"].remark == "§3.2: no effect."


def test_a_residual_that_saturation_takes_is_left_out(combined: xr.Dataset) -> None:
    results = {
        f"{activation}-seed{seed}": combined.sel(activation=activation, seed=seed)
        .drop_vars(["activation", "seed"])
        .copy(deep=True)
        for activation in mlp_strength.ACTIVATIONS
        for seed in range(3)
    }
    gone = {"variant": "san+mlp-norm", "way": "s·f(x)", "factor": 16.0, "layer": 6}
    results["gelu-seed1"]["log10_relative_residual"].loc[gone] = -np.inf
    mended = mlp_strength.EXPERIMENT.combine(Settings(), results)
    rows = {row.quantity: row for row in mlp_strength.EXPERIMENT.compare(mended)}
    start = "Attention and MLP, no norms, gelu, s·f(x): decades that residual 6 rises"
    assert len(rows[f"{start} from s = 1 to 16"].ours) == 2
    drawn = mlp_strength.EXPERIMENT.charts(mended, LIGHT)
    assert "NaN" not in json.dumps(drawn["mlp_trade"].to_dict())


def test_parts_variables_and_charts(combined: xr.Dataset) -> None:
    parts = mlp_strength.EXPERIMENT.parts(Settings(quick=True, seeds=2))
    assert len({part.name for part in parts}) == 4
    assert json.loads(json.dumps(dict(parts[0].arguments))) == parts[0].arguments
    for name in combined.data_vars:
        assert {"long_name", "units", "definition"} <= set(combined[name].attrs), name
    for picture in mlp_strength.EXPERIMENT.charts(combined, LIGHT).values():
        assert "tanh, f(s·x)" in svg(picture)


def test_two_runs_give_the_same_numbers(combined: xr.Dataset) -> None:
    again = mlp_strength.measure(1, "gelu", [1.0, 16.0], 2, silent)
    kept = combined.sel(activation="gelu", seed=1)
    np.testing.assert_array_equal(
        again["sensitivity"].values,
        kept["sensitivity"].transpose("variant", "way", "factor").values,
    )
