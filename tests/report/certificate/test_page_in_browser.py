"""The page in real Chromium: drawn, quiet, without a network, on a phone and a screen."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rankcollapse.report.certificate import page
from rankcollapse.report.certificate.chart import CHARTS
from rankcollapse.report.certificate.points import points
from rankcollapse.report.certificate.summary import bounds
from tests.report.browser import Browser
from tests.report.certificate.synthetic import certificate

PAGES = {
    "san": certificate(max_delta=np.array([0.1] * 3 + [2.0] * 9)),
    "skip": certificate("san+skip"),
    "deep": certificate(
        "san+skip", layers=100, samples=1, contraction=2.0, slope=-9e5, model="a/" + "long-" * 20
    ),
    "one layer": certificate(layers=1, samples=1, crossed=("tanh", 0, 1)),
}
DRAWN = (
    "document.querySelectorAll('.chart svg').length > 0 && "
    "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
)
POINTS = ".mark-symbol.role-mark path[fill-opacity='1']"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, dataset in PAGES.items():
        (folder / f"{name}.html").write_text(page(dataset), encoding="utf-8")
    return folder


def count(browser: Browser, selector: str) -> int:
    return browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_drawn_quietly_and_fits(
    browser: Browser, folder: Path, name: str, width: int, scheme: str
):
    browser.open(folder / f"{name}.html", width=width, scheme=scheme, ready=DRAWN)
    for chart, (deep, norm, _) in CHARTS.items():
        drawn = points(PAGES[name], deep, norm)
        present = bool(bounds(PAGES[name], deep=deep, norm=norm))
        assert count(browser, f"#chart-{chart}") == present
        if present:
            assert count(browser, f"#chart-{chart} {POINTS}") == len(drawn.points)
            assert count(browser, f"#chart-{chart} .mark-rule.role-mark line") == len(
                drawn.segments
            )
            symbols = count(browser, f"#chart-{chart} .role-legend-symbol path")
            assert symbols == len(drawn.names)
    assert browser.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    outside = browser.evaluate(
        "[...document.querySelectorAll('.chart svg text')].filter(t => t.textContent && "
        "(t.getBoundingClientRect().left < 0 || "
        "t.getBoundingClientRect().right > document.documentElement.clientWidth)).length"
    )
    assert outside == 0
    assert count(browser, ".alarm") == (name == "one layer")
    assert browser.complaints == []
    assert browser.requests == []


def test_dashes_hollow_points_and_the_measured_line_can_be_told_apart(
    browser: Browser, folder: Path
):
    browser.open(folder / "san.html", width=1280, scheme="light", ready=DRAWN)
    lines = browser.evaluate(
        "[...document.querySelectorAll('#chart-per_layer .mark-rule.role-mark line')].map(l => "
        "[l.getAttribute('stroke-dasharray'), Number(l.getAttribute('stroke-width')), "
        "getComputedStyle(l).stroke])"
    )
    measured = [line for line in lines if line[2] == "rgb(28, 33, 38)"]
    assert len(measured) == 12 and {line[1] for line in measured} == {3.5}
    assert sum(line[0] == "4,4" for line in lines) == 9
    assert {line[1] for line in lines if line not in measured} == {1.75}
    hollow = browser.evaluate(
        f'[...document.querySelectorAll("#chart-per_layer {POINTS}")].filter(p => '
        "getComputedStyle(p).fill === 'rgb(255, 255, 255)').length"
    )
    assert hollow == 9


def test_a_point_says_what_it_is(browser: Browser, folder: Path):
    browser.open(folder / "san.html", width=1280, scheme="light", ready=DRAWN)
    selector = "#chart-in_depth .mark-symbol.role-mark path[opacity='0']"
    found = f"document.querySelectorAll({json.dumps(selector)})[0]"
    browser.evaluate(f"{found}.scrollIntoView({{ block: 'center' }})")
    box = f"{found}.getBoundingClientRect()"
    x, y = browser.evaluate(f"[{box}.x + {box}.width / 2, {box}.y + {box}.height / 2]")
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.wait("document.querySelector('#vg-tooltip-element.visible')")
    text = browser.evaluate("document.querySelector('#vg-tooltip-element').innerText")
    assert "Layer" in text and "Residual" in text and "undefined" not in text
    assert browser.complaints == []
