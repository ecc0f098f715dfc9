"""The page, its files and the JSON document: complete, escaped, all or none."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from rankcollapse.errors import OutputError
from rankcollapse.report.certificate import NAMES, alarms, findings, json_document, page, write
from tests.report.certificate.synthetic import STATEMENTS, certificate

ODD = "<script>alert(1)</script>"


def text_of(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html[html.index("<body>") :])


def test_the_page_is_complete_and_escaped():
    dataset = certificate("san+skip", model=ODD, max_delta=np.array([0.1] * 3 + [2.0] * 9))
    html = page(dataset)
    assert ODD not in html and "&lt;script&gt;" in html
    text = text_of(html)
    for sentence in findings(dataset):
        assert sentence.replace("'", "&#39;").replace(">", "&gt;").replace("<", "&lt;") in text
    for coordinate in ("title", "definition", "source"):
        for words in dataset[coordinate].values:
            assert str(words).replace("'", "&#39;").casefold() in text.casefold()
    assert all(statement in text for statement in STATEMENTS.values())
    assert "variant san+skip" in text and "y = A(x)" in text and "what it is" in text
    assert "its hypotheses hold in none of the texts" in text
    assert 'role="alert"' not in html


def test_an_alarm_stands_over_everything():
    dataset = certificate(crossed=("tanh", 1, 3))
    html = page(dataset)
    assert html.index('role="alert"') < html.index('class="findings"')
    (alarm,) = alarms(dataset)
    assert alarm in text_of(html)


def test_a_page_without_hypotheses_or_depth():
    dataset = certificate().sel(bound=["dobrushin"])
    html = page(dataset)
    assert 'id="chart-in_depth"' not in html and 'id="chart-per_layer"' in html
    assert "Lower bounds are certain" not in html
    assert 'aria-label="Hypotheses"' not in html
    assert 'aria-label="Hypotheses"' in page(certificate())


def test_symbols_stay_small_in_definitions():
    dataset = certificate()
    dataset["gamma"].attrs["long_name"] = "γ"
    dataset["max_delta"].attrs |= {"long_name": "max δ", "units": "metres"}
    html = page(dataset)
    assert "<dt>γ</dt>" in html and "<dt>Max δ, metres</dt>" in html


def test_files_are_written_and_those_of_an_earlier_report_go(tmp_path: Path):
    out = tmp_path / "out"
    dataset = certificate("san+skip", layers=3)
    paths = write(dataset, out)
    assert {path.name for path in paths} == set(NAMES) == {p.name for p in out.iterdir()}
    with xr.open_dataset(out / "results.nc", engine="h5netcdf") as stored:
        assert stored.drop_attrs().equals(dataset.drop_attrs())
        assert json.loads(stored.attrs["metadata"])["model"] == "bert-base-cased"
    with (out / "results.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 4 * 4
    assert float(table[5]["log10_tanh"]) == float(
        dataset.log10_bound.sel(bound="tanh", sample=1, layer=1)
    )
    with pytest.raises(OutputError, match="not empty"):
        write(dataset, out)
    (out / "mine").write_text("mine")
    write(certificate(layers=3), out, overwrite=True)
    gone = {f"in_depth_frobenius.{kind}" for kind in ("svg", "png")}
    assert {p.name for p in out.iterdir()} == (set(NAMES) - gone) | {"mine"}


def test_json_has_every_bound_by_layer():
    delta = np.tile(np.array([0.1] * 3 + [2.0] * 1), (4, 1))
    delta[2, 0] = 5.0
    dataset = certificate("san+skip", layers=4, max_delta=delta, crossed=("tanh", 1, 3))
    dataset["log10_bound"].loc[{"bound": "gamma_free", "layer": 2}] = np.inf
    document = json.loads(json_document(dataset))
    assert document["variant"] == "san+skip" and document["metadata"]["heads"] == 12
    means = dataset.mean("sample")
    assert document["measured"]["composite"] == pytest.approx(means.log10_measured.values)
    assert document["measured"]["frobenius"] == pytest.approx(means.log10_measured_frobenius.values)
    assert set(document["bounds"]) == {str(name) for name in dataset.bound.values}
    lemma = document["bounds"]["lemma_a2"]
    wanted = means.log10_bound.sel(bound="lemma_a2").values[1:]
    assert lemma["log10"][0] is None and lemma["log10"][1:] == pytest.approx(wanted)
    assert lemma["applies"] == [None, 0.75, 1, 1, 0]
    assert lemma["requires"] == ["small_delta", "content_only", "no_mask", "sum_over_heads"]
    assert (lemma["kind"], lemma["scope"], lemma["norm"]) == ("upper", "layer", "composite")
    gamma_free = document["bounds"]["gamma_free"]
    assert gamma_free["log10"][2] is None and gamma_free["finite"][:3] == [None, 1, 0]
    weyl = document["bounds"]["weyl"]
    assert weyl["vacuous"] == [None, 0, 0, 1, 1] and weyl["kind"] == "lower"
    assert document["bounds"]["tanh"]["crossed"] == [0, 0, 0, 1, 0]
    assert document["hypotheses"]["small_delta"]["holds"] == [None, 0.75, 1, 1, 0]
    assert document["max_delta"] == [None, 5.0, 0.1, 0.1, 2.0]
    assert document["log10_contraction"] == pytest.approx(dataset.log10_contraction.values)
