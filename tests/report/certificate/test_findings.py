"""The sentences: what a bound says, never more than its hypotheses allow."""

import numpy as np
import pytest

from rankcollapse.report.certificate import alarms, findings, legend
from rankcollapse.report.certificate.findings import of_bounds, of_model
from tests.report.certificate.synthetic import certificate

PARTLY = np.array([[1, 2, 3, 1.0], [2, 2, 1, 1], [1, 3, 3, 1], [2, 2, 2, 0.4]])


def test_a_bound_whose_hypotheses_hold_nowhere_is_not_proved():
    dataset = certificate(samples=1, max_delta=1.62, contraction=4.4)
    said = of_bounds(dataset)
    exponent = float(dataset.log10_bound.sel(bound="theorem_2_3", layer=12).item())
    above = exponent - float(dataset.log10_measured.sel(layer=12).item())
    assert said["theorem_2_3"] == (
        f"Theorem 2.3 gives 10^{exponent:.0f} for the residual at layer 12, 10^{above:.0f} times "
        "the measured one; its hypotheses hold at no layer (max δ = 1.62 > 1.2564), so its "
        "proof does not reach this network."
    )
    assert said["lemma_a2"].startswith("Lemma A.2 is 10^5.6 to 10^6.0 times the measured residual")
    assert "does not reach" not in said["tanh"]
    assert "No upper bound in depth applies at any layer." in of_model(dataset)


@pytest.mark.parametrize("delta", [1.3, PARTLY + 1.3])
def test_hold_is_never_said_without_no_where_nothing_holds(delta):
    options = {"content_only": False, "no_mask": False}
    dataset = certificate(layers=4, max_delta=delta, hypotheses=options)
    for name, sentence in of_bounds(dataset).items():
        if bool(dataset.requires.sel(bound=name).any()):
            assert "hold at no layer" in sentence
            assert "the scores have a positional term" in sentence
            assert "the scores are masked" in sentence
            assert "vacuous" not in sentence and "below" not in sentence


def test_the_other_reasons():
    dataset = certificate(hypotheses={"no_norm": False, "sum_over_heads": False})
    assert "the heads' composite norms do not add up)" in of_bounds(dataset)["lemma_a2"]
    assert "norms lie between the layers and the heads'" in of_bounds(dataset)["theorem_2_3"]
    renamed = dataset.assign_coords(hypothesis=["small_delta", "content_only", "no_mask", "x", "y"])
    assert "“No norm between the layers” fails" in of_bounds(renamed)["theorem_2_3"]


def test_a_bound_that_applies_at_some_layers_is_judged_there():
    delta = np.array([0.1] * 3 + [2.0] * 4 + [5.0] * 5)
    dataset = certificate(max_delta=delta, contraction=-0.5)
    said = of_bounds(dataset)
    assert "hold up to layer 3 only (max δ = 2.00 to 5.00 > 1.2564)" in said["lemma_a2"]
    assert said["lemma_a2"].endswith("where it is vacuous.")
    means = dataset.mean("sample")
    third = 10 ** float(means.log10_bound.sel(bound="theorem_2_3", layer=3))
    assert f"gives {third:.1f} for the residual at layer 3" in said["theorem_2_3"]
    wanted = "is below the input's own residual from layer 2 on but vacuous elsewhere."
    assert said["theorem_2_3"].endswith(wanted)


def test_a_bound_that_applies_in_some_texts_is_proved_for_those():
    dataset = certificate(layers=4, max_delta=PARTLY)
    said = of_bounds(dataset)
    assert "hold at no layer in every text, in some at layer 1 (" in said["theorem_2_3"]
    assert said["theorem_2_3"].endswith("so it is proved for some texts only.")
    assert "hold at layer 4 only" in said["lemma_a2"]


def test_vacuous_in_some_texts_is_not_vacuous_in_all():
    dataset = certificate(layers=2)
    entering = dataset.log10_measured.sel(layer=0).values
    bound = entering + np.array([-0.5, -0.5, 0.5, 0.5])
    dataset["log10_bound"].loc[{"bound": "dobrushin", "layer": 1}] = bound
    dataset["log10_bound"].loc[{"bound": "dobrushin", "layer": 2}] = -3.0
    dataset["log10_measured"].loc[{"layer": [1, 2]}] = -9.0
    dataset["log10_bound"].loc[{"bound": "dobrushin", "layer": 2}] = -9.5
    assert of_bounds(dataset)["dobrushin"].endswith(
        "is below the residual that enters the layer at layer 2 but vacuous in some texts, or all, "
        "elsewhere."
    )


def test_unconditional_bounds_need_nothing_and_infinite_ones_say_so():
    dataset = certificate()
    assert "it needs no hypothesis and is vacuous at every layer" in of_bounds(dataset)["dobrushin"]
    dataset["log10_bound"].loc[{"bound": "corollary_3_2", "layer": 12}] = np.inf
    assert "has no finite value at layer 12" in of_bounds(dataset)["corollary_3_2"]
    dataset["log10_bound"].loc[{"bound": "tanh"}] = np.inf
    assert "has no finite value beside the measured residual" in of_bounds(dataset)["tanh"]


def test_lower_bounds_certify_the_smallest_share_of_any_text():
    dataset = certificate("san+skip", layers=4)
    dataset["log10_bound"].loc[{"bound": "weyl", "layer": 1}] = (
        dataset.log10_measured_frobenius.sel(layer=0) + np.log10([0.5, 0.0296, 0.4, 0.3])
    )
    dataset["log10_bound"].loc[{"bound": "weyl", "layer": [2, 3, 4]}] = -np.inf
    said = of_bounds(dataset)
    assert said["weyl"] == (
        "Weyl's bound certifies that at least 2.9 % of the residual survives layer 1 (measured: "
        "39.8 %); it is vacuous from layer 2 on."
    )
    assert said["composed"] == (
        "The composed operator certifies that at least 2.2 % of the input's residual is left "
        "behind layer 4 (measured: 2.51 %)."
    )
    dataset["log10_bound"].loc[{"bound": "weyl"}] = -np.inf
    assert of_bounds(dataset)["weyl"] == "Weyl's bound is vacuous at every layer."
    dataset["log10_bound"].loc[{"bound": "weyl_depth", "sample": [0, 1, 2]}] = -np.inf
    assert (
        "is vacuous from layer 3 on and vacuous in some texts up to layer 2"
        in (of_bounds(dataset)["weyl_depth"])
    )


def test_lower_bounds_with_failing_hypotheses_certify_nothing():
    dataset = certificate("san+skip", hypotheses={"no_mask": False})
    dataset["requires"].loc[{"bound": "weyl", "hypothesis": "no_mask"}] = True
    dataset["applies"].loc[{"bound": "weyl"}] = False
    assert of_bounds(dataset)["weyl"] == (
        "Weyl's bound applies at no layer (the scores are masked), so it certifies nothing here."
    )


def test_the_sharpest_bound_that_applies():
    dataset = certificate(layers=4)
    said = of_model(dataset)
    assert said[1].startswith(
        "The sharpest upper bound on ‖·‖₁,∞ that applies from layer to layer is the tanh bound on "
        "values at every layer: "
    )
    assert said[1].endswith("and not below the residual that enters the layer.")
    dataset["applies"].loc[{"bound": ["tanh", "values"], "layer": 2, "sample": 3}] = False
    assert (
        "is the tanh bound on values at layers 1, 3–4, the Dobrushin bound at layer 2:"
        in (of_model(dataset)[1])
    )


@pytest.mark.parametrize(
    ("contraction", "condition", "delta", "words"),
    [
        (
            -0.4,
            -0.2,
            0.7,
            ["< 1: the bound of Theorem 2.3 tends to zero with depth;", "holds, too"],
        ),
        (-0.4, 0.2, 0.7, ["tends to zero with depth", "nor sufficient, does not hold."]),
        (4.4, 0.2, 0.7, ["≥ 1: the bound of Theorem 2.3 grows without", "does not hold either."]),
        (4.4, -0.2, 0.7, ["grows without limit with depth;", "holds all the same."]),
        (4.4, 0.2, 2.0, ["would grow without limit with depth if its hypotheses held;"]),
        (-0.4, 0.2, 2.0, ["would tend to zero with depth if its hypotheses held;"]),
        (-0.015, 0.2, 0.7, ["below 1 in 2 of 4 texts: only there the bound of Theorem 2.3 tends"]),
        (4.4, -0.015, 0.7, ["holds in 2 of 4 texts."]),
    ],
)
def test_the_true_condition_stands_beside_the_papers(contraction, condition, delta, words):
    dataset = certificate(contraction=contraction, paper_condition=condition, max_delta=delta)
    sentence = next(text for text in of_model(dataset) if "√c‖res(X)‖" in text)
    assert all(part in sentence for part in words)
    assert "4γβH < √d_qk, neither necessary nor sufficient" in sentence


def test_the_condition_is_of_the_bound_that_is_there():
    dataset = certificate().drop_sel(bound="theorem_2_3")
    assert any("the bound of Corollary 3.2 tends" in text for text in of_model(dataset))
    none = dataset.drop_sel(bound="corollary_3_2")
    assert not any("√c" in text for text in of_model(none))
    unknown = certificate(contraction=np.nan)
    assert not any("√c" in text for text in of_model(unknown))


def test_an_alarm_names_text_layer_and_both_numbers():
    assert alarms(certificate("san+skip")) == []
    (alarm,) = alarms(certificate(crossed=("tanh", 1, 3)))
    assert alarm.startswith(
        "DEFECT: at layer 3 of text 1 the measured residual 10^1.2 is above the upper bound "
        "10^0.2 of the tanh bound, whose hypotheses hold. "
    )
    (alarm,) = alarms(certificate("san+skip", crossed=("weyl", 0, 2)))
    assert "is below the lower bound" in alarm and "Weyl's bound" in alarm
    many = certificate()
    many["log10_bound"].loc[{"bound": "tanh", "layer": 5}] = -99.0
    assert "hold, and at 3 more places." in alarms(many)[0]


def test_one_text_and_one_layer():
    said = findings(certificate("san+skip", layers=1, samples=1))
    assert said[0] == "Measured, ‖res(X)‖₁,∞ falls from 234 to 93.3 at layer 1."
    assert not any("text" in sentence or "layers" in sentence for sentence in said)


def test_vacuous_is_explained_only_where_it_occurs():
    explained = "An upper bound is vacuous"
    assert any(text.startswith(explained) for text in findings(certificate()))
    dataset = certificate(slope=-20.0, contraction=-30.0)
    assert not any(text.startswith(explained) for text in findings(dataset))
    assert "where it is below the residual that enters the layer." in of_bounds(dataset)["tanh"]


def test_little_change_is_no_fall():
    assert findings(certificate(slope=0.0))[0] == (
        "Measured, ‖res(X)‖₁,∞ is 243 at layer 0 and 243 at layer 12."
    )


def test_a_residual_of_zero_is_told_as_zero():
    dataset = certificate(layers=3, samples=1)
    for name in ("log10_measured", "log10_measured_frobenius", "log10_bound"):
        dataset[name] = dataset[name].where(np.isnan(dataset[name]), -np.inf)
    assert of_model(dataset)[:2] == [
        "Measured, ‖res(X)‖₁,∞ is 0 at every layer.",
        "Where they apply, the upper bounds from layer to layer are 0, as the measured residual "
        "is.",
    ]
    assert "is 0, as the measured residual is" in of_bounds(dataset)["tanh"]
    assert not any("vacuous" in sentence for sentence in of_bounds(dataset).values())
    assert not any("lower bound" in line for line in legend(dataset, "texts"))
