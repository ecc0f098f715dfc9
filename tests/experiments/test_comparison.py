"""When a published value agrees, and how the comparison reads."""

import csv
import io
import math

import numpy as np
import pytest
from rich.console import Console

from rankcollapse.experiments.comparison import RULE, frame, judge, markdown, table
from rankcollapse.experiments.experiment import Row

FIVE = (0.019, 0.020, 0.021, 0.022, 0.020)


def row(published: float | None, ours: tuple[float, ...], **more) -> Row:
    return Row("residual", published, "Figure 2", ours, **more)


def test_the_interval_is_that_of_one_more_seed() -> None:
    verdict = judge(row(0.0176, FIVE))
    mean = sum(FIVE) / 5
    std = math.sqrt(sum((x - mean) ** 2 for x in FIVE) / 4)
    # 2.776 is the 97.5 % point of Student's distribution with 4 degrees of freedom, from tables.
    reach = 2.7764451 * std * math.sqrt(1.2)
    assert verdict.mean == pytest.approx(mean)
    assert verdict.std == pytest.approx(std)
    assert (verdict.low, verdict.high) == pytest.approx((mean - reach, mean + reach), rel=1e-7)
    assert judge(row(mean - reach + 1e-6, FIVE)).agrees is True
    assert judge(row(mean - reach - 1e-6, FIVE)).agrees is False
    assert judge(row(mean + reach - 1e-6, FIVE)).agrees is True
    assert judge(row(mean + reach + 1e-6, FIVE)).agrees is False
    assert judge(row(mean + reach + 1e-6, FIVE, resolution=2e-6)).agrees is True


@pytest.mark.parametrize("seeds", [2, 5, 12])
def test_another_seed_agrees_in_nineteen_of_twenty_cases(seeds: int) -> None:
    draws = np.random.default_rng(0).normal(3.0, 0.5, (4000, seeds + 1))
    agree = [judge(row(float(last), tuple(others))).agrees for *others, last in draws]
    assert np.mean(np.array(agree, dtype=float)) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(
    ("published", "ours", "more", "agrees"),
    [
        (None, FIVE, {}, None),
        (1.0, (1.0,), {}, None),
        (1.0, (), {}, None),
        (1.0, (1.0, math.nan, 1.0), {}, None),
        (1.0, (1.0 + 1e-9,), {"exact": True, "resolution": 1e-8}, True),
        (1.0, (1.0 + 1e-7,), {"exact": True, "resolution": 1e-8}, False),
        (1.0, (1.0, 1.0, 1.0), {}, True),
        (1.1, (1.0, 1.0, 1.0), {}, False),
    ],
)
def test_what_agrees(published, ours, more, agrees) -> None:
    assert judge(row(published, ours, **more)).agrees is agrees


ROWS = [
    row(0.0176, FIVE, remark="first\nsecond"),
    row(1.0, FIVE, remark="second"),
    Row("a | b, of a name that is so long that it has to be folded", None, "", (1.5,), remark=""),
    Row("left out", 0.3, "§5", (), remark="third"),
    Row("counted", 2.0, "§5", (2.0,), exact=True),
]


def printed(rows: list[Row], width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table(rows, "Figure 2"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_fits_and_numbers_its_remarks() -> None:
    text = printed(ROWS)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split() == ["residual", "[1,2]", "0.018", "0.020", "±", "0.001", "5", "yes"]
    assert lines[4].split() == ["residual", "[2]", "1.00", "0.020", "±", "0.001", "5", "no"]
    assert lines[5].split()[-4:] == ["–", "1.50", "1", "–"]
    assert text.count("left out [3]") == 1
    assert next(line for line in lines if line.startswith("counted")).split()[1:] == [
        "2.00",
        "2.00",
        "–",
        "yes",
    ]
    for note in ("[1] first", "[2] second", "[3] third"):
        assert text.count(note) == 1
    assert "agrees: the published value" in text
    assert "agrees: the published value" not in printed([ROWS[-1]])


def test_markdown() -> None:
    text = markdown(ROWS, "Figure 2", "About it.")
    lines = text.splitlines()
    assert lines[0] == "# Figure 2"
    assert "About it." in lines
    cells = [line for line in lines if line.startswith("|")]
    assert cells[2] == "| residual [1,2] | 0.018 | 0.020 ± 0.001 | 5 | yes | Figure 2 |"
    assert cells[4].startswith(r"| a \| b, of")
    assert len({line.replace(r"\|", "").count("|") for line in cells}) == 1
    assert RULE[1:] in text
    assert "[2] second" in lines


def test_the_frame_has_every_number() -> None:
    records = frame(ROWS).to_dict("records")
    assert [record["agrees"] for record in records] == ["yes", "no", "", "", "yes"]
    assert [record["seeds"] for record in records] == [5, 5, 1, 0, 0]
    assert tuple(map(float, records[0]["ours"].split())) == FIVE
    assert records[0]["remark"] == "first; second"
    assert math.isnan(records[2]["published"])
    first, *_ = csv.DictReader(io.StringIO(frame(ROWS).to_csv(index=False)))
    assert float(first["mean"]) == judge(ROWS[0]).mean
