"""Rates as readers get them: when there is something to say, and what the table says."""

import json
from typing import Any

import numpy as np
import xarray as xr

from rankcollapse.report import rate_sentences
from rankcollapse.report.rates import rate_table
from rankcollapse.theory import rates
from tests.report.synthetic import synthetic

DIMS = ("variant", "sample", "layer")


def cells(dataset: xr.Dataset) -> dict[str, dict[str, str]]:
    table = rate_table(dataset)
    return {name: dict(zip(table.headings, row, strict=True)) for name, row in table.rows}


def changed(dataset: xr.Dataset, **metadata: Any) -> xr.Dataset:
    run = json.loads(dataset.attrs["metadata"])
    return dataset.assign_attrs(metadata=json.dumps(run | metadata))


def test_variants_that_collapse_have_a_sentence_each_and_the_others_share_one():
    dataset = synthetic(cubic=True)
    said = rate_sentences(dataset)
    assert said[:2] == [str(rate) for rate in rates(dataset)[:2]]
    assert "order 3.00, which agrees" in said[0]
    assert said[2:] == [
        "san+skip, transformer: the attention skip connection carries the residual from layer to "
        "layer; theory expects no rate."
    ]


def test_the_table_of_a_cubic_collapse_has_orders_and_no_factors():
    found = cells(synthetic(cubic=True))
    assert found["san"] == {
        "Theory expects": "order 3",
        "Measured order": "3.00",
        "Factor per layer": "–",
        "Layers": "5 to 12",
        "Agrees": "yes",
    }
    assert found["transformer"]["Theory expects"] == "no rate"
    assert found["transformer"]["Measured order"] == found["transformer"]["Agrees"] == "–"
    assert float(found["transformer"]["Factor per layer"]) > 0.9


def test_the_table_of_a_linear_collapse_has_factors_beside_the_second_eigenvalue():
    dataset = synthetic(("san",), cubic=True, layers=6, samples=2)
    logs = np.broadcast_to([-0.1, -0.5, -2, -3.5, -5, -6.6, -8], (1, 2, 7))
    dataset["log10_relative_residual"] = (DIMS, logs.copy())
    heads = np.full((1, 7, 4), 0.03)
    dataset["positional_lambda2"] = (("variant", "layer", "head"), heads)
    found = cells(changed(dataset, causal=True))["san"]
    assert found["Theory expects"] == "order 1"
    assert found["|λ₂|"] == "0.030"
    assert float(found["Factor per layer"]) == round(10**-1.5, 3)
    assert found["Measured order"].startswith("1.") and "±" in found["Measured order"]


def test_a_single_layer_and_a_disagreement_are_said():
    dataset = synthetic(("san",), cubic=True, layers=4, samples=2)
    logs = np.broadcast_to([-1.0, -7.0, -8.0, -9.0, -10.0], (1, 2, 5))
    dataset["log10_relative_residual"] = (DIMS, logs.copy())
    assert cells(dataset)["san"]["Agrees"] == "no"
    dataset["log10_relative_residual"][:, :, 1] = -3.0
    assert cells(dataset.isel(layer=slice(0, 4)))["san"]["Layers"] == "3"


def test_dense_data_have_rates_only_where_one_can_be_compared():
    assert rate_sentences(synthetic()) == []
    assert rate_table(synthetic()).rows == []
    slow = synthetic(("san+mlp", "transformer"))
    assert rate_sentences(slow) == []
    assert len(rate_sentences(changed(slow, causal=True))) == 2


def test_centered_data_have_them_even_where_too_few_layers_remain():
    dataset = synthetic(("san",), cubic=True, layers=2)
    (sentence,) = rate_sentences(dataset)
    assert "Too few layers" in sentence
    assert cells(dataset) == {"san": {"Theory expects": "order 3"}}


def test_a_data_set_that_does_not_describe_the_model_has_none():
    dataset = synthetic(cubic=True)
    assert rate_sentences(dataset.assign_coords(variant=["a", "b", "c", "d"])) == []
    run = json.loads(dataset.attrs["metadata"])
    del run["causal"]
    assert rate_sentences(dataset.assign_attrs(metadata=json.dumps(run))) == []
    dataset.attrs.clear()
    assert rate_sentences(dataset) == []
    assert rate_sentences(synthetic(("san",), deep=True, groups=["similarity"])) == []
