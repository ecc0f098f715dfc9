"""Wrong input: one line on standard error, exit code 2, nothing written, and that soon."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import rankcollapse

from .conftest import POSITIONS, WORDS

QUERY = "encoder.layer.1.attention.self.query.weight"
VOCABULARY = len(WORDS) + 4


@pytest.fixture
def refused(run, model, text, tmp_path):
    """Runs `inspect`, checks how it was refused, and returns the one line."""

    def refused(*options, source=model, documents=text, stdin=None):
        out = tmp_path / "page"
        if "--out" not in options:
            options = (*options, "--out", out)
        chosen = () if documents is None else ("--text", documents)
        result = run("inspect", source, *chosen, *options, stdin=stdin)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert "Traceback" not in result.stderr
        assert not out.exists()
        return result.stderr

    return refused


@pytest.fixture
def unloaded(monkeypatch):
    """Makes loading a model a failure, for what has to be found before."""

    def load(*_, **__):
        raise AssertionError("the model was loaded before the input was checked")

    monkeypatch.setattr(rankcollapse, "load", load)


@pytest.fixture
def broken(model, tmp_path):
    """A copy of the tiny model to break."""
    return shutil.copytree(model, tmp_path / "broken")


def change_tensor(folder, name, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors[name] = change(tensors[name])
    save_file(tensors, path, metadata={"format": "pt"})


class TestModel:
    def test_unsupported_type_lists_the_supported_ones(self, refused, broken):
        (broken / "config.json").write_text('{"model_type": "t5"}')
        line = refused(source=broken)
        assert "'t5'" in line
        assert all(model_type in line for model_type in rankcollapse.FAMILIES)

    def test_folder_without_configuration(self, refused, broken):
        (broken / "config.json").unlink()
        assert "has no config.json" in refused(source=broken)

    def test_folder_without_weights(self, refused, broken):
        (broken / "model.safetensors").unlink()
        assert str(broken) in refused(source=broken)

    def test_no_such_folder(self, refused, tmp_path):
        assert "nothing-here" in refused(source=tmp_path / "nothing-here")

    def test_neither_folder_nor_hub_id(self, refused):
        assert "a/b/c" in refused(source="a/b/c")

    def test_file_in_place_of_a_folder(self, refused, model):
        assert "is a file" in refused(source=model / "config.json")

    def test_truncated_checkpoint(self, refused, broken):
        weights = broken / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
        assert "model.safetensors" in refused(source=broken)

    def test_misshapen_tensor_is_named_with_both_shapes(self, refused, broken):
        change_tensor(broken, QUERY, lambda tensor: tensor[:16].clone())
        line = refused(source=broken)
        assert QUERY in line
        assert "16" in line
        assert "32" in line

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_weights_that_are_not_finite(self, refused, broken, value):
        change_tensor(broken, QUERY, lambda tensor: torch.full_like(tensor, value))
        assert QUERY in refused(source=broken)

    def test_missing_tokenizer(self, refused, broken):
        for path in broken.glob("*token*"):
            path.unlink()
        line = refused(source=broken)
        assert "tokenizer" in line
        assert "input_ids" in line

    def test_device_that_is_not_there(self, refused):
        assert "device 'nonsense'" in refused("--device", "nonsense")


class TestTokens:
    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ({"input_ids": [2, VOCABULARY, 3]}, f"token id {VOCABULARY}"),
            ({"input_ids": [2, -1, 3]}, "token id -1"),
            ({"input_ids": [2]}, "one token"),
            ({"input_ids": [2, 5, 3], "attention_mask": [0, 0, 0]}, "all padding"),
            ({"input_ids": [2] * (POSITIONS + 1)}, f"{POSITIONS} positions"),
        ],
    )
    def test_ids(self, refused, tmp_path, record, message):
        path = tmp_path / "ids.jsonl"
        path.write_text(json.dumps(record) + "\n")
        assert message in refused(documents=path)


@pytest.mark.usefixtures("unloaded")
class TestBeforeTheModelIsLoaded:
    def test_missing_text(self, refused, tmp_path):
        assert "no.txt does not exist" in refused(documents=tmp_path / "no.txt")

    def test_empty_text(self, refused, tmp_path):
        (tmp_path / "a.txt").write_text("\n \n")
        assert "a.txt has no text" in refused(documents=tmp_path / "a.txt")

    def test_empty_standard_input(self, refused):
        assert "standard input has no text" in refused(documents="-", stdin="")

    def test_broken_json(self, refused, tmp_path):
        (tmp_path / "a.jsonl").write_text("{broken\n")
        assert "line 1 of" in refused(documents=tmp_path / "a.jsonl")

    def test_missing_column(self, refused, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"title": "a"}\n')
        line = refused("--column", "body", documents=tmp_path / "a.jsonl")
        assert "no column 'body', only title" in line

    def test_column_without_text(self, refused):
        assert "add --text" in refused("--column", "body", documents=None)

    @pytest.mark.parametrize(
        ("variants", "message"),
        [
            ("san,nonsense", "'nonsense'"),
            ("-mlp_skipp", "'mlp_skipp'"),
            ("san,san", "twice"),
            (" , ", "no variant"),
        ],
    )
    def test_variants(self, refused, variants, message):
        assert message in refused("--variants", variants)

    def test_metrics(self, refused):
        assert "'rank' does not exist: use residual" in refused("--metrics", "residual,rank")

    def test_centered_arithmetic_in_float32(self, refused):
        line = refused("--arithmetic", "centered", "--dtype", "float32")
        assert "--arithmetic centered runs in float64, not in float32; leave --dtype out." in line

    def test_seed_of_pretrained_weights(self, refused):
        assert "--init random" in refused("--seed", 3)

    def test_overwrite_without_out(self, run, model, text):
        result = run("inspect", model, "--text", text, "--overwrite")
        assert result.exit_code == 2
        assert "add --out" in result.stderr

    def test_out_that_is_not_empty(self, refused, tmp_path):
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("mine")
        assert "--overwrite" in refused("--out", tmp_path / "full")
        assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]

    def test_out_that_is_a_file(self, refused, text):
        assert "is a file" in refused("--out", text)

    def test_out_below_a_file(self, refused, text):
        assert str(text) in refused("--out", text / "page")

    def test_out_that_cannot_be_written(self, refused):
        assert "cannot be written" in refused("--out", "/proc/page")


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect"],
        ["inspect", "m", "--nonsense"],
        ["inspect", "m", "--init", "trained"],
        ["inspect", "m", "--dtype", "float16"],
        ["inspect", "m", "--leave-out", "last"],
        ["inspect", "m", "--samples", "0"],
        ["inspect", "m", "--tokens", "1"],
        ["inspect", "m", "--tokens", "many"],
        ["inspect", "m", "--seed", "-1", "--init", "random"],
        ["nonsense"],
    ],
)
@pytest.mark.usefixtures("unloaded")
def test_usage(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
