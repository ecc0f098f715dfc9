"""Means, deviations and the tidy table, against numbers worked out by hand."""

import numpy as np
import pytest
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.report import summarize, tidy
from tests.report.synthetic import synthetic


def small(values: list[list[float]], at_floor: list[list[bool]] | None = None) -> xr.Dataset:
    """One variant, `values` by sample and layer."""
    array = np.array(values)[None]
    floor = np.zeros(array.shape, bool) if at_floor is None else np.array(at_floor)[None]
    dims = ("variant", "sample", "layer")
    return xr.Dataset(
        {"relative_residual": (dims, array), "at_floor": (dims, floor)},
        coords={
            "variant": ["san"],
            "sample": range(array.shape[1]),
            "layer": range(array.shape[2]),
        },
    )


def row(dataset: xr.Dataset, layer: str, variable: str = "relative_residual") -> dict:
    table = summarize(dataset, variable)
    return next(row for row in table.to_dict("records") if row["layer"] == layer)


def test_mean_deviation_and_range_over_samples():
    first = row(small([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]]), "0")
    assert first["mean"] == pytest.approx(3.0)
    assert first["std"] == pytest.approx(np.sqrt(7.0))
    assert (first["min"], first["max"], first["samples"]) == (1.0, 6.0, 3)


def test_one_sample_has_no_deviation():
    assert np.isnan(row(small([[0.5]]), "0")["std"])


def test_a_sample_without_a_number_does_not_count():
    first = row(small([[1.0], [np.nan], [3.0]]), "0")
    assert (first["mean"], first["samples"]) == (2.0, 2)
    assert first["std"] == pytest.approx(np.sqrt(2.0))


def test_deviation_of_numbers_whose_squares_vanish():
    first = row(small([[1e-250], [3e-250]]), "0")
    assert first["mean"] == pytest.approx(2e-250, abs=0)
    assert first["std"] == pytest.approx(np.sqrt(2) * 1e-250, abs=0)
    assert not first["as_log10"]


def test_ratios_that_are_no_floats_are_summarised_by_their_log10():
    dataset = small([[0.0], [0.0]])
    logs = np.array([-899.0, -901.0]).reshape(1, 2, 1)
    dataset["log10_relative_residual"] = (("variant", "sample", "layer"), logs)
    first = row(dataset, "0")
    assert first["as_log10"]
    assert first["log10_mean"] == -900.0
    assert first["log10_std"] == pytest.approx(np.sqrt(2))


def test_exact_zeros_stay_zeros():
    dataset = small([[0.0], [0.0]])
    logs = np.full((1, 2, 1), -np.inf)
    dataset["log10_relative_residual"] = (("variant", "sample", "layer"), logs)
    first = row(dataset, "0")
    assert (first["mean"], first["std"], first["as_log10"]) == (0.0, 0.0, False)


def test_share_of_samples_at_the_floor():
    flags = [[False, True], [False, True], [False, False], [True, True]]
    dataset = small([[1e-7, 1e-7]] * 4, flags)
    assert [row(dataset, layer)["at_floor"] for layer in ("0", "1")] == [0.25, 0.75]


def test_only_residuals_have_a_floor():
    dataset = synthetic()
    for variable, highest in (("relative_residual_frobenius", 1.0), ("token_cosine", 0.0)):
        assert max(summarize(dataset, variable)["at_floor"].tolist()) == highest


def test_the_state_after_the_final_norm_is_a_row_of_its_own():
    dataset = synthetic(final_norm=True, layers=3)
    table = summarize(dataset, "effective_rank")
    assert table["layer"].tolist() == ["0", "1", "2", "3", "final_norm"] * 4
    last = dataset["effective_rank_after_final_norm"].sel(variant="san+skip").values
    rows = {(r["variant"], r["layer"]): r for r in table.to_dict("records")}
    found = rows["san+skip", "final_norm"]
    assert found["mean"] == pytest.approx(last.mean())
    assert found["std"] == pytest.approx(last.std(ddof=1))


def test_an_unknown_variable_is_named_with_those_there_are():
    with pytest.raises(OptionError, match=r"'nonsense'.*token_cosine"):
        summarize(synthetic(), "nonsense")
    with pytest.raises(OptionError, match="'attention_entropy'"):
        summarize(synthetic(), "attention_entropy")


@pytest.mark.parametrize("final_norm", [False, True])
def test_tidy_has_a_row_per_variant_sample_and_state(final_norm: bool):
    dataset = synthetic(("san", "transformer"), layers=3, samples=2, final_norm=final_norm)
    table = tidy(dataset)
    labels = ["0", "1", "2", "3", *(["final_norm"] if final_norm else [])]
    assert table.columns[:3].tolist() == ["variant", "sample", "layer"]
    assert table["layer"].tolist() == labels * 4
    assert not [name for name in table.columns if "attention" in name or "final" in name]
    for record in table.to_dict("records"):
        at = {"variant": record["variant"], "sample": record["sample"]}
        if record["layer"] == "final_norm":
            source = dataset["token_cosine_after_final_norm"].sel(at)
        else:
            source = dataset["token_cosine"].sel(at | {"layer": int(record["layer"])})
        assert record["token_cosine"] == source.item()
    assert table["at_floor"].dtype == bool
