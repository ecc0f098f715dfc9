"""`rankcollapse reproduce`: the paper's experiments again, and how they compare.

Everything that can be wrong in what was typed is found before anything runs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankcollapse.cli import options
from rankcollapse.cli.failures import failures_as_lines
from rankcollapse.errors import OptionError
from rankcollapse.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from rankcollapse.experiments.running.reproduction import Reproduction

WIDEST = 100


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            show_default=False,
            help=f"What to run: {', '.join(EXPERIMENTS)}, or all.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer seeds, samples and steps: shows that everything runs, and roughly how.",
            rich_help_panel="The experiments",
        ),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Seeds of each experiment.",
            show_default="each one's own",
            rich_help_panel="The experiments",
        ),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Do as the paper's code did, where that departs from its text.",
            rich_help_panel="The experiments",
        ),
    ] = False,
    pretrained: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FAMILY=MODEL",
            help="fig2: a folder or hub id with pretrained weights for the panel of bert, albert "
            "or xlnet; may be repeated.",
            show_default="the demo's model, if it is installed",
            rich_help_panel="The experiments",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="fig5: a further model, of which only config.json is read; may be repeated.",
            show_default=False,
            rich_help_panel="The experiments",
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="fig4: the text to memorize.",
            show_default=False,
            rich_help_panel="The experiments",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Each experiment's outputs go to a folder of its name in there. Finished parts "
            "are kept there, too, and used again.",
            rich_help_panel="The output",
        ),
    ] = Path("figures"),
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Parts that run at the same time.",
            show_default="number of cores",
            rich_help_panel="The output",
        ),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Run the paper's experiments again and compare with what it reports.

    A run that was stopped goes on where it was when the same command is given again.

    [bold]Examples[/bold]

    rankcollapse reproduce all --quick

    rankcollapse reproduce fig2 --pretrained bert=bert-base-cased --out figures

    rankcollapse reproduce fig2 fig3 --as-published --seeds 3 --jobs 2

    rankcollapse reproduce fig5 --model ./my-model --model gpt2
    """
    kept = f"what was finished is kept in {out}, and the same command goes on from there"
    with failures_as_lines(debug, after_ctrl_c=kept):
        panels = _panels(pretrained or [])

        import rankcollapse
        from rankcollapse.cli.bars import bars
        from rankcollapse.cli.quiet import quiet_libraries
        from rankcollapse.experiments.running.reproduction import ReproductionError

        try:
            with quiet_libraries(debug), bars() as progress:
                finished = rankcollapse.reproduce(
                    names,
                    out,
                    quick=quick,
                    seeds=seeds,
                    as_published=as_published,
                    pretrained=panels,
                    models=model or [],
                    text=text,
                    jobs=jobs,
                    progress=progress,
                    debug=debug,
                )
        except ReproductionError as error:
            _print(error.finished, out)
            raise
        _print(finished, out)


def _panels(given: list[str]) -> dict[str, str]:
    """Reads FAMILY=MODEL, each family once."""
    panels: dict[str, str] = {}
    for each in given:
        family, equals, model = each.partition("=")
        if not (family and equals and model):
            raise OptionError(
                f"--pretrained {each!r} is not FAMILY=MODEL; write it like bert=bert-base-cased."
            )
        if family in panels:
            raise OptionError(f"--pretrained names {family} twice; give each family once.")
        panels[family] = model
    return panels


def _print(finished: Mapping[str, "Reproduction"], out: Path) -> None:
    """Prints the comparisons, then what each took and where it is."""
    if not finished:
        return
    from rich.console import Console
    from rich.text import Text

    from rankcollapse.cli.bars import duration
    from rankcollapse.experiments.comparison import table

    console = Console(highlight=False)
    console.width = min(console.width, WIDEST)
    for reproduction in finished.values():
        console.print(table(reproduction.rows, reproduction.experiment.title))
        console.print()
    wide = max(map(len, finished))
    for name, each in finished.items():
        parts = f"{each.parts} part{'' if each.parts == 1 else 's'}"
        kept = f", {each.kept} of them from an earlier run" if each.kept else ""
        line = f"{name:<{wide}}  {duration(each.seconds)} on one core in {parts}{kept}"
        console.print(Text(f"{line}: {out / name}"), soft_wrap=True)
