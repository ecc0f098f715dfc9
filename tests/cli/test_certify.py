"""`rankcollapse certify`: what it prints and writes, and how it refuses wrong input."""

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import rankcollapse
from rankcollapse.cli.results import counted
from rankcollapse.report.certificate import NAMES, alarms
from tests.report.certificate.synthetic import certificate

from .conftest import HEADS, LAYERS, POSITIONS

TEXTS = ["the cat saw the old dog", "a bird found the river"]
TEXTS += ["the dog left the new house and met a cat"]


def expected(model, variant="san", texts=TEXTS):
    return rankcollapse.certify(rankcollapse.load(str(model)), texts, variant=variant)


def test_the_header_the_tables_and_the_facts(run, model, text):
    result = run("certify", model, "--text", text)
    assert result.exit_code == 0, result.output
    out = result.stdout
    assert max(map(len, out.splitlines())) <= 80
    head = " ".join(out.split("\n\n")[0].split())
    assert f"{LAYERS} layers, {HEADS} heads, width 32; 3 samples × 7 to 12 tokens" in head
    assert head.endswith("float64 (centered arithmetic) on cpu; variant san")
    certificate = expected(model)
    table = out.split("Upper bounds on ‖res‖₁,∞, from the state entering the layer")[1].split(
        "\n\n"
    )[0]
    lines = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    for layer in range(LAYERS + 1):
        mean = float(certificate.log10_measured.sel(layer=layer).mean())
        shown = lines[str(layer)][1]
        log = float(shown[3:]) if shown.startswith("10^") else np.log10(float(shown))
        assert log == pytest.approx(mean, abs=0.051)
    bound = float(certificate.log10_bound.sel(bound="lemma_a2", layer=2).mean())
    assert lines["2"][2].strip("()[]") == f"10^{bound:.1f}"
    flat = " ".join(out.split())
    assert "values are 10^(mean of log10) over 3 samples" in flat
    for statement in certificate.statement.values:
        assert str(statement) in flat
    for title in certificate.title.values:
        assert str(title).partition(",")[0] in flat
    assert "Measured, ‖res(X)‖₁,∞" in flat
    assert "norms lie between the layers), so its proof does not reach this network." in flat
    assert "√c‖res(X)‖ = " in flat and "DEFECT" not in flat


@pytest.mark.parametrize("variant", ["san", "san+mlp", "san+skip", "transformer", "san+skip-norm"])
def test_every_variant_is_certified_without_alarm(run, model, text, tmp_path, variant):
    out = tmp_path / "out"
    result = run("certify", model, "--text", text, "--variant", variant, "--out", out)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.split("\nThe page is")[0].splitlines())) <= 80
    assert "DEFECT" not in result.output
    with xr.open_dataset(out / "results.nc", engine="h5netcdf") as stored:
        assert alarms(stored.load()) == []
        assert str(stored["variant"].item()) == variant


def test_lower_bounds_are_said_where_there_are_skips_and_no_norms(run, model, text):
    result = run("certify", model, "--text", text, "--variant", "san+skip-norm", "--samples", 1)
    flat = " ".join(result.stdout.split())
    assert "The composed operator certifies that at least" in flat
    assert "Bounds on ‖res‖_F, from the state entering the layer" in flat
    assert "Lower bounds on ‖res‖_F, from the network's input" in flat


def test_json_has_every_bound(run, model, text):
    result = run("certify", model, "--text", text, "--json", "--samples", 2)
    assert result.exit_code == 0 and result.stderr == ""
    document = json.loads(result.stdout)
    certificate = expected(model, texts=TEXTS[:2])
    means = certificate.mean("sample")
    assert document["variant"] == "san" and document["metadata"]["samples"] == 2
    assert document["measured"]["composite"] == pytest.approx(means.log10_measured.values)
    assert set(document["bounds"]) == {str(name) for name in certificate.bound.values}
    for name, bound in document["bounds"].items():
        wanted = means.log10_bound.sel(bound=name).values[1:]
        assert bound["log10"][1:] == pytest.approx(wanted)
        assert bound["crossed"] == [0] * (LAYERS + 1)


def test_files(run, model, text, tmp_path):
    out = tmp_path / "new" / "out"
    result = run("certify", model, "--text", text, "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "certificate.html") in result.stdout.replace("\n", "")
    missing = {f"in_depth_frobenius.{kind}" for kind in ("svg", "png")}
    assert {path.name for path in out.iterdir()} == set(NAMES) - missing
    with (out / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * (LAYERS + 1)
    page = (out / "certificate.html").read_text(encoding="utf-8")
    assert 'id="chart-per_layer"' in page and 'id="chart-in_depth"' in page


def test_overwrite_replaces_and_removes_its_own_files_alone(run, model, text, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("mine")
    (out / "in_depth_frobenius.svg").write_text("old")
    refused = run("certify", model, "--text", text, "--out", out)
    assert refused.exit_code == 2 and "--overwrite" in refused.stderr
    assert (out / "in_depth_frobenius.svg").read_text() == "old"
    assert run("certify", model, "--text", text, "--out", out, "--overwrite").exit_code == 0
    names = {path.name for path in out.iterdir()}
    assert "in_depth_frobenius.svg" not in names and {"mine", "results.nc"} <= names


def test_a_crossed_bound_is_said_loudly(run, model, text, monkeypatch):
    certify = rankcollapse.certify

    def wrong(*arguments, **options):
        dataset = certify(*arguments, **options)
        dataset["log10_bound"].loc[{"bound": "dobrushin", "layer": 1}] = -300.0
        return dataset

    monkeypatch.setattr(rankcollapse, "certify", wrong)
    result = run("certify", model, "--text", text)
    assert re.search(r"DEFECT: at layer 1 of text\s0", result.stdout.split("Upper bounds")[0])
    result = run("certify", model, "--text", text, "--json")
    assert result.stderr.startswith("DEFECT: at layer 1 of text 0 the measured residual")
    assert json.loads(result.stdout)["bounds"]["dobrushin"]["crossed"][1] == 3


@pytest.mark.parametrize(
    ("options", "words", "soon"),
    [
        (["--variant", "sam"], "'sam'", True),
        (["--seed", 3], "--init random", True),
        (["--text", "absent.txt"], "absent.txt", True),
        (["--device", "nonsense"], "nonsense", False),
    ],
)
def test_wrong_input_is_one_line(run, model, text, tmp_path, monkeypatch, options, words, soon):
    if soon:

        def load(*_, **__):
            raise AssertionError("the model was loaded before the input was checked")

        monkeypatch.setattr(rankcollapse, "load", load)
    out = tmp_path / "page"
    result = run("certify", model, "--text", text, "--out", out, *options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not out.exists()


def test_overwrite_needs_out_and_texts_must_fit(run, model, tmp_path):
    result = run("certify", model, "--overwrite")
    assert result.exit_code == 2 and "add --out" in result.stderr
    long = tmp_path / "long.txt"
    long.write_text("the cat " * POSITIONS)
    refused = run("certify", model, "--text", long)
    assert refused.exit_code == 2 and f"{POSITIONS} positions" in refused.stderr
    cut = run("certify", model, "--text", long, "--truncate", "--json")
    assert json.loads(cut.stdout)["metadata"]["tokens_max"] == POSITIONS


def test_the_help_fits_has_examples_and_is_listed(run):
    result = run("certify", "--help")
    assert max(map(len, result.output.splitlines())) <= 80
    assert len(re.findall(r"^ +rankcollapse certify \S", result.stdout, re.M)) >= 3
    options = re.findall(r"^│ --([a-z-]+) +(.*?)│$", result.stdout, re.M)
    assert len(options) >= 15 and all(re.search(r"[A-Z][a-z]+", words) for _, words in options)
    assert "certify" in run("--help").stdout


def test_a_request_to_end_leaves_nothing_behind(model, text, tmp_path):
    """SIGTERM while the files are written, as a scheduler sends it: as tidy as Ctrl-C."""
    out = tmp_path / "page"
    script = (
        "import os, signal, sys\n"
        "from rankcollapse.report.certificate import files\n"
        "files.page = lambda dataset: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from rankcollapse.cli.app import main\n"
        "main()"
    )
    command = [sys.executable, "-c", script, "certify", model, "--text", text, "--out", out]
    ended = subprocess.run([str(part) for part in command], capture_output=True, timeout=120)
    assert ended.returncode == 143
    assert list(tmp_path.iterdir()) == [text]


def test_a_crossed_bound_is_a_failure_of_ours(run, model, text, monkeypatch):
    def certify(*_, **__):
        return certificate(crossed=("tanh", 0, 2))

    monkeypatch.setattr(rankcollapse, "certify", certify)
    result = run("certify", model, "--text", text)
    assert result.exit_code == 1 and "DEFECT" in result.stdout


def test_one_head_is_no_heads():
    assert (counted(1, "head"), counted(12, "layer")) == ("1 head", "12 layers")
