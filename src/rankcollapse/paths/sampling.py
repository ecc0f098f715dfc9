"""`sample`: random paths of one length, for networks with more paths than can be listed.

Cost: per path and block passed one head's products for the term and an n × n product for P_path;
memory is that of a batch of paths with both.
"""

from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from rankcollapse.errors import OptionError
from rankcollapse.inputs.tokens import Inputs
from rankcollapse.inspection.dataset import attach_metadata
from rankcollapse.metrics import TokenMatrix, relative_residual
from rankcollapse.paths.frozen_network import FrozenNetwork, freeze, one_by_one
from rankcollapse.paths.listing import PATH, labels, whole
from rankcollapse.transformer import Variant

_ENTRIES = 2**22  # numbers in the terms and products of paths that are followed at a time

RESIDUALS: dict[str, tuple[str, str]] = {
    "attention_residual": (
        "relative residual of P_path",
        "‖res(P)‖₁,∞ / ‖P‖₁,∞, P = P^L ··· P^1 the product of the path's attention matrices, the "
        "last layer leftmost, and res(P) = P less the mean of its rows",
    ),
    "term_residual": (
        "relative residual of the term",
        "‖res(S)‖₁,∞ / ‖S‖₁,∞ about the token mean, S = P_path X W_path the path's term with the "
        "scales of norms as in the real pass; NaN where S is zero",
    ),
}


def sample(
    model: Any,
    inputs: Inputs,
    length: int,
    n: int = 100,
    seed: int = 0,
    variant: str = "transformer",
    *,
    tokens: int | None = None,
    truncate: bool = False,
) -> xr.Dataset:
    """Draws n paths from the input, uniformly among the C(L, l) Hˡ of length l, with replacement.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        length: Number l of heads on each path; the number of layers where there are no skips.
        n: Number of paths; every sample has the same ones.
        seed: Of the draw.
        variant: One variant, such as "transformer" or "san" (docs/variants.md).
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.

    Returns:
        A Dataset with heads over (`path`, `layer`), attention_residual (of P_path) and
        term_residual (of P_path X W_path) over (`sample`, `path`), and of both the mean over
        paths (`…_mean`) and its standard error (`…_stderr`: std / √n with ddof = 1, NaN for one
        path) over `sample`. P_path's residual is carried apart, so it is no rounding however
        small it is.

    Raises:
        OptionError: There is no such path, for instance a short one without skips.
        RankCollapseError: Other bad input, in one sentence.
    """
    chosen, wanted = Variant.parse(variant), whole("length", length, 0)
    count, start = whole("n", n), whole("seed", seed, 0)
    model, samples, parts = one_by_one(model, inputs, tokens, truncate)
    layers, heads = model.architecture.layers, model.architecture.heads
    paths = np.zeros((0, layers), dtype=np.int64)
    results = {name: np.empty((len(samples), count)) for name in RESIDUALS}
    with torch.inference_mode():
        for batch in parts:
            network = freeze(model, batch, chosen)
            if not len(paths):
                _check(network, wanted, chosen)
                paths = draw(layers, heads, wanted, count, np.random.default_rng(start))
            tokens_, width = network.output.shape
            size = max(1, _ENTRIES // (tokens_ * (width + 2 * tokens_)))
            for first in range(0, count, size):
                some = paths[first : first + size]
                place = batch.samples[0], slice(first, first + size)
                product = relative_residual(attention_products(network, some))
                term = relative_residual(TokenMatrix.of(input_terms(network, some).double()))
                results["attention_residual"][place] = product.cpu().numpy()
                results["term_residual"][place] = term.cpu().numpy()
    dataset = xr.Dataset(
        {"heads": (("path", "layer"), paths, labels(PATH["heads"]))},
        coords={"sample": np.arange(len(samples)), "layer": np.arange(layers) + 1},
    )
    for name, (title, definition) in RESIDUALS.items():
        values = results[name]
        spread = values.std(1, ddof=1) if count > 1 else np.full(len(samples), np.nan)
        dataset[name] = (("sample", "path"), values, labels((title, "1", definition)))
        for kind, statistic, text in (
            ("mean", values.mean(1), f"mean over the paths drawn of the {title}"),
            ("stderr", spread / np.sqrt(count), "standard deviation (ddof = 1) / √n of the same"),
        ):
            attrs = labels((f"{kind} of the {title}", "1", text))
            dataset[f"{name}_{kind}"] = ("sample", statistic, attrs)
    details = {"arithmetic": "frozen", "length": wanted, "draw_seed": start}
    return attach_metadata(dataset, model, (chosen,), samples, details)


def draw(
    layers: int, heads: int, length: int, count: int, generator: np.random.Generator
) -> np.ndarray:
    """`count` rows of `layers` choices, `length` of them heads 1..H and the others 0."""
    order = generator.random((count, layers)).argsort(axis=1)
    return np.where(order < length, generator.integers(1, heads + 1, (count, layers)), 0)


def attention_products(network: FrozenNetwork, paths: np.ndarray) -> TokenMatrix:
    """P_path of each path, a later layer to the left of an earlier one; skips are identities.

    Since rows of P sum to one, res(P Q) = ΠP res(Q): the residual is multiplied on its own and
    re-centred, so that it keeps its digits far below those of the product.
    """
    n = len(network.output)
    eye = torch.eye(n, dtype=torch.float64, device=network.output.device)
    product = eye.repeat(len(paths), 1, 1)
    residual = product - 1 / n
    for block, choices in zip(network.blocks, paths.T, strict=True):
        for choice in np.unique(choices[choices > 0]):
            assert block.branch is not None
            p, rows = block.branch.p[choice - 1].double(), np.flatnonzero(choices == choice)
            product[rows] = p @ product[rows]
            after = p @ residual[rows]
            residual[rows] = after - after.mean(1, keepdim=True)
    return TokenMatrix.split(product, residual, product.new_zeros(len(paths)), None)


def input_terms(network: FrozenNetwork, paths: np.ndarray) -> Float[Tensor, "path token width"]:
    """The term of each path from the input; all blocks have a choice of theirs."""
    x = network.events[0].value.repeat(len(paths), 1, 1)
    for block, choices in zip(network.blocks, paths.T, strict=True):
        for choice in np.unique(choices):
            rows = np.flatnonzero(choices == choice)
            x[rows] = block.through(x[rows], int(choice))
    return network.finish(x)


def _check(network: FrozenNetwork, length: int, variant: Variant) -> None:
    layers = len(network.blocks)
    if not network.count(network.events[0]):
        raise OptionError(
            f"in variant {variant.name!r} no path leaves the input, since MLPs without their skip "
            "replace the state: keep mlp_skip on, or the MLP off."
        )
    skips = all(block.skip is not None for block in network.blocks)
    if length > layers or (not skips and length != layers):
        only = f"0 to {layers}" if skips else f"{layers} only, one head per layer without skips"
        raise OptionError(
            f"variant {variant.name!r} has no paths of length {length}: choose {only}."
        )
