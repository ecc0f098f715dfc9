"""The charts: every finite number at its place, hollow where its proof does not reach."""

import numpy as np
import pytest

from rankcollapse.errors import OptionError
from rankcollapse.report.certificate import chart, charts
from rankcollapse.report.certificate.chart import CHARTS
from rankcollapse.report.certificate.marks import looks
from rankcollapse.report.certificate.points import points
from rankcollapse.report.picture import png, svg
from rankcollapse.report.style import DARK, LIGHT
from tests.report.certificate.synthetic import certificate

EDGE = np.array([0.1] * 3 + [2.0] * 9)


def layer(drawn, number: int) -> dict:
    return drawn.to_dict()["layer"][number]


def rows(drawn, number: int) -> list[dict]:
    spec = drawn.to_dict()
    data = spec["layer"][number]["data"]
    return spec["datasets"][data["name"]] if "name" in data else data["values"]


def test_points_are_the_means_of_the_logarithms():
    dataset = certificate("san+skip", max_delta=EDGE)
    drawn = {(p["name"], p["layer"]): p for p in rows(chart(dataset), 1)}
    means = dataset.mean("sample")
    for n in range(13):
        assert drawn["measured residual", n]["y"] == pytest.approx(float(means.log10_measured[n]))
    for name in ("lemma_a2", "tanh", "dobrushin"):
        title = str(dataset.title.sel(bound=name).item())
        for n in range(1, 13):
            value = float(means.log10_bound.sel(bound=name, layer=n))
            assert drawn[f"≤ {title}", n]["y"] == pytest.approx(value)
        assert (f"≤ {title}", 0) not in drawn
    assert len(drawn) == 13 + 6 * 12


def test_hollow_and_dashed_where_hypotheses_fail_in_any_sample():
    delta = np.tile(EDGE, (4, 1))
    delta[1, 1] = 3.0
    dataset = certificate(max_delta=delta)
    hollow = {(p["name"], p["layer"]) for p in rows(chart(dataset), 1) if p["hollow"]}
    assert hollow == {("≤ Lemma A.2", n) for n in (2, *range(4, 13))}
    dashed = {(s["name"], s["layer2"]) for s in rows(chart(dataset), 0) if s["dashed"]}
    assert dashed == hollow
    notes = {p["layer"]: p["note"] for p in rows(chart(dataset), 1) if p["name"] == "≤ Lemma A.2"}
    assert notes[1] == "it applies"
    assert notes[2] == "its hypotheses hold in 3 of 4 texts"
    assert notes[4] == "its hypotheses fail"
    deep = {p["layer"] for p in rows(chart(dataset, "in_depth"), 1) if p["hollow"]}
    assert deep == set(range(2, 13))


def test_infinite_bounds_are_gaps():
    dataset = certificate("san+skip")
    names = [p["name"] for p in rows(chart(dataset, "per_layer_frobenius"), 1)]
    assert names.count("≥ Weyl's bound") == 2
    assert names.count("≥ smallest singular value") == 12
    dataset["log10_bound"].loc[{"bound": "tanh", "layer": 5}] = np.inf
    segments = [s for s in rows(chart(dataset), 0) if s["name"] == "≤ tanh bound"]
    assert {s["layer"] for s in segments} == set(range(1, 12)) - {4, 5}


def test_the_frobenius_norm_has_charts_of_its_own():
    dataset = certificate("san+skip")
    assert list(charts(dataset)) == list(CHARTS)
    first = rows(chart(dataset, "in_depth_frobenius"), 1)
    at = next(p for p in first if p["name"] == "measured, Frobenius norm" and p["layer"] == 3)
    mean = float(dataset.log10_measured_frobenius.sel(layer=3).mean())
    assert at["y"] == pytest.approx(mean)
    san = certificate()
    assert list(charts(san)) == ["per_layer", "in_depth", "per_layer_frobenius"]
    with pytest.raises(OptionError, match="in_depth_frobenius"):
        chart(san, "in_depth_frobenius")


@pytest.mark.parametrize("name", CHARTS)
def test_looks_differ_and_tell_upper_from_lower(name):
    drawn = points(certificate("san+skip"), *CHARTS[name][:2])
    look = looks(drawn, LIGHT)
    assert len(set(look.values())) == len(look) == len(drawn.names)
    assert look[drawn.measured][0] == LIGHT.text
    lower = {look[other][1] for other in drawn.lower}
    assert lower <= {"triangle-up", "triangle-right"}
    assert not lower & {look[other][1] for other in drawn.upper}


def test_the_axis_is_doubly_logarithmic_where_it_has_to_be():
    shallow, deep = certificate(), certificate(layers=100, contraction=2.0, slope=-4.0)
    scale = layer(chart(shallow, "in_depth"), 0)["encoding"]["y"]["scale"]
    assert "type" not in scale
    drawn = chart(deep, "in_depth")
    scale = layer(drawn, 0)["encoding"]["y"]["scale"]
    assert scale["type"] == "symlog" and scale["constant"] == 1
    low, high = scale["domain"]
    ys = [p["y"] for p in rows(drawn, 1)]
    assert low < min(ys) and high > max(ys) > 1e47
    assert "Doubly logarithmic" in drawn.to_dict()["title"]["subtitle"][1]


def test_ticks_do_not_crowd_around_one():
    ticks = points(certificate(layers=100, contraction=2.0), True, "composite").ticks
    assert 0.0 in ticks.values and 1.0 not in ticks.values
    assert len(ticks.values) == len(ticks.labels) >= 4
    plain = points(certificate(max_delta=EDGE, contraction=0.3), True, "composite").ticks
    assert {"1", "10¹⁰"} <= set(plain.labels)


def test_exponents_at_the_end_of_the_range_have_a_finite_axis():
    dataset = certificate(layers=2)
    dataset["log10_bound"].loc[{"bound": "theorem_2_3", "layer": 2}] = 1.7e308
    low, high = points(dataset, True, "composite").domain
    assert np.isfinite([low, high]).all() and low < high
    assert svg(chart(dataset, "in_depth")).endswith("</svg>")


def test_points_that_coincide_are_drawn_one_in_another():
    dataset = certificate(contraction=2.0)
    marks = rows(chart(dataset, "in_depth"), 1)
    sizes = {p["name"]: p["size"] for p in marks if p["layer"] == 12}
    assert sizes["≤ Corollary 3.2"] == 2 * sizes["≤ Theorem 2.3"]
    assert sizes["measured residual"] == sizes["≤ Theorem 2.3"]
    order = [p["name"] for p in marks if p["layer"] == 12]
    assert order.index("≤ Corollary 3.2") < order.index("≤ Theorem 2.3")


def test_the_heading_says_what_a_reader_must_know():
    title = chart(certificate("san+skip", max_delta=EDGE)).to_dict()["title"]
    assert title["text"] == "Bounds from the state entering each layer"
    assert "random initialisation, seed 0" in title["subtitle"][0]
    assert "variant san+skip" in title["subtitle"][0]
    assert "mean of log10 over 4 texts" in title["subtitle"][0]
    assert "hypotheses do not hold" in title["subtitle"][1]
    assert len(chart(certificate()).to_dict()["title"]["subtitle"]) == 1
    assert "title" not in chart(certificate(), title=False).to_dict()


@pytest.mark.parametrize("options", [{}, {"layers": 1, "samples": 1}, {"layers": 100}])
def test_pictures(options):
    for drawing in charts(certificate("san+skip", **options), theme=DARK).values():
        assert "</svg>" in svg(drawing)
        assert png(drawing).startswith(b"\x89PNG")
