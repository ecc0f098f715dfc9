"""`decompose`: which path lengths, sources and heads an output comes from, for any model.

Cost: L(L + 1)/2 value and output products per source beside one pass (docs/theory.md §2); memory is
that of one batch of samples with its terms, whatever the number of samples.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rankcollapse.errors import InputError, OptionError
from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Batch, Inputs, batches, prepare
from rankcollapse.inspection.dataset import attach_metadata
from rankcollapse.metrics import TokenMatrix, composite_norm, frobenius_norm, relative_residual
from rankcollapse.streams import Frozen, Graded
from rankcollapse.streams.graded import SOURCES, GradedState
from rankcollapse.transformer import Arithmetic, Transformer, Variant, sweep

Target = Tensor | np.ndarray | Callable[[int], Tensor | np.ndarray]
Progress = Callable[[float, float], None]
TOKENS_PER_BATCH = 512

TERMS: dict[str, tuple[str, str, str]] = {
    "share": (
        "share of the output",
        "1",
        "⟨S, Y⟩ / ‖Y‖_F², S the sum of all paths of this source and length, Y the output; shares "
        "of a sample sum to 1, and one may be negative",
    ),
    "frobenius_norm": ("Frobenius norm", "units of the state", "‖S‖_F"),
    "composite_norm": ("composite norm", "units of the state", "‖S‖₁,∞ = √(‖S‖₁‖S‖∞)"),
    "relative_residual": (
        "relative residual",
        "1",
        "‖res(S)‖₁,∞ / ‖S‖₁,∞ about the token mean; NaN where there is no such path",
    ),
    "cosine": ("cosine with the output", "1", "⟨S, Y⟩ / (‖S‖_F ‖Y‖_F); NaN where S is zero"),
    "projection": ("projection on the target", "units of the target", "⟨S, T⟩, T the target"),
}
OUTPUT = {
    "output_norm": ("Frobenius norm of the output", "units of the state", "‖Y‖_F"),
    "error": ("rounding of the decomposition", "1", "‖Y − Σ S‖_F / ‖Y‖_F"),
}
BY_HEAD = (
    "projection of all paths through a head",
    "units of the target",
    "Σ ⟨path, T⟩ over the paths of every source that pass this head",
)


def decompose(
    model: Any,
    inputs: Inputs,
    variant: str = "transformer",
    target: Target | None = None,
    *,
    tokens: int | None = None,
    truncate: bool = False,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Splits the output into sums of paths by source and length, without listing a path.

    The output Y is the state after the final norm, or the last block's where there is none. With
    attention matrices, scales of norms and outputs of MLPs as in the real pass, Y is exactly Σ S
    over sources ("input"; "mlp", every MLP's output; "bias", those of attention and norms) and
    lengths (attention layers passed since the source). An MLP is not linear in its input, so its
    output starts new paths; a norm is linear once its scale is given (docs/theory.md §2).

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        variant: One variant, such as "transformer" or "san+skip" (docs/variants.md).
        target: What paths are projected on: a tensor that broadcasts to samples × tokens × width,
            such as one direction of the width; or, where samples differ in length, a function of
            the number of tokens that returns tokens × width for a sample of so many. Without it
            there is neither projection nor head.
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.
        progress: Called with (work done, work in all).

    Returns:
        A Dataset with share, frobenius_norm, composite_norm, relative_residual, cosine and
        projection over (`sample`, `source`, `length`), output_norm and error (the rounding of the
        sum) over `sample`, and with a target head_projection over (`sample`, `layer`, `head`): the
        total of all paths through a head. Accumulated in float64.

    Raises:
        RankCollapseError: Bad input, in one sentence.
    """
    chosen = Variant.parse(variant)
    if not isinstance(model, Transformer):
        model = load(model)
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    parts = batches(samples, TOKENS_PER_BATCH, None, model.device)
    count, a = len(samples), model.architecture
    if callable(target):  # what it refuses, it refuses before long work
        for tokens_of_one in {len(sample.ids) for sample in samples}:
            target(tokens_of_one)
    results = {
        name: np.full((count, len(SOURCES), a.layers + 1), fill)
        for name, fill in zip(TERMS, (0.0, 0.0, 0.0, np.nan, np.nan, 0.0), strict=True)
        if name != "projection" or target is not None
    }
    whole = {name: np.full(count, np.nan) for name in OUTPUT}
    by_head = np.full((count, a.layers, a.heads), np.nan)
    for done, batch in enumerate(parts, start=1):
        rows = list(batch.samples)
        aim = None if target is None else broadcast_target(target, batch, count, a.width)
        with torch.inference_mode():
            output = last_state(model, batch, chosen, Graded(model.dtype))
            _measure(output, aim, rows, results, whole)
        if aim is not None:
            by_head[rows] = head_projections(model, batch, chosen, aim)
        if progress is not None:
            progress(done, len(parts))
    dataset = xr.Dataset(
        coords={
            "sample": np.arange(count),
            "source": list(SOURCES),
            "length": np.arange(a.layers + 1),
        }
    )
    for name, values in results.items():
        dataset[name] = (("sample", "source", "length"), values, _attrs(TERMS[name]))
    for name, values in whole.items():
        dataset[name] = ("sample", values, _attrs(OUTPUT[name]))
    if target is not None:
        dataset = dataset.assign_coords(
            layer=np.arange(1, a.layers + 1), head=np.arange(1, a.heads + 1)
        )
        dataset["head_projection"] = (("sample", "layer", "head"), by_head, _attrs(BY_HEAD))
    return attach_metadata(dataset, model, (chosen,), samples, {"arithmetic": "graded"})


def last_state(
    model: Transformer, batch: Batch, variant: Variant, arithmetic: Arithmetic[Any]
) -> Any:
    """The state after everything; states on the way are let go."""
    x = model.read_embedding()(batch.ids, batch.positions, batch.types)
    visit = None
    for visit in sweep(  # noqa: B007
        [x], [batch.layout], model.blocks, model.final_norm, [variant], arithmetic
    ):
        pass
    assert visit is not None
    return visit.state


def head_projections(
    model: Transformer, batch: Batch, variant: Variant, target: Tensor
) -> np.ndarray:
    """Σ ⟨path, T⟩ over all paths through each (layer, head): one pass forward and one back.

    In the linear network of `Frozen`, ⟨∂⟨Y, T⟩/∂z, z⟩ with z a head's output before W_O is the sum
    over all paths that pass the head, since each of them is linear in z.
    """
    frozen = Frozen()
    with torch.enable_grad():
        output = last_state(model, batch, variant, frozen)
        goal = (output.double() * target).sum()
        if (
            not goal.requires_grad
        ):  # an MLP without its skip ends every path that came through a head
            return np.zeros((len(batch.samples), len(frozen.heads), frozen.heads[0].shape[1]))
        gradients = torch.autograd.grad(
            goal, frozen.heads, allow_unused=True, materialize_grads=True
        )
    totals = [
        (gradient.double() * z.detach().double()).sum((2, 3))
        for gradient, z in zip(gradients, frozen.heads, strict=True)
    ]
    return torch.stack(totals, dim=1).cpu().numpy()


def token_target(model: Transformer, token: int, position: int, length: int) -> Tensor:
    """T with ⟨Y, T⟩ = y_position · e_token: the token's logit where embeddings are tied.

    Args:
        model: The model; its token embedding has to have the model's width.
        token: Token id.
        position: Which token's output, counted from the end where negative.
        length: Number of tokens.

    Raises:
        OptionError: The id or position does not exist, or embeddings have another width.
    """
    a = model.architecture
    if not 0 <= token < a.vocabulary:
        raise OptionError(
            f"token {token} is beyond the vocabulary of {a.vocabulary}: choose one in it."
        )
    if not -length <= position < length:
        raise OptionError(f"position {position} is beyond the {length} tokens: choose one of them.")
    rows = model.read_embedding().tokens
    if rows.shape[1] != a.width:
        raise OptionError(
            f"token embeddings have {rows.shape[1]} features and states {a.width}: give a target "
            "tensor instead of a token."
        )
    result = torch.zeros(length, a.width, dtype=torch.float64)
    result[position] = rows[token].double().cpu()
    return result


def _measure(
    output: GradedState,
    target: Tensor | None,
    rows: list[int],
    results: dict[str, np.ndarray],
    whole: dict[str, np.ndarray],
) -> None:
    y = output.total.double()
    norm = frobenius_norm(y)
    rest = y.clone()
    for (source, length), term in output.terms.items():
        s = term.double()
        rest -= s
        inner, size = (s * y).sum((1, 2)), frobenius_norm(s)
        values = {
            "share": inner / norm.square(),
            "frobenius_norm": size,
            "composite_norm": composite_norm(s),
            "relative_residual": relative_residual(TokenMatrix.of(s)),
            "cosine": inner / (size * norm),
        }
        if target is not None:
            values["projection"] = (s * target).sum((1, 2))
        for name, value in values.items():
            results[name][rows, SOURCES.index(source), length] = value.cpu().numpy()
    whole["output_norm"][rows] = norm.cpu().numpy()
    whole["error"][rows] = (frobenius_norm(rest) / norm).cpu().numpy()


def broadcast_target(target: Target, batch: Batch, count: int, width: int) -> Tensor:
    """The rows of `target` for one batch, float64."""
    given = target(batch.ids.shape[1]) if callable(target) else target
    t = torch.as_tensor(given).to(batch.ids.device, torch.float64)
    rows = t[list(batch.samples)] if t.ndim == 3 and len(t) == count > 1 and given is target else t
    shape = (*batch.ids.shape, width)
    try:
        return rows.expand(shape)
    except RuntimeError:
        raise InputError(
            f"the target has shape {list(t.shape)}, which does not broadcast to samples × tokens × "
            f"width = {[count, *shape[1:]]}: give it that shape, or one direction of the width."
        ) from None


def _attrs(described: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("long_name", "units", "definition"), described, strict=True))
