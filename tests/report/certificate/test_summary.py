"""The certificate in plain arrays: averages, what applies, what is vacuous, what is crossed."""

import numpy as np
import pytest

from rankcollapse.report.certificate import tidy, variant_name
from rankcollapse.report.certificate.bound import mean_log
from rankcollapse.report.certificate.summary import bounds, statements
from tests.report.certificate.synthetic import certificate


def one(dataset, name):
    return next(bound for bound in bounds(dataset) if bound.name == name)


def test_means_are_of_finite_logarithms():
    inf, nan = np.inf, np.nan
    logs = np.array([[1.0, -inf, inf, nan, 1e308, -inf], [3.0, 4.0, inf, nan, 1e308, -inf]])
    np.testing.assert_array_equal(mean_log(logs), [2.0, 4.0, inf, nan, 1e308, -inf])


def test_bounds_can_be_chosen():
    dataset = certificate("san+skip")
    assert {b.name for b in bounds(dataset, upper=False)} == {
        "weyl",
        "smallest_singular_value",
        "weyl_depth",
        "composed",
    }
    assert {b.name for b in bounds(dataset, upper=True, deep=True)} == {
        "theorem_2_3",
        "corollary_3_2",
    }
    assert [b.name for b in bounds(dataset, upper=True, norm="frobenius")] == ["spectral"]
    assert len(bounds(certificate("san"))) == 9


def test_a_bound_that_is_never_stated_is_left_out():
    dataset = certificate()
    dataset["log10_bound"].loc[{"bound": "tanh"}] = np.nan
    assert "tanh" not in {bound.name for bound in bounds(dataset)}


def test_entering_is_the_state_before_or_the_input():
    dataset = certificate()
    logs = dataset.log10_measured.values
    np.testing.assert_array_equal(one(dataset, "tanh").entering[:, 1:], logs[:, :-1])
    np.testing.assert_array_equal(
        one(dataset, "theorem_2_3").entering, np.broadcast_to(logs[:, :1], logs.shape)
    )


def test_vacuous_is_not_below_what_it_starts_from():
    dataset = certificate(layers=2, samples=1)
    dataset["log10_measured"][0] = [2.0, 1.0, 0.0]
    dataset["log10_bound"].loc[{"bound": "tanh"}] = [[np.nan, 2.0, 0.9]]
    assert one(dataset, "tanh").vacuous.tolist() == [[False, True, False]]
    dataset["log10_bound"].loc[{"bound": "theorem_2_3"}] = [[np.nan, 1.9, 2.1]]
    assert one(dataset, "theorem_2_3").vacuous.tolist() == [[False, False, True]]
    weyl = one(certificate("san+skip", layers=4), "weyl")
    assert weyl.vacuous.all(axis=0).tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("name", ["tanh", "theorem_2_3", "weyl", "composed"])
def test_crossing_is_found_where_it_is_and_only_where_the_bound_applies(name):
    assert not any(b.crossed.any() for b in bounds(certificate("san+skip")))
    dataset = certificate("san+skip", crossed=(name, 2, 1))
    found = {b.name: np.argwhere(b.crossed).tolist() for b in bounds(dataset)}
    assert found.pop(name) == [[2, 1]]
    assert not any(found.values())
    dataset["applies"].loc[{"bound": name}] = False
    assert not one(dataset, name).crossed.any()


def test_rounding_is_no_crossing():
    dataset = certificate(slope=-30000)
    shifted = dataset.log10_measured * (1 + 1e-12)
    dataset["log10_bound"].loc[{"bound": "tanh"}] = shifted.where(dataset.layer > 0)
    assert (one(dataset, "tanh").logs < one(dataset, "tanh").measured)[:, 1:].any()
    assert not one(dataset, "tanh").crossed.any()


def test_a_zero_residual_crosses_no_upper_and_any_positive_lower_bound():
    dataset = certificate("san+skip", layers=2)
    dataset["log10_measured"][:, 2] = -np.inf
    dataset["log10_measured_frobenius"][:, 2] = -np.inf
    assert not one(dataset, "tanh").crossed.any()
    assert one(dataset, "weyl").crossed[:, 2].all()


def test_names_in_sentences():
    dataset = certificate("san+skip")
    names = {bound.name: bound.name_in_text for bound in bounds(dataset)}
    assert names["tanh"] == "the tanh bound"
    assert names["two_norms"] == "Lemma A.2 (two norms)"
    assert names["weyl"] == "Weyl's bound"
    assert names["dobrushin"] == "the Dobrushin bound"


def test_only_needed_hypotheses_are_stated():
    dataset = certificate()
    assert len(statements(dataset)) == 5
    shallow = dataset.sel(bound=["gamma_free", "tanh"])
    assert list(statements(shallow)) == ["content_only", "no_mask"]


def test_tidy_has_every_number_once():
    dataset = certificate("san+skip", samples=3, layers=4)
    frame = tidy(dataset)
    assert len(frame) == 3 * 5
    assert list(frame)[:3] == ["sample", "layer", "measured"]
    row = frame.query("sample == 2 and layer == 3").iloc[0]
    at = dataset.sel(sample=2, layer=3)
    assert row["log10_tanh"] == float(at.log10_bound.sel(bound="tanh"))
    assert row["applies_lemma_a2"] == bool(at.applies.sel(bound="lemma_a2"))
    assert row["holds_small_delta"] == bool(at.holds.sel(hypothesis="small_delta"))
    assert row["max_delta"] == float(at.max_delta)
    columns = 2 + 5 + dataset.sizes["hypothesis"] + 2 * dataset.sizes["bound"]
    assert frame.shape[1] == columns


def test_the_variant_is_named():
    assert variant_name(certificate("san+skip")) == "san+skip"
    assert variant_name(certificate("-mlp").drop_vars("variant")) == "-mlp"
