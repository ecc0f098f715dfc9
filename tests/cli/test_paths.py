"""`rankcollapse paths count`: what it prints and writes, from configurations alone."""

import csv
import json
import math

import pytest
import xarray as xr

from rankcollapse.paths import FIGURE_5

from .conftest import HEADS, LAYERS

FILES = {"paths.csv", "paths.nc", "paths.svg", "paths.png", "paths.html"}


@pytest.fixture
def other(tmp_path):
    """The configuration of a family whose forward pass is not run here."""
    folder = tmp_path / "other" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "t5", "num_layers": 5, "num_heads": 3}')
    return folder


def row(output: str, name: str) -> list[str]:
    return next(line for line in output.splitlines() if line.startswith(name))[len(name) :].split()


def test_the_nine_of_figure_5(run):
    result = run("paths", "count")
    assert result.exit_code == 0, result.output
    assert all(stack.name in result.stdout for stack in FIGURE_5)
    assert max(map(len, result.stdout.splitlines())) <= 80
    gpt3 = ["96", "96", "10^190.7", "95.01", "0.99", "95,", "96", "0.370"]
    assert row(result.stdout, "GPT-3") == gpt3
    distilbert = ["6", "12", "10^6.7", "5.54", "0.65", "6", "0.619"]
    assert row(result.stdout, "DistilBERT") == distilbert
    assert "the released model has 24" in result.stdout


def test_without_skips(run):
    result = run("paths", "count", "GPT-3", "--no-skips")
    assert result.exit_code == 0, result.output
    assert "without skip connections" in result.stdout
    assert row(result.stdout, "GPT-3") == ["96", "96", "10^190.3", "96.00", "0.00", "96", "1.00"]


def test_models_beside_the_built_in(run, model, other):
    result = run("paths", "count", model, other / "config.json", "deit-t", model, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["skips"] is True
    tiny, t5, deit = document["architectures"]
    assert (tiny["layers"], tiny["heads"], tiny["note"]) == (LAYERS, HEADS, "")
    assert (t5["layers"], t5["heads"], t5["name"]) == (5, 3, "other/tiny")
    assert "encoder" in t5["note"]
    assert deit["name"] == "DeiT-T"
    assert len(tiny["share"]) == len(tiny["log10_share"]) == LAYERS + 1
    counts = [math.comb(LAYERS, n) * HEADS**n for n in range(LAYERS + 1)]
    assert tiny["share"] == [count / sum(counts) for count in counts]
    assert tiny["log10_count"] == pytest.approx([math.log10(count) for count in counts])
    assert deit["mode"] == [9]


def test_folders_of_one_name_are_told_apart(run, other):
    twin = other.parent.parent / "twin" / "other" / "tiny"
    twin.mkdir(parents=True)
    (twin / "config.json").write_text('{"num_layers": 2, "num_heads": 1}')
    result = run("paths", "count", other, twin, "--json")
    assert result.exit_code == 0, result.output
    names = [a["name"] for a in json.loads(result.stdout)["architectures"]]
    assert names == [str(other), str(twin)]


def test_json_without_skips_has_null_for_the_logarithm_of_zero(run):
    result = run("paths", "count", "DistilBERT", "--no-skips", "--json")
    (one,) = json.loads(result.stdout)["architectures"]
    assert one["log10_count"] == [None] * 6 + [pytest.approx(6 * math.log10(12))]
    assert one["log10_share"] == [None] * 6 + [0]
    assert one["share"] == [0] * 6 + [1]


@pytest.mark.parametrize("options", [[], ["--no-skips"], ["DistilBERT"]])
def test_files(run, tmp_path, options):
    out = tmp_path / "new" / "out"
    result = run("paths", "count", *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "paths.html") in result.stdout.replace("\n", "")
    assert {path.name for path in out.iterdir()} == FILES
    stacks = [s for s in FIGURE_5 if not options or "--no-skips" in options or s.name in options]
    with (out / "paths.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with xr.open_dataset(out / "paths.nc", engine="h5netcdf") as counted:
        expected = [
            (stack.name, length, length / stack.layers)
            for stack in stacks
            for length in range(stack.layers + 1)
        ]
        got = [(r["architecture"], int(r["length"]), float(r["relative_length"])) for r in rows]
        assert got == expected
        for r in rows:
            at = counted.sel(architecture=r["architecture"], length=int(r["length"]))
            assert float(r["log10_share"]) == float(at.log10_share)
            assert float(r["share"]) == float(at.share)
            assert r["is_mode"] == str(bool(at.is_mode))
    page = (out / "paths.html").read_text(encoding="utf-8")
    svg = (out / "paths.svg").read_text(encoding="utf-8")
    assert all(stack.name in page and stack.name in svg for stack in stacks)
    assert (out / "paths.png").read_bytes().startswith(b"\x89PNG")


def test_overwrite_replaces_its_own_files_alone(run, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "paths.csv").write_text("old")
    refused = run("paths", "count", "--out", tmp_path)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert (tmp_path / "paths.csv").read_text() == "old"
    assert run("paths", "count", "--out", tmp_path, "--overwrite").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "mine"}
    assert (tmp_path / "paths.csv").read_text().startswith("architecture,")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"model_type": "new", "num_layers": 5}', "no number of attention heads"),
        ('{"num_layers": 0, "num_heads": 2}', "num_layers is 0"),
        ('{"num_layers": 20000, "num_heads": 2}', "layers=20000"),
        ('{"model_type": "bert", "num_hidden_layers": "many"}', "many"),
        ("not json", "not JSON"),
        (None, "no config.json"),
    ],
)
def test_wrong_configurations_are_one_line_and_write_nothing(run, other, tmp_path, raw, words):
    (other / "config.json").unlink() if raw is None else (other / "config.json").write_text(raw)
    result = run("paths", "count", other, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_overwrite_without_out(run):
    result = run("paths", "count", "--overwrite")
    assert result.exit_code == 2
    assert "add --out" in result.stderr


def test_the_help_fits_and_names_the_command(run):
    for arguments in (["paths"], ["paths", "count", "--help"]):
        result = run(*arguments)
        assert "count" in result.output
        assert max(map(len, result.output.splitlines())) <= 80
    assert "rankcollapse paths count" in run("paths", "count", "--help").stdout
