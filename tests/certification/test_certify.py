"""`certify`: what the Dataset holds, deep networks, degenerate inputs, and what is refused."""

import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from transformers import BertConfig, XLNetConfig

import rankcollapse
from rankcollapse import load
from rankcollapse.certification import certify
from rankcollapse.errors import InputError, OptionError
from rankcollapse.report.certificate import alarms, findings
from rankcollapse.report.certificate.summary import bounds
from tests.certification.bracket import assert_certified
from tests.networks import ids, randomised


def config(**changes: Any) -> BertConfig:
    sizes = dict(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24,
        vocab_size=99, max_position_embeddings=20,
    )  # fmt: skip
    return BertConfig(**{**sizes, **changes})


def scaled(model: Any, factor: float) -> Any:
    """The same model with all weights of its blocks multiplied."""
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter *= factor
    return model


@pytest.fixture(scope="module")
def live() -> Any:
    return randomised(config())


@pytest.fixture(scope="module")
def dataset(live) -> xr.Dataset:
    return certify(live, {"input_ids": ids((7, 5))}, "san+skip-norm")


class TestDataset:
    def test_dimensions_and_attributes(self, dataset):
        shapes = {
            ("sample", "layer"): {
                "measured", "log10_measured", "log10_measured_frobenius", "max_delta", "gamma",
            },
            ("bound", "sample", "layer"): {"log10_bound", "applies"},
            ("hypothesis", "sample", "layer"): {"holds"},
            ("bound", "hypothesis"): {"requires"},
            ("sample",): {"log10_contraction", "log10_paper_condition"},
        }  # fmt: skip
        for dims, names in shapes.items():
            for name in names:
                assert dataset[name].dims == dims, name
        assert set(dataset.data_vars) == set().union(*shapes.values())
        for name, values in dataset.data_vars.items():
            assert {"long_name", "units", "definition"} <= set(values.attrs), name
            assert all(isinstance(text, str) and text for text in values.attrs.values()), name
        for name in ("holds", "requires", "applies"):
            assert dataset[name].dtype == bool
        assert dataset.sizes["layer"] == 4 and dataset.sizes["sample"] == 2
        assert np.isnan(dataset.log10_bound.sel(layer=0)).all()

    def test_every_bound_is_described(self, dataset):
        for name in ("title", "source", "definition"):
            assert all(dataset[name].values), name
        assert set(dataset.kind.values) == {"upper", "lower"}
        lower = dataset.bound.values[dataset.kind == "lower"]
        assert set(lower) == {"weyl", "weyl_depth", "smallest_singular_value", "composed"}
        assert set(dataset.bound.values[dataset.scope == "depth"]) == {
            "skip", "weyl_depth", "composed",
        }  # fmt: skip
        assert set(dataset.bound.values[dataset.norm == "frobenius"]) == {*lower, "spectral"}
        assert len(set(dataset.title.values)) == dataset.sizes["bound"]

    def test_hypotheses_and_what_requires_them(self, dataset):
        assert list(dataset.hypothesis.values) == [
            "small_delta", "content_only", "no_mask", "no_norm", "sum_over_heads",
        ]  # fmt: skip
        assert "max δ ≤ 1.2564" in str(dataset.statement.sel(hypothesis="small_delta").item())
        needed = {
            str(bound): set(dataset.hypothesis.values[row])
            for bound, row in zip(dataset.bound.values, dataset.requires.values, strict=True)
        }
        content = {"content_only", "no_mask"}
        for name in ("two_norms", "gamma_free", "tanh", "values"):
            assert needed[name] == content
        for name in ("dobrushin", "spectral", "weyl", "smallest_singular_value", "composed"):
            assert not needed[name]
        assert needed["skip"] == {*content, "small_delta", "no_norm", "sum_over_heads"}

    def test_applies_is_all_that_is_required(self, live):
        """For a statement in depth at every layer so far, and only where that is so."""
        plain = certify(live, {"input_ids": ids((7, 5, 9))}, "san+skip-norm")
        holds = plain.holds.values
        for bound, row in zip(plain.bound.values, plain.requires.values, strict=True):
            expected = holds[row].all(0)
            if plain.scope.sel(bound=bound) == "depth":
                expected = np.logical_and.accumulate(expected, axis=-1)
            np.testing.assert_array_equal(plain.applies.sel(bound=bound), expected)

    def test_depth_stops_applying_where_a_layer_breaks_a_hypothesis(self):
        """And does not begin again where later layers keep it."""
        model = randomised(config())
        with torch.no_grad():
            model.encoder.layer[0].attention.self.query.weight.mul_(0.1)
            model.encoder.layer[1].attention.self.query.weight.mul_(1e7)
        plain = certify(model, {"input_ids": ids((6,))}, "san-norm")
        small = plain.holds.sel(hypothesis="small_delta", sample=0).values
        assert small.tolist() == [True, True, False, True]
        lemma = plain.applies.sel(bound="lemma_a2", sample=0).values
        theorem = plain.applies.sel(bound="theorem_2_3", sample=0).values
        assert lemma.tolist() == [True, True, False, True]
        assert theorem.tolist() == [True, True, False, False]

    def test_single_head_statements_have_their_own_names(self):
        model = load(config(num_attention_heads=1), init="random")
        titles = certify(model, {"input_ids": ids((5,))}, "san").title
        assert titles.sel(bound="lemma_a2") == "Lemma A.1"
        assert titles.sel(bound="theorem_2_3") == "Theorem 2.2"
        model = load(config(), init="random")
        titles = certify(model, {"input_ids": ids((5,))}, "san").title
        assert titles.sel(bound="lemma_a2") == "Lemma A.2"
        assert titles.sel(bound="theorem_2_3") == "Theorem 2.3"

    def test_metadata_says_how_it_was_made(self, dataset):
        run = json.loads(dataset.attrs["metadata"])
        assert run["arithmetic"] == "centered" and run["dtype"] == "torch.float64"[6:]
        assert (run["samples"], run["tokens_min"], run["tokens_max"]) == (2, 5, 7)
        assert dataset.variant.item() == "san+skip-norm" and dataset.variant.dims == ()
        assert run["variants"] == {
            "san+skip-norm": {
                "off": ["attention_norm", "final_norm", "mlp", "mlp_norm"],
                "formula": "y = x + A(x)",
            }
        }

    def test_netcdf_gives_it_back(self, dataset, tmp_path):
        path = tmp_path / "results.nc"
        dataset.to_netcdf(path, engine="h5netcdf")
        with xr.open_dataset(path, engine="h5netcdf") as back:
            xr.testing.assert_identical(back.load(), dataset)

    def test_is_public(self):
        assert rankcollapse.certify is certify

    def test_progress_reaches_its_end(self, live):
        seen: list[tuple[float, float]] = []
        certify(live, {"input_ids": ids((7, 5))}, progress=lambda *at: seen.append(at))
        assert seen[-1][0] == seen[-1][1] and len(seen) == 3 * 2
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


class TestDepth:
    @pytest.mark.parametrize("variant", ["san", "san-norm", "san+mlp-norm", "san+skip-norm"])
    @pytest.mark.parametrize("make", [randomised, lambda c: load(c, init="random")])
    def test_a_hundred_layers_stay_finite(self, variant, make: Callable[[Any], Any]):
        """Without an overflow warning, which would be an error here."""
        model = make(config(num_hidden_layers=100))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            deep = certify(model, {"input_ids": ids((5,))}, variant)
        assert_certified(deep)
        assert np.isfinite(deep.log10_measured).all()
        stated = deep.log10_bound.sel(layer=slice(1, None))
        assert np.isfinite(stated.sel(bound=deep.kind == "upper")).all()
        lower = stated.sel(bound=deep.kind == "lower").values
        assert not np.isnan(lower).any() and (lower < np.inf).all()
        if variant.startswith("san-"):
            theorem = deep.log10_bound.sel(bound="theorem_2_3", sample=0)
            assert (abs(theorem[-1]) > 1e40).all()
            assert (theorem[-1] < 0) == (deep.log10_contraction[0] < 0)

    def test_flags_do_not_drown_in_rounding(self):
        """At 10^-1e40 the sides of a hypothesis differ in digits that no float64 has."""
        model = load(config(num_hidden_layers=90), init="random", seed=1)
        deep = certify(model, {"input_ids": ids((5,))}, "san-norm")
        assert float(deep.log10_measured[0, -1]) < -1e40
        assert deep.holds.sel(hypothesis="sum_over_heads").all()

    def test_bounds_in_depth_tend_to_zero_where_the_true_condition_says(self):
        """Weights alone do not decide: the input's size does as well."""
        for scale, falls in ((1.0, False), (0.01, True)):
            model = randomised(config(num_hidden_layers=8))
            with torch.no_grad():
                model.embeddings.LayerNorm.weight.mul_(scale)
            deep = certify(model, {"input_ids": ids((5,))}, "san-norm").isel(sample=0)
            last = float(deep.log10_bound.sel(bound="theorem_2_3", layer=8))
            assert (last < -100) == falls and (last > 100) != falls
            assert (float(deep.log10_contraction) < 0) == falls
            assert float(deep.log10_paper_condition) > 0


class TestDegenerate:
    def test_equal_tokens(self):
        model = randomised(config())
        with torch.no_grad():
            model.embeddings.position_embeddings.weight.zero_()
        for variant in ("san", "san-norm", "san+skip-norm", "transformer", "san+mlp"):
            equal = certify(model, {"input_ids": [[7, 7, 7]]}, variant)
            assert (equal.measured == 0).all() and (equal.log10_measured == -np.inf).all()
            upper = equal.log10_bound.sel(bound=equal.kind == "upper", layer=slice(1, None))
            assert (upper == -np.inf).all()
            lower = equal.log10_bound.sel(bound=equal.kind == "lower", layer=slice(1, None))
            assert (lower == -np.inf).all()
            assert (equal.max_delta[:, 1:] == 0).all() and (equal.gamma[:, 1:] == 1).all()
            assert ("weyl_depth" in equal.bound.values) == (variant == "san+skip-norm")
            assert_certified(equal)

    @pytest.mark.parametrize("tokens", [2, 3])
    def test_few_tokens(self, live, tokens):
        for variant in ("san", "san+skip-norm", "transformer"):
            assert_certified(certify(live, {"input_ids": ids((tokens,))}, variant))

    def test_no_values_keep_everything(self):
        """Claim 3.1: equality from both sides."""
        model = randomised(config())
        with torch.no_grad():
            for block in model.encoder.layer:
                block.attention.self.value.weight.zero_()
        kept = certify(model, {"input_ids": ids((6,))}, "san+skip-norm")
        start = float(kept.log10_measured_frobenius[0, 0])
        for name in ("weyl", "weyl_depth", "smallest_singular_value", "composed", "spectral"):
            values = kept.log10_bound.sel(bound=name, sample=0, layer=slice(1, None))
            np.testing.assert_allclose(values, start, rtol=1e-12, err_msg=name)
        for name in ("tanh", "two_norms", "dobrushin"):
            values = kept.log10_bound.sel(bound=name, sample=0, layer=slice(1, None))
            np.testing.assert_allclose(values, kept.log10_measured[0, 0], rtol=1e-12, err_msg=name)

    def test_no_scores_collapse_at_once(self):
        model = randomised(config())
        with torch.no_grad():
            for block in model.encoder.layer:
                block.attention.self.query.weight.zero_()
        gone = certify(model, {"input_ids": ids((6,))}, "san-norm").sel(layer=slice(1, None))
        assert (gone.log10_measured == -np.inf).all() and (gone.max_delta == 0).all()
        assert (gone.log10_bound == -np.inf).all()

    def test_an_mlp_of_zeros(self):
        model = randomised(config())
        with torch.no_grad():
            for block in model.encoder.layer:
                block.output.dense.weight.zero_()
        gone = certify(model, {"input_ids": ids((6,))}, "san+mlp").sel(layer=slice(1, None))
        assert (gone.log10_measured == -np.inf).all() and (gone.log10_bound == -np.inf).all()

    def test_vacuous_lower_bounds_are_minus_infinity(self):
        model = randomised(config())
        with torch.no_grad():
            for block in model.encoder.layer:
                block.attention.self.value.weight.mul_(30)
        large = certify(model, {"input_ids": ids((6,))}, "san+skip-norm").sel(layer=slice(1, None))
        assert (large.log10_bound.sel(bound=["weyl", "weyl_depth"]) == -np.inf).all()
        assert np.isfinite(large.log10_bound.sel(bound="smallest_singular_value")).all()

    def test_exact_operators_are_for_small_inputs_only(self, live):
        """(n − 1) d up to 1024, sample by sample."""
        wide = load(config(hidden_size=64, num_attention_heads=2), init="random")
        mixed = certify(wide, {"input_ids": ids((18, 5))}, "san+skip-norm")
        exact = mixed.log10_bound.sel(bound=["smallest_singular_value", "composed"])
        assert np.isnan(exact.sel(sample=0)).all()
        assert np.isfinite(exact.sel(sample=1, layer=slice(1, None))).all()
        assert_certified(mixed.isel(sample=[1]))
        large = certify(wide, {"input_ids": ids((18,))}, "san+skip-norm")
        assert "composed" not in large.bound.values and "weyl" in large.bound.values


class TestRefused:
    def test_variants_that_do_not_exist(self, live):
        for wrong in ("sam", "san,transformer", "san-mpl", ""):
            with pytest.raises(OptionError, match="variant"):
                certify(live, {"input_ids": ids((5,))}, wrong)

    def test_inputs_that_cannot_be(self, live):
        for rows in ([[5]], [[5, 200]], [[5, -1]], [], [[5] * 30]):
            with pytest.raises(InputError):
                certify(live, {"input_ids": rows})
        with pytest.raises(InputError):
            certify(live, {"input_ids": ids((5,))}, tokens=1)

    def test_long_inputs_are_cut_on_request(self, live):
        row = ids((30,))
        expected = certify(live, {"input_ids": [row[0][:20]]}).log10_bound
        cut = certify(live, {"input_ids": row}, truncate=True).log10_bound
        xr.testing.assert_equal(cut, expected)
        few = certify(live, {"input_ids": row}, tokens=4).log10_bound
        xr.testing.assert_equal(few, certify(live, {"input_ids": [row[0][:4]]}).log10_bound)
        assert not math.isclose(float(few[3, 0, 1]), float(cut[3, 0, 1]))


class TestAtTheEndsOfTheRange:
    def test_logarithms_that_leave_float64_are_zero_and_cross_nothing(self):
        sizes = dict(hidden_size=2, num_attention_heads=1, intermediate_size=2)
        deep = scaled(randomised(config(**sizes, num_hidden_layers=660)), 0.3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = certify(deep, {"input_ids": ids((8,))}, "san-norm")
        measured = dataset.log10_measured.values[0]
        assert np.isneginf(measured[-1]) and np.isfinite(measured[:600]).all()
        assert alarms(dataset) == []
        upper = dataset.log10_bound.sel(bound="dobrushin", layer=660)
        assert np.isneginf(upper).all()
        assert all("e+" not in sentence for sentence in findings(dataset))

    def test_ratios_of_logarithms_without_digits_are_not_told(self):
        deep = scaled(randomised(config(num_hidden_layers=45)), 0.3)
        dataset = certify(deep, {"input_ids": ids((8,))}, "san-norm")
        assert dataset.log10_measured.values.min() < -1e15
        bound = next(b for b in bounds(dataset) if b.name == "dobrushin")
        known = np.abs(bound.measured[0]) < 1e10
        known[0] = False  # nothing is bounded there
        assert (np.isfinite(bound.above) == known).all() and known.sum() > 5
        assert (bound.above[known] >= 0).all()

    @pytest.mark.parametrize("variant", ["san", "san-norm", "san+skip-norm", "transformer"])
    def test_states_that_overflow_are_refused(self, variant):
        huge = scaled(randomised(config()), 1e150)
        with pytest.raises(InputError, match=r"overflows? float64"):
            certify(huge, {"input_ids": ids((5,))}, variant)

    def test_attention_that_picks_one_token_is_not_said_to_be_rank_one(self):
        """Scores of 1e4 round rows of a positional P to the same token; the bound stays above."""
        model = randomised(XLNetConfig(vocab_size=99, d_model=12, n_layer=2, n_head=2, d_inner=16))
        with torch.no_grad():
            for layer in model.layer:
                layer.rel_attn.q *= 1e4
        dataset = certify(model, {"input_ids": ids((6,))}, "-attention_skip")
        assert np.isfinite(dataset.log10_bound.sel(bound="dobrushin").values[:, 1:]).all()
        assert alarms(dataset) == []
