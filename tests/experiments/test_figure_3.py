"""Figure 3: the circle, with training cut short."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.figure_3 import figure_3
from rankcollapse.experiments.figure_3.charts import FLOOR
from rankcollapse.experiments.figure_3.figure_3 import EXPERIMENT, PUBLISHED, run
from rankcollapse.experiments.figure_3.rows import lasting
from rankcollapse.experiments.figure_3.ways import MOVED, meeting, thinned
from rankcollapse.report.picture import svg
from rankcollapse.report.style import LIGHT


def quiet(done: float, total: float) -> None:
    assert 0 <= done <= total


def one(variant: str, width: int, seed: int = 0, **changes: Any) -> xr.Dataset:
    arguments: dict[str, Any] = {
        "init": "published",
        "as_published": False,
        "training": 20,
        **changes,
    }
    return run(variant=variant, width=width, seed=seed, progress=quiet, **arguments)


@pytest.fixture(scope="module", autouse=True)
def shorter() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_3, "STEPS", 100)
        yield


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    parts = {
        f"{init}{variant}{width}{seed}": one(variant, width, seed, init=init)
        for init in ("published", "pytorch")
        for variant in PUBLISHED
        for width in (32, 64)
        for seed in (0, 1)
    }
    return EXPERIMENT.combine(Settings(quick=True), parts)


def test_parts_cover_widths_variants_and_seeds() -> None:
    parts = EXPERIMENT.parts(Settings())
    assert len(parts) == len({part.name for part in parts}) == 2 * 3 * 3 * 4
    assert {part.arguments["width"] for part in parts} == {32, 64, 128}
    assert sum(part.seconds for part in parts) < 2 * 8 * 60
    quick = EXPERIMENT.parts(Settings(quick=True))
    assert len(quick) == 9 and sum(part.seconds for part in quick) < 20
    assert len(EXPERIMENT.parts(Settings(seeds=2))) == 36
    assert all(p.arguments["as_published"] for p in EXPERIMENT.parts(Settings(as_published=True)))


def test_a_part_repeats() -> None:
    first, again = one("attention", 32), one("attention", 32)
    xr.testing.assert_identical(first, again)
    other = one("attention", 32, seed=1)
    assert not np.array_equal(first["position"].values, other["position"].values)


def test_distances_are_those_of_the_positions(dataset: xr.Dataset) -> None:
    apart = dataset["position"].sel(point=1) - dataset["position"].sel(point=2)
    length = np.sqrt((apart**2).sum("coordinate"))
    np.testing.assert_allclose(dataset["distance"], length / 0.6, rtol=1e-6, atol=1e-12)
    assert (dataset["distance"].isel(step=0) == 1).all()
    start = dataset["position"].isel(step=0)
    assert np.allclose(start.sel(point=1, coordinate="x"), 0.3)


def test_training_brings_the_error_down() -> None:
    short, longer = one("attention", 32), one("attention", 32, training=300)
    assert longer["loss"].item() < 0.05 * short["loss"].item()
    assert longer["loss"].item() < 1e-3


def test_as_published_the_layer_keeps_its_skip_and_the_outer_one_is_a_sum() -> None:
    plain, published = one("attention", 32), one("attention", 32, as_published=True)
    assert not np.allclose(plain["position"], published["position"])
    bare, carried = published, one("attention + skip", 32, as_published=True)
    assert np.isnan(carried["growth"]).all() and np.isfinite(bare["growth"]).all()


def test_rows_say_whether_the_points_meet(dataset: xr.Dataset) -> None:
    made = dataset.copy(deep=True)
    place = {"init": "published", "variant": "attention", "width": 32}
    made["distance"].loc[{**place, "seed": 0, "step": slice(9, None)}] = 0
    made["distance"].loc[{**place, "seed": 1}] = 1
    rows = {row.quantity: row for row in EXPERIMENT.compare(made)}
    end = rows["attention, width 32: distance after 100 steps"]
    assert end.published is None and end.ours == (0.0, 1.0)
    assert "the points meet in 1 of 2 seeds" in end.remark
    lasts = rows["attention, width 32: steps until the distance has halved or doubled"]
    assert lasts.ours[1] == 100 and lasts.ours[0] <= 9
    growth = rows["attention: growth of a small error per step, mean over widths"]
    expected = dataset["growth"].sel(init="published", variant="attention").mean("width").values
    assert growth.ours == pytest.approx(tuple(expected))
    other = rows["attention, PyTorch's initialisation, width 32: distance after 100 steps"]
    assert other.ours != end.ours


def test_lasting() -> None:
    assert lasting(np.array([1, 0.9, 0.4, 1.0])) == 2
    assert lasting(np.array([1, 1.5, 2.5, 2.5])) == 2
    assert lasting(np.array([1, 1.5, 0.6])) == 2
    assert lasting(np.array([1.0, 1.0])) == 1


def test_points_have_met_when_they_stay_together() -> None:
    assert meeting(np.array([1, 1e-4, 0.5, 1e-4, 0, 0])) == 3
    assert meeting(np.array([1, 0.5, 0.2])) == 2
    assert meeting(np.array([1, 0.5, 1e-5])) == 2


def test_thinning_keeps_the_way() -> None:
    path = np.stack([np.linspace(0, 1, 4001), np.zeros(4001)], axis=1)
    kept = thinned(path)
    assert kept[0].tolist() == [0, 0] and kept[-1].tolist() == [1, 0]
    assert len(kept) < 300
    assert np.diff(kept[:, 0]).max() < 2 * MOVED


def test_charts(dataset: xr.Dataset) -> None:
    charts = EXPERIMENT.charts(dataset, LIGHT)
    assert list(charts) == ["fig3", "fig3_distance"]
    drawn = {name: svg(chart) for name, chart in charts.items()}  # type: ignore[arg-type]
    for variant in ("Attention", "Attention + MLP", "Attention + skip"):
        assert f"{variant}, width 64" in drawn["fig3"]
        assert variant in drawn["fig3_distance"]
    assert "PyTorch's init" in drawn["fig3_distance"]
    met = dataset.copy(deep=True)
    met["distance"].loc[{"step": slice(50, None)}] = 0
    lines = EXPERIMENT.charts(met, LIGHT)["fig3_distance"].to_dict()["datasets"].values()
    drawn_values = [point["y"] for line in lines for point in line if "y" in point]
    assert min(drawn_values) == pytest.approx(math.log10(FLOOR))


def test_data_describes_itself(dataset: xr.Dataset) -> None:
    for array in dataset.data_vars.values():
        assert {"long_name", "units", "definition"} <= set(array.attrs)
