"""The `rankcollapse` command: its subcommands and `--version`.

Only typer is imported here, and the rest of the package inside the subcommands, so that `--help`
and `--version` answer without waiting for PyTorch.
"""

import signal
import sys
from typing import Annotated

import typer

from rankcollapse.cli.certify import certify
from rankcollapse.cli.decompose import decompose
from rankcollapse.cli.failures import INTERRUPTED, TERMINATED
from rankcollapse.cli.families import families
from rankcollapse.cli.inspect import inspect
from rankcollapse.cli.paths import paths
from rankcollapse.cli.reproduce import reproduce

app = typer.Typer(
    name="rankcollapse",
    help="Measure how fast a transformer's tokens become the same vector, and what prevents it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    # The commands turn failures into one line each; --debug shows the plain traceback.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(inspect)
app.command()(decompose)
app.command()(certify)
app.command()(reproduce)
app.command()(families)
app.add_typer(paths)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rankcollapse {version('rankcollapse')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line and exits with its code: 0, 1 (our failure), 2 (bad input) or 130.

    A request to end (SIGTERM, as schedulers send it) clears up like Ctrl-C, with code 143.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
