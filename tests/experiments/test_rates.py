import json
import math

import numpy as np
import pytest
import torch
import xarray as xr

from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.rates import rates, skip_cases
from rankcollapse.experiments.rates.cases import CASES, FOLLOWED, TOKENS, measure
from rankcollapse.metrics import local_order
from rankcollapse.report.picture import svg
from rankcollapse.report.style import LIGHT

CASE = {case.name: case for case in CASES}


def silent(done: float, total: float) -> None:
    assert 0 <= done <= total


def second(scores: np.ndarray) -> float:
    """|λ₂| of softmax(scores), by numpy."""
    p = np.exp(scores)
    return float(np.sort(np.abs(np.linalg.eigvals(p / p.sum(1, keepdims=True))))[-2])


STEPS = np.arange(TOKENS)
DISTANCE = np.abs(STEPS[:, None] - STEPS)


@pytest.mark.parametrize(
    ("name", "scores"),
    [
        ("causal mask", np.where(STEPS[:, None] >= STEPS, 0.0, -np.inf)),
        ("band of 13", np.where(DISTANCE <= 6, 0.0, -np.inf)),
        ("ALiBi 0.25", -0.25 * DISTANCE),
    ],
)
def test_masks_and_slopes_leave_the_second_eigenvalue(name: str, scores: np.ndarray) -> None:
    measured = measure(CASE[name], 0, 60)
    expected = second(scores)
    assert float(measured["lambda2"]) == pytest.approx(expected, rel=1e-3)
    assert float(measured["factor"]) == pytest.approx(expected, rel=1e-3)
    published = CASE[name].factor
    assert published is None or expected == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize("name", ["rotary, scores 1", "relative, scores 0.5"])
def test_positions_from_weights_leave_it_too(name: str) -> None:
    measured = measure(CASE[name], 1, 60)
    assert 0.01 < float(measured["lambda2"]) < 0.9
    assert float(measured["factor"]) == pytest.approx(float(measured["lambda2"]), rel=0.05)


def test_content_alone_is_cubed_and_followed_for_a_few_layers() -> None:
    measured = measure(CASE["content alone"], 0, 60)
    y = measured["log10_relative_residual"].values
    assert np.isfinite(y).sum() == FOLLOWED + 1
    assert local_order(y[: FOLLOWED + 1])[-1] == pytest.approx(3.0, abs=1e-3)
    assert math.isnan(float(measured["factor"]))


def test_random_values_with_skips_are_x_plus_p_x_w() -> None:
    measured = skip_cases.random_values(3, 4)
    for strength in skip_cases.STRENGTHS:
        generator = torch.Generator().manual_seed(3)
        d, n = skip_cases.WIDTH, skip_cases.TOKENS
        std = strength / d**0.5
        shape = (d, d)
        weights = [
            std * torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(4)
        ]
        rows = torch.randn(1, n, d, generator=generator, dtype=torch.float64)
        x = (rows + torch.randn(d, generator=generator, dtype=torch.float64))[0].numpy()
        energies = []
        for weight in [None, *weights]:
            if weight is not None:
                x = x + x.mean(0) @ weight.numpy().T
            residual = x - x.mean(0)
            energies.append((residual**2).sum() / (n * (x.mean(0) ** 2).sum()))
        ours = measured["log10_energy_ratio"].sel(strength=strength).values
        np.testing.assert_allclose(ours, np.log10(energies), rtol=1e-10, atol=1e-12)


def test_random_values_contract_the_residuals_energy_as_noci_et_al_say() -> None:
    factors = xr.concat([skip_cases.random_values(seed, 12) for seed in range(6)], "seed")
    for a in skip_cases.STRENGTHS:
        mean = float(factors["energy_factor"].sel(strength=a).mean())
        assert mean == pytest.approx(1 / (1 + a * a), rel=0.04)


def test_identity_values_sharpen_or_collapse_by_one_over_one_plus_h() -> None:
    factors = skip_cases.identity_values(0, 6)["norm_factor"]
    for h in skip_cases.EIGENVALUES:
        assert float(factors.sel(eigenvalue=h)) == pytest.approx(1 / (1 + h), rel=1e-4)
    assert float(factors.sel(eigenvalue=-0.5)) > 1


@pytest.fixture(scope="module")
def combined() -> xr.Dataset:
    settings = Settings(quick=True, seeds=2)
    results = {}
    for seed in range(2):
        results[f"scores-seed{seed}"] = rates.scores(seed, 24, silent)
        results[f"skips-seed{seed}"] = rates.skips(seed, 24, silent)
        results[f"xlnet-seed{seed}"] = rates.xlnet(seed, 4, 1, 16, silent)
    return rates.EXPERIMENT.combine(settings, results)


def test_parts_are_the_functions_that_are_combined() -> None:
    parts = rates.EXPERIMENT.parts(Settings(seeds=3))
    assert len(parts) == 9 and len({part.name for part in parts}) == 9
    for part in parts:
        assert json.loads(json.dumps(dict(part.arguments))) == part.arguments
        assert part.seconds > 0


def test_the_comparison_states_what_theory_expects(combined: xr.Dataset) -> None:
    rows = {row.quantity: row for row in rates.EXPERIMENT.compare(combined)}
    assert rows["content alone: order of the residual"].published == 3.0
    band = rows["band of 9, scores near 0: factor per layer"]
    assert band.published == 0.96 and len(band.ours) == 2
    growing = rows["X + hPX, h = -0.25: factor of the residual's share"]
    assert growing.ours == pytest.approx([4 / 3, 4 / 3], rel=1e-3)
    xlnet = rows["XLNet-base at initialisation: factor per layer"]
    assert all(0.03 < value < 0.07 for value in xlnet.ours)


def test_variables_are_described_and_charts_can_be_drawn(combined: xr.Dataset) -> None:
    for name in combined.data_vars:
        assert {"long_name", "units", "definition"} <= set(combined[name].attrs), name
    drawn = rates.EXPERIMENT.charts(combined, LIGHT)
    assert set(drawn) == {"rates", "rates_predicted", "rates_skips"}
    assert "ALiBi 0.25" in svg(drawn["rates"])


def test_two_runs_give_the_same_numbers() -> None:
    first, second = (rates.scores(1, 24, silent) for _ in range(2))
    assert first.identical(second)
