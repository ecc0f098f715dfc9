"""One pass of `inspect`: sweeps all variants through the blocks and measures every state it meets.

Memory: the current states, one block, and the results; nothing grows with depth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from rankcollapse.inputs.tokens import Batch
from rankcollapse.inspection.quantities import ATTENTION, QUANTITIES, measure
from rankcollapse.metrics import attention_entropy, local_order, second_eigenvalue
from rankcollapse.streams import Centered
from rankcollapse.transformer import (
    Arithmetic,
    Layout,
    Transformer,
    Variant,
    Visit,
    attention_input,
    sweep,
)
from rankcollapse.transformer.attention import attention_rows

EIGENVALUE_TOKENS = 512
"""Longest first sample for which |λ₂| comes unasked: eigenvalues take O(n³) per head."""
Progress = Callable[[float, float], None]


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
def run(
    model: Transformer,
    variants: Sequence[Variant],
    parts: Sequence[Batch],
    arithmetic: Arithmetic[Any],
    groups: tuple[str, ...],
    progress: Progress | None,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Fills one array per quantity; the slot behind the last layer is for the final norm.

    Args:
        model: The model, in the dtype that the pass runs in.
        variants: What to run.
        parts: All samples, in batches.
        arithmetic: The number system.
        groups: Which quantities to measure; the residual always is.
        progress: Called after each state.

    Returns:
        The arrays by name, and which relative residuals are at the arithmetic's rounding floor.
    """
    a = model.architecture
    count = sum(len(batch.samples) for batch in parts)
    slots = a.layers + 1 + (model.final_norm is not None)
    shape = (len(variants), count, slots)
    wanted = [q for q in QUANTITIES if q.group in (*groups, "residual")]
    results = {q.name: np.full(shape, np.nan) for q in wanted}
    if "attention" in groups:
        results |= {q.name: np.full((*shape[:2], a.layers + 1, a.heads), np.nan) for q in ATTENTION}
    positional = (
        isinstance(arithmetic, Centered)
        and model.blocks[0].attention.positional
        and all(b.ids.shape[1] <= EIGENVALUE_TOKENS for b in parts if 0 in b.samples)
    )
    if positional:
        results["positional_lambda2"] = np.full((len(variants), a.layers + 1, a.heads), np.nan)
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
        if arithmetic.floor:
            at_floor[where] = results["relative_residual"][where] <= arithmetic.floor
        if "attention" in groups and visit.block is not None:
            for name, values in _attention(visit, variants, batch, arithmetic).items():
                results[name][where] = values
        collapsing = "attention_skip" not in variants[visit.variant]
        if positional and collapsing and visit.block is not None and 0 in batch.samples:
            values = _between_equal_tokens(visit, variants, batch, arithmetic)
            results["positional_lambda2"][visit.variant, slot] = values
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


def _between_equal_tokens(
    visit: Visit[Any], variants: Sequence[Variant], batch: Batch, arithmetic: Arithmetic[Any]
) -> np.ndarray:
    """|λ₂| per head of P where every token is the first sample's mean token."""
    assert visit.block is not None
    first = slice(batch.samples.index(0), batch.samples.index(0) + 1)
    x = attention_input(visit.entered, visit.block, variants[visit.variant], arithmetic)
    x = arithmetic.plain(x)[first]
    x = x.mean(1, keepdim=True).expand_as(x)
    layout = batch.layout
    types = None if layout.types is None else layout.types[first]
    rows = attention_rows(x, visit.block.attention, Layout(layout.positions, types))
    return second_eigenvalue(torch.cat([p for _, p in rows], dim=2))[0].cpu().numpy()


def beside_centered(
    layers: int, dense: dict[str, np.ndarray], at_floor: np.ndarray, centered: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """What stands beside a `Centered` run: the plain run where it resolves, and the local order.

    The order is that of the `layers` blocks: a final norm is no step of theirs.
    """
    plain = np.where(at_floor, np.nan, dense["log10_relative_residual"])
    order = local_order(centered["log10_relative_residual"][:, :, : layers + 1])
    return {"dense_log10_relative_residual": plain, "local_order": order}
