"""The tables for a terminal: what stands in a cell, its marks, and that all fits 80 columns."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from rankcollapse.report.certificate import hypotheses_tables, legend, tables
from tests.report.certificate.synthetic import certificate

FROBENIUS = ("spectral", "weyl", "smallest_singular_value")
PARTLY = np.array([[1, 2, 3, 1.0], [2, 2, 1, 1], [1, 3, 3, 1], [2, 2, 2, 0.4]])


def printed(*drawn) -> str:
    out = StringIO()
    console = Console(file=out, width=80)
    for table in drawn:
        console.print(table)
    return out.getvalue()


def row(text: str, layer: int) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [str(layer)])


def test_a_row_has_the_means_of_the_logarithms():
    dataset = certificate(layers=3, samples=4)
    first = printed(tables(dataset)[0])
    cells = row(first, 2)
    mean = float(dataset.log10_measured.sel(layer=2).mean())
    assert cells[1] == f"{10**mean:.1f}"
    for cell, name in zip(cells[2:], dataset.bound.values[:6], strict=True):
        mean = float(dataset.log10_bound.sel(bound=name, layer=2).mean())
        assert cell == f"10^{mean:.1f}"
    assert row(first, 0)[2:] == ["–"] * 6
    assert "values are 10^(mean of log10) over 4 samples" in legend(dataset, "samples")


def test_brackets_tell_whether_hypotheses_hold_in_no_or_in_some_samples():
    dataset = certificate(layers=4, max_delta=PARTLY)
    first = printed(tables(dataset)[0])
    assert [row(first, layer)[2][0] for layer in (1, 2, 3, 4)] == ["[", "(", "[", "1"]
    assert row(first, 2)[5].startswith("10^")
    deep = printed(tables(dataset)[2])
    assert [row(deep, layer)[2][0] for layer in (1, 2, 3, 4)] == ["[", "(", "(", "("]
    lines = legend(dataset, "samples")
    assert "( ) its hypotheses hold in none of the samples: its proof does not reach there" in lines
    assert "[ ] its hypotheses hold in some of the samples only" in lines
    whole = certificate(layers=4)
    assert not any("[" in line or "( )" in line for line in legend(whole, "samples"))
    alone = legend(certificate(samples=1, max_delta=2.0), "samples")
    assert alone == ["( ) its hypotheses do not hold: its proof does not reach there"]


def test_infinite_bounds_are_said_to_say_nothing():
    dataset = certificate("san+skip", layers=4)
    dataset["log10_bound"].loc[{"bound": "tanh", "layer": 2}] = np.inf
    dataset["log10_bound"].loc[{"bound": "tanh", "layer": 3, "sample": 1}] = np.inf
    shallow, frobenius = (printed(table) for table in tables(dataset)[:2])
    assert row(shallow, 2)[5] == "∞"
    assert row(shallow, 3)[5].endswith("†")
    assert row(frobenius, 4)[3] == "0"
    lines = legend(dataset, "texts")
    assert "† without the texts in which it is 0 or ∞" in lines
    assert {"0: the lower bound says nothing", "∞: the upper bound says nothing"} <= set(lines)


def test_close_bounds_have_plain_numbers():
    dataset = certificate("san+skip", layers=2)
    cells = row(printed(tables(dataset)[1]), 1)
    means = dataset.log10_bound.sel(layer=1).mean("sample")
    wanted = [10 ** float(means.sel(bound=n)) for n in dataset.bound.values if n in FROBENIUS]
    assert [float(cell) for cell in cells[2:]] == pytest.approx(wanted, rel=0.01)


def test_a_crossed_bound_is_marked():
    dataset = certificate(layers=4, crossed=("tanh", 1, 3))
    assert row(printed(tables(dataset)[0]), 3)[5].endswith("!")
    assert legend(dataset, "samples")[-1].startswith("! crossed by the measurement")
    assert not any("!" in line for line in legend(certificate(), "samples"))


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 12},
        {"layers": 12, "max_delta": 3.0, "slope": -33000.0, "contraction": 3e4},
        {"layers": 100, "max_delta": 3.0, "contraction": 2.0, "slope": -4e6},
        {"layers": 4, "max_delta": PARTLY, "variant": "san+skip", "slope": -1.5e6},
        {"layers": 1, "samples": 1, "variant": "san+skip"},
    ],
)
def test_tables_fit_80_columns(options):
    dataset = certificate(**options)
    drawn = [*tables(dataset), *hypotheses_tables(dataset)]
    for line in printed(*drawn).splitlines():
        assert len(line) <= 80
        assert "…" not in line
    for table in drawn:
        text = printed(table)
        layers = {line.split()[0] for line in text.splitlines() if line.split()}
        if "measured" in text:
            assert {str(layer) for layer in range(options["layers"] + 1)} <= layers


def test_every_bound_has_one_column_and_huge_exponents_are_whole():
    dataset = certificate("san+skip", layers=100, contraction=2.0, max_delta=3.0)
    text = printed(*tables(dataset))
    exponent = float(dataset.log10_bound.sel(bound="theorem_2_3", layer=100).mean())
    assert f"(10^({exponent:.1e}))".replace("e+", "e") in text
    headings = [str(c.header) for t in tables(dataset) for c in t.columns[2:] if str(c.header)]
    titles = [str(title) for title in dataset.title.values]
    assert sorted(heading.removeprefix("≤ ").removeprefix("≥ ") for heading in headings) == sorted(
        titles
    )


def test_hypotheses_by_layer_and_what_needs_them():
    dataset = certificate(layers=4, max_delta=PARTLY, hypotheses={"no_norm": False})
    held, needed = (printed(table) for table in hypotheses_tables(dataset))
    lines = {line.split()[0]: line for line in held.splitlines() if line.strip()}
    assert lines["a"].endswith("4; in some at 1, 3".ljust(len("holds in every sample at")))
    assert "no norm between the layers" in lines["d"] and "no layer" in lines["d"]
    assert "every layer" in lines["b"]
    wanted = {
        "Lemma A.2 ": ("a b c e", "4; in some at 1, 3"),
        "tanh bound ": ("b c", "every layer"),
        "Dobrushin bound": ("nothing", "every layer"),
        "Theorem 2.3": ("a b c d e", "no layer"),
    }
    for title, parts in wanted.items():
        line = next(line for line in needed.splitlines() if line.startswith(title))
        assert all(part in line for part in parts)


def test_without_hypotheses_there_is_no_table_of_them():
    dataset = certificate().sel(bound=["dobrushin", "spectral"])
    assert len(hypotheses_tables(dataset)) == 1
