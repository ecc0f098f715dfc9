"""`inspect`: every variant of a model on some text, measured at every layer in one pass."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Batch, Inputs, batches, prepare
from rankcollapse.inspection.dataset import assemble
from rankcollapse.inspection.quantities import (
    ATTENTION,
    DEFAULT_GROUPS,
    GROUPS,
    QUANTITIES,
    measure,
)
from rankcollapse.metrics import attention_entropy, second_eigenvalue
from rankcollapse.streams import Dense
from rankcollapse.transformer import (
    Arithmetic,
    Transformer,
    Variant,
    Visit,
    attention_input,
    parse_variants,
    sweep,
)
from rankcollapse.transformer.attention import attention_rows

ARITHMETICS: dict[str, Callable[[torch.dtype], Any]] = {"dense": Dense}
LEAVE_OUT = ("special", "first")
Progress = Callable[[float, float], None]


def inspect(
    model: Any,
    inputs: Inputs,
    variants: str | Sequence[str] = ("san", "san+mlp", "san+skip", "transformer"),
    arithmetic: str = "dense",
    as_published: bool = False,
    *,
    metrics: Sequence[str] = DEFAULT_GROUPS,
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
        arithmetic: "dense": the floating point of the model's dtype.
        as_published: Whether "san", "san+mlp" and so on mean the surgery of the paper's own code.
        metrics: Groups among "residual", "similarity", "spectrum", "magnitude" and "attention"
            (entropy and |λ₂| per head; one eigenvalue problem per head and sample).
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
    groups = _one_of("metrics", tuple(metrics), GROUPS)
    if leave_out is not None:
        _one_of("leave_out", (leave_out,), LEAVE_OUT)
    _one_of("arithmetic", (arithmetic,), tuple(ARITHMETICS))
    if not isinstance(model, Transformer):
        model = load(model)
    if as_published:
        chosen = tuple(variant.as_published(model.family) for variant in chosen)
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    parts = batches(samples, tokens_per_batch(model), leave_out, model.device)
    numbers = ARITHMETICS[arithmetic](model.dtype)
    results, at_floor = _run(model, chosen, parts, numbers, groups, len(samples), progress)
    details = {
        "arithmetic": arithmetic,
        "floor": numbers.floor,
        "as_published": as_published,
        "leave_out": leave_out,
    }
    return assemble(model, chosen, samples, results, at_floor, details)


def tokens_per_batch(model: Transformer) -> int:
    """How many tokens go through a block at a time.

    On a CPU so few that the widest activation stays near the cache, which also keeps what is alive
    beside the streams small; on a GPU as many as a quarter of its free memory holds.
    """
    if model.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(model.device)
        per_token = 16 * model.architecture.width * model.dtype.itemsize
        return max(1024, free // 4 // per_token)
    return 512


@torch.inference_mode()
def _run(
    model: Transformer,
    variants: Sequence[Variant],
    parts: Sequence[Batch],
    arithmetic: Arithmetic[Any],
    groups: tuple[str, ...],
    count: int,
    progress: Progress | None,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Fills one array per quantity; the slot behind the last layer is for the final norm."""
    a = model.architecture
    slots = a.layers + 1 + (model.final_norm is not None)
    shape = (len(variants), count, slots)
    wanted = [q for q in QUANTITIES if q.group in (*groups, "residual")]
    results = {q.name: np.full(shape, np.nan) for q in wanted}
    if "attention" in groups:
        results |= {q.name: np.full((*shape[:2], a.layers + 1, a.heads), np.nan) for q in ATTENTION}
    at_floor = np.zeros(shape, dtype=bool)
    total = len(variants) * len(parts) * slots
    visits = sweep(
        _embedded(model, parts),
        [batch.layout for batch in parts],
        model.blocks,
        model.final_norm,
        variants,
        arithmetic,
    )
    for done, visit in enumerate(visits, start=1):
        batch = parts[visit.batch]
        slot = slots - 1 if visit.layer == "final_norm" else visit.layer
        where = (visit.variant, list(batch.samples), slot)
        for name, values in measure(arithmetic.tokens(visit.state, batch.counted), groups).items():
            results[name][where] = values.cpu().numpy()
        at_floor[where] = results["relative_residual"][where] <= arithmetic.floor
        if "attention" in groups and visit.block is not None:
            for name, values in _attention(visit, variants, batch, arithmetic).items():
                results[name][where] = values
        if progress is not None:
            progress(done, total)
    # A residual that has been rounded away cannot come back: what follows is amplified rounding.
    return results, np.logical_or.accumulate(at_floor, axis=-1)


def _embedded(model: Transformer, parts: Sequence[Batch]) -> Iterator[torch.Tensor]:
    """The state that enters the first block, batch by batch; the embedding is let go at the end."""
    embedding = model.read_embedding()
    for batch in parts:
        yield embedding(batch.ids, batch.positions, batch.types)


def _attention(
    visit: Visit[Any], variants: Sequence[Variant], batch: Batch, arithmetic: Arithmetic[Any]
) -> Mapping[str, np.ndarray]:
    """Per head, for the block that was just passed."""
    assert visit.block is not None
    x = attention_input(visit.entered, visit.block, variants[visit.variant], arithmetic)
    rows = attention_rows(arithmetic.plain(x), visit.block.attention, batch.layout)
    p = torch.cat([block for _, block in rows], dim=2)
    return {
        "attention_entropy": attention_entropy(p).cpu().numpy(),
        "attention_lambda2": second_eigenvalue(p).cpu().numpy(),
    }


def _one_of(option: str, given: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in given:
        if name not in known:
            raise OptionError(f"{option} {name!r} does not exist: use {', '.join(known)}.")
    return given
