"""The charts, tables, sentences and the page of a decomposition."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from rankcollapse.errors import OptionError
from rankcollapse.paths import length_distribution
from rankcollapse.report.decomposition import (
    chart,
    charts,
    findings,
    name_target,
    page,
    table,
    tidy,
)
from rankcollapse.report.decomposition import heads_table as heads
from rankcollapse.report.picture import png, svg
from rankcollapse.report.style import DARK
from tests.report.browser import Browser

ODD = "<script>alert(1)</script>"
DRAWN = (
    "document.querySelectorAll('.chart svg').length > 0 && "
    "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
)
HEADS = 12


def synthetic(
    layers: int = 6,
    samples: int = 3,
    *,
    target: bool = False,
    off: tuple[str, ...] = (),
    short: bool = True,
    model: str = "some/model",
) -> xr.Dataset:
    """Shares that halve with the length (or double, unless `short`), apart by sample."""
    rng = np.random.default_rng(0)
    weights = np.array([[0.5**n * part for n in range(layers + 1)] for part in (0.5, 0.4, 0.3)])
    weights[2, 1:] *= -0.1
    weights = weights if short else weights[:, ::-1]
    share = weights * rng.uniform(0.9, 1.1, (samples, 3, layers + 1))
    share /= share.sum(axis=(1, 2), keepdims=True)
    norm = np.abs(share)
    residual = np.broadcast_to(0.9 * 0.6 ** np.arange(layers + 1), share.shape).copy()
    residual[:, 2] = 1e-17
    norm[:, 1:, -1], share[:, 1:, -1], residual[:, 1:, -1] = 0, 0, np.nan
    share /= share.sum(axis=(1, 2), keepdims=True)
    if off == ("attention_skip", "mlp"):
        norm[:, :, :-1] = 0
    dims = ("sample", "source", "length")
    described = {"long_name": "name", "units": "1", "definition": "what it is"}
    variables = {"share": share, "frobenius_norm": norm, "relative_residual": residual}
    if target:
        variables["projection"] = -3 * share
    dataset = xr.Dataset(
        {name: (dims, values, described) for name, values in variables.items()},
        coords={
            "sample": np.arange(samples),
            "source": ["input", "mlp", "bias"],
            "length": np.arange(layers + 1),
        },
    )
    dataset["error"] = ("sample", np.full(samples, 2e-7), described)
    if target:
        totals = rng.normal(size=(samples, layers, HEADS))
        totals[:, min(1, layers - 1), 5] = -40
        dataset = dataset.assign_coords(layer=np.arange(1, layers + 1), head=np.arange(HEADS))
        dataset["head_projection"] = (("sample", "layer", "head"), totals, described)
    run = {"model": model, "layers": layers, "heads": HEADS, "width": 8, "dtype": "float32",
           "variants": {"named": {"off": list(off), "formula": "y = x"}}}  # fmt: skip
    dataset.attrs["metadata"] = json.dumps(run)
    return name_target(dataset, {"token": "cat", "id": 7, "position": -1}) if target else dataset


def rows(dataset: xr.Dataset, variable: str, mark: int) -> list[dict]:
    spec = chart(dataset, variable).to_dict()
    data = spec["layer"][mark].get("data", spec.get("data"))
    return spec["datasets"][data["name"]] if "name" in data else data["values"]


def printed(drawn) -> str:
    out = StringIO()
    Console(file=out, width=80).print(drawn)
    return out.getvalue()


def test_bars_sums_and_counts_are_the_numbers():
    dataset = synthetic()
    bars = rows(dataset, "share", 0)
    assert len(bars) == 3 * 7 - 2
    for bar in bars:
        source = {"input": "input", "MLPs": "mlp", "biases": "bias"}[bar["name"]]
        mean = float(dataset.share.sel(source=source, length=bar["length"]).mean())
        assert bar["y"] == pytest.approx(mean)
    sums = rows(dataset, "share", 2)
    total = dataset.share.sum("source")
    np.testing.assert_allclose([p["y"] for p in sums], total.mean("sample"))
    std = total.std("sample", ddof=1)
    np.testing.assert_allclose([p["high"] - p["low"] for p in sums], 2 * std, atol=1e-15)
    counts = rows(dataset, "share", 4)
    np.testing.assert_array_equal(
        [p["y"] for p in counts], length_distribution(6, HEADS).share.values
    )


def test_nothing_is_counted_where_mlps_end_every_path():
    dataset = synthetic(off=("attention_skip", "mlp_skip"))
    assert len(chart(dataset).to_dict()["layer"]) == 4
    assert "No path of the input reaches the output" in findings(dataset)[0]
    assert "2.1e-07" not in printed(table(dataset))
    assert "2.1e-07" in printed(table(synthetic()))


def test_the_residual_has_its_logarithm_and_leaves_rounding_out():
    points = rows(synthetic(), "relative_residual", 0)
    assert {p["name"] for p in points} == {"input", "MLPs"}
    ends = [p["y"] for p in points if p["name"] == "input"]
    np.testing.assert_allclose(ends, np.log10(0.9 * 0.6 ** np.arange(7)))
    assert "up to rounding are left out" in page(synthetic())


def test_heads_by_sign_and_size():
    dataset = synthetic(target=True)
    cells = rows(dataset, "head_projection", 0)
    assert len(cells) == 6 * HEADS
    largest = max(cells, key=lambda c: c["size"])
    assert (largest["layer"], largest["head"], largest["sign"]) == (2, 5, "against it")
    mean = dataset.head_projection.mean("sample")
    for cell in cells:
        value = float(mean.sel(layer=cell["layer"], head=cell["head"]))
        assert cell["size"] * (1 if cell["sign"] == "for the target" else -1) == pytest.approx(
            value
        )
    first = printed(heads(dataset)).splitlines()[3].split()
    assert first[:2] == ["2", "5"] and first[2].startswith("-40.0")
    assert len(printed(heads(dataset)).strip().splitlines()) == 3 + 5


@pytest.mark.parametrize("short", [True, False])
def test_sentences_say_only_what_the_numbers_say(short):
    dataset = synthetic(short=short)
    said = " ".join(findings(dataset))
    held = float(dataset.share.sel(length=slice(0, 2)).sum(("source", "length")).mean())
    assert "Most paths are long: lengths 4 to 6 hold 0.992 of their number" in said
    assert ("most of the output is short" in said) == (held > 0.5) == short
    assert f"engths 0 to 2 hold {held:.3f} of" in said
    assert "falls from 0.900 at length 0 to 0.042 at length 6" in said
    assert "within 2e-07" in said
    assert "against the output" not in said


def test_negative_shares_and_stacks_without_skips_are_said():
    dataset = synthetic()
    dataset["share"].loc[{"length": [2, 3]}] *= -1
    said = "Lengths 2 and 3 point against the output: their shares are negative."
    assert said in findings(dataset) and said not in findings(synthetic())
    one = synthetic()
    one["share"].loc[{"length": 2}] *= -1
    assert "Length 2 points against the output: its share is negative." in findings(one)
    san = findings(synthetic(off=("attention_skip", "mlp"), short=False))
    assert san[0] == "Without attention skip connections every path of the input has length 6."
    assert san[1].endswith(" from the input.") and "MLPs" not in san[1]


@pytest.mark.parametrize("scale", [1.0, 30.0, 4e3, 2e6])
def test_tables_fit_80_columns_and_say_dashes(scale):
    dataset = synthetic(target=True)
    dataset["share"] *= scale
    dataset["projection"] *= scale
    for drawn in (table(dataset), table(dataset, "projection"), heads(dataset)):
        lines = printed(drawn).splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert not any("…" in line for line in lines)
    last = next(line for line in printed(table(dataset)).splitlines() if line.split()[:1] == ["6"])
    assert last.split()[3:5] == ["–", "–"]


def test_one_sample_has_no_deviation():
    dataset = synthetic(samples=1, target=True)
    assert "±" not in printed(table(dataset)) and "one sample" in printed(table(dataset))
    assert "±" not in " ".join(findings(dataset))
    assert {p["high"] - p["low"] for p in rows(dataset, "share", 2)} == {0}


def test_tidy_has_every_number_once():
    dataset = synthetic(target=True)
    frame = tidy(dataset)
    assert list(frame)[:3] == ["sample", "source", "length"] and len(frame) == 3 * 3 * 7
    one = frame.query("sample == 1 and source == 'mlp' and length == 2")
    at = dataset.sel(sample=1, source="mlp", length=2)
    assert float(one["projection"].iloc[0]) == float(at.projection)
    assert "head_projection" not in frame


def test_a_chart_that_is_not_there_is_refused():
    with pytest.raises(OptionError, match="projection"):
        chart(synthetic(), "projection")
    assert list(charts(synthetic())) == ["share", "relative_residual"]
    assert len(charts(synthetic(target=True))) == 4


def test_pictures():
    for drawing in charts(synthetic(target=True), theme=DARK).values():
        assert "</svg>" in svg(drawing) and png(drawing).startswith(b"\x89PNG")


def test_the_page_is_complete_and_escaped():
    dataset = synthetic(target=True, model=ODD)
    html = page(dataset)
    assert ODD not in html and "&lt;script&gt;" in html
    text = re.sub(r"<[^>]+>", "", html[html.index("<body>") :])
    for sentence in findings(dataset):
        assert sentence.replace("'", "&#39;") in text
    assert "what it is" in text and "y = x" in text and "variant named" in text
    assert "layer 2, head 5" in text


PAGES = {
    "plain": synthetic(),
    "target": synthetic(target=True),
    "deep": synthetic(48, 1, target=True, model="a/" + "long-name-" * 9),
    "one layer": synthetic(1, 2, target=True),
    "uncounted": synthetic(off=("attention_skip", "mlp_skip")),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_drawn_quietly_and_fits(
    browser: Browser, tmp_path: Path, name: str, width: int, scheme: str
):
    dataset = PAGES[name]
    file = tmp_path / "page.html"
    file.write_text(page(dataset), encoding="utf-8")
    browser.open(file, width=width, scheme=scheme, ready=DRAWN)

    def count(marks: str) -> int:
        return browser.evaluate(f"document.querySelectorAll({json.dumps(marks)}).length")

    layers = dataset.sizes["length"] - 1
    assert count("#chart-share .mark-rect.role-mark path") == 3 * (layers + 1) - 2
    assert count("#chart-share .mark-line path") == (0 if name == "uncounted" else 1)
    assert count("#chart-relative_residual .mark-line path") == 2
    assert count(".chart") == (4 if "projection" in dataset else 2)
    if "projection" in dataset:
        assert count("#chart-head_projection .mark-rect.role-mark path") == layers * HEADS
    assert browser.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    outside = browser.evaluate(
        "[...document.querySelectorAll('.chart svg text')].filter(t => t.textContent && "
        "(t.getBoundingClientRect().left < 0 || "
        "t.getBoundingClientRect().right > document.documentElement.clientWidth)).length"
    )
    assert outside == 0
    assert browser.complaints == []
    assert browser.requests == []
