"""`rankcollapse decompose`: which path lengths, sources and heads a model's output comes from.

Everything that can be wrong in what was typed is found before the model is loaded.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcollapse.cli import options
from rankcollapse.cli.checks import check_overwrite, check_seed
from rankcollapse.cli.failures import failures_as_lines
from rankcollapse.cli.inspect import read_text
from rankcollapse.cli.target import Target

if TYPE_CHECKING:
    import xarray as xr

    from rankcollapse.inputs.documents import Documents


def decompose(
    model: options.Model,
    text: options.Text = None,
    column: options.Column = None,
    samples: options.Samples = 32,
    tokens: options.Tokens = 128,
    truncate: options.Truncate = False,
    init: options.Init = "pretrained",
    seed: options.Seed = None,
    revision: options.Revision = None,
    tokenizer: options.Tokenizer = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What to decompose: a named variant, or what is off, as in -mlp_skip.",
            rich_help_panel="The decomposition",
        ),
    ] = "transformer",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN[@POSITION]",
            help="Also split a token's logit (its embedding times the output), by length and by "
            "head: a token as text or as an id like #1234; at position -1, the last, unless given.",
            rich_help_panel="The decomposition",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write decomposition.html, the data and the charts there.",
            rich_help_panel="The output",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Split the output into paths: by length, by source and, for a target, by head.

    [bold]Examples[/bold]

    rankcollapse decompose bert-base-uncased --out paths

    rankcollapse decompose gpt2 --target " the" --text notes.txt

    rankcollapse decompose ./my-model --target "#1012@-2" --variant san+skip --json
    """
    with failures_as_lines(debug):
        check_seed(seed, init)
        check_overwrite(overwrite, out)
        aim = None if target is None else Target.parse(target)
        documents = read_text(text, column, samples)

        from rankcollapse.report import decomposition as report
        from rankcollapse.report.files import check_writable
        from rankcollapse.transformer import Variant

        Variant.parse(variant)
        if out is not None:
            check_writable(out, overwrite, report.NAMES)
        loaded = {
            "init": init,
            "seed": seed or 0,
            "dtype": dtype,
            "device": device,
            "revision": revision,
            "tokenizer": tokenizer,
        }
        split = {"variant": variant, "tokens": tokens, "truncate": truncate}
        dataset = _decompose(model, documents, aim, loaded, split, debug)
        if as_json:
            print(report.json_document(dataset))
        else:
            _print(dataset, tokens)
        if out is not None:
            report.write(dataset, out, overwrite)
            if not as_json:
                print(f"\nThe page is {out / 'decomposition.html'}; data and charts lie beside it.")


def _decompose(
    model: str,
    documents: "Documents",
    target: Target | None,
    loaded: dict[str, Any],
    split: dict[str, Any],
    debug: bool,
) -> "xr.Dataset":
    import rankcollapse
    from rankcollapse.cli.progress import announce, progress_bar
    from rankcollapse.cli.quiet import quiet_libraries
    from rankcollapse.paths.decompose import token_target
    from rankcollapse.report.decomposition import name_target

    with quiet_libraries(debug):
        announce(f"loading {model}")
        transformer = rankcollapse.load(model, **loaded)
        found = None if target is None else target.resolve(transformer)
        if found is not None:
            split["target"] = lambda length: token_target(
                transformer, found["id"], found["position"], length
            )
        with progress_bar("decomposing") as progress:
            dataset = rankcollapse.decompose(transformer, documents, progress=progress, **split)
        return dataset if found is None else name_target(dataset, found)


def _print(dataset: "xr.Dataset", tokens: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from rankcollapse.cli.results import headline
    from rankcollapse.report import decomposition as report
    from rankcollapse.report.metadata import metadata

    console = Console(highlight=False)
    run = metadata(dataset)
    console.print(Text(f"{headline(run, tokens)}; variant {report.variant_name(dataset)}"))
    tables = [report.table(dataset)]
    if "projection" in dataset:
        tables += [report.table(dataset, "projection"), report.heads_table(dataset)]
    for table in tables:
        console.print()
        console.print(table)
    console.print()
    for sentence in report.findings(dataset):
        console.print(Text(sentence))
