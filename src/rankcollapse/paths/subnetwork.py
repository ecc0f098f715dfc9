"""Sub-network paths: the network restricted to one path, with attention of the path's own.

These are the paths of the paper's Figure 4. They are networks and not terms: attention is computed
from the path's own states, so they do not add up to the output. The terms of the exact
decomposition are those of `decompose`, `enumerate_paths`, `top` and `sample`.
Cost: a pass through the attention layers that the path uses.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.errors import OptionError
from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Batch, Inputs, batches, prepare
from rankcollapse.paths.decompose import TOKENS_PER_BATCH
from rankcollapse.paths.listing import whole
from rankcollapse.paths.sampling import draw
from rankcollapse.transformer import Attention, Block, Layout, Norm, Transformer
from rankcollapse.transformer.attention import attention_rows, heads_of

_EPS = 1e-5  # of a norm where the model has none of its own


def subnetwork_path(
    model: Any,
    inputs: Inputs,
    heads: Sequence[int],
    *,
    tokens: int | None = None,
    truncate: bool = False,
) -> list[Float[Tensor, "token width"]]:
    """Runs the network restricted to one path, as in the paper's Figure 4.

    At a layer with head h the state becomes N(P_h(X) (X W_V,h + 1b_V,hᵀ) W_O,h + 1b_Oᵀ): P_h from
    X itself, the full output bias, no skip, and N the norm without weight and bias in place of
    the trained one. In a pre-norm block N stands where the trained norm stands, before attention.
    At a layer with 0 the state stays as it is. MLPs are left out, with their norms and the final
    norm: the paper's models for this figure have none, and an MLP belongs to no path.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        heads: One number per layer, 0 to skip it and h = 1..H for a head.
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.

    Returns:
        For each sample the last state (tokens × width) in the model's dtype.

    Raises:
        OptionError: `heads` does not have one entry of 0..H per layer.
        RankCollapseError: Other bad input, in one sentence.
    """
    if not isinstance(model, Transformer):
        model = load(model)
    a = model.architecture
    path = np.array([whole("a head", head, 0) for head in heads], dtype=np.int64)
    if len(path) != a.layers or (path > a.heads).any():
        raise OptionError(
            f"heads={list(heads)} is no path: give one number per layer, {a.layers} in all, 0 to "
            f"skip the layer and 1 to {a.heads} for a head."
        )
    return _run(model, inputs, path[None], False, tokens, truncate)


def subnetwork_sum(
    model: Any,
    inputs: Inputs,
    length: int,
    count: int,
    seed: int = 0,
    *,
    tokens: int | None = None,
    truncate: bool = False,
) -> list[Float[Tensor, "token width"]]:
    """Sums `count` random sub-network paths of one length, then normalises, as in Figure 4.

    Paths are drawn uniformly among those of this length, with replacement, the same for all
    samples. The sum goes through one norm without weight and bias; what reads the model's output,
    such as a classifier, can be applied to the result. The paper sums 5 or 20 paths.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        length: Number of layers used by each path, 0 to L.
        count: Number of paths.
        seed: Of the draw.
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.

    Returns:
        For each sample the normalised sum (tokens × width) in the model's dtype.

    Raises:
        OptionError: There is no path of this length, or no path is asked for.
        RankCollapseError: Other bad input, in one sentence.
    """
    if not isinstance(model, Transformer):
        model = load(model)
    a, wanted, number = model.architecture, whole("length", length, 0), whole("count", count)
    if wanted > a.layers:
        raise OptionError(f"there are no paths of length {wanted}: choose 0 to {a.layers}.")
    generator = np.random.default_rng(whole("seed", seed, 0))
    paths = draw(a.layers, a.heads, wanted, number, generator)
    return _run(model, inputs, paths, True, tokens, truncate)


def restricted(
    x: Float[Tensor, "batch token width"], block: Block, layout: Layout, head: int
) -> Float[Tensor, "batch token width"]:
    """One used layer of a sub-network: head `head` of the block, and the norm."""
    norm = bare(block.attention_norm)
    if block.placement == "pre":
        return one_head(norm(x), block.attention, layout, head)
    return norm(one_head(x, block.attention, layout, head))


def one_head(
    x: Float[Tensor, "batch token width"], attention: Attention, layout: Layout, head: int
) -> Float[Tensor, "batch token width"]:
    """P_h (X W_V,h + 1b_V,hᵀ) W_O,h + 1b_Oᵀ with P_h from X, heads counted from 1."""
    h, groups = head - 1, attention.heads // attention.key_heads
    value = heads_of(attention.value, x, attention.key_heads)[:, h // groups]
    rows = [p[:, h] @ value for _, p in attention_rows(x, attention, layout)]
    weight = attention.output.weight.unflatten(1, (attention.heads, -1))[:, h]
    y = torch.cat(rows, dim=1) @ weight.T
    return y if attention.output.bias is None else y + attention.output.bias


def bare(norm: Norm | None) -> Norm:
    """The norm without weight and bias; a LayerNorm where there is none."""
    return Norm("layer", _EPS) if norm is None else Norm(norm.kind, norm.eps)


def _run(
    model: Transformer,
    inputs: Inputs,
    paths: np.ndarray,
    normalise: bool,
    tokens: int | None,
    truncate: bool,
) -> list[Float[Tensor, "token width"]]:
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    results: dict[int, Tensor] = {}
    with torch.no_grad():  # the results may be read by a classifier that is trained
        for batch in batches(samples, TOKENS_PER_BATCH, None, model.device):
            total = sum(_follow(model, batch, path) for path in paths)
            assert isinstance(total, Tensor)
            if normalise:
                last = model.final_norm or model.blocks[-1].attention_norm
                total = bare(last)(total)
            results.update(zip(batch.samples, total, strict=True))
    return [results[index] for index in range(len(samples))]


def _follow(
    model: Transformer, batch: Batch, path: np.ndarray
) -> Float[Tensor, "batch token width"]:
    x = model.read_embedding()(batch.ids, batch.positions, batch.types)
    for index, head in enumerate(path.tolist()):
        if head:  # a skipped layer is not even read
            x = restricted(x, model.blocks[index], batch.layout, head)
    return x
