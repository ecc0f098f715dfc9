"""Figure 5 through the runner: the nine architectures, and a model that is named."""

import csv
import json
from pathlib import Path

import pytest
import xarray as xr

from rankcollapse.experiments import figure_5
from rankcollapse.experiments.comparison import judge
from rankcollapse.experiments.published import figure_5 as published
from rankcollapse.experiments.running.runner import reproduce


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"num_layers": 3, "num_heads": 2}))
    return folder


def test_every_printed_share_is_met(tmp_path: Path) -> None:
    done = reproduce("fig5", tmp_path)["fig5"]
    assert len(done.rows) == 10
    assert all(judge(row).agrees for row in done.rows)
    shares = {
        f"{p.architecture}, {p.layers} × {p.heads}: share of length {p.length}" for p in published()
    }
    assert {row.quantity for row in done.rows[:9]} <= shares
    assert done.rows[-1].quantity == "largest difference over the 242 printed shares"
    assert 0 < done.rows[-1].ours[0] < 1e-8
    names = {path.name for path in (tmp_path / "fig5").iterdir()}
    charts = {f"fig5{end}.{kind}" for end in ("", "_logarithmic") for kind in ("svg", "png", "pdf")}
    assert names == {"fig5.nc", "fig5.csv", "comparison.csv", "comparison.md"} | charts


def test_a_wrong_share_would_be_seen(tmp_path: Path) -> None:
    dataset = reproduce("fig5", tmp_path)["fig5"].dataset
    wrong = dataset.copy(deep=True)
    wrong["share"].loc[{"architecture": "ViT-H", "length": 31}] += 2e-8
    disagree = [row.quantity for row in figure_5.EXPERIMENT.compare(wrong) if not judge(row).agrees]
    assert disagree == [
        "ViT-H, 32 × 16: share of length 31",
        "largest difference over the 242 printed shares",
    ]


def test_a_model_that_is_named(tmp_path: Path, model: Path) -> None:
    done = reproduce("fig5", tmp_path / "out", models=[str(model)])["fig5"]
    assert len(done.rows) == 11
    (row,) = [row for row in done.rows if row.quantity.startswith("models/tiny, 3 × 2")]
    assert row.published is None
    assert judge(row).agrees is None
    # Of 27 paths 12 have length 2: three pairs of layers, two heads at each.
    assert row.ours == (12 / 27,)
    assert "models/tiny" in (tmp_path / "out" / "fig5" / "fig5.svg").read_text()
    with (tmp_path / "out" / "fig5" / "fig5.csv").open(newline="") as file:
        found = {
            (r["length"], float(r["value"]))
            for r in csv.DictReader(file)
            if r["architecture"] == "models/tiny" and r["variable"] == "share"
        }
    assert found == {("0", 1 / 27), ("1", 6 / 27), ("2", 12 / 27), ("3", 8 / 27)}


def test_two_runs_give_the_same_tables(tmp_path: Path) -> None:
    one, two = (reproduce("fig5", tmp_path / name)["fig5"] for name in ("one", "two"))
    xr.testing.assert_identical(one.dataset, two.dataset)
    for name in ("comparison.csv", "comparison.md", "fig5.csv", "fig5.svg"):
        written = [(tmp_path / run / "fig5" / name).read_bytes() for run in ("one", "two")]
        assert written[0] == written[1]
