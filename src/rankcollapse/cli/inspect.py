"""`rankcollapse inspect`: measure one model on some text, print tables and facts, write the page.

Everything that can be wrong in what was typed is found before the model is loaded.
"""

from typing import TYPE_CHECKING, Any

from rankcollapse.cli import options
from rankcollapse.cli.checks import check_overwrite, check_seed
from rankcollapse.cli.failures import failures_as_lines
from rankcollapse.errors import OptionError

if TYPE_CHECKING:
    import xarray as xr

    from rankcollapse.inputs.documents import Documents


def inspect(
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
    variants: options.Variants = "san,san+mlp,san+skip,transformer",
    as_published: options.AsPublished = False,
    metrics: options.Metrics = "residual,similarity,spectrum,magnitude",
    leave_out: options.LeaveOut = None,
    arithmetic: options.Arithmetic = "dense",
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Measure rank collapse through depth, with and without skip connections, MLPs and norms.

    [bold]Examples[/bold]

    rankcollapse inspect bert-base-uncased --out page

    rankcollapse inspect ./my-model --text reviews.jsonl --column body

    rankcollapse inspect gpt2 --init random --variants san,-mlp_skip

    rankcollapse inspect ./my-model --arithmetic centered --out page

    cat notes.txt | rankcollapse inspect ./my-model --text - --json
    """
    with failures_as_lines(debug):
        check_seed(seed, init)
        check_overwrite(overwrite, out)
        if arithmetic == "centered" and dtype == "float32":
            raise OptionError(
                "--arithmetic centered runs in float64, not in float32; leave --dtype out."
            )
        documents = read_text(text, column, samples)

        from rankcollapse import report
        from rankcollapse.inspection.inspect import one_of
        from rankcollapse.inspection.quantities import GROUPS
        from rankcollapse.transformer.variants import parse_variants

        if out is not None:
            report.check_writable(out, overwrite)
        measured = {
            "variants": [variant.name for variant in parse_variants(_names(variants))],
            "arithmetic": arithmetic,
            "as_published": as_published,
            "metrics": one_of("metrics", tuple(_names(metrics)), GROUPS),
            "leave_out": leave_out,
            "tokens": tokens,
            "truncate": truncate,
        }
        loaded = {
            "init": init,
            "seed": seed or 0,
            "dtype": dtype,
            "device": device,
            "revision": revision,
            "tokenizer": tokenizer,
        }
        dataset = _measure(model, documents, loaded, measured, debug)
        if as_json:
            from rankcollapse.cli.document import json_document

            print(json_document(dataset))
        else:
            from rankcollapse.cli.results import print_results

            print_results(dataset, tokens)
        if out is not None:
            report.write(dataset, out, overwrite)
            if not as_json:
                print(f"\nThe page is {out / 'report.html'}; data and charts lie beside it.")


def read_text(text: str | None, column: str | None, samples: int) -> "Documents":
    """Returns the documents of --text, or the ones that come along."""
    from rankcollapse.inputs.documents import biographies, read_documents

    if text is not None:
        return read_documents(text, column=column, limit=samples)
    if column is not None:
        raise OptionError(f"--column {column} needs a file to read it from; add --text.")
    return biographies()[:samples]


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _measure(
    model: str,
    documents: "Documents",
    loaded: dict[str, Any],
    measured: dict[str, Any],
    debug: bool,
) -> "xr.Dataset":
    import rankcollapse
    from rankcollapse.cli.progress import announce, progress_bar
    from rankcollapse.cli.quiet import quiet_libraries

    with quiet_libraries(debug):
        announce(f"loading {model}")
        transformer = rankcollapse.load(model, **loaded)
        with progress_bar("measuring") as progress:
            return rankcollapse.inspect(transformer, documents, progress=progress, **measured)
