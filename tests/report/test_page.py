"""The page as text: complete, self-contained, and safe whatever the names in it are."""

import json
import re
from html.parser import HTMLParser

import pytest
import xarray as xr

from rankcollapse.report import findings, page, rate_sentences
from tests.report.synthetic import FORMULAS, synthetic


class Reader(HTMLParser):
    """Collects the text outside scripts and styles, the tags, and each script's content."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)


def read(dataset: xr.Dataset) -> Reader:
    reader = Reader()
    reader.feed(page(dataset))
    return reader


def words(reader: Reader) -> str:
    return re.sub(r"\s+", " ", "".join(reader.text))


def test_sentences_tables_definitions_formulas_and_metadata_are_all_there():
    dataset = synthetic(final_norm=True)
    text = words(read(dataset))
    for sentence in findings(dataset):
        assert sentence in text
    for array in dataset.data_vars.values():
        assert array.attrs["definition"] in text
    for formula in FORMULAS.values():
        assert formula in text
    run = json.loads(dataset.attrs["metadata"])
    for key in ("model", "revision", "dtype", "text_sha256", "created"):
        assert run[key] in text
    assert "2.2e-07 ± " in text and "after final norm" in text


def test_every_layer_and_variant_is_in_the_first_table():
    reader = read(synthetic(layers=7))
    html = page(synthetic(layers=7))
    first = html[html.index("<table>") : html.index("</table>")]
    assert first.count("<td") == 8 * 4
    assert first.count('class="floor"') == 5
    assert [tag for tag, _ in reader.tags].count("table") == 4


def test_charts_come_as_data_for_the_library_in_the_page():
    reader = read(synthetic())
    library, specs, start = reader.scripts
    assert len(library) > 500_000 and "vegaEmbed" in library
    assert list(json.loads(specs)) == [
        "relative_residual",
        "effective_rank",
        "token_cosine",
        "largest_token_ratio",
    ]
    assert "vegaEmbed" in start


def test_nothing_is_loaded_from_anywhere():
    reader = read(synthetic())
    assert not [tag for tag, _ in reader.tags if tag in ("link", "img", "iframe", "object")]
    assert not [a for _, a in reader.tags if "src" in a or "href" in a]
    policies = [a["content"] for _, a in reader.tags if "http-equiv" in a]
    assert len(policies) == 1 and (policies[0] or "").startswith("default-src 'none';")
    html = page(synthetic())
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style and "@import" not in style


HOSTILE = '</script><script>alert("&1")</script><img src=x onerror=alert(2)>'


def test_names_are_escaped_in_text_and_in_scripts():
    dataset = synthetic(("san", "transformer"), model=HOSTILE)
    dataset = dataset.assign_coords(variant=["san", HOSTILE])
    reader = read(dataset)
    assert len(reader.scripts) == 3
    assert not [tag for tag, _ in reader.tags if tag == "img"]
    assert HOSTILE in words(reader)
    spec = json.loads(reader.scripts[1])["relative_residual"]
    assert HOSTILE in json.dumps(spec).replace('\\"', '"')


def test_an_attribute_cannot_break_out():
    dataset = synthetic(("transformer",))
    dataset["relative_residual"].attrs["definition"] = '<b>bold</b> & "quoted"'
    reader = read(dataset)
    assert '<b>bold</b> & "quoted"' in words(reader)
    assert not [tag for tag, _ in reader.tags if tag == "b"]


def test_centered_data_have_a_section_on_the_rate():
    dataset = synthetic(cubic=True, final_norm=True)
    reader = read(dataset)
    text = words(reader)
    for sentence in rate_sentences(dataset):
        assert sentence in text
    assert "Theory expects Measured order Factor per layer Layers Agrees" in text
    assert "Dashes along a line are the same pass in plain float64" in text
    assert "The axis is doubly logarithmic" in text
    assert "Variants that keep the attention skip connection have none." in text
    assert "Some means lie beyond" not in text
    assert list(json.loads(reader.scripts[1]))[:2] == ["relative_residual", "local_order"]
    html = page(dataset)
    last = html[html.rindex('aria-label="Local order by layer"') :]
    table = last[: last.index("</table>")]
    assert table.count("<td") == 2 * 11
    assert "after final norm" not in table
    # With a floor of zero nothing is at it.
    assert "Definition of at the rounding floor" not in text
    assert "<dt>arithmetic</dt>" in html and "<dt>floor</dt>" not in html


def test_dense_data_have_no_section_on_the_rate():
    text = words(read(synthetic()))
    for words_of_it in ("Rate", "Dashes", "doubly logarithmic", "Local order"):
        assert words_of_it not in text


def test_orders_beyond_the_chart_are_mentioned():
    dataset = synthetic(cubic=True)
    dataset["local_order"][0, :, 4] = -80.0
    assert "Some means lie beyond −1 to 5; they are in the table." in words(read(dataset))


@pytest.mark.parametrize("groups", [["similarity"], ["spectrum", "magnitude"], ["attention"]])
def test_missing_metrics_leave_out_their_parts(groups: list[str]):
    reader = read(synthetic(groups=groups))
    charts = [a["id"] for tag, a in reader.tags if tag == "div" and a.get("class") == "chart"]
    assert len(charts) == {"similarity": 1, "spectrum": 2, "attention": 0}[groups[0]]


def test_a_data_set_without_metadata_still_makes_a_page():
    dataset = synthetic(samples=1)
    dataset.attrs.clear()
    text = words(read(dataset))
    assert "The run" not in text
    assert "1 text" in text
