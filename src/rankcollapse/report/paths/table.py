"""The table of path counts for a terminal and the page: a row per architecture."""

import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from rankcollapse.report.numbers import number, power
from rankcollapse.report.paths.summary import Summary, summarize, with_skips

HEADINGS = ("layers", "heads", "paths", "mean\nlength", "std", "mode", "share of\nlongest")


def table(dataset: xr.Dataset) -> Table:
    """Return the table that fits a terminal of 80 columns.

    Args:
        dataset: what `rankcollapse.paths.length_distributions` returns.
    """
    rows = summarize(dataset)
    skips = "with" if with_skips(dataset) else "without"
    drawn = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=Text(f"Paths and their lengths, {skips} skip connections", style="bold"),
        title_justify="left",
        caption_justify="left",
    )
    drawn.add_column("architecture", overflow="fold")
    for heading in HEADINGS:
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        drawn.add_row(Text(row.name), *cells(row))
    drawn.caption = Text("\n".join(notes(rows)), style="dim") if notes(rows) else None
    return drawn


def cells(row: Summary) -> list[str]:
    """Return the numbers of one architecture in the order of `HEADINGS`."""
    return [
        str(row.layers),
        str(row.heads),
        power(row.log10_paths),
        f"{row.mean:.2f}",
        f"{row.std:.2f}",
        ", ".join(map(str, row.modes)),
        number(row.longest_share),
    ]


def notes(rows: list[Summary]) -> list[str]:
    """Return what is counted of architectures of which that must be said, one line for each."""
    return [f"{row.name}: {row.note}" for row in rows if row.note]
