"""Figure 4: accuracies by path length, with training cut short."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import xarray as xr

from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.figure_4 import figure_4
from rankcollapse.experiments.figure_4.chart import spread
from rankcollapse.experiments.figure_4.figure_4 import EXPERIMENT, run
from rankcollapse.experiments.figure_4.path_accuracy import (
    accuracy,
    subnetwork_accuracy,
    term_accuracies,
    whole_accuracy,
)
from rankcollapse.experiments.figure_4.task import Samples
from rankcollapse.experiments.learning.networks import Network, network
from rankcollapse.paths.subnetwork import subnetwork_path
from rankcollapse.report.picture import svg
from rankcollapse.report.style import LIGHT
from rankcollapse.streams import Graded
from rankcollapse.transformer import Layout, apply_block

WIDTH, LAYERS = 12, 3


SMALLER = {
    "memorization": {"sentences": 6, "lexicon": 2000, "steps": 1, "tested": 1},
    "sorting": {"steps": 5, "tested": 4},
    "convex hull": {"train": 100, "test": 20, "steps": 2, "tested": 4},
}


def quiet(done: float, total: float) -> None:
    assert 0 <= done <= total


@pytest.fixture(scope="module")
def net() -> Network:
    return network(
        torch.Generator().manual_seed(0),
        layers=LAYERS,
        heads=2,
        width=WIDTH,
        outputs=4,
        vocabulary=9,
        positions=5,
    )


@pytest.fixture(scope="module")
def samples(net: Network) -> Samples:
    """Labelled by the whole network itself, but for one token in four."""
    inputs = torch.randint(9, (120, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        labels = net(inputs).argmax(-1)
    labels[::2, ::2] = (labels[::2, ::2] + 1) % 4
    return Samples(inputs, labels)


def test_accuracy_of_the_whole(net: Network, samples: Samples) -> None:
    assert whole_accuracy(net, samples) == pytest.approx(1 - 60 * 3 / 600)


def test_length_0_is_the_read_out_of_the_embedding(net: Network, samples: Samples) -> None:
    with torch.no_grad():
        states = F.layer_norm(net.entry(samples.inputs), (WIDTH,))
        expected = accuracy(net.readout(states), samples.labels)
    assert subnetwork_accuracy(net, samples, 0, 5, 2, 0) == pytest.approx([expected] * 2)
    assert term_accuracies(net, samples).shape == (LAYERS + 1,)


def test_one_path_is_the_sub_network_of_that_path(net: Network, samples: Samples) -> None:
    """A path through all layers, drawn alone: one of the 2³ sub-networks."""
    model, ids = net.on(samples.inputs)
    possible = []
    for first in (1, 2):
        for second in (1, 2):
            for third in (1, 2):
                x = torch.stack(subnetwork_path(model, ids, [first, second, third]))
                logits = net.readout(F.layer_norm(x, (WIDTH,))).detach()
                possible.append(accuracy(logits, samples.labels))
    found = subnetwork_accuracy(net, samples, LAYERS, 1, 12, 0)
    assert len(set(found)) > 1
    for value in found:
        assert min(abs(value - other) for other in possible) < 0.005


def test_terms_are_those_of_the_graded_pass(net: Network, samples: Samples) -> None:
    arithmetic = Graded(torch.float32)
    with torch.no_grad():
        state = arithmetic.enter(net.entry(samples.inputs))
        for block in net.transformer.blocks:
            state = apply_block(state, block, Layout.contiguous(5), net.variant, arithmetic)
        found = term_accuracies(net, samples)
        for length in range(LAYERS + 1):
            logits = net.readout(F.layer_norm(state.terms["input", length], (WIDTH,)))
            assert found[length] == pytest.approx(accuracy(logits, samples.labels), abs=0.004)


def test_parts() -> None:
    parts = EXPERIMENT.parts(Settings())
    assert len({part.name for part in parts}) == len(parts) == 3 + 5 + 5
    assert sum(part.seconds for part in parts) < 2 * 25 * 60
    assert all(" " not in part.name for part in parts)
    quick = EXPERIMENT.parts(Settings(quick=True))
    assert len(quick) == 3 and sum(part.seconds for part in quick) <= 20
    asked = EXPERIMENT.parts(Settings(text="a.txt", as_published=True))
    named = {part.name: part.arguments for part in asked}
    assert named["memorization-seed0"]["text"] == "a.txt"
    assert named["sorting-seed0"]["text"] is None and named["sorting-seed0"]["as_published"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    with pytest.MonkeyPatch.context() as patch:
        for task, more in SMALLER.items():
            patch.setitem(figure_4.QUICK, task, {**figure_4.QUICK[task], **more})
        parts = {
            f"{task}{seed}": run(task, seed, False, True, None, progress=quiet)
            for task, seeds in (("memorization", 1), ("sorting", 2), ("convex hull", 1))
            for seed in range(seeds)
        }
        again = run("sorting", 1, False, True, None, progress=quiet)
    xr.testing.assert_identical(again, parts["sorting1"])
    place = tmp_path_factory.mktemp("parts")
    return EXPERIMENT.combine(
        Settings(quick=True), {k: kept(v, place / k) for k, v in parts.items()}
    )


def kept(dataset: xr.Dataset, path: Path) -> xr.Dataset:
    dataset.to_netcdf(path, engine="h5netcdf")
    return xr.load_dataset(path, engine="h5netcdf")


def test_parts_come_together(dataset: xr.Dataset) -> None:
    assert dataset["task"].values.tolist() == ["memorization", "sorting", "convex hull"]
    assert dataset["length"].values.tolist() == list(range(7))
    there = dataset["whole_accuracy"].notnull().sum("seed")
    assert there.values.tolist() == [1, 2, 1]
    for array in dataset.data_vars.values():
        assert {"long_name", "units", "definition"} <= set(array.attrs)
    values = dataset["subnetwork_accuracy"]
    assert float(values.min()) >= 0 and float(values.max()) <= 1
    # Paths of length 0 are all the same.
    start = values.sel(length=0)
    assert float((start.max(("count", "repeat")) - start.min(("count", "repeat"))).max()) == 0


def test_rows_state_the_claims(dataset: xr.Dataset) -> None:
    made = dataset.copy(deep=True)
    shape = made["subnetwork_accuracy"].sel(task="sorting")
    made["subnetwork_accuracy"].loc[{"task": "sorting"}] = shape * 0 + np.array(
        [0.2, 0.7, 0.4, 0.3, 0.2, 0.1, 0.1]
    )
    made["whole_accuracy"].loc[{"task": "sorting"}] = 0.981
    rows = {row.quantity: row for row in EXPERIMENT.compare(made)}
    whole = rows["sorting: whole network"]
    assert (whole.published, whole.resolution) == (0.98, 0.01) and whole.ours == (0.981, 0.981)
    first = rows["sorting: 20 paths of length 1"]
    assert first.ours == pytest.approx((0.7, 0.7)) and "more than 0.6: seen" in first.remark
    fall = rows["sorting: 20 paths, length 1 less length 6"]
    assert fall.ours == pytest.approx((0.6, 0.6)) and "falls with every step" in fall.remark
    assert len(rows["memorization: whole network"].ours) == 1
    assert "memorization: most that can be reached" in rows
    assert "sorting: most that can be reached" not in rows
    made["subnetwork_accuracy"].loc[{"task": "sorting", "length": 1}] = 0.5
    made["subnetwork_accuracy"].loc[{"task": "sorting", "length": 4}] = 0.9
    rows = {row.quantity: row for row in EXPERIMENT.compare(made)}
    assert "not seen" in rows["sorting: 5 paths of length 1"].remark
    assert "does not fall" in rows["sorting: 20 paths, length 1 less length 6"].remark


def test_chart(dataset: xr.Dataset) -> None:
    drawn = svg(EXPERIMENT.charts(dataset, LIGHT)["fig4"])  # type: ignore[arg-type]
    for words in ("Memorization", "Sorting", "Convex hull", "20 paths", "exact terms"):
        assert words in drawn
    for task in ("memorization", "sorting"):
        value = float(dataset["position_majority"].sel(task=task).mean())
        assert f"majority by position {value:.2f}" in drawn


def test_labels_are_spread_in_order() -> None:
    values = [0.5, 0.85, 0.51, 0.5]
    placed = spread(values, 0.05)
    assert np.diff(sorted(placed)).min() >= 0.05 - 1e-6
    assert placed[1] == pytest.approx(0.85) and placed[2] > placed[0]
    assert sum(placed) == pytest.approx(sum(values))
