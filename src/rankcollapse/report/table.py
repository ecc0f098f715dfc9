"""The table for a terminal: a row per layer, a column per variant, mean ± std over samples."""

import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from rankcollapse.report.curves import cell
from rankcollapse.report.summary import FINAL_NORM, is_marked, summarize

COLUMNS = 4
WIDTH = 80
GAP = 3
HEADING = 18
STAR = "*"


def table(dataset: xr.Dataset, variable: str = "relative_residual") -> list[Table]:
    """Return tables of one variable that each fit a terminal of 80 columns.

    A cell is "mean ± std" (ddof = 1) over the samples, or `10^(mean±std)` of the log10 for ratios
    below 1e-300. A star marks cells in which at least half of the samples are at the rounding
    floor of their arithmetic.

    Args:
        dataset: what `rankcollapse.inspect` returns.
        variable: a variable over variant, sample and layer.

    Returns:
        At most four variants a table, in the data set's order.

    Raises:
        OptionError: the data set lacks the variable.
    """
    summary = summarize(dataset, variable)
    variants = list(dict.fromkeys(summary["variant"]))
    layers = list(dict.fromkeys(summary["layer"]))
    cells = {(row["variant"], row["layer"]): row for row in summary.to_dict("records")}
    starred = any(is_marked(row) for row in cells.values())
    texts = {where: _text(row, starred) for where, row in cells.items()}
    widths = {
        variant: max(min(len(variant), HEADING), *(len(texts[variant, layer]) for layer in layers))
        for variant in variants
    }
    groups = _groups(widths)
    name = str(dataset[variable].attrs.get("long_name", variable.replace("_", " ")))
    over = dataset.sizes["sample"]
    tables = [_part(name, {v: widths[v] for v in g}, layers, texts, over) for g in groups]
    caption = _caption(list(cells.values()))
    tables[-1].caption = Text(caption, style="dim") if caption else None
    return tables


def _groups(widths: dict[str, int]) -> list[list[str]]:
    """Share the variants out among as few tables as fit, of about equal length."""
    variants = list(widths)
    for size in range(min(COLUMNS, len(variants)), 1, -1):
        count = -(-len(variants) // size)
        each = -(-len(variants) // count)
        groups = [variants[n : n + each] for n in range(0, len(variants), each)]
        if all(sum(widths[v] + GAP for v in group) + len("layer") <= WIDTH for group in groups):
            return groups
    return [[variant] for variant in variants]


def _part(name: str, widths: dict[str, int], layers: list[str], texts: dict, samples: int) -> Table:
    over = f"mean ± std over {samples} samples" if samples > 1 else "one sample"
    part = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title=Text(f"{name[:1].upper()}{name[1:]}, {over}", style="bold"),
        title_justify="left",
        caption_justify="left",
    )
    part.add_column("layer", justify="right", no_wrap=False)
    for variant, width in widths.items():
        part.add_column(Text(variant), justify="right", overflow="fold", width=width)
    for layer in layers:
        if layer == FINAL_NORM:
            part.add_section()
        label = "after\nfinal\nnorm" if layer == FINAL_NORM else layer
        part.add_row(label, *(texts[variant, layer] for variant in widths))
    return part


def _text(row: dict, starred: bool) -> Text:
    """Return a cell; where any has a star, the others get a blank in its place."""
    marked = is_marked(row)
    star = (STAR if marked else " ") if starred else ""
    return Text(cell(row) + star, style="dim" if marked else "", end="")


def _caption(rows: list[dict]) -> str:
    lines = []
    if any(is_marked(row) for row in rows):
        lines.append(
            f"{STAR} rounding: at the floor of its arithmetic, here or at an earlier layer, in at "
            "least half of the samples"
        )
    if any(row["as_log10"] and row["samples"] > 1 for row in rows):
        lines.append("10^(a±b): mean and std of log10, for ratios below 1e-300")
    return "\n".join(lines)
