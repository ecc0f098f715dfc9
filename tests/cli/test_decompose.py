"""`rankcollapse decompose`: what it prints and writes, and how it refuses wrong input."""

import csv
import json

import numpy as np
import pytest
import xarray as xr

import rankcollapse
from rankcollapse.paths import length_distribution
from rankcollapse.paths.decompose import token_target

from .conftest import HEADS, LAYERS, POSITIONS, SPECIAL, WORDS

DATA = {"decomposition.nc", "decomposition.csv", "decomposition.html"}
CHARTS = {f"{name}.{kind}" for name in ("share", "relative_residual") for kind in ("svg", "png")}
WITH_TARGET = {f"{name}.{kind}" for name in ("projection", "head_projection")
               for kind in ("svg", "png")}  # fmt: skip
CAT = len(SPECIAL) + WORDS.index("cat")
TEXTS = ["the cat saw the old dog", "a bird found the river"]
TEXTS += ["the dog left the new house and met a cat"]


def expected(model, **options):
    return rankcollapse.decompose(rankcollapse.load(str(model)), TEXTS, **options)


def test_the_header_the_table_and_the_facts(run, model, text):
    result = run("decompose", model, "--text", text)
    assert result.exit_code == 0, result.output
    out = result.stdout
    assert max(map(len, out.splitlines())) <= 80
    head = " ".join(out.split("\n\n")[0].split())
    assert f"{LAYERS} layers, {HEADS} heads, width 32; 3 samples × 7 to 12 tokens" in head
    assert head.endswith("variant transformer")
    assert "Share of the output by path length, mean ± std over 3 samples" in out
    share = expected(model).share
    counted = length_distribution(LAYERS, HEADS).share.values
    for length in range(LAYERS + 1):
        cells = next(line for line in out.splitlines() if line.split()[:1] == [str(length)]).split()
        total = share.sel(length=length).sum("source")
        mean, std = map(float, cells[5].split("±"))
        assert mean == pytest.approx(float(total.mean()), abs=5.1e-4)
        assert std == pytest.approx(float(total.std(ddof=1)), abs=5.1e-4)
        assert float(cells[1]) == pytest.approx(counted[length], rel=0.01)
    assert "Of the output, " in out and "The terms add up to the output" in out
    assert "Projection" not in out


def test_a_target_by_length_and_by_head(run, model, text):
    result = run("decompose", model, "--text", text, "--target", "cat@-2")
    assert result.exit_code == 0, result.output
    assert "Projection on 'cat' at token 2 from the end, mean ± std over 3" in result.stdout
    heads = result.stdout.split("Heads, largest first")[1].split("\n\n")[0].splitlines()[3:]
    loaded = rankcollapse.load(str(model))
    wanted = expected(model, target=lambda n: token_target(loaded, CAT, -2, n))
    mean = abs(wanted.head_projection.mean("sample"))
    order = np.argsort(-mean.values.ravel())[:5]
    rows = [line.split()[:2] for line in heads]
    assert rows == [[str(n // HEADS + 1), str(n % HEADS + 1)] for n in order]


@pytest.mark.parametrize("target", ["cat", f"#{CAT}", "CAT@-1", f"#{CAT}@-1"])
def test_a_token_as_text_or_id_is_the_last_unless_placed(run, model, text, target):
    result = run("decompose", model, "--text", text, "--target", target, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["metadata"]["target"]["id"] == CAT
    assert document["metadata"]["target"]["position"] == -1
    loaded = rankcollapse.load(str(model))
    wanted = expected(model, target=lambda n: token_target(loaded, CAT, -1, n))
    projection = wanted.projection.sum(("source", "length"))
    got = document["all"]["projection"]["total"]
    assert got["mean"] == pytest.approx(float(projection.mean()), rel=1e-5)
    assert got["std"] == pytest.approx(float(projection.std(ddof=1)), rel=1e-5)
    totals = wanted.head_projection.mean("sample").values
    heads = [[head["mean"] for head in layer] for layer in document["heads"]]
    np.testing.assert_allclose(heads, totals, rtol=1e-4, atol=1e-6)


def test_json_has_every_term(run, model, text):
    result = run("decompose", model, "--text", text, "--variant", "san", "--json", "--samples", 1)
    document = json.loads(result.stdout)
    assert document["paths"] == [0] * LAYERS + [1]
    terms = document["sources"]["input"]
    assert [term["length"] for term in terms] == list(range(LAYERS + 1))
    assert [term["share"] for term in terms[:-1]] == [None] * LAYERS
    share = expected(model, variant="san").share.sel(sample=0, source="input", length=LAYERS)
    assert terms[-1]["share"]["mean"] == pytest.approx(float(share), rel=1e-5)
    assert terms[-1]["share"]["std"] is None
    assert document["all"]["share"]["total"]["mean"] == pytest.approx(1, abs=1e-5)
    assert "heads" not in document and document["error"] < 1e-5


@pytest.mark.parametrize("target", [None, "dog"])
def test_files(run, model, text, tmp_path, target):
    out = tmp_path / "new" / "out"
    options = () if target is None else ("--target", target)
    result = run("decompose", model, "--text", text, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "decomposition.html") in result.stdout.replace("\n", "")
    names = DATA | CHARTS | (WITH_TARGET if target else set())
    assert {path.name for path in out.iterdir()} == names
    with (out / "decomposition.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 3 * (LAYERS + 1)
    assert list(rows[0])[:4] == ["sample", "source", "length", "share"]
    with xr.open_dataset(out / "decomposition.nc", engine="h5netcdf") as stored:
        for row in rows:
            at = stored.sel(sample=int(row["sample"]), source=row["source"])
            assert float(row["share"]) == float(at.share.sel(length=int(row["length"])))
        assert ("head_projection" in stored) == (target is not None)
    page = (out / "decomposition.html").read_text(encoding="utf-8")
    assert ('id="chart-head_projection"' in page) == (target is not None)
    assert (out / "share.png").read_bytes().startswith(b"\x89PNG")


def test_overwrite_replaces_and_removes_its_own_files_alone(run, model, text, tmp_path):
    (tmp_path / "out").mkdir()
    out = tmp_path / "out"
    (out / "mine").write_text("mine")
    (out / "projection.svg").write_text("old")
    refused = run("decompose", model, "--text", text, "--out", out)
    assert refused.exit_code == 2 and "--overwrite" in refused.stderr
    assert (out / "projection.svg").read_text() == "old"
    assert run("decompose", model, "--text", text, "--out", out, "--overwrite").exit_code == 0
    assert {path.name for path in out.iterdir()} == DATA | CHARTS | {"mine"}


@pytest.mark.parametrize(
    ("options", "words", "soon"),
    [
        (["--target", "the cat"], "2 tokens of the tokenizer ('the', 'cat')", False),
        (["--target", "xyzzy"], "'xyzzy' is no token", False),
        (["--target", ""], "--target is empty", True),
        (["--target", "#999"], "999 is beyond the vocabulary", False),
        (["--target", "cat@7"], "position 7 is beyond the 7 tokens", False),
        (["--target", "cat@-8"], "position -8 is beyond the 7 tokens", False),
        (["--variant", "sam"], "'sam'", True),
        (["--seed", 3], "--init random", True),
        (["--text", "absent.txt"], "absent.txt", True),
    ],
)
def test_wrong_input_is_one_line(run, model, text, tmp_path, monkeypatch, options, words, soon):
    if soon:

        def load(*_, **__):
            raise AssertionError("the model was loaded before the input was checked")

        monkeypatch.setattr(rankcollapse, "load", load)
    out = tmp_path / "page"
    result = run("decompose", model, "--text", text, "--out", out, *options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not out.exists()


def test_overwrite_needs_out_and_texts_must_fit(run, model, tmp_path):
    result = run("decompose", model, "--overwrite")
    assert result.exit_code == 2 and "add --out" in result.stderr
    long = tmp_path / "long.txt"
    long.write_text("the cat " * POSITIONS)
    refused = run("decompose", model, "--text", long)
    assert refused.exit_code == 2 and f"{POSITIONS} positions" in refused.stderr
    cut = run("decompose", model, "--text", long, "--truncate", "--json")
    assert json.loads(cut.stdout)["metadata"]["tokens_max"] == POSITIONS


def test_the_help_fits_and_is_listed(run):
    result = run("decompose", "--help")
    assert max(map(len, result.output.splitlines())) <= 80
    assert "--target" in result.stdout
    assert "decompose" in run("--help").stdout
