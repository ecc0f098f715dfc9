"""The page in real Chromium: charts drawn, nothing said on the console, nothing asked of a network.

A browser is needed; without one these tests fail and say how to get it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankcollapse.report import page
from tests.report.browser import Browser
from tests.report.synthetic import synthetic

PAGES = {
    "plain": synthetic(),
    "final norm": synthetic(final_norm=True, layers=24, massive=30, model="a/" + "long-name-" * 9),
    "deep": synthetic(deep=True),
    "centered": synthetic(cubic=True, final_norm=True),
    "many variants": synthetic(
        ("san", "san+mlp", "san+skip", "transformer", "-mlp_skip", "-attention_norm", "-mlp_norm"),
        layers=48,
        samples=1,
    ),
    "one metric": synthetic(("transformer",), groups=["similarity"]),
}
POINTS = ".mark-symbol.role-mark path[fill-opacity='1']"
DRAWN = (
    "document.querySelectorAll('.chart svg').length > 0 && "
    "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
)


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


def count(browser: Browser, chart: str, marks: str) -> int:
    selector = json.dumps(f"#chart-{chart} {marks}")
    return browser.evaluate(f"document.querySelectorAll({selector}).length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_drawn_quietly_and_fits(
    browser: Browser, folder: Path, name: str, width: int, scheme: str
):
    browser.open(folder / f"{name}.html", width=width, scheme=scheme, ready=DRAWN)
    for variable in ("relative_residual", "effective_rank", "token_cosine", "largest_token_ratio"):
        if variable in PAGES[name]:
            sizes = PAGES[name].sizes
            after = f"{variable}_after_final_norm" in PAGES[name]
            drawn = count(browser, variable, POINTS)
            assert drawn == sizes["variant"] * (sizes["layer"] + after)
            lines = count(browser, variable, ".mark-line path")
            # The plain pass of centered arithmetic is a coloured line and a core in it.
            plain = variable == "relative_residual" and "local_order" in PAGES[name]
            assert lines == sizes["variant"] * (3 if plain else 1)
    if "local_order" in PAGES[name]:
        assert count(browser, "local_order", ".mark-line path") == 2
        assert count(browser, "local_order", POINTS) == 2 * (PAGES[name].sizes["layer"] - 2)
    wide = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    outside = browser.evaluate(
        "[...document.querySelectorAll('.chart svg text')].filter(t => t.textContent && "
        "(t.getBoundingClientRect().left < 0 || "
        "t.getBoundingClientRect().right > document.documentElement.clientWidth)).length"
    )
    assert outside == 0
    assert browser.complaints == []
    assert browser.requests == []


def test_colours_follow_the_scheme_without_a_new_drawing(browser: Browser, folder: Path):
    colour = "getComputedStyle(document.querySelector('#chart-relative_residual {}')).{}"
    label, line = (".role-axis-label text", "fill"), (".mark-line path", "stroke")
    browser.open(folder / "plain.html", width=1280, scheme="light", ready=DRAWN)
    light = [browser.evaluate(colour.format(*what)) for what in (label, line)]
    media = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send("Emulation.setEmulatedMedia", features=media)
    dark = [browser.evaluate(colour.format(*what)) for what in (label, line)]
    assert light == ["rgb(91, 101, 112)", "rgb(213, 94, 0)"]
    assert dark == ["rgb(154, 165, 176)", "rgb(240, 128, 60)"]


def test_the_doubly_logarithmic_axis_and_both_floors_can_be_read(browser: Browser, folder: Path):
    browser.open(folder / "centered.html", width=1280, scheme="light", ready=DRAWN)
    texts = browser.evaluate(
        "[...document.querySelectorAll('#chart-relative_residual text')].map(t => t.textContent)"
    )
    ticks = ["1", "10⁻¹", "10⁻¹⁰", "10⁻¹⁰⁰", "10⁻¹⁰⁰⁰", "10⁻¹⁰\u202f⁰⁰⁰", "10⁻¹⁰⁰\u202f⁰⁰⁰"]
    assert {*ticks, "float32 rounding floor", "float64 rounding floor"} <= set(texts)
    point(browser, f"#chart-relative_residual {POINTS}", 11)
    browser.wait("document.querySelector('#vg-tooltip-element.visible')")
    text = browser.evaluate("document.querySelector('#vg-tooltip-element').innerText")
    assert text.split()[1] in ("san", "san+mlp") and text.split()[2:4] == ["Layer", "11"]
    assert "10^(-" in text
    assert browser.complaints == []


def test_the_legend_isolates_a_variant_and_points_have_tooltips(browser: Browser, folder: Path):
    browser.open(folder / "plain.html", width=1280, scheme="light", ready=DRAWN)
    faint = (
        "[...document.querySelectorAll('#chart-relative_residual .mark-line path')]"
        ".filter(p => Number(p.getAttribute('opacity') ?? 1) < 0.2).length"
    )
    assert browser.evaluate(faint) == 0
    click(browser, "#chart-relative_residual .role-legend-symbol path")
    browser.wait(f"{faint} === 3")
    point(browser, f"#chart-relative_residual {POINTS}", 30)
    browser.wait("document.querySelector('#vg-tooltip-element.visible')")
    text = browser.evaluate("document.querySelector('#vg-tooltip-element').innerText")
    assert text.split()[:4] == ["Variant", "san+skip", "Layer", "4"]
    assert "undefined" not in text and "8 samples" in text
    assert browser.complaints == []


def test_legends_keep_clear_of_the_text_above_when_the_window_changes(
    browser: Browser, folder: Path
):
    over = (
        "[...document.querySelectorAll('.chart')].filter(c => c.querySelector('.role-legend')"
        ".getBoundingClientRect().top < c.getBoundingClientRect().top - 1).length"
    )
    file = folder / "many variants.html"
    for first, second in ((1280, 375), (375, 1280), (900, 600)):
        browser.open(file, width=first, scheme="light", ready=f"{DRAWN} && {over} === 0")
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=second,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.wait(f"window.innerWidth === {second} && {over} === 0")
        assert browser.complaints == []


def test_a_machine_without_a_browser_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(AssertionError, match="apt-get install -y chromium"):
        Browser(tmp_path)


def test_a_request_and_an_error_would_be_noticed(browser: Browser, tmp_path: Path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('no')</script>")
    browser.open(bad, width=375, scheme="light", ready="true")
    browser.wait("true")
    assert browser.requests == ["http://127.0.0.1:9/x.png"]
    assert any("no" in complaint for complaint in browser.complaints)


def middle(browser: Browser, selector: str, number: int) -> dict[str, float]:
    """The middle of the `number`-th element, brought into view."""
    found = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
    browser.evaluate(f"{found}.scrollIntoView({{ block: 'center' }})")
    box = f"{found}.getBoundingClientRect()"
    x, y = browser.evaluate(
        f"[{box}.x + {box}.width / 2, {box}.y + {box}.height / 2]",
    )
    return {"x": x, "y": y}


def click(browser: Browser, selector: str) -> None:
    place = middle(browser, selector, 0)
    for event in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=event, button="left", clickCount=1, **place)


def point(browser: Browser, selector: str, number: int) -> None:
    place = middle(browser, selector, number)
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", **place)
