"""`enumerate_paths`: every term of the decomposition, where there are few enough to list.

Cost: one head's products per edge of the tree of paths, each edge once; memory is that of the
result and of a few batches of terms.
"""

import operator
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from rankcollapse.errors import OptionError
from rankcollapse.inputs.tokens import Inputs
from rankcollapse.inspection.dataset import attach_metadata
from rankcollapse.metrics import TokenMatrix, frobenius_norm, relative_residual
from rankcollapse.paths.decompose import Target, broadcast_target
from rankcollapse.paths.frozen_network import freeze, one_by_one
from rankcollapse.transformer import Variant

PATH: dict[str, tuple[str, str, str]] = {
    "source": ("source", "1", "where the path begins: input, mlp or bias"),
    "part": (
        "part that the path begins at",
        "1",
        "input, mlp, or whose bias it is: attention, attention_norm, mlp_norm, final_norm",
    ),
    "start": ("blocks before the path", "1", "number of blocks passed when the path begins"),
    "length": ("path length", "1", "number of heads on the path"),
    "heads": (
        "head at each layer",
        "1",
        "0 for the skip connection, h = 1..H for a head, -1 at layers before the path begins",
    ),
}
MEASURES: dict[str, tuple[str, str, str]] = {
    "frobenius_norm": ("Frobenius norm", "units of the state", "‖S‖_F, S the term of the path"),
    "relative_residual": (
        "relative residual",
        "1",
        "‖res(S)‖₁,∞ / ‖S‖₁,∞ about the token mean; NaN where S is zero",
    ),
    "projection": ("projection on the target", "units of the target", "⟨S, T⟩, T the target"),
}


def enumerate_paths(
    model: Any,
    inputs: Inputs,
    variant: str = "transformer",
    target: Target | None = None,
    *,
    limit: int = 1_000_000,
    tokens: int | None = None,
    truncate: bool = False,
) -> xr.Dataset:
    """Lists all paths with their terms' norm, residual and projection; the terms sum to the output.

    A path begins at the input, at an MLP's output or at a bias and takes at each block that
    follows a head or the skip. Its term is P_path X W_path, X what it begins with, the last
    layer's P leftmost, with attention matrices and scales of norms as in the real pass. The sums
    over equal source and length are those of `decompose`.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        variant: One variant, such as "transformer" or "san+skip" (docs/variants.md).
        target: What terms are projected on: a tensor that broadcasts to samples × tokens × width.
        limit: Refuse to list more paths than this.
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.

    Returns:
        A Dataset with source, part, start and length over `path`, heads over (`path`, `layer`)
        and frobenius_norm, relative_residual and, with a target, projection over (`sample`,
        `path`). Heads count from 1 here, since 0 is the skip. Measured in float64.

    Raises:
        OptionError: There are more than `limit` paths; it says how many.
        RankCollapseError: Other bad input, in one sentence.
    """
    chosen, most = Variant.parse(variant), whole("limit", limit)
    model, samples, parts = one_by_one(model, inputs, tokens, truncate)
    layers, names = model.architecture.layers, list(MEASURES)[: 2 if target is None else 3]
    results: dict[str, np.ndarray] = {}
    described: dict[str, np.ndarray] = {}
    with torch.inference_mode():
        for batch in parts:
            aim = None
            if target is not None:
                aim = broadcast_target(target, batch, len(samples), model.architecture.width)
            network = freeze(model, batch, chosen)
            counts = [network.count(event) for event in network.events]
            if sum(counts) > most:
                raise OptionError(
                    f"there are {sum(counts):,} paths, more than the limit of {most:,}: sum them "
                    "by length with decompose, draw some with paths.sample, or find the largest "
                    "with paths.top."
                )
            if not described:
                described = _described(network.events, counts, layers)
                results = {name: np.empty((len(samples), sum(counts))) for name in names}
            row, (sample,) = 0, batch.samples
            for event in network.events:
                for heads, terms in network.walk(event):
                    rows = slice(row, row + len(heads))
                    described["heads"][rows, event.start :] = heads
                    for name, values in measure(terms, aim).items():
                        results[name][sample, rows] = values
                    row = rows.stop
    described["length"] = (described["heads"] > 0).sum(1)
    dataset = xr.Dataset(coords={"sample": np.arange(len(samples)), "layer": np.arange(layers) + 1})
    for name, attrs in PATH.items():
        dims = ("path", "layer") if name == "heads" else "path"
        dataset[name] = (dims, described[name], labels(attrs))
    for name, values in results.items():
        dataset[name] = (("sample", "path"), values, labels(MEASURES[name]))
    return attach_metadata(dataset, model, (chosen,), samples, {"arithmetic": "frozen"})


def measure(
    terms: Float[Tensor, "term token width"], target: Float[Tensor, "1 token width"] | None
) -> dict[str, np.ndarray]:
    """The `MEASURES` of each term, in float64."""
    s = terms.double()
    values = {
        "frobenius_norm": frobenius_norm(s),
        "relative_residual": relative_residual(TokenMatrix.of(s)),
    }
    if target is not None:
        values["projection"] = (s * target).sum((1, 2))
    return {name: value.cpu().numpy() for name, value in values.items()}


def labels(described: tuple[str, str, str]) -> dict[str, str]:
    """A variable's attributes."""
    return dict(zip(("long_name", "units", "definition"), described, strict=True))


def whole(name: str, value: Any, least: int = 1) -> int:
    """`value` as an integer.

    Raises:
        OptionError: It is not a whole number of at least `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool | np.bool_) or number < least:
        raise OptionError(
            f"{name}={value!r} is not possible: pass a whole number of at least {least}."
        ) from None
    return number


def _described(events: Any, counts: list[int], layers: int) -> dict[str, np.ndarray]:
    return {
        **{
            name: np.repeat([getattr(event, name) for event in events], counts)
            for name in ("source", "part", "start")
        },
        "heads": np.full((sum(counts), layers), -1, dtype=np.int32),
    }
