"""`inspect`: the Dataset says what Hugging Face's states say, layer by layer, and how they came."""

import json
import platform
import sys
from datetime import datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import torch
import xarray as xr
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, GPT2Config

import tests.families.test_albert as albert
import tests.families.test_bert as bert
import tests.families.test_gpt2 as gpt2
import tests.families.test_xlnet as xlnet
from rankcollapse import inspect, load
from rankcollapse.errors import InputError, OptionError
from rankcollapse.inputs.documents import biographies
from rankcollapse.inputs.tokens import digest, prepare
from rankcollapse.streams import Dense
from tests.families.contract import padded
from tests.metrics.reference import composite, everything
from tests.networks import ids, randomised, relative_error, states

MODULE = sys.modules["rankcollapse.inspection.inspect"]
FAMILIES = {
    "bert": bert.TestBert,
    "albert": albert.TestAlbert,
    "xlnet": xlnet.TestXlnet,
    "gpt2": gpt2.TestGpt2,
}
GROUPS = {
    "residual": {
        "relative_residual",
        "log10_relative_residual",
        "relative_residual_frobenius",
        "absolute_residual",
    },
    "similarity": {"token_cosine"},
    "spectrum": {
        "effective_rank",
        "stable_rank",
        "residual_effective_rank",
        "residual_stable_rank",
    },
    "magnitude": {"largest_token_ratio"},
    "attention": {"attention_entropy", "attention_lambda2"},
}
STATE_METRICS = set().union(*(names for group, names in GROUPS.items() if group != "attention"))
ROWS = ids((7, 4, 9, 4, 7))


def bert_config(**changes: Any) -> BertConfig:
    sizes = dict(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
        vocab_size=99, max_position_embeddings=20,
    )  # fmt: skip
    return BertConfig(**{**sizes, **changes})


@pytest.fixture(scope="module")
def tiny() -> Any:
    """A live BERT in float64."""
    return randomised(bert_config())


@pytest.fixture(scope="module")
def tiny_gpt2() -> Any:
    return randomised(gpt2.config())


def metadata(dataset: xr.Dataset) -> dict[str, Any]:
    return json.loads(dataset.attrs["metadata"])


def rows_of(model: Any, name: str, inputs: dict[str, Any]) -> list[list[np.ndarray]]:
    """Per layer and sample, the real tokens of Hugging Face's own states."""
    layers = FAMILIES[name]().reference_states(model, inputs)
    real = [mask.bool() for mask in inputs["attention_mask"]]
    return [[state[i][real[i]].numpy() for i in range(len(real))] for state in layers]


class TestNumbers:
    @pytest.mark.parametrize("side", ["left", "right"])
    @pytest.mark.parametrize("name", FAMILIES)
    def test_transformer_is_the_untouched_model(self, name, side):
        model = randomised(FAMILIES[name]().config())
        inputs = padded(ROWS, left=side == "left")
        before = {key: value.clone() for key, value in model.state_dict().items()}
        results = inspect(model, inputs, ["san", "transformer"]).sel(variant="transformer")
        reference = rows_of(model, name, inputs)
        assert results.sizes == {"sample": len(ROWS), "layer": len(reference)}
        for layer, samples in enumerate(reference):
            for sample, x in enumerate(samples):
                for metric, value in everything(x).items():
                    ours = float(results[metric].sel(sample=sample, layer=layer))
                    assert ours == pytest.approx(value, rel=1e-9, abs=1e-11), (metric, layer)
        for key, value in model.state_dict().items():
            assert torch.equal(value, before[key]), key

    def test_state_after_the_final_norm_has_names_of_its_own(self, tiny_gpt2):
        inputs = padded(ROWS)
        results = inspect(tiny_gpt2, inputs, ["transformer", "-final_norm"])
        with torch.no_grad():
            last = tiny_gpt2(**inputs).last_hidden_state
        for sample, row in enumerate(ROWS):
            expected = everything(last[sample, : len(row)].numpy())
            for metric, value in expected.items():
                after = results[f"{metric}_after_final_norm"].sel(sample=sample)
                before = results[metric].sel(sample=sample, layer=3)
                assert after.dims == ("variant",)
                assert float(after.sel(variant="transformer")) == pytest.approx(value, rel=1e-9)
                off = float(before.sel(variant="-final_norm"))
                assert float(after.sel(variant="-final_norm")) == off
                assert float(before.sel(variant="transformer")) == off
            before = results.absolute_residual.sel(sample=sample, layer=3, variant="transformer")
            assert expected["absolute_residual"] != pytest.approx(float(before), rel=1e-2)

    @pytest.mark.parametrize("variant", ["san", "san+mlp", "san+skip", "-mlp_norm"])
    def test_other_variants_are_measured_on_their_own_states(self, tiny, variant):
        inputs = padded(ROWS)
        results = inspect(tiny, inputs, ["transformer", variant, "-norm"]).sel(variant=variant)
        for sample, layers in enumerate(states(load(tiny), inputs, variant)):
            for layer, x in layers.items():
                for metric, value in everything(x.numpy()).items():
                    ours = float(results[metric].sel(sample=sample, layer=layer))
                    assert ours == pytest.approx(value, rel=1e-6, abs=1e-9), (metric, layer)

    def test_metrics_are_float64_whatever_the_model(self):
        model = randomised(bert_config(), dtype=torch.float32)
        inputs = padded(ROWS)
        results = inspect(model, inputs, ["transformer"])
        for sample, layers in enumerate(states(load(model), inputs)):
            for layer, x in layers.items():
                assert x.dtype == torch.float32
                for metric, value in everything(x.numpy()).items():
                    assert results[metric].dtype == np.float64
                    ours = float(results[metric].sel(variant="transformer")[sample, layer])
                    assert ours == pytest.approx(value, rel=1e-9, abs=1e-11)

    def test_order_and_batching_change_nothing(self, tiny, monkeypatch):
        inputs = {"input_ids": ROWS}
        # Without "san", whose residual in float64 keeps few digits that batching could not change.
        names = ("san+skip", "-mlp_norm", "transformer")
        whole = inspect(tiny, inputs, names)
        for limit in (1, 10, 100_000):
            monkeypatch.setattr(MODULE, "tokens_per_batch", lambda _, limit=limit: limit)
            parts = inspect(tiny, inputs, names)
            for name in whole.data_vars:
                np.testing.assert_allclose(parts[name], whole[name], rtol=1e-9, atol=1e-12)
        turned = inspect(tiny, {"input_ids": ROWS[::-1]}, names)
        for name in whole.data_vars:
            np.testing.assert_allclose(
                turned[name].values[:, ::-1], whole[name].values, rtol=1e-9, atol=1e-12
            )
        for sample, row in enumerate(ROWS):
            alone = inspect(tiny, {"input_ids": [row]}, names)
            np.testing.assert_allclose(
                alone.relative_residual.values[:, 0],
                whole.relative_residual.values[:, sample],
                rtol=1e-9,
                atol=1e-12,
            )

    def test_states_that_overflow_are_not_numbers_and_spoil_nothing_else(self):
        model = randomised(bert_config(), dtype=torch.float32)
        with torch.no_grad():
            for block in model.encoder.layer:
                block.output.dense.weight.mul_(1e25)
        inputs = {"input_ids": ROWS}
        metrics = tuple(GROUPS)
        results = inspect(model, inputs, ["-norm", "san"], metrics=metrics)
        alone = inspect(model, inputs, ["san"], metrics=metrics)
        last = results.sel(variant="-norm").isel(layer=-1)
        for name in STATE_METRICS:
            assert not np.isfinite(last[name]).any(), name
        for name in GROUPS["attention"]:
            assert np.isnan(last[name]).all(), name
        assert not last.at_floor.any()
        for name in results.data_vars:
            np.testing.assert_array_equal(
                results[name].sel(variant="san"), alone[name].sel(variant="san")
            )


class TestFloor:
    @pytest.mark.parametrize(("dtype", "floor"), [("float32", 2**-21), ("float64", 2**-50)])
    def test_san_reaches_it_and_does_not_come_back(self, dtype, floor):
        config = bert_config(hidden_size=64, num_hidden_layers=8)
        model = load(config, init="random", seed=1, dtype=dtype)
        results = inspect(model, {"input_ids": ids((16, 16))}, ["san", "transformer"])
        assert metadata(results)["floor"] == floor
        assert results.at_floor.dtype == bool
        below = results.relative_residual.values <= floor
        expected = np.logical_or.accumulate(below, axis=-1)
        np.testing.assert_array_equal(results.at_floor, expected)
        san = results.sel(variant="san")
        assert not san.at_floor.isel(layer=0).any() and san.at_floor.isel(layer=-1).all()
        assert not results.sel(variant="transformer").at_floor.any()
        assert (san.relative_residual.isel(layer=-1) < floor).all()

    def test_what_follows_a_state_at_the_floor_is_marked_too(self, tiny_gpt2, monkeypatch):
        inputs = {"input_ids": ROWS}
        free = inspect(tiny_gpt2, inputs, ["san", "transformer"])
        values = free.relative_residual.sel(variant="transformer")
        # A floor that one layer touches and later ones rise above again.
        sample, layer = next(
            (s, k)
            for s in range(len(ROWS))
            for k in range(1, 3)
            if float(values[s, k]) < float(values[s, k + 1])
        )
        raised = float(values[sample, layer])

        class Coarse(Dense):
            def __init__(self, dtype: torch.dtype) -> None:
                super().__init__(dtype)
                self.floor = raised

        monkeypatch.setattr(MODULE, "Dense", Coarse)
        results = inspect(tiny_gpt2, inputs, ["san", "transformer"])
        marked = results.at_floor.sel(variant="transformer")[sample]
        assert bool(marked[layer]) and bool(marked[layer + 1])
        assert float(values[sample, layer + 1]) > raised
        assert bool(results.at_floor_after_final_norm.sel(variant="transformer")[sample])
        before = results.relative_residual.values <= raised
        np.testing.assert_array_equal(results.at_floor, np.logical_or.accumulate(before, axis=-1))
        assert metadata(results)["floor"] == raised
        np.testing.assert_array_equal(results.relative_residual, free.relative_residual)


class TestAttention:
    @pytest.mark.parametrize("side", ["left", "right"])
    @pytest.mark.parametrize("name", FAMILIES)
    def test_entropy_and_eigenvalue_of_hugging_faces_own_matrices(self, name, side):
        config = FAMILIES[name]().config()
        config._attn_implementation = "eager"
        model = randomised(config)
        inputs = padded(ids((9, 5)), left=side == "left")
        inputs["token_type_ids"] = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1, 1], [0] * 3 + [1] * 6])
        with torch.no_grad():
            attentions = model(**inputs, output_attentions=True).attentions
        results = inspect(model, inputs, ["san", "transformer"], metrics=("attention",))
        results = results.sel(variant="transformer")
        assert results.attention_entropy.dims == ("sample", "layer", "head")
        assert results.sizes["head"] == 4 and len(attentions) == results.sizes["layer"] - 1
        assert np.isnan(results.attention_entropy.sel(layer=0)).all()
        assert np.isnan(results.attention_lambda2.sel(layer=0)).all()
        for layer, matrices in enumerate(attentions, start=1):
            for sample, mask in enumerate(inputs["attention_mask"].bool()):
                for head in range(4):
                    p = matrices[sample, head][mask][:, mask].numpy()
                    assert p.sum(1) == pytest.approx(1)
                    entropy = scipy.special.entr(p).sum(1).mean()
                    second = np.sort(np.abs(scipy.linalg.eigvals(p)))[-2]
                    at = dict(layer=layer, sample=sample)
                    assert float(results.attention_entropy.sel(at)[head]) == pytest.approx(
                        entropy, rel=1e-9
                    )
                    assert float(results.attention_lambda2.sel(at)[head]) == pytest.approx(
                        second, rel=1e-6
                    )

    def test_segments_act_on_each_sample(self):
        model = randomised(xlnet.config())
        rows = ids((6, 6))
        types = [[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]]
        together = inspect(
            model, {"input_ids": rows, "token_type_ids": types}, ["san"], metrics=("attention",)
        )
        for sample in range(2):
            one = {"input_ids": [rows[sample]], "token_type_ids": [types[sample]]}
            alone = inspect(model, one, ["san"], metrics=("attention",))
            np.testing.assert_allclose(
                together.attention_entropy[:, sample], alone.attention_entropy[:, 0], rtol=1e-9
            )

    @pytest.mark.parametrize("variant", ["-attention_norm", "san"])
    def test_matrices_are_those_of_the_variant(self, tiny_gpt2, variant):
        results = inspect(
            tiny_gpt2, {"input_ids": ROWS}, ["transformer", variant], metrics=("attention",)
        )
        ours = results.attention_entropy.sel(variant=variant)
        plain = results.attention_entropy.sel(variant="transformer")
        assert not np.allclose(ours.sel(layer=2), plain.sel(layer=2), rtol=1e-3)
        alone = inspect(tiny_gpt2, {"input_ids": ROWS}, [variant], metrics=("attention",))
        np.testing.assert_array_equal(alone.attention_entropy[0], ours)


class TestDataset:
    @pytest.mark.parametrize("final_norm", [False, True])
    def test_names_dimensions_and_attributes(self, tiny, tiny_gpt2, final_norm):
        names = ("san+skip", "-mlp_skip", "transformer")
        results = inspect(
            tiny_gpt2 if final_norm else tiny, {"input_ids": ROWS}, names, metrics=tuple(GROUPS)
        )
        assert results.variant.values.tolist() == list(names)
        assert results.sample.values.tolist() == list(range(len(ROWS)))
        assert results.layer.values.tolist() == [0, 1, 2, 3]
        every = STATE_METRICS | GROUPS["attention"] | {"at_floor"}
        after = {f"{name}_after_final_norm" for name in STATE_METRICS | {"at_floor"}}
        assert set(results.data_vars) == every | (after if final_norm else set())
        units = {"absolute_residual": "units of the state", "attention_entropy": "nat"}
        for name, variable in results.data_vars.items():
            base = str(name).removesuffix("_after_final_norm")
            dims = ("variant", "sample", "layer", "head")
            size = 4 if base in GROUPS["attention"] else 3 if base == name else 2
            assert variable.dims == dims[:size], name
            assert variable.dtype == (bool if base == "at_floor" else np.float64)
            assert set(variable.attrs) == {"long_name", "units", "definition"}
            assert variable.attrs["units"] == units.get(base, "1")
            assert all(isinstance(text, str) and text for text in variable.attrs.values())
            if base != name:
                assert variable.attrs["definition"] == results[base].attrs["definition"]
        titles = [v.attrs["long_name"] for v in results.data_vars.values()]
        assert len(set(titles)) == len(titles)

    @pytest.mark.parametrize("group", GROUPS)
    def test_groups_that_were_not_asked_for_are_absent(self, tiny_gpt2, group):
        results = inspect(tiny_gpt2, {"input_ids": ROWS}, ["san"], metrics=(group,))
        names = {str(name).removesuffix("_after_final_norm") for name in results.data_vars}
        assert GROUPS[group] <= names
        # The relative residual decides `at_floor`, so its group always comes.
        assert names <= GROUPS[group] | GROUPS["residual"] | {"at_floor"}
        full = inspect(tiny_gpt2, {"input_ids": ROWS}, ["san"], metrics=tuple(GROUPS))
        for name in results.data_vars:
            np.testing.assert_array_equal(results[name], full[name])

    def test_attention_only_on_request(self, tiny):
        results = inspect(tiny, {"input_ids": ROWS})
        assert set(results.data_vars) == STATE_METRICS | {"at_floor"}
        assert results.variant.values.tolist() == ["san", "san+mlp", "san+skip", "transformer"]

    def test_metadata(self, tiny, tmp_path):
        tiny.float().save_pretrained(tmp_path / "model")
        tiny.double()
        inputs = padded(ROWS)
        results = inspect(
            load(tmp_path / "model", dtype="float64"),
            inputs,
            ["san+mlp", "-mlp_norm"],
            as_published=True,
            leave_out="first",
        )
        about = metadata(results)
        samples = prepare(inputs, lambda: None, load(tiny).architecture)
        assert datetime.fromisoformat(about.pop("created")).tzinfo is not None
        assert about == {
            "model": str(tmp_path / "model"),
            "family": "bert",
            "layers": 3,
            "heads": 4,
            "causal": False,
            "positions_in_scores": False,
            "width": 32,
            "init": "pretrained",
            "seed": None,
            "revision": None,
            "dtype": "float64",
            "device": "cpu",
            "arithmetic": "dense",
            "as_published": True,
            "leave_out": "first",
            "samples": 5,
            "tokens_min": 4,
            "tokens_max": 9,
            "text_sha256": digest(samples),
            "floor": 2**-50,
            "variants": {
                "san+mlp": {
                    "off": ["attention_skip"],
                    "formula": "a = N₁(A(x)); y = N₂(a + M(a))",
                },
                "-mlp_norm": {
                    "off": ["mlp_norm"],
                    "formula": "a = N₁(x + A(x)); y = a + M(a)",
                },
            },
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("rankcollapse", "torch", "transformers")},
                "xarray": version("xarray"),
            },
        }
        for name, causal, in_scores in (("gpt2", True, False), ("xlnet", False, True)):
            other = metadata(inspect(randomised(FAMILIES[name]().config()), inputs, ["san"]))
            assert (other["causal"], other["positions_in_scores"]) == (causal, in_scores)
        random = metadata(inspect(load(bert_config(), init="random", seed=5), inputs, ["san"]))
        assert (random["init"], random["seed"], random["as_published"]) == ("random", 5, False)

    def test_netcdf_round_trip(self, tiny_gpt2, tmp_path):
        results = inspect(tiny_gpt2, {"input_ids": ROWS}, metrics=tuple(GROUPS))
        results.to_netcdf(tmp_path / "results.nc", engine="h5netcdf")
        with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as read:
            xr.testing.assert_identical(read.load(), results)

    def test_runs_are_reproducible_and_seeds_differ(self):
        def run(seed: int) -> xr.Dataset:
            torch.rand(seed)  # the global random state must not matter
            model = load(bert_config(), init="random", seed=seed)
            return inspect(model, {"input_ids": ROWS}).drop_attrs()

        first, again, other = run(3), run(3), run(4)
        xr.testing.assert_identical(first, again)
        assert not np.allclose(first.relative_residual, other.relative_residual, rtol=1e-3)

    def test_a_folder_a_live_model_and_a_loaded_one_are_taken(self, tmp_path):
        model = BertModel(bert_config()).eval()
        model.save_pretrained(tmp_path)
        expected = inspect(load(model), {"input_ids": ROWS}, ["san"]).drop_attrs()
        for source in (model, tmp_path, str(tmp_path)):
            results = inspect(source, {"input_ids": ROWS}, ["san"]).drop_attrs()
            xr.testing.assert_identical(results, expected)

    def test_as_published_runs_the_published_surgery(self, tiny):
        inputs = {"input_ids": ROWS}
        published = inspect(tiny, inputs, as_published=True)
        own = inspect(tiny, inputs, [*published.variant.values.tolist(), "-attention_skip"])
        for name in ("san", "san+skip", "transformer"):
            xr.testing.assert_equal(
                published.relative_residual.sel(variant=name),
                own.relative_residual.sel(variant=name),
            )
        ours = published.relative_residual.sel(variant="san+mlp").values
        kept = own.relative_residual.sel(variant="-attention_skip").values
        np.testing.assert_array_equal(ours, kept)
        assert not np.allclose(ours, own.relative_residual.sel(variant="san+mlp"), rtol=1e-3)


class TestLeaveOut:
    def test_first_token_takes_part_but_is_not_measured(self, tiny):
        inputs = padded(ROWS)
        results = inspect(tiny, inputs, ["transformer"], leave_out="first")
        for layer, samples in enumerate(rows_of(tiny, "bert", inputs)):
            for sample, x in enumerate(samples):
                for metric, value in everything(x[1:]).items():
                    ours = float(results[metric][0, sample, layer])
                    assert ours == pytest.approx(value, rel=1e-9, abs=1e-11), metric

    def test_special_tokens(self, tiny):
        inputs: dict[str, Any] = padded(ROWS)
        special = [[i % 3 == 0 for i in range(len(row))] + [True] * (9 - len(row)) for row in ROWS]
        results = inspect(
            tiny,
            {**inputs, "special_tokens_mask": special},
            ["transformer"],
            leave_out="special",
            metrics=("residual", "spectrum"),
        )
        for layer, samples in enumerate(rows_of(tiny, "bert", inputs)):
            for sample, x in enumerate(samples):
                counted = x[~np.array(special[sample][: len(x)])]
                value = everything(counted)
                for metric in GROUPS["residual"] | GROUPS["spectrum"]:
                    ours = float(results[metric][0, sample, layer])
                    assert ours == pytest.approx(value[metric], rel=1e-9, abs=1e-11), metric

    def test_special_tokens_of_texts(self, pretrained):
        texts = ["The cat saw the old dog.", "A bird."]
        tokenizer = AutoTokenizer.from_pretrained(pretrained)
        model = load(pretrained)
        results = inspect(model, texts, ["transformer"], leave_out="special")
        for sample, text in enumerate(texts):
            inputs = {"input_ids": [tokenizer(text)["input_ids"]]}
            x = states(model, inputs)[0][6][1:-1]  # between [CLS] and [SEP]
            assert float(results.relative_residual[0, sample, 6]) == pytest.approx(
                everything(x.numpy())["relative_residual"], rel=1e-4
            )


class TestProgress:
    @pytest.mark.parametrize("config", [bert_config(), GPT2Config(**gpt2.config().to_dict())])
    def test_it_grows_and_ends_at_the_total(self, config):
        calls: list[tuple[float, float]] = []
        inspect(
            load(config, init="random"),
            {"input_ids": ROWS},
            ["san", "transformer"],
            metrics=("residual",),
            progress=lambda done, total: calls.append((done, total)),
        )
        done = [call[0] for call in calls]
        totals = {call[1] for call in calls}
        assert len(totals) == 1 and done[-1] == totals.pop()
        assert all(a < b for a, b in pairwise(done))
        assert done[0] > 0 and len(done) >= 2 * 3 * 4  # variants × lengths × states

    def test_an_interruption_goes_through(self, tiny):
        def stop(done: float, total: float) -> None:
            if done >= 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            inspect(tiny, {"input_ids": ROWS}, progress=stop)


class TestWrongOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"metrics": ("residual", "rank")}, ("metrics", "'rank'", "spectrum", "attention")),
            ({"leave_out": "last"}, ("leave_out", "'last'", "special", "first")),
            ({"arithmetic": "sparse"}, ("arithmetic", "'sparse'", "dense")),
            ({"variants": ["san", "nas"]}, ("variant", "'nas'", "san+mlp")),
            ({"variants": []}, ("no variant",)),
            ({"variants": "san,san"}, ("twice", "'san'")),
        ],
    )
    def test_they_are_named_before_the_model_is_read(self, options, words):
        with pytest.raises(OptionError) as error:
            inspect("/no/such/model", {"input_ids": ROWS}, **options)
        assert all(word in str(error.value) for word in words)

    def test_wrong_input_is_named_before_the_pass(self, tiny):
        calls = []
        for inputs in ({"input_ids": [[5, 6], [7]]}, {"input_ids": [[5, 99]]}, {"input_ids": []}):
            with pytest.raises(InputError):
                inspect(tiny, inputs, progress=lambda *args: calls.append(args))
        with pytest.raises(InputError):
            inspect(
                tiny,
                {"input_ids": ROWS},
                leave_out="special",
                progress=lambda *args: calls.append(args),
            )
        assert not calls

    def test_one_metric_group_or_variant_may_be_a_plain_string(self, tiny):
        results = inspect(tiny, {"input_ids": ROWS}, "san", metrics="spectrum")
        assert results.variant.values.tolist() == ["san"]
        assert "effective_rank" in results and "token_cosine" not in results


@pytest.fixture(scope="module")
def encoded(pretrained: Path) -> dict[str, Any]:
    """Three biographies of different lengths, padded by the model's own tokenizer."""
    texts = sorted(biographies(), key=len)
    tokenizer = AutoTokenizer.from_pretrained(pretrained)
    inputs = tokenizer([texts[0], texts[-1], texts[16]], padding=True, return_tensors="pt")
    assert len(set(inputs["attention_mask"].sum(1).tolist())) == 3
    return inputs


class TestPretrained:
    @pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-10), ("float32", 1e-5)])
    def test_every_layer_equals_hugging_face(self, pretrained, encoded, dtype, limit):
        reference = AutoModel.from_pretrained(pretrained, dtype=getattr(torch, dtype)).eval()
        with torch.no_grad():
            theirs = reference(**encoded, output_hidden_states=True).hidden_states
        model = load(pretrained, dtype=dtype)
        assert len(theirs) == model.architecture.layers + 1 == 7
        results = inspect(model, encoded, ["transformer"], metrics=("residual", "similarity"))
        for sample, layers in enumerate(states(model, encoded)):
            real = encoded["attention_mask"][sample].bool()
            for layer, state in enumerate(theirs):
                expected = state[sample][real]
                assert relative_error(layers[layer], expected) <= limit
                ours = float(results.relative_residual[0, sample, layer])
                x = expected.double().numpy()
                ratio = composite(x - x.mean(0)) / composite(x)
                assert ours == pytest.approx(ratio, rel=10 * limit)

    def test_collapse_without_skips_and_none_with_them(self, pretrained):
        results = inspect(
            pretrained, biographies(), ["san", "transformer"], tokens=128, metrics=("residual",)
        )
        assert results.sizes == {"variant": 2, "sample": 32, "layer": 7}
        about = metadata(results)
        assert about["tokens_min"] == about["tokens_max"] == 128
        values = results.relative_residual
        mean = values.mean("sample")
        assert (mean.sel(variant="san", layer=slice(4, None)) < 1e-4).all()
        assert (values.sel(variant="transformer") > 0.5).all()
        entering = values.sel(layer=0)
        assert (entering.sel(variant="san") == entering.sel(variant="transformer")).all()
        assert not results.at_floor.sel(variant="transformer").any()
