"""`rankcollapse paths count`: how many paths of each length models have, from configurations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankcollapse.cli import options
from rankcollapse.cli.checks import check_overwrite
from rankcollapse.cli.failures import failures_as_lines

if TYPE_CHECKING:
    import xarray as xr

    from rankcollapse.paths import Stack

paths = typer.Typer(name="paths", help="Paths through attention heads.", no_args_is_help=True)


# With one command typer would drop its name; a callback keeps `paths count`.
@paths.callback()
def _root() -> None:
    pass


@paths.command()
def count(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="Folders with config.json, such files, ids on the hub, or names of Figure 5 like "
            "GPT-3. By default the nine architectures of Figure 5.",
        ),
    ] = None,
    skips: Annotated[
        bool,
        typer.Option(" /--no-skips", help="Count without skip connections.", show_default=False),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write paths.html, the data and the chart there.",
            rich_help_panel="The output",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Count the paths of each length, exactly. Only configurations are read, never weights.

    [bold]Examples[/bold]

    rankcollapse paths count

    rankcollapse paths count bert-base-uncased ./my-model GPT-3 --out lengths
    """
    with failures_as_lines(debug):
        check_overwrite(overwrite, out)

        from rankcollapse.paths import FIGURE_5, length_distributions
        from rankcollapse.report import paths as report
        from rankcollapse.report.files import check_writable

        if out is not None:
            check_writable(out, overwrite, report.NAMES)
        stacks = _read(models, debug) if models else list(FIGURE_5)
        dataset = length_distributions(stacks, skips)
        if as_json:
            print(_document(dataset))
        else:
            from rich.console import Console

            Console(highlight=False).print(report.table(dataset))
        if out is not None:
            report.write(dataset, out, overwrite)
            if not as_json:
                print(f"\nThe page is {out / 'paths.html'}; data and chart lie beside it.")


def _read(models: list[str], debug: bool) -> "list[Stack]":
    """The stacks of the models, each once; folders of the same name get what was typed."""
    from dataclasses import replace

    from rankcollapse.cli.quiet import quiet_libraries
    from rankcollapse.paths import read_stack

    with quiet_libraries(debug):
        stacks = {model: read_stack(model) for model in dict.fromkeys(models)}
    names = [stack.name for stack in stacks.values()]
    return [
        replace(stack, name=model) if names.count(stack.name) > 1 else stack
        for model, stack in stacks.items()
    ]


def _document(dataset: "xr.Dataset") -> str:
    """Returns an object with `skips` and `architectures`, of each its numbers by length.

    A logarithm of zero, of which JSON knows none, is null.
    """
    import json
    import math

    from rankcollapse.report.paths.summary import summarize, with_skips

    architectures = []
    for row in summarize(dataset):
        one = dataset.sel(architecture=row.name, length=slice(0, row.layers))
        logarithms = {
            name: [value if math.isfinite(value) else None for value in one[name].values.tolist()]
            for name in ("log10_count", "log10_share")
        }
        architectures.append(
            {
                "name": row.name,
                "layers": row.layers,
                "heads": row.heads,
                "note": row.note,
                "log10_paths": row.log10_paths,
                "mean_length": row.mean,
                "std_length": row.std,
                "mode": list(row.modes),
                "share": one["share"].values.tolist(),
                **logarithms,
            }
        )
    document = {"skips": with_skips(dataset), "architectures": architectures}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
