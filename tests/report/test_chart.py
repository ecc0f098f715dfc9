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
from rankcollapse.report.style import DARK, LIGHT, SHAPES, Theme, look
from tests.report.synthetic import synthetic


def layer(drawing: alt.LayerChart, mark: str) -> dict[str, Any] | None:
    spec = drawing.to_dict()
    found = next((part for part in spec["layer"] if part["mark"]["type"] == mark), None)
    if found is None:
        return None
    data = found.get("data") or spec["data"]
    values = data["values"] if "values" in data else spec["datasets"][data["name"]]
    wanted = {(): (True, False), ("datum.after",): (True,), ("!datum.after",): (False,)}
    filters = tuple(step["filter"] for step in found.get("transform", []))
    kept = [value for value in values if value.get("after", False) in wanted[filters]]
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
    assert "10⁻⁴⁰⁰" in svg and "10⁻⁸⁰⁰" in svg


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


def test_floors_close_together_share_one_label():
    labels = floor_labels(chart(synthetic(deep=True)))
    assert sorted(labels) == ["", "float32 and float64 rounding floors"]


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
