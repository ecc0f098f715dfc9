"""The sentences: each fact from the numbers, none that the numbers do not bear."""

import json

import numpy as np
import pytest
import xarray as xr

from rankcollapse.report import findings
from tests.report.synthetic import synthetic

DIMS = ("variant", "sample", "layer")


def measured(curves: dict[str, list[float]], floor: float = 0.0, **options) -> xr.Dataset:
    """The residuals of `curves`, the same in two samples; at the floor up to `floor`."""
    layers = len(next(iter(curves.values()))) - 1
    dataset = synthetic(tuple(curves), layers=layers, samples=2, groups=["residual"], **options)
    values = np.stack([np.array([curve, curve]) for curve in curves.values()])
    with np.errstate(divide="ignore"):
        dataset["log10_relative_residual"] = (DIMS, np.log10(values))
    dataset["relative_residual"] = (DIMS, values)
    dataset["at_floor"] = (DIMS, np.logical_or.accumulate(values <= floor, axis=2))
    return dataset


def text(dataset: xr.Dataset) -> str:
    return "\n".join(findings(dataset))


def test_a_fall_to_the_rounding_floor_names_layer_value_and_arithmetic():
    dataset = measured({"san": [0.61, 0.02, 1e-4, 2.4e-7, 2.5e-7]}, floor=4e-7)
    assert findings(dataset) == [
        "Without skip connections and MLPs (san) the relative residual falls from 0.610 at layer 0 "
        "to the rounding floor of float32 (2.4e-07) at layer 3."
    ]


def test_what_remains_falls_or_rises():
    said = text(
        measured(
            {
                "transformer": [0.97, 0.95, 0.93],
                "san+skip": [0.9, 0.3, 0.2],
                "-mlp_skip": [0.2, 0.5, 0.9],
            }
        )
    )
    assert (
        "With everything on (transformer) the relative residual is 0.970 at layer 0 and 0.930 "
        "remains at layer 2." in said
    )
    assert (
        "Without MLPs (san+skip) the relative residual falls from 0.900 at layer 0 to 0.2" in said
    )
    assert (
        "Without MLP skip connections (-mlp_skip) the relative residual rises from 0.200 at layer "
        "0 to 0.900 at layer 2." in said
    )


def test_a_floor_at_the_start_and_rounding_that_grew_again():
    said = text(measured({"san": [1e-7, 1e-7], "san+mlp": [0.5, 1e-7]}, floor=4e-7))
    assert "(san) the relative residual is at the rounding floor of float32 from layer 0 on" in said


SAN = {"san": [0.6, 1e-4, 1e-6]}


def test_the_skip_connection_is_named_where_it_keeps_what_the_mlp_does_not():
    said = text(measured(SAN | {"san+skip": [0.6, 0.7, 0.72], "san+mlp": [0.6, 1e-2, 3e-5]}))
    assert (
        "Of the two, giving back only the skip connection (san+skip) keeps 0.720 at layer 2 and "
        "giving back only the MLP (san+mlp) keeps 3.0e-05: the skip connection is what holds the "
        "tokens apart." in said
    )


def test_the_mlp_is_named_where_the_numbers_are_the_other_way_round():
    said = text(measured(SAN | {"san+skip": [0.6, 0.01, 1e-5], "san+mlp": [0.6, 0.6, 0.5]}))
    assert "the MLP is what holds the tokens apart" in said


@pytest.mark.parametrize(
    ("skip", "mlp", "end"),
    [
        (0.50, 0.30, "the two are close."),
        (0.50, 0.20, "the skip connection keeps more than the MLP."),
        (1e-3, 1e-5, "the skip connection keeps more than the MLP."),
        (1e-8, 1e-8, "both are at the rounding floor."),
    ],
)
def test_no_more_is_claimed_than_the_numbers_bear(skip: float, mlp: float, end: str):
    curves = SAN | {"san+skip": [0.6, 0.6, skip], "san+mlp": [0.6, 0.6, mlp]}
    said = text(measured(curves, floor=1e-7))
    assert end in said
    assert "holds the tokens apart" not in said


def test_nothing_holds_the_tokens_apart_where_pure_attention_does_not_collapse():
    curves = {"san": [0.6, 0.6], "san+skip": [0.6, 0.6], "san+mlp": [0.6, 1e-4]}
    assert "holds the tokens apart" not in text(measured(curves))


def test_a_value_that_is_rounding_is_called_so():
    curves = SAN | {"san+skip": [0.6, 0.6, 0.5], "san+mlp": [0.6, 1e-8, 2e-3]}
    assert "keeps 2.0e-03 (rounding): the skip connection" in text(measured(curves, floor=1e-7))


def test_the_final_norm_is_mentioned_where_there_is_one():
    dataset = synthetic(final_norm=True)
    before = dataset["relative_residual"].sel(variant="transformer", layer=12).mean().item()
    after = dataset["relative_residual_after_final_norm"].sel(variant="transformer").mean().item()
    expected = f"the final norm takes the relative residual from {before:.3f} to {after:.2f}."
    assert f"With everything on (transformer) {expected}" in text(dataset)
    assert "final norm" not in text(synthetic())


def test_massive_tokens_from_a_factor_of_ten_on():
    said = text(synthetic(massive=40.0))
    assert "the largest token is 40." in said and "at layer 12" in said
    assert "massive" not in text(synthetic(massive=5.0))


def test_rank_and_cosine_at_the_last_layer():
    dataset = synthetic(("san", "transformer"))
    rank = dataset["effective_rank"].mean("sample").sel(layer=12, variant="transformer").item()
    cosine = dataset["token_cosine"].mean("sample").sel(layer=12, variant="transformer").item()
    assert (
        f"At layer 12 the effective rank of the tokens lies between 1.00 (san) and {rank:.1f} "
        f"(transformer), and the mean pairwise token cosine lies between {cosine:.3f} "
        "(transformer) and 1.00 (san)." in findings(dataset)
    )


def test_depths_below_the_smallest_float():
    said = text(synthetic(deep=True))
    assert (
        "(san) the relative residual falls from 0.622 at layer 0 to 10^-900.2 at layer 12." in said
    )
    assert "keeps 10^-500.2: the skip connection is what holds the tokens apart." in said


def test_depths_of_hundreds_of_thousands_of_decades():
    dataset = synthetic(("san",), cubic=True, samples=2, groups=["residual"])
    depth = dataset["log10_relative_residual"].sel(layer=12).mean().item()
    assert findings(dataset) == [
        "Without skip connections and MLPs (san) the relative residual falls from 0.608 at layer 0 "
        f"to 10^{depth:.0f} at layer 12."
    ]
    assert depth < -100_000


def test_many_variants_are_told_by_their_ends():
    names = ("san", "san+mlp", "san+skip", "transformer", "-mlp_skip", "-mlp", "-attention_skip")
    said = findings(synthetic(names, groups=["residual"]))
    assert len(said) == 6
    assert any(s.startswith("The other 3 variants end between ") for s in said)


def test_single_samples_missing_metrics_and_missing_metadata():
    assert text(synthetic(samples=1)).count("\n") >= 4
    assert findings(synthetic(groups=["similarity"]))[0].startswith("At layer 12 the mean pairwise")
    assert findings(synthetic(groups=["attention"])) == []
    bare = synthetic(("san",))
    bare.attrs.clear()
    start = "In the variant san the relative residual falls from 0.622 at layer 0 to the rounding"
    assert findings(bare)[0].startswith(start)


def test_parts_without_a_name_of_their_own_are_spelled_out():
    dataset = synthetic(("san",), groups=["residual"])
    run = json.loads(dataset.attrs["metadata"])
    run["variants"]["san"]["off"] = ["attention_norm", "some_part", "final_norm"]
    dataset.attrs["metadata"] = json.dumps(run)
    start = "Without attention norms, some part and the final norm (san) the relative residual"
    assert findings(dataset)[0].startswith(start)


def test_of_a_variant_without_numbers_only_the_reason_is_said():
    dataset = synthetic(("san", "transformer"))
    for name in ("relative_residual", "effective_rank", "token_cosine", "largest_token_ratio"):
        dataset[name][1] = np.nan
    said = [sentence for sentence in findings(dataset) if "transformer" in sentence]
    assert len(said) == 1 and "from layer 0 on" in said[0] and "has no value" in said[0]
