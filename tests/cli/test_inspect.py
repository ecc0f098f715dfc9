"""`rankcollapse inspect` on a tiny model: what comes out, and what each option does."""

import inspect as signatures
import json
import shutil
from typing import get_args

import numpy as np
import pytest
from transformers import BertModel, GPT2Config

import rankcollapse
from rankcollapse.cli import options
from rankcollapse.cli.inspect import inspect as command
from rankcollapse.inspection.inspect import ARITHMETICS
from rankcollapse.theory import rates

from .conftest import HEADS, LAYERS, POSITIONS, save_tokenizer

TEXTS = [
    "the cat saw the old dog",
    "a bird found the river",
    "the dog left the new house and met a cat",
]
VARIANTS = ["san", "san+mlp", "san+skip", "transformer"]
LONG = "the old cat met a new dog near the river and left " * 5


@pytest.fixture
def measure(run, model, text):
    """Runs `inspect --json` on the tiny model and returns the document."""

    def measure(*options, source=model, documents=text, **keywords):
        result = run("inspect", source, "--text", documents, "--json", *options, **keywords)
        assert (result.exit_code, result.stderr) == (0, "")
        return json.loads(result.stdout)

    return measure


@pytest.fixture
def gpt2(tmp_path):
    """A folder with the configuration of a model that has a causal mask and a final norm."""
    GPT2Config(vocab_size=30, n_positions=16, n_embd=32, n_layer=2, n_head=HEADS).save_pretrained(
        tmp_path / "gpt2"
    )
    return tmp_path / "gpt2"


@pytest.fixture
def ids(tmp_path):
    path = tmp_path / "ids.jsonl"
    path.write_text('{"input_ids": [1, 2, 3, 4]}\n{"input_ids": [5, 6, 7]}\n')
    return path


def column(document, variant="transformer", metric="relative_residual"):
    return [state[metric]["mean"] for state in document["variants"][variant]]


class TestPrinted:
    def test_what_was_measured_the_table_and_the_facts(self, run, model, text):
        result = run("inspect", model, "--text", text)
        assert (result.exit_code, result.stderr) == (0, "")
        head, *rest = result.stdout.split("\n\n")
        assert " ".join(head.split()).removeprefix(str(model)) == (
            f" (bert, pretrained): {LAYERS} layers, {HEADS} heads, width 32; "
            "3 samples × 7 to 12 tokens; float32 on cpu"
        )
        table, facts = rest[0], " ".join(" ".join(rest[1:]).split())
        for variant in VARIANTS:
            assert variant in table
        rows = [
            line.split()[0] for line in table.splitlines() if "±" in line and "over" not in line
        ]
        assert rows == ["0", "1", "2", "3"]
        assert "With everything on (transformer) the relative residual is" in facts
        assert max(map(len, "\n\n".join(rest).splitlines())) <= 80

    def test_random_weights_and_cut_documents_are_said(self, run, model, text):
        options = ["--init", "random", "--seed", 5, "--tokens", 6, "--samples", 1]
        result = run("inspect", model, "--text", text, *options)
        head = " ".join(result.stdout.split("\n\n")[0].split())
        assert "(bert, random weights, seed 5)" in head
        assert "1 sample × 6 tokens (at most the first 6 of each)" in head

    def test_a_terminal_sees_progress_on_standard_error(self, run, model, text, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        result = run("inspect", model, "--text", text, "--json")
        assert json.loads(result.stdout)["metadata"]["samples"] == 3
        assert f"loading {model}" in result.stderr
        assert "measuring" in result.stderr
        assert "100%" in result.stderr

    def test_without_text_the_biographies_are_measured(self, run, model):
        result = run("inspect", model, "--tokens", 20, "--metrics", "residual")
        assert result.exit_code == 0
        assert "32 samples × 20 tokens" in " ".join(result.stdout.split())


class TestJson:
    def test_numbers_are_those_of_the_python_call(self, measure, model):
        document = measure("--dtype", "float64")
        dataset = rankcollapse.inspect(rankcollapse.load(model, dtype="float64"), TEXTS)
        assert list(document["variants"]) == VARIANTS
        ours, theirs = document["metadata"], json.loads(dataset.attrs["metadata"])
        del ours["created"], theirs["created"]
        assert ours == theirs
        for name, array in dataset.drop_vars("at_floor").data_vars.items():
            for variant in VARIANTS:
                states = document["variants"][variant]
                assert [state["layer"] for state in states] == [0, 1, 2, 3]
                values = array.sel(variant=variant).values
                mean = np.array([state[name]["mean"] for state in states], dtype=float)
                std = np.array([state[name]["std"] for state in states], dtype=float)
                for column, got_mean, got_std in zip(values.T, mean, std, strict=True):
                    finite = column[~np.isnan(column)]
                    if not len(finite) or np.isinf(finite).any():  # equal tokens: log10 is −inf
                        assert np.isnan(got_mean)
                        continue
                    np.testing.assert_allclose(got_mean, finite.mean(), rtol=1e-9)
                    if len(finite) > 1:
                        expected = finite.std(ddof=1)
                        np.testing.assert_allclose(got_std, expected, rtol=1e-6, atol=1e-12)

    def test_share_of_samples_at_the_floor(self, measure, model):
        document = measure()
        dataset = rankcollapse.inspect(model, TEXTS)
        shares = dataset["at_floor"].mean("sample")
        assert shares.max() > 0
        for variant in VARIANTS:
            states = document["variants"][variant]
            assert [state["at_floor"] for state in states] == list(shares.sel(variant=variant))

    def test_numbers_that_do_not_exist_are_null(self, measure):
        """In float32 the residual of a tiny model is rounded to 0, and 0 has no log10 or rank."""
        last = measure("--samples", 1)["variants"]["san"][LAYERS]
        assert last["relative_residual"]["mean"] == 0
        assert last["log10_relative_residual"]["mean"] is None
        assert last["residual_effective_rank"]["mean"] is None

    def test_one_sample_has_no_deviation(self, measure):
        states = measure("--samples", 1)["variants"]["san"]
        assert all(state["token_cosine"]["std"] is None for state in states)
        assert all(state["token_cosine"]["mean"] is not None for state in states)

    def test_attention_comes_per_head_and_is_null_where_there_is_none(self, measure):
        states = measure("--metrics", "residual,attention")["variants"]["transformer"]
        assert states[0]["attention_entropy"] == {"mean": [None] * HEADS, "std": [None] * HEADS}
        for state in states[1:]:
            entropies = state["attention_entropy"]
            assert len(entropies["mean"]) == len(entropies["std"]) == HEADS
            assert all(0 < mean <= np.log(12) for mean in entropies["mean"])
            assert all(std > 0 for std in entropies["std"])
        assert "token_cosine" not in states[0]

    def test_state_after_a_final_norm_has_a_label_of_its_own(self, measure, gpt2, ids):
        document = measure("--init", "random", source=gpt2, documents=ids)
        states = document["variants"]["transformer"]
        assert [state["layer"] for state in states] == [0, 1, 2, "final_norm"]
        assert states[3]["relative_residual"]["mean"] != states[2]["relative_residual"]["mean"]
        assert states[3]["at_floor"] == 0


class TestCentered:
    def test_powers_of_ten_the_rate_and_the_arithmetic_are_printed(self, run, model, text):
        options = ["--arithmetic", "centered", "--init", "random", "--metrics", "residual"]
        result = run("inspect", model, "--text", text, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        head, rest = result.stdout.split("\n\n", 1)
        assert "float64 (centered arithmetic) on cpu" in " ".join(head.split())
        _, rate = rest.split("\nRate\n")
        rate = " ".join(rate.split())
        assert rate.startswith("san: attention on content alone")
        assert rate.endswith(
            "san+skip, transformer: the attention skip connection carries the "
            "residual from layer to layer; theory expects no rate."
        )
        assert max(map(len, rest.splitlines())) <= 80

    def test_dense_runs_have_no_rate_where_none_can_be_compared(self, run, model, text):
        assert "Rate" not in run("inspect", model, "--text", text).stdout

    def test_json_has_what_is_new_and_the_rates(self, measure, model):
        document = measure("--arithmetic", "centered", "--metrics", "residual")
        dataset = rankcollapse.inspect(model, TEXTS, arithmetic="centered", metrics=["residual"])
        states = document["variants"]["san"]
        for name in ("log10_relative_residual", "dense_log10_relative_residual"):
            expected = dataset[name].sel(variant="san", layer=1).mean().item()
            assert states[1][name]["mean"] == pytest.approx(expected)
        assert states[1]["local_order"] == {"mean": None, "std": None}
        assert states[2]["local_order"]["mean"] is not None
        for found, rate in zip(document["rates"], rates(dataset), strict=True):
            assert found["variant"] == rate.variant
            assert (found["expected"], found["agrees"]) == (rate.expected, rate.agrees)
            span = None if rate.layers is None else list(rate.layers)
            assert found["layers"] == span
            assert found["order"] == (None if span is None else pytest.approx(rate.order))
        assert [rate["expected"] for rate in document["rates"]] == [
            *("cubic", "cubic", "none", "none")
        ]

    def test_json_has_the_eigenvalues_between_equal_tokens_by_head(self, measure, gpt2, ids):
        document = measure(
            "--init", "random", "--arithmetic", "centered", source=gpt2, documents=ids
        )
        states = document["variants"]["san"]
        assert states[0]["positional_lambda2"] == [None] * HEADS
        assert states[1]["positional_lambda2"] == pytest.approx([0.5] * HEADS, abs=0.05)
        assert "positional_lambda2" not in states[3]
        assert document["rates"][0]["expected"] == "linear"

    def test_the_choices_are_those_of_python(self):
        given = get_args(get_args(options.Arithmetic)[0])
        assert given == ARITHMETICS

    def test_float64_may_be_named(self, measure):
        named = measure("--arithmetic", "centered", "--dtype", "float64")
        assert named["metadata"]["dtype"] == "float64"
        assert column(named) == column(measure("--arithmetic", "centered"))


class TestOptions:
    def test_defaults_are_those_of_the_python_call(self):
        ours = signatures.signature(command).parameters
        theirs = signatures.signature(rankcollapse.inspect).parameters
        assert ours["variants"].default == ",".join(theirs["variants"].default)
        assert ours["metrics"].default == ",".join(theirs["metrics"].default)
        for name in ("arithmetic", "as_published", "leave_out", "truncate"):
            assert ours[name].default == theirs[name].default

    def test_variants_come_in_the_order_given(self, measure):
        document = measure("--variants", "transformer, -mlp_skip,san-attention_norm")
        assert list(document["variants"]) == ["transformer", "-mlp_skip", "san-attention_norm"]

    def test_a_variant_may_begin_with_a_dash(self, measure):
        assert list(measure("--variants", "-mlp")["variants"]) == ["-mlp"]

    def test_seeds(self, measure):
        first, again, other = (
            column(measure("--init", "random", "--seed", seed)) for seed in (1, 1, 2)
        )
        assert first == again
        assert first != other
        assert column(measure("--init", "random")) == column(
            measure("--init", "random", "--seed", 0)
        )

    def test_as_published_keeps_the_skip_of_the_mlp(self, measure):
        document, published = measure(), measure("--as-published")
        assert document["metadata"]["as_published"] is False
        assert published["metadata"]["as_published"] is True
        assert column(document, "san+mlp")[1:] != column(published, "san+mlp")[1:]
        assert column(document, "san") == column(published, "san")

    @pytest.mark.parametrize("kind", ["special", "first"])
    def test_leave_out(self, measure, kind):
        document = measure("--leave-out", kind)
        assert document["metadata"]["leave_out"] == kind
        assert column(document) != column(measure())

    def test_dtype(self, measure):
        single, double = measure(), measure("--dtype", "float64")
        assert double["metadata"]["dtype"] == "float64"
        np.testing.assert_allclose(column(single), column(double), rtol=1e-4)
        assert column(single) != column(double)

    def test_metrics(self, measure):
        assert set(measure("--metrics", "similarity,magnitude")["variants"]["san"][0]) >= {
            "layer",
            "token_cosine",
            "largest_token_ratio",
        }
        assert "effective_rank" not in measure("--metrics", "similarity")["variants"]["san"][0]

    def test_samples_and_tokens(self, measure):
        run = measure("--samples", 2, "--tokens", 5)["metadata"]
        assert (run["samples"], run["tokens_min"], run["tokens_max"]) == (2, 5, 5)

    def test_truncate_cuts_at_the_models_positions(self, measure, run, model, tmp_path):
        long = tmp_path / "long.txt"
        long.write_text(LONG)
        refused = run("inspect", model, "--text", long)
        assert refused.exit_code == 2
        assert f"{POSITIONS} positions" in refused.stderr
        assert measure("--truncate", documents=long)["metadata"]["tokens_max"] == POSITIONS
        assert measure("--tokens", 9, documents=long)["metadata"]["tokens_max"] == 9


class TestText:
    def test_standard_input(self, measure):
        piped = measure(documents="-", stdin="\n".join(TEXTS))
        assert column(piped) == column(measure())

    def test_column_of_a_jsonl(self, measure, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"text": "no", "body": t}) + "\n" for t in TEXTS))
        assert column(measure("--column", "body", documents=path)) == column(measure())

    def test_token_ids_for_a_model_without_tokenizer(self, measure, config, tmp_path):
        BertModel(config).save_pretrained(tmp_path / "bare")
        path = tmp_path / "ids.jsonl"
        path.write_text('{"input_ids": [2, 5, 9, 3, 0], "attention_mask": [1, 1, 1, 1, 0]}\n')
        document = measure(source=tmp_path / "bare", documents=path)
        assert document["metadata"]["tokens_max"] == 4

    def test_tokenizer_from_another_folder(self, measure, model, tmp_path):
        bare, words = tmp_path / "bare", tmp_path / "words"
        bare.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(model / name, bare)
        words.mkdir()
        save_tokenizer(words)
        assert column(measure("--tokenizer", words, source=bare)) == column(measure())


class TestOut:
    FILES = frozenset({"report.html", "results.nc", "results.csv", "relative_residual.svg"})

    def test_files_are_written_and_named(self, run, model, text, tmp_path):
        out = tmp_path / "new" / "page"
        result = run("inspect", model, "--text", text, "--out", out)
        assert (result.exit_code, result.stderr) == (0, "")
        assert {path.name for path in out.iterdir()} >= self.FILES
        assert f"The page is {out}/report.html" in result.stdout.replace("\n", "")

    def test_json_stays_alone_on_standard_output(self, run, model, text, tmp_path):
        out = tmp_path / "page"
        result = run("inspect", model, "--text", text, "--out", out, "--json")
        assert json.loads(result.stdout)["metadata"]["samples"] == 3
        assert {path.name for path in out.iterdir()} >= self.FILES

    def test_overwrite(self, run, model, text, tmp_path):
        (tmp_path / "page").mkdir()
        (tmp_path / "page" / "results.csv").write_text("old")
        arguments = ["inspect", model, "--text", text, "--out", tmp_path / "page"]
        assert run(*arguments).exit_code == 2
        assert (tmp_path / "page" / "results.csv").read_text() == "old"
        assert run(*arguments, "--overwrite").exit_code == 0
        assert (tmp_path / "page" / "results.csv").read_text().startswith("variant,sample,layer")
