"""`rankcollapse certify`: the theory's bounds for a model's own weights, beside the measurement.

Everything that can be wrong in what was typed is found before the model is loaded.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcollapse.cli import options
from rankcollapse.cli.checks import check_overwrite, check_seed
from rankcollapse.cli.failures import FAILED, failures_as_lines
from rankcollapse.cli.inspect import read_text

if TYPE_CHECKING:
    import xarray as xr

    from rankcollapse.inputs.documents import Documents


def certify(
    model: options.Model,
    text: options.Text = None,
    column: options.Column = None,
    samples: options.Samples = 8,
    tokens: options.Tokens = 128,
    truncate: options.Truncate = False,
    init: options.Init = "pretrained",
    seed: options.Seed = None,
    revision: options.Revision = None,
    tokenizer: options.Tokenizer = None,
    device: options.Device = None,
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What to certify: a named variant, or what is off, as in san-norm.",
            rich_help_panel="The certificate",
        ),
    ] = "san",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write certificate.html, the data and the charts there.",
            rich_help_panel="The output",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Set the theory's bounds beside the measured residual, and say which hypotheses hold.

    [bold]Examples[/bold]

    rankcollapse certify bert-base-uncased --out certificate

    rankcollapse certify ./my-model --init random --variant san-norm

    rankcollapse certify gpt2 --variant san+skip --text notes.txt --json
    """
    with failures_as_lines(debug):
        check_seed(seed, init)
        check_overwrite(overwrite, out)
        documents = read_text(text, column, samples)

        from rankcollapse.report import certificate as report
        from rankcollapse.report.files import check_writable
        from rankcollapse.transformer import Variant

        Variant.parse(variant)
        if out is not None:
            check_writable(out, overwrite, report.NAMES)
        loaded = {
            "init": init,
            "seed": seed or 0,
            "device": device,
            "revision": revision,
            "tokenizer": tokenizer,
        }
        how = {"variant": variant, "tokens": tokens, "truncate": truncate}
        dataset = _certify(model, documents, loaded, how, debug)
        if as_json:
            print(report.json_document(dataset))
            for alarm in report.alarms(dataset):
                typer.echo(alarm, err=True)
        else:
            _print(dataset, tokens)
        if out is not None:
            report.write(dataset, out, overwrite)
            if not as_json:
                print(f"\nThe page is {out / 'certificate.html'}; data and charts lie beside it.")
        if report.alarms(dataset):  # a number of ours is wrong
            raise typer.Exit(FAILED)


def _certify(
    model: str,
    documents: "Documents",
    loaded: dict[str, Any],
    how: dict[str, Any],
    debug: bool,
) -> "xr.Dataset":
    import rankcollapse
    from rankcollapse.cli.progress import announce, progress_bar
    from rankcollapse.cli.quiet import quiet_libraries

    with quiet_libraries(debug):
        announce(f"loading {model}")
        transformer = rankcollapse.load(model, **loaded)
        with progress_bar("certifying") as progress:
            return rankcollapse.certify(transformer, documents, progress=progress, **how)


def _print(dataset: "xr.Dataset", tokens: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from rankcollapse.cli.results import headline
    from rankcollapse.report import certificate as report
    from rankcollapse.report.metadata import metadata

    console = Console(highlight=False)
    run = metadata(dataset)
    console.print(Text(f"{headline(run, tokens)}; variant {report.variant_name(dataset)}"))
    for alarm in report.alarms(dataset):
        console.print()
        console.print(Text(alarm, style="bold red"))
    for table in report.tables(dataset):
        console.print()
        console.print(table)
    console.print()
    for line in report.legend(dataset, "samples"):
        console.print(Text(line, style="dim"))
    for table in report.hypotheses_tables(dataset):
        console.print()
        console.print(table)
    console.print()
    for sentence in report.findings(dataset):
        console.print(Text(sentence))
