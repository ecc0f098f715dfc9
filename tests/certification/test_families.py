"""Every family and variant: measured lies between the bounds, and flags say what the model is."""

import json
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rankcollapse import inspect, load
from rankcollapse.certification import certify
from rankcollapse.inputs.documents import biographies
from tests.certification.bracket import assert_certified, excess
from tests.families.contract import padded
from tests.networks import ids, randomised
from tests.streams.contract import CONFIGS

SOUND = {"two_norms", "gamma_free", "tanh", "values", "dobrushin", "spectral"}
CONTENT = {"lemma_a2", "two_norms", "gamma_free", "tanh", "values"}
WEYL = {"weyl", "weyl_depth"}
LINEAR = {*WEYL, "smallest_singular_value", "composed"}

# Per variant, what is stated with post-norm blocks, and with pre-norm blocks where that differs.
STATED: dict[str, tuple[set[str], ...]] = {
    "san": ({*SOUND, "lemma_a2", "theorem_2_3"},),
    "san-norm": ({*SOUND, "lemma_a2", "theorem_2_3"},),
    "san+mlp": ({*SOUND, "lemma_a2", "corollary_3_2"},),
    "san+mlp-norm": ({*SOUND, "lemma_a2", "corollary_3_2"},),
    "san+mlp-norm-mlp_projections": ({*SOUND, "lemma_a2", "corollary_3_2"},),
    "san+skip": ({*SOUND, "skip"}, {*SOUND, "skip", *WEYL}),
    "san+skip-norm": ({*SOUND, "skip", *LINEAR},),
    "transformer": (SOUND, {*SOUND, *WEYL}),
    "-norm": ({*SOUND, *WEYL},),
    "-mlp_skip": (SOUND,),
    "-attention_skip": (SOUND,),
    "-mlp_projections": (SOUND, {*SOUND, *WEYL}),
    "-norm-mlp_skip": (SOUND,),
}
ROWS = ids((9, 5, 9))


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: load(randomised(config, seed=1)) for name, config in CONFIGS.items()}


def flag(dataset: xr.Dataset, name: str) -> bool:
    """A hypothesis that does not depend on the input."""
    values = dataset.holds.sel(hypothesis=name).values
    assert values.all() or not values.any()
    return bool(values.all())


@pytest.mark.parametrize("variant", STATED)
@pytest.mark.parametrize("family", CONFIGS)
def test_measured_lies_between_the_bounds(models, family, variant):
    model = models[family]
    dataset = certify(model, {"input_ids": ROWS}, variant)
    assert assert_certified(dataset) >= 2 * 3 * 4
    pre = model.architecture.placement == "pre"
    assert set(dataset.bound.values) == STATED[variant][-1 if pre else 0]
    every = dataset.log10_bound.sel(layer=slice(1, None))
    assert not np.isnan(every.values).any()
    assert np.isfinite(every.sel(bound=dataset.kind == "upper").values).all()

    measured = inspect(model, {"input_ids": ROWS}, [variant], arithmetic="centered")
    np.testing.assert_allclose(dataset.measured, measured.absolute_residual[0], rtol=1e-9)
    np.testing.assert_allclose(
        dataset.log10_measured, np.log10(measured.absolute_residual[0]), rtol=1e-9, atol=1e-9
    )

    assert flag(dataset, "content_only") == (family != "xlnet")
    assert flag(dataset, "no_mask") == (family != "gpt2")
    assert flag(dataset, "no_norm") == ("-norm" in variant)
    np.testing.assert_array_equal(
        dataset.holds.sel(hypothesis="small_delta").values[:, 1:],
        dataset.max_delta.values[:, 1:] <= 1.2564312086261696,
    )
    for name in dataset.bound.values:
        applies = dataset.applies.sel(bound=name).values
        if name in {*CONTENT, "theorem_2_3", "corollary_3_2", "skip"}:
            assert applies[:, 1:].any() <= (family not in ("xlnet", "gpt2"))
        else:
            assert applies.all()


@pytest.mark.parametrize("family", ["xlnet", "gpt2"])
def test_content_bounds_fail_where_their_hypothesis_does(models, family):
    """With positions or a mask the rate is linear, and bounds for content alone are exceeded."""
    dataset = certify(models[family], {"input_ids": ROWS}, "san-norm")
    broken = (excess(dataset) > 0.1).any((1, 2))
    assert CONTENT & set(dataset.bound.values[broken])
    assert not dataset.applies.values[broken].all((1, 2)).any()


def test_causal_and_segmented_models_are_certified_too():
    config = CONFIGS["bert"].__class__(**{**CONFIGS["bert"].to_dict(), "is_decoder": True})
    dataset = certify(load(randomised(config, seed=2)), {"input_ids": ROWS}, "san")
    assert not flag(dataset, "no_mask") and flag(dataset, "content_only")
    assert_certified(dataset)
    inputs = {"input_ids": ROWS, "token_type_ids": [[0] * 4 + [1] * (len(r) - 4) for r in ROWS]}
    assert_certified(certify(load(randomised(CONFIGS["xlnet"], seed=2)), inputs, "san"))


@pytest.mark.parametrize("family", ["bert", "xlnet", "gpt2"])
def test_ragged_batch_is_its_texts_one_by_one(models, family):
    rows = ids((9, 4, 9))
    together = certify(models[family], padded(rows), "san+skip-norm")
    for index, each in enumerate(rows):
        alone = certify(models[family], {"input_ids": [each]}, "san+skip-norm")
        xr.testing.assert_allclose(
            together.isel(sample=[index]).drop_vars("sample"),
            alone.drop_vars("sample"),
            rtol=1e-8,
        )


@pytest.mark.parametrize("variant", ["san+mlp", "san+skip", "transformer"])
def test_pretrained_model(pretrained, variant):
    texts = [text[:200] for text in biographies()[:2]]
    texts[1] = texts[1][:60]
    model = load(pretrained)
    dataset = certify(model, texts, variant, tokens=24)
    run = json.loads(dataset.attrs["metadata"])
    assert run["tokens_min"] < run["tokens_max"] == 24
    assert assert_certified(dataset) >= 6 * 2 * 6
    measured = inspect(load(pretrained, dtype="float64"), texts, [variant], tokens=24)
    np.testing.assert_allclose(
        dataset.measured[:, :3], measured.absolute_residual[0, :, :3], rtol=1e-6
    )


def test_small_delta_holds_for_some_layers_and_not_for_others(models):
    """Both branches of the flag are seen, and the paper's lemma is only claimed in one."""
    dataset = certify(models["bert"], {"input_ids": ROWS}, "san")
    small = dataset.holds.sel(hypothesis="small_delta").values
    assert small[:, 1:].any() and not small[:, 1:].all()
    np.testing.assert_array_equal(dataset.applies.sel(bound="lemma_a2").values, small)
    assert dataset.applies.sel(bound="tanh").all()


def test_hidden_state_type_does_not_matter(models):
    """Certificates are float64 for a float32 model, and leave the model as it was."""
    live = randomised(CONFIGS["bert"], seed=1, dtype=torch.float32)
    model = load(live)
    dataset = certify(model, {"input_ids": ROWS}, "san-norm")
    assert dataset.log10_bound.dtype == np.float64 and model.dtype == torch.float32
    assert_certified(dataset)
