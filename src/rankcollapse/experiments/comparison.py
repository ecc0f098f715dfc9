"""Ours beside the paper's: one row per published number, with whether the two agree.

The published value is one more run of the same experiment. It agrees with ours if it lies in the
interval that one more of our seeds would fall into with 95 % probability: mean ± t s √(1 + 1/n) for
n seeds of standard deviation s, t the 97.5 % point of Student's distribution with n - 1 degrees of
freedom; widened by how far the published value may be off by its own rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text
from scipy import stats

from rankcollapse.experiments.experiment import Row
from rankcollapse.report.numbers import MISSING, mean_and_std, number

PROBABILITY = 0.95
HEADINGS = ("quantity", "published", "ours", "seeds", "agrees")
RULE = (
    "agrees: the published value lies where one more of our seeds would, with 95 % probability "
    "(mean ± t·s·√(1 + 1/n), widened by the rounding of what is published)"
)


@dataclass(frozen=True)
class Verdict:
    """What our seeds say of a published value.

    Attributes:
        mean: Mean over seeds; NaN where a seed has no number.
        std: Standard deviation over seeds (ddof = 1); NaN for one.
        low: Lower end of the interval that the published value has to lie in.
        high: Its upper end; both are NaN where there is no interval.
        agrees: None where nothing is published or one seed cannot tell.
    """

    mean: float
    std: float
    low: float
    high: float
    agrees: bool | None


def judge(row: Row) -> Verdict:
    """Returns whether a row's published value agrees with ours."""
    ours = np.asarray(row.ours, dtype=np.float64)
    n = len(ours)
    mean = float(ours.mean()) if n else math.nan
    std = float(ours.std(ddof=1)) if n > 1 else math.nan
    if row.exact:
        margin = row.resolution
    elif n > 1:
        quantile = float(stats.t.ppf((1 + PROBABILITY) / 2, n - 1))
        margin = quantile * std * math.sqrt(1 + 1 / n) + row.resolution
    else:
        margin = math.nan
    low, high = mean - margin, mean + margin
    if row.published is None or math.isnan(low):
        return Verdict(mean, std, low, high, None)
    return Verdict(mean, std, low, high, low <= row.published <= high)


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the comparison as a table of plain values, every seed's own among them."""
    records = []
    for row in rows:
        verdict = judge(row)
        records.append(
            {
                "quantity": row.quantity,
                "published": row.published,
                "source": row.source,
                "mean": verdict.mean,
                "std": verdict.std,
                "seeds": _seeds(row),
                "low": verdict.low,
                "high": verdict.high,
                "agrees": _agrees(verdict, ""),
                "remark": "; ".join(row.remark.splitlines()),
                "ours": " ".join(repr(float(value)) for value in row.ours),
            }
        )
    return pd.DataFrame(records)


def table(rows: Sequence[Row], title: str) -> Table:
    """Return the comparison for a terminal of 80 columns; remarks stand below, by number."""
    drawn = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=Text(title, style="bold"),
        title_justify="left",
        caption_justify="left",
    )
    drawn.add_column(HEADINGS[0], overflow="fold")
    for heading in HEADINGS[1:]:
        drawn.add_column(heading, justify="right", no_wrap=True)
    remarks = _remarks(rows)
    for row in rows:
        quantity, *cells, agrees = _cells(row, remarks)
        style = {"yes": "green", "no": "bold red"}.get(agrees, "dim")
        drawn.add_row(Text(quantity), *cells, Text(agrees, style=style))
    notes = [] if all(row.exact for row in rows) else [RULE]
    notes += [f"[{n}] {remark}" for remark, n in remarks.items()]
    drawn.caption = Text("\n".join(notes), style="dim") if notes else None
    return drawn


def markdown(rows: Sequence[Row], title: str, about: str) -> str:
    """Return the comparison as a Markdown document, with where each published value is from."""
    remarks = _remarks(rows)
    headings = (*HEADINGS, "published in")
    lines = [f"# {title}", "", about, "", _line(headings), _line(["---"] * len(headings))]
    lines += [_line((*_cells(row, remarks), row.source or MISSING)) for row in rows]
    if not all(row.exact for row in rows):
        lines += ["", f"{RULE[:1].upper()}{RULE[1:]}."]
    for remark, n in remarks.items():
        lines += ["", f"[{n}] {remark}"]
    return "\n".join(lines) + "\n"


def _cells(row: Row, remarks: dict[str, int]) -> list[str]:
    """Returns the cells of a row in the order of `HEADINGS`."""
    verdict = judge(row)
    own = sorted(remarks[remark] for remark in row.remark.splitlines())
    mark = f" [{','.join(map(str, own))}]" if own else ""
    published = MISSING if row.published is None else number(row.published)
    ours = mean_and_std(verdict.mean, verdict.std)
    seeds = MISSING if row.exact else str(_seeds(row))
    return [row.quantity + mark, published, ours, seeds, _agrees(verdict, MISSING)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _seeds(row: Row) -> int:
    return 0 if row.exact else len(row.ours)


def _agrees(verdict: Verdict, unknown: str) -> str:
    return unknown if verdict.agrees is None else ("yes" if verdict.agrees else "no")


def _remarks(rows: Sequence[Row]) -> dict[str, int]:
    """Returns the different remarks, numbered in the order in which they come."""
    different = dict.fromkeys(remark for row in rows for remark in row.remark.splitlines())
    return {remark: n for n, remark in enumerate(different, start=1)}
