import json

import numpy as np
import pytest
import torch
import xarray as xr

from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.initial import Size, embedded, random_blocks
from rankcollapse.experiments.paired import margin, verdict
from rankcollapse.experiments.trajectory import log10_residuals
from rankcollapse.experiments.xformers import xformers
from rankcollapse.experiments.xformers.mechanisms.catalogue import CATALOGUE, Budget, prepare
from rankcollapse.report.picture import svg
from rankcollapse.report.style import LIGHT
from rankcollapse.streams import Dense

SMALL = {"layers": 6, "heads": 2, "width": 64, "tokens": 64, "samples": 2}


def silent(done: float, total: float) -> None:
    assert 0 <= done <= total


def small(seed: int, gain: float) -> xr.Dataset:
    return xformers.measure(seed, gain, **SMALL, progress=silent)


@pytest.fixture(scope="module")
def combined() -> xr.Dataset:
    results = {f"gain{g:g}-seed{s}": small(s, g) for s in range(3) for g in xformers.GAINS}
    return xformers.EXPERIMENT.combine(Settings(), results)


def test_softmax_is_the_models_own_pass(combined: xr.Dataset) -> None:
    x = embedded(2, 64, 64, torch.Generator().manual_seed(2))
    blocks = random_blocks(Size(6, 2, 64), torch.Generator().manual_seed(3), gain=3.0)
    expected = log10_residuals(x, blocks, "san+skip", Dense(torch.float64)).mean(0)
    ours = combined["log10_relative_residual"].sel(
        mechanism="softmax", variant="san+skip", gain=3.0, seed=1
    )
    np.testing.assert_allclose(ours.values, expected, atol=1e-10)


def test_mechanisms_start_from_the_same_state_and_softmax_is_not_apart(
    combined: xr.Dataset,
) -> None:
    apart = combined["apart"]
    assert float(abs(apart.sel(layer=0)).max()) == 0
    assert float(abs(apart.sel(mechanism="softmax")).max()) == 0
    assert float(apart.sel(mechanism="window", variant="san", layer=2).min()) > 0.5


def test_orders_are_those_that_the_structure_predicts(combined: xr.Dataset) -> None:
    for entry in CATALOGUE:
        order = combined["local_order"].sel(mechanism=entry.name, gain=1.0, layer=6).values
        if entry.cubic:
            np.testing.assert_allclose(order, 3.0, atol=0.1, err_msg=entry.name)
        y = combined["log10_relative_residual"].sel(mechanism=entry.name, gain=1.0, variant="san")
        assert bool((y.sel(layer=6) > -20).all()) != entry.cubic


def test_random_keys_mix_faster_than_a_window_though_their_rank_is_higher(
    combined: xr.Dataset,
) -> None:
    y = combined["log10_relative_residual"].sel(variant="san", gain=1.0, layer=6)
    assert bool((y.sel(mechanism="random keys") < y.sel(mechanism="window") - 1).all())
    rank = combined["attention_rank"].sel(gain=1.0)
    assert bool((rank.sel(mechanism="random keys") > rank.sel(mechanism="window")).all())
    assert float(rank.max()) <= 64


def test_the_comparison_says_of_each_mechanism_whether_the_remark_holds(
    combined: xr.Dataset,
) -> None:
    rows = {row.quantity: row for row in xformers.EXPERIMENT.compare(combined)}
    window = rows["window, gain 1: decades above softmax after 2 layers"]
    assert window.remark == "Remark 1: confirmed." and window.source == "Remark 1: slower"
    linformer = rows["Linformer, random, gain 1: decades above softmax after 2 layers"]
    assert linformer.remark == "Remark 1: contradicted."
    by_rank, by_spread = (
        rows[f"rank correlation over mechanisms: {what}, and decades above softmax"].ours
        for what in ("effective rank", "spread of the rows")
    )
    assert min(by_spread) > 0.85 and min(by_spread) > max(by_rank)
    factor = rows["random keys: factor per layer over the last 3 layers"]
    assert all(0 < value < 0.5 for value in factor.ours)
    assert rows["softmax: order of the residual at the last layer"].published == 3.0


def test_rank_and_spread_are_those_of_the_matrix(combined: xr.Dataset) -> None:
    budget = Budget(Size(6, 2, 64), 64)
    entry = next(e for e in CATALOGUE if e.name == "BigBird")
    x = embedded(2, 64, 64, torch.Generator().manual_seed(0))
    drawn = prepare(entry, budget, torch.Generator().manual_seed(0))
    blocks = random_blocks(budget.size, torch.Generator().manual_seed(1), terms=drawn.terms)
    heads = drawn.operator(x[:1], blocks[0].attention)[0].numpy()
    center = np.eye(64) - 1 / 64
    spreads = [np.linalg.norm(center @ p @ center) / 8 for p in heads]
    ours = combined.sel(mechanism="BigBird", gain=1.0, seed=0)
    assert float(ours["attention_spread"]) == pytest.approx(np.mean(spreads), rel=1e-12)
    shares = [s / s.sum() for s in (np.linalg.svd(p)[1] for p in heads)]
    ranks = [np.exp(-(s * np.log(s)).sum()) for s in shares]
    assert float(ours["attention_rank"]) == pytest.approx(np.mean(ranks), rel=1e-9)


def test_verdicts_follow_the_interval_of_the_mean() -> None:
    rising = np.array([1.0, 1.2, 0.9])
    # t at 97.5 % with two degrees of freedom is 4.3027.
    assert margin(rising) == pytest.approx(4.3027 * rising.std(ddof=1) / 3**0.5, rel=1e-4)
    assert verdict(rising, 1, "A") == "A: confirmed."
    assert verdict(rising, -1, "A") == "A: contradicted."
    assert "undecided" in verdict(np.array([1.0, -0.9, 0.3]), 1, "A")
    assert verdict(np.array([1e-9, 2e-9]), 1, "A") == "A: no effect."
    assert "cannot say" in verdict(np.array([1.0]), 1, "A")


def test_parts_variables_and_charts(combined: xr.Dataset) -> None:
    parts = xformers.EXPERIMENT.parts(Settings(seeds=2))
    assert len({part.name for part in parts}) == 4
    assert json.loads(json.dumps(dict(parts[0].arguments))) == parts[0].arguments
    for name in combined.data_vars:
        assert {"long_name", "units", "definition"} <= set(combined[name].attrs), name
    drawn = xformers.EXPERIMENT.charts(combined, LIGHT)
    for picture in drawn.values():
        assert "Linformer, random, E1 = 1" in svg(picture)


def test_two_runs_give_the_same_numbers() -> None:
    first, second = (small(1, 1.0) for _ in range(2))
    assert first.identical(second)
