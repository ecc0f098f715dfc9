"""`inspect`: every variant of a model on some text, measured at every layer in one pass."""

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Inputs, batches, prepare
from rankcollapse.inspection.dataset import assemble
from rankcollapse.inspection.quantities import DEFAULT_GROUPS, GROUPS
from rankcollapse.inspection.run import Progress, beside_centered, run, tokens_per_batch
from rankcollapse.streams import Centered, Dense
from rankcollapse.transformer import Arithmetic, Transformer, parse_variants

ARITHMETICS = ("dense", "centered")
LEAVE_OUT = ("special", "first")


def inspect(
    model: Any,
    inputs: Inputs,
    variants: str | Sequence[str] = ("san", "san+mlp", "san+skip", "transformer"),
    arithmetic: str = "dense",
    as_published: bool = False,
    *,
    metrics: str | Sequence[str] = DEFAULT_GROUPS,
    leave_out: str | None = None,
    tokens: int | None = None,
    truncate: bool = False,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Measures how far the tokens are from one vector, at every layer, with parts switched off.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`, as Hugging Face
            tokenizers return it.
        variants: Names such as "san", "transformer", "-mlp_skip" (docs/variants.md).
        arithmetic: "dense" is the floating point of the model's dtype. "centered" carries shared
            row, residual and scale apart in float64 and follows the residual to 10^-1000 and
            beyond (docs/theory.md §6); the residual of the same pass in plain float64 comes along.
        as_published: Whether "san", "san+mlp" and so on mean the surgery of the paper's own code.
        metrics: Groups among "residual" (which always comes), "similarity", "spectrum",
            "magnitude" and "attention" (entropy and |λ₂| per head; one eigenvalue problem per head
            and sample).
        leave_out: "special" or "first": tokens that take part in the pass but not in the metrics.
        tokens: Use at most so many tokens of each text, from its beginning.
        truncate: Cut texts that are longer than the model's positions, which is an error otherwise.
        progress: Called with (work done, work in all).

    Returns:
        A Dataset over (`variant`, `sample`, `layer`), every variable with its definition in its
        attributes. `layer` 0 is the state that enters the first block and `layer` l the output of
        block l. The state after a final norm has variables of its own, named
        "…_after_final_norm", over (`variant`, `sample`). Padding never counts, all metrics are
        float64, and `at_floor` marks residuals that are rounding (docs/metrics.md).

    Raises:
        RankCollapseError: Bad input, in one sentence; before the pass starts.

    Example:
        >>> from transformers import BertConfig
        >>> config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        ...                     intermediate_size=64, vocab_size=99)
        >>> model = load(config, init="random", dtype="float64")
        >>> results = inspect(model, {"input_ids": [[1, 5, 7, 2], [1, 8, 2]]}, ["san"])
        >>> results.relative_residual.dims
        ('variant', 'sample', 'layer')
    """
    chosen = parse_variants(variants if isinstance(variants, str) else tuple(variants))
    groups = metrics.split(",") if isinstance(metrics, str) else metrics
    groups = one_of("metrics", tuple(groups), GROUPS)
    if leave_out is not None:
        one_of("leave_out", (leave_out,), LEAVE_OUT)
    one_of("arithmetic", (arithmetic,), ARITHMETICS)
    if not isinstance(model, Transformer):
        model = load(model)
    if as_published:
        chosen = tuple(variant.as_published(model.family) for variant in chosen)
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    if arithmetic == "centered":
        model = model.to(torch.float64)
    parts = batches(samples, tokens_per_batch(model), leave_out, model.device)
    if arithmetic == "centered":
        numbers: Arithmetic[Any] = Centered()
        dense, centered = _halves(progress)
        beside = run(model, chosen, parts, Dense(model.dtype), ("residual",), dense)
        results, at_floor = run(model, chosen, parts, numbers, groups, centered)
        results |= beside_centered(model.architecture.layers, *beside, results)
    else:
        numbers = Dense(model.dtype)
        results, at_floor = run(model, chosen, parts, numbers, groups, progress)
    details = {
        "arithmetic": arithmetic,
        "floor": numbers.floor,
        "as_published": as_published,
        "leave_out": leave_out,
    }
    return assemble(model, chosen, samples, results, at_floor, details)


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """One bar for two passes, of which the second takes about three quarters."""
    if progress is None:
        return None, None
    return (
        lambda done, total: progress(done / total, 4.0),
        lambda done, total: progress(1 + 3 * done / total, 4.0),
    )


def one_of(option: str, given: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Returns `given`, or raises `OptionError` for the first that is not among `known`."""
    for name in given:
        if name not in known:
            raise OptionError(f"{option} {name!r} does not exist: use {', '.join(known)}.")
    return given
