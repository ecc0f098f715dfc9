"""What the charts draw: coordinates, floors, hollow points, the final norm apart, scales."""

import json
import math
from typing import Any

import altair as alt
import numpy as np
import pytest
import vl_convert

from rankcollapse.errors import OptionError
from rankcollapse.report import chart, charts
from rankcollapse.report.axis import along
from rankcollapse.report.style import DARK, LIGHT, SHAPES, Theme, look
from tests.report.synthetic import synthetic


def layer(drawing: alt.LayerChart, mark: str) -> dict[str, Any] | None:
    spec = drawing.to_dict()
    found = next((part for part in spec["layer"] if part["mark"]["type"] == mark), None)
    if found is None:
        return None
    data = found.get("data") or spec["data"]
    values = data["values"] if "values" in data else spec["datasets"][data["name"]]
    filters = [step["filter"] for step in found.get("transform", [])]
    wanted = {"datum.after": (True,), "!datum.after": (False,)}
    parts = [part for part in filters if part in wanted] or [""]
    kept = [v for v in values if v.get("after", False) in wanted.get(parts[0], (True, False))]
    return {"spec": found, "values": kept}


def values(drawing: alt.LayerChart, mark: str) -> list[dict[str, Any]]:
    found = layer(drawing, mark)
    return [] if found is None else found["values"]


def floor_labels(drawing: alt.LayerChart) -> list[str]:
    return [value["label"] for value in values(drawing, "text")]


def test_points_are_the_log10_of_the_mean_over_samples():
    dataset = synthetic()
    points = {(p["variant"], p["layer"]): p for p in values(chart(dataset), "point")}
    mean = dataset["relative_residual"].mean("sample")
    assert len(points) == mean.size
    for (variant, at), point in points.items():
        expected = math.log10(mean.sel(variant=variant, layer=int(at)).item())
        assert point["y"] == pytest.approx(expected)


def test_bands_are_one_deviation_and_end_at_the_smallest_sample_where_they_meet_zero():
    dataset = synthetic(("transformer",), layers=1, samples=3)
    dataset["relative_residual"][0, :, 0] = [0.4, 0.5, 0.6]
    dataset["relative_residual"][0, :, 1] = [0.001, 0.002, 0.9]
    first, second = values(chart(dataset), "area")
    assert (10 ** first["low"], 10 ** first["high"]) == pytest.approx((0.4, 0.6))
    assert 10 ** second["low"] == pytest.approx(0.001)
    assert all(math.isfinite(point["low"]) for point in (first, second))


def test_states_below_the_smallest_float_are_drawn_where_they_are():
    drawing = chart(synthetic(deep=True))
    san = [p for p in values(drawing, "point") if p["variant"] == "san"]
    assert san[-1]["y"] == pytest.approx(-900.2, abs=0.1)
    assert san[-1]["value"].startswith("10^(-900.2±")
    svg = vl_convert.vegalite_to_svg(drawing.to_dict())
    for tick in ("1", "10⁻¹", "10⁻¹⁰", "10⁻¹⁰⁰"):
        assert f">{tick}<" in svg


def test_far_below_the_floors_the_axis_is_doubly_logarithmic():
    found = layer(chart(synthetic(cubic=True)), "point")
    assert found is not None
    scale = found["spec"]["encoding"]["y"]["scale"]
    assert (scale["type"], scale["constant"]) == ("symlog", 1)
    heights = [along(p["y"]) for p in found["values"] if p["variant"] == "san"]
    steps = np.diff(heights)[6:]
    assert steps == pytest.approx(np.full(len(steps), -math.log(3)), abs=0.01)
    shallow = layer(chart(synthetic()), "point")
    assert shallow is not None and "type" not in shallow["spec"]["encoding"]["y"]["scale"]


def test_dashes_are_the_plain_pass_as_far_as_it_resolves_every_sample():
    dataset = synthetic(cubic=True)
    dataset["dense_log10_relative_residual"][1, 3, 2:] = np.nan
    spec = chart(dataset).to_dict()
    parts = [part for part in spec["layer"] if part["mark"]["type"] == "line"]
    plain = [part for part in parts if "strokeDash" in part["mark"]]
    assert [part["mark"].get("color") for part in plain] == [None, LIGHT.surface]
    drawn = spec["datasets"][plain[0]["data"]["name"]]
    assert [p["position"] for p in drawn if p["variant"] == "san"] == [0, 1, 2, 3]
    assert [p["position"] for p in drawn if p["variant"] == "san+mlp"] == [0, 1]
    assert len([p for p in drawn if p["variant"] == "transformer"]) == 13
    mean = (10 ** dataset["dense_log10_relative_residual"][0, :, 2]).mean().item()
    assert drawn[2]["y"] == pytest.approx(math.log10(mean))
    assert "Doubly logarithmic; dashes are the same pass" in json.dumps(spec)
    dashed = [p for p in chart(synthetic()).to_dict()["layer"] if "strokeDash" in p["mark"]]
    assert [part["mark"]["type"] for part in dashed] == ["rule"]


def test_the_local_order_has_its_references_and_leaves_out_what_has_none():
    dataset = synthetic(cubic=True, final_norm=True)
    drawing = chart(dataset, "local_order")
    points = values(drawing, "point")
    assert {p["variant"] for p in points} == {"san", "san+mlp"}
    assert {p["layer"] for p in points} == {str(n) for n in range(2, 13)}
    mean = dataset["local_order"].sel(variant="san", layer=9).mean("sample").item()
    (point,) = [p for p in points if (p["variant"], p["layer"]) == ("san", "9")]
    assert point["y"] == pytest.approx(mean) == pytest.approx(3, abs=0.01)
    assert sorted((r["y"], r["label"]) for r in values(drawing, "text")) == [
        (1.0, "linear"),
        (3.0, "cubic"),
    ]
    assert {r["position"] for r in values(drawing, "text")} == {0.0}
    # The looks are those of the other charts.
    found = layer(drawing, "point")
    assert found is not None
    ranges = found["spec"]["encoding"]["color"]["scale"]["range"]
    numbers = look([str(name) for name in dataset["variant"].values])
    assert ranges == [LIGHT.palette[numbers["san"]], LIGHT.palette[numbers["san+mlp"]]]


def test_the_local_order_is_drawn_from_minus_one_to_five_at_most():
    dataset = synthetic(("san", "san+mlp"), cubic=True, samples=1)
    dataset["local_order"][0, 0, 4] = 80.0
    dataset["local_order"][1, 0, 4] = -80.0
    found = layer(chart(dataset, "local_order"), "line")
    assert found is not None
    assert found["spec"]["encoding"]["y"]["scale"]["domain"] == [-1, 5]
    assert found["spec"]["mark"]["clip"] is True
    assert max(p["y"] for p in found["values"]) == 80.0
    svg = vl_convert.vegalite_to_svg(chart(dataset, "local_order").to_dict())
    assert svg.count('<path aria-label="') == 2 * 11 - 2


def test_there_is_no_chart_of_an_order_that_no_variant_has():
    dataset = synthetic(("san+skip", "transformer"), deep=True)
    assert "local_order" not in charts(dataset)
    assert list(charts(synthetic(cubic=True)))[:2] == ["relative_residual", "local_order"]
    with pytest.raises(OptionError, match=r"'local_order'.*such as san"):
        chart(dataset, "local_order")
    with pytest.raises(OptionError, match="no variable 'local_order'"):
        chart(synthetic(("san+skip",)), "local_order")
    dataset.attrs.clear()
    assert "local_order" in charts(dataset)


def test_exact_zeros_are_drawn_at_the_lowest_thing_there_is():
    dataset = synthetic(("san", "transformer"))
    dataset["relative_residual"][0, :, 5:] = 0.0
    dataset["log10_relative_residual"][0, :, 5:] = -np.inf
    points = values(chart(dataset), "point")
    zeros = [p["y"] for p in points if p["value"] == "0 ± 0"]
    assert len(zeros) == 8
    assert set(zeros) == {min(p["y"] for p in points)}


def test_points_at_the_floor_are_hollow_and_say_so():
    drawing = chart(synthetic())
    found = layer(drawing, "point")
    assert found is not None
    hollow = {(p["variant"], int(p["layer"])) for p in found["values"] if p["hollow"]}
    assert hollow == {("san", n) for n in range(3, 13)} | {("san+mlp", n) for n in range(9, 13)}
    condition = found["spec"]["encoding"]["fill"]["condition"]
    assert (condition["test"], condition["value"]) == ("datum.hollow", LIGHT.surface)
    notes = {p["note"] for p in found["values"] if p["hollow"]}
    assert "8 samples, 8 at the rounding floor" in notes


def test_floors_are_drawn_where_the_data_come_near_them():
    assert floor_labels(chart(synthetic())) == ["float32 rounding floor"]
    assert floor_labels(chart(synthetic(dtype="float64"))) == [
        "float32 rounding floor",
        "float64 rounding floor",
    ]
    assert floor_labels(chart(synthetic(("transformer", "san+skip")))) == []


def test_the_runs_own_floor_is_where_its_metadata_say():
    rule = values(chart(synthetic()), "rule")
    assert [10 ** r["y"] for r in rule] == pytest.approx([4 * 2.0**-23])


def test_floors_have_a_label_each_where_there_is_room():
    both = ["float32 rounding floor", "float64 rounding floor"]
    assert floor_labels(chart(synthetic(deep=True))) == both
    assert floor_labels(chart(synthetic(cubic=True, layers=11))) == both


@pytest.mark.parametrize(("layers", "lines"), [(14, 2), (100, 1)])
def test_floors_close_together_share_one_label_and_then_one_line(layers: int, lines: int):
    drawing = chart(synthetic(("san", "transformer"), cubic=True, layers=layers, samples=1))
    labels = floor_labels(drawing)
    assert len(labels) == lines
    assert [label for label in labels if label] == ["float32 and float64 rounding floors"]
    assert vl_convert.vegalite_to_svg(drawing.to_dict()).count("10⁻¹<") >= 1


def end(drawing: alt.LayerChart) -> set[float]:
    return {value["position"] for value in values(drawing, "text")}


def test_labels_of_floors_keep_out_of_the_way_of_the_curves():
    late = synthetic(("san",), layers=6, samples=1, groups=["residual"])
    logs = np.array([0, 0, -0.3, -1, -3, -6.3, -6.3])
    late["relative_residual"][0, 0] = 10**logs
    late["log10_relative_residual"][0, 0] = logs
    assert end(chart(late)) == {0.0}
    early = late.copy(deep=True)
    early["relative_residual"][0, 0] = 10.0 ** np.array([0, -6, -6.9, -6.9, -6.9, -6.9, -6.9])
    assert end(chart(early)) == {6.0}


def test_equal_values_are_a_level_line_with_ticks_that_differ():
    dataset = synthetic(("transformer",))
    dataset["largest_token_ratio"][:] = 1.0 + 1e-9
    svg = vl_convert.vegalite_to_svg(chart(dataset, "largest_token_ratio").to_dict())
    assert svg.count(">1<") == 2  # one on each axis


def test_the_state_after_the_final_norm_is_apart_and_joined_to_no_line():
    dataset = synthetic(final_norm=True)
    drawing = chart(dataset)
    assert max(p["position"] for p in values(drawing, "line")) == 12
    apart = [p for p in values(drawing, "point") if p["after"]]
    assert {p["variant"] for p in apart} == {str(name) for name in dataset["variant"].values}
    assert all(p["position"] > 12.5 for p in apart)
    assert {p["layer"] for p in apart} == {"after the final norm"}
    assert ">norm<" in vl_convert.vegalite_to_svg(drawing.to_dict())
    assert not [p for p in values(chart(synthetic()), "point") if p["after"]]


def test_a_variant_without_a_final_norm_value_is_left_out_there():
    dataset = synthetic(final_norm=True)
    dataset["relative_residual_after_final_norm"][0] = np.nan
    apart = [p["variant"] for p in values(chart(dataset), "point") if p["after"]]
    assert apart == ["san+mlp", "san+skip", "transformer"]


def test_linear_quantities_are_drawn_as_they_are_and_within_their_range():
    dataset = synthetic()
    drawing = chart(dataset, "token_cosine")
    mean = dataset["token_cosine"].mean("sample")
    for point in values(drawing, "point"):
        expected = mean.sel(variant=point["variant"], layer=int(point["layer"])).item()
        assert point["y"] == pytest.approx(expected)
    assert max(p["high"] for p in values(drawing, "area")) <= 1
    found = layer(drawing, "point")
    assert found is not None
    low, high = found["spec"]["encoding"]["y"]["scale"]["domain"]
    assert low >= -1 and high <= 1


def test_the_legend_isolates_and_hovering_brings_a_tooltip():
    spec = chart(synthetic()).to_dict()
    parameters = {p["name"]: p for p in spec["params"]}
    assert parameters["isolate"]["bind"] == "legend"
    assert parameters["hover"]["select"]["on"] == "pointerover"
    tooltips = [p["encoding"].get("tooltip") for p in spec["layer"] if "tooltip" in p["encoding"]]
    assert [t["field"] for t in tooltips[0]] == ["variant", "layer", "value", "note"]


def test_one_sample_and_one_layer_can_be_drawn():
    drawing = chart(synthetic(("san",), layers=1, samples=1))
    assert len(values(drawing, "point")) == 2
    assert "over 1 text" in json.dumps(drawing.to_dict())
    assert vl_convert.vegalite_to_svg(drawing.to_dict()).startswith("<svg")


def test_more_rows_than_altair_allows_in_a_frame():
    dataset = synthetic(layers=1300, samples=1, groups=["residual"])
    assert len(values(chart(dataset), "point")) == 4 * 1301


def test_charts_are_those_the_data_set_has_numbers_for():
    every = ["relative_residual", "effective_rank", "token_cosine", "largest_token_ratio"]
    assert list(charts(synthetic())) == every
    assert list(charts(synthetic(groups=["similarity"]))) == ["token_cosine"]


def test_absent_and_unknown_charts_are_named():
    with pytest.raises(OptionError, match=r"no variable 'relative_residual'.*token_cosine"):
        chart(synthetic(groups=["similarity"]))
    with pytest.raises(OptionError, match=r"no chart of 'stable_rank'.*effective_rank"):
        chart(synthetic(), "stable_rank")


def test_numbers_that_are_not_finite_are_left_out():
    dataset = synthetic(("san", "transformer"))
    dataset["relative_residual"][1, 0, 4] = np.inf
    dataset["relative_residual"][1, :, 6] = np.nan
    points = [p for p in values(chart(dataset), "point") if p["variant"] == "transformer"]
    assert {"4", "6"}.isdisjoint(p["layer"] for p in points)
    json.dumps(chart(dataset).to_dict(), allow_nan=False)


def test_variants_differ_by_shape_and_keep_theirs_whatever_is_beside_them():
    names = ["-mlp", "transformer", "-mlp_skip", "san", "-attention_norm", "san+skip", "-mlp_norm"]
    numbers = look(names)
    assert list(numbers) == names
    assert len({SHAPES[n % len(SHAPES)] for n in numbers.values()}) == len(names)
    assert look(["san", "transformer"])["san"] == numbers["san"]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_stand_out_from_the_ground(theme: Theme):
    for colour in theme.palette:
        assert contrast(colour, theme.surface) >= 3, colour
    assert contrast(theme.text, theme.surface) >= 7
    assert contrast(theme.muted, theme.surface) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(colour: str) -> float:
        channels = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
