"""The options that subcommands share, each declared once: its type, its help and its panel."""

from pathlib import Path
from typing import Annotated, Literal

import typer

_TEXT = "The text"
_MODEL = "The model"
_MEASURE = "The measurement"
_OUTPUT = "The output"

Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A folder with a model, or the id of one on the hub."),
]

Text = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        help="The documents: a .txt with one a line, a .jsonl, a .parquet, or - for standard "
        "input. By default 32 short biographies that come along.",
        rich_help_panel=_TEXT,
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of a .jsonl or .parquet: by default text, or input_ids (token ids, for "
        "a model without a tokenizer).",
        rich_help_panel=_TEXT,
    ),
]
Samples = Annotated[int, typer.Option(min=1, help="Documents at most.", rich_help_panel=_TEXT)]
Tokens = Annotated[
    int,
    typer.Option(
        min=2, help="Tokens at most; the rest of a document is left out.", rich_help_panel=_TEXT
    ),
]
Truncate = Annotated[
    bool,
    typer.Option(
        "--truncate",
        help="Cut documents that are longer than the model's positions, instead of refusing them.",
        rich_help_panel=_TEXT,
    ),
]

Init = Annotated[
    Literal["pretrained", "random"],
    typer.Option(
        help="The checkpoint's weights, or new ones as Hugging Face initialises them.",
        rich_help_panel=_MODEL,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, help="The seed of --init random.", show_default="0", rich_help_panel=_MODEL
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(
        metavar="REV", help="Branch, tag or commit of a model on the hub.", rich_help_panel=_MODEL
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where to take the tokenizer from, if not MODEL.",
        rich_help_panel=_MODEL,
    ),
]
Dtype = Annotated[
    Literal["float32", "float64"] | None,
    typer.Option(help="The precision of the pass.", rich_help_panel=_MODEL),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Where to run: cpu, cuda, mps.", rich_help_panel=_MODEL),
]

Variants = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help="What to compare: named variants, or what is off, as in -mlp_skip.",
        rich_help_panel=_MEASURE,
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Switch parts off as the paper's code did, where that departs from its text.",
        rich_help_panel=_MEASURE,
    ),
]
Metrics = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help="Groups of metrics; attention (per head) can be added.",
        show_default="residual,similarity, spectrum,magnitude",
        rich_help_panel=_MEASURE,
    ),
]
LeaveOut = Annotated[
    Literal["special", "first"] | None,
    typer.Option(
        help="Leave special tokens, or the first token, out of the metrics.",
        rich_help_panel=_MEASURE,
    ),
]
Arithmetic = Annotated[
    Literal["dense", "centered"],
    typer.Option(
        help="Plain floating point (dense), or float64 with the residual carried apart, which "
        "follows the collapse far below rounding (centered).",
        rich_help_panel=_MEASURE,
    ),
]

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write report.html, the data and the charts there.",
        rich_help_panel=_OUTPUT,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace what --out already holds.", rich_help_panel=_OUTPUT),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON document instead of tables.", rich_help_panel=_OUTPUT
    ),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug", help="Show tracebacks and the libraries' warnings.", rich_help_panel=_OUTPUT
    ),
]
