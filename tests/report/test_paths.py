"""The chart, the table and the page of path counts."""

import json
import re

import altair as alt
import numpy as np
import pytest

from rankcollapse.paths import FIGURE_5, Stack, length_distributions
from rankcollapse.report.paths import chart, page, summarize, table
from rankcollapse.report.picture import svg
from rankcollapse.report.style import DARK
from tests.report.browser import Browser

NINE = length_distributions(FIGURE_5)
WITHOUT = length_distributions(FIGURE_5, skips=False)
HUGE = length_distributions([Stack("huge", 1000, 1000), Stack("one", 1, 1)])
ODD = "<script>alert(1)</script>"
DRAWN = (
    "document.querySelectorAll('.chart svg').length > 0 && "
    "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
)


def points(drawing: alt.LayerChart) -> dict[str, list[dict]]:
    spec = drawing.to_dict()
    values = spec["datasets"][spec["data"]["name"]]
    names = dict.fromkeys(value["name"] for value in values)
    return {name: [value for value in values if value["name"] == name] for name in names}


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("logarithmic", [True, False])
def test_points_are_the_numbers(relative, logarithmic):
    drawn = points(chart(NINE, relative=relative, logarithmic=logarithmic))
    assert list(drawn) == [stack.name for stack in FIGURE_5]
    for stack in FIGURE_5:
        one = NINE.sel(architecture=stack.name, length=slice(0, stack.layers))
        x = one.length / stack.layers if relative else one.length
        y = one.log10_share if logarithmic else one.share
        np.testing.assert_array_equal([p["x"] for p in drawn[stack.name]], x)
        np.testing.assert_array_equal([p["y"] for p in drawn[stack.name]], y)
    gpt3 = drawn["GPT-3"]
    assert gpt3[95]["length"] == "95 of 96"
    assert (gpt3[95]["share"], gpt3[95]["count"]) == ("0.370", "10^190.3")


def test_the_default_is_relative_only_where_lengths_differ():
    assert points(chart(NINE))["GPT-3"][-1]["x"] == 1
    without = points(chart(WITHOUT))
    assert [(p["x"], p["y"]) for p in without["GPT-3"]] == [(96, 1)]


def test_shares_below_the_smallest_float_are_drawn():
    first = points(chart(HUGE, logarithmic=True))["huge"][0]
    assert first["y"] == pytest.approx(-1000 * np.log10(1001))
    assert first["share"] == "10^-3000"
    assert "</svg>" in svg(chart(HUGE, logarithmic=True))


def test_colours_that_come_again_are_dashed_and_shapes_differ():
    drawn = points(chart(NINE, theme=DARK))
    assert [values[0]["again"] for values in drawn.values()] == [False] * 7 + [True] * 2
    text = svg(chart(NINE, theme=DARK))
    assert DARK.palette[0] in text and "stroke-dasharray" in text
    assert "Share of paths by length" in text


def test_summary():
    rows = {row.name: row for row in summarize(NINE)}
    assert rows["BERT-base, ViT-B"].modes == (11, 12)
    assert rows["GPT-3"].longest_share == pytest.approx((96 / 97) ** 96)
    assert rows["DeiT-T"].mean == 9
    assert table(NINE).row_count == len(FIGURE_5)


def test_the_page_escapes_names_and_carries_its_charts():
    text = page(length_distributions([Stack(ODD, 2, 3, ODD)]))
    assert ODD not in text
    specs = re.search(r'id="specs">(.*?)</script>', text, re.S)
    assert specs and set(json.loads(specs[1])) == {"main", "absolute", "logarithmic"}
    assert "56.2% go through all 2 layers" in text


def test_the_page_in_a_browser(tmp_path):
    profile = tmp_path / "profile"
    profile.mkdir()
    with Browser(profile) as browser:
        for name, dataset in {"nine": NINE, "without": WITHOUT, "huge": HUGE}.items():
            file = tmp_path / f"{name}.html"
            file.write_text(page(dataset), encoding="utf-8")
            for width, scheme in ((375, "dark"), (1280, "light")):
                browser.open(file, width=width, scheme=scheme, ready=DRAWN)
                lines = browser.evaluate(
                    "document.querySelectorAll('#chart-main .mark-line path').length"
                )
                assert lines == dataset.sizes["architecture"]
                wide = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert wide <= 0
                assert browser.complaints == []
                assert browser.requests == []
