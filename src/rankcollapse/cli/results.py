"""What `inspect` prints: what was measured, the tables, and sentences on facts and rates."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from rankcollapse import report
from rankcollapse.report.metadata import metadata

if TYPE_CHECKING:
    import xarray as xr


def print_results(dataset: "xr.Dataset", tokens: int) -> None:
    """Prints the results to standard output, in 80 columns where that is no terminal.

    Args:
        dataset: what `rankcollapse.inspect` returns.
        tokens: the limit that documents were cut to.
    """
    console = Console(highlight=False)
    console.print(Text(headline(metadata(dataset), tokens)))
    for table in report.table(dataset):
        console.print()
        console.print(table)
    console.print()
    for sentence in report.findings(dataset):
        console.print(Text(sentence))
    if sentences := report.rate_sentences(dataset):
        console.print()
        console.print(Text("Rate", style="bold"))
        for sentence in sentences:
            console.print(Text(sentence))


def counted(number: int, thing: str) -> str:
    """Returns "1 head", "12 heads"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def headline(run: dict[str, Any], tokens: int) -> str:
    """Returns one line on what was measured.

    Args:
        run: the data set's metadata.
        tokens: the limit that documents were cut to; named when a document reached it.
    """
    init = f"random weights, seed {run['seed']}" if run["init"] == "random" else "pretrained"
    shortest, longest = run["tokens_min"], run["tokens_max"]
    length = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    cut = f" (at most the first {tokens} of each)" if longest == tokens else ""
    samples = counted(run["samples"], "sample")
    arithmetic = "" if run["arithmetic"] == "dense" else f" ({run['arithmetic']} arithmetic)"
    return (
        f"{run['model']} ({run['family']}, {init}): {counted(run['layers'], 'layer')}, "
        f"{counted(run['heads'], 'head')}, "
        f"width {run['width']}; {samples} × {length} tokens{cut}; "
        f"{run['dtype']}{arithmetic} on {run['device']}"
    )
