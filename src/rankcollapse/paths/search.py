"""`top`: the paths with the largest projections on a target, found without listing all of them.

Best-first search from the output backwards: a node is a suffix of blocks with its adjoint A, so
that ⟨path, T⟩ = ⟨A, X⟩ with X whatever comes from the blocks before. One node serves all
sources. Paths through the first blocks are few and kept as terms, so the search ends there with one
product. Cost: about two layers' products of one sample per node; the queue holds no tensors.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from rankcollapse.inputs.tokens import Inputs
from rankcollapse.inspection.dataset import attach_metadata
from rankcollapse.paths.decompose import Target, broadcast_target
from rankcollapse.paths.frozen_network import (
    FrozenBlock,
    FrozenNetwork,
    FrozenNorm,
    Path,
    freeze,
    one_by_one,
)
from rankcollapse.paths.listing import MEASURES, PATH, labels, measure, whole
from rankcollapse.transformer import Variant

_KEPT = 2**24  # numbers in all terms that are kept at the first blocks
SEARCH = {
    "proved": ("result is proved", "1", "whether no path that is not listed has a larger |⟨S, T⟩|"),
    "bound": (
        "bound on all other paths",
        "units of the target",
        "no path that is not listed has a larger |⟨S, T⟩| than this; listed paths above it are the "
        "largest whether the whole result is proved or not",
    ),
    "nodes": ("nodes of the search", "1", "suffixes of paths that were extended"),
}


@dataclass(frozen=True)
class Found:
    """The paths of one search, in the order of |projection|, and what is known of all others."""

    paths: list[Path]
    proved: bool
    bound: float
    nodes: int


def top(
    model: Any,
    inputs: Inputs,
    k: int,
    target: Target,
    variant: str = "transformer",
    *,
    budget: int = 5_000,
    tokens: int | None = None,
    truncate: bool = False,
) -> xr.Dataset:
    """Finds for every sample the k paths with the largest |⟨S, T⟩|, S a path's term, T the target.

    The largest possible projection of what is left is bounded by Σ_i ‖A_i‖ v_i over tokens i, with
    v_i a bound on row i of every term that can arrive: propagated by |P| and the largest singular
    value of each head's W_h. The search ends when no bound exceeds the k-th projection: then the
    result is proved, up to rounding. When the budget ends first, it is the best that was met, a
    heuristic, and `bound` says what the others can still reach.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`.
        k: How many paths; all of them where there are fewer.
        target: A tensor that broadcasts to samples × tokens × width, such as a token's logit.
        variant: One variant, such as "transformer" or "san+skip" (docs/variants.md).
        budget: Nodes of the search for each sample.
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts longer than the model's positions.

    Returns:
        A Dataset with the variables of `enumerate_paths` over (`sample`, `rank`), the largest
        first, and proved, bound and nodes over `sample`.

    Raises:
        RankCollapseError: Bad input, in one sentence.
    """
    chosen, wanted, most = Variant.parse(variant), whole("k", k), whole("budget", budget)
    model, samples, parts = one_by_one(model, inputs, tokens, truncate)
    layers, width = model.architecture.layers, model.architecture.width
    rows, found = [], []
    with torch.inference_mode():
        for batch in parts:
            aim = broadcast_target(target, batch, len(samples), width)
            network = freeze(model, batch, chosen)
            found.append(search(network, aim[0], wanted, most))
            rows.append(_table(network, found[-1].paths, aim, layers))
    dataset = xr.Dataset(
        coords={
            "sample": np.arange(len(samples)),
            "rank": np.arange(len(found[0].paths)) + 1,
            "layer": np.arange(layers) + 1,
        }
    )
    for name, described in {**PATH, **MEASURES}.items():
        dims = ("sample", "rank", "layer")[: 3 if name == "heads" else 2]
        dataset[name] = (dims, np.stack([row[name] for row in rows]), labels(described))
    for name, described in SEARCH.items():
        values = [getattr(each, name) for each in found]
        dataset[name] = ("sample", values, labels(described))
    details = {"arithmetic": "frozen", "budget": most}
    return attach_metadata(dataset, model, (chosen,), samples, details)


def search(
    network: FrozenNetwork, target: Float[Tensor, "token width"], k: int, budget: int
) -> Found:
    """Best-first search for the k largest |⟨S, T⟩|, extending at most `budget` nodes."""
    first = _first_blocks(network)
    kept, kept_paths = terms_at(network, first)
    limits = row_bounds(network, first, kept)
    layers, best, order = len(network.blocks), _Best(k), itertools.count()
    # Norms and bounds are rounded, too; what is proved holds up to this.
    slack = 1 + 1e3 * torch.finfo(kept.dtype).eps
    queue: list[tuple[float, int, tuple[int, ...]]] = []

    def meet(
        adjoints: Float[Tensor, "node token width"], suffixes: Sequence[tuple[int, ...]]
    ) -> None:
        """Completes nodes with all that starts at their boundary; queues what may yet matter."""
        boundary = layers - len(suffixes[0])
        if boundary == first:
            values = adjoints.flatten(1) @ kept.flatten(1).T
            best.offer(values, lambda i, j: _longer(kept_paths[j], suffixes[i]))
            return
        events = [e for e in network.events if e.start == boundary and e.where == "stream"]
        if events:
            values = adjoints.flatten(1) @ torch.stack([e.value.flatten() for e in events]).T
            best.offer(values, lambda i, j: events[j].path(suffixes[i]))
        bounds = adjoints.norm(dim=2).double() @ limits[boundary] * slack
        for bound, suffix in zip(bounds.tolist(), suffixes, strict=True):
            if bound > best.threshold:
                heapq.heappush(queue, (-bound, next(order), suffix))

    aim = target.to(network.output.dtype)
    for event in network.events:
        if event.where == "output":
            value = (event.value * aim).sum().view(1, 1)
            best.offer(value, lambda i, j, event=event: event.path(()))
    meet(_adjoint(network, aim, ())[None], [()])
    nodes = 0
    while queue and -queue[0][0] > best.threshold and nodes < budget:
        _, _, suffix = heapq.heappop(queue)
        nodes += 1
        index = layers - len(suffix) - 1
        block = network.blocks[index]
        a = _adjoint(network, aim, suffix)
        children = [] if block.skip is None else [block.adjoint(a, 0)[None]]
        if block.branch is not None:
            inside, before = block.branch.every_adjoint(a)
            children.append(before)
            events = [e for e in network.events if e.start == index and e.where == "branch"]
            for event in events:
                values = inside.flatten(1) @ event.value.flatten()[:, None]
                best.offer(values, lambda i, j, e=event, s=suffix: e.path((i + 1, *s)))
        if children:
            meet(torch.cat(children), [(choice, *suffix) for choice in block.choices])
    left = -queue[0][0] if queue else 0.0
    proved = not queue or left <= best.threshold
    return Found(best.paths(), proved, max(0.0, best.threshold, left), nodes)


class _Best:
    """The k largest so far."""

    def __init__(self, k: int) -> None:
        self.k, self.heap, self.order = k, [], itertools.count()

    @property
    def threshold(self) -> float:
        """What a path has to exceed to be among them."""
        return self.heap[0][0] if len(self.heap) == self.k else -1.0

    def offer(self, values: Float[Tensor, "node source"], path: Callable[[int, int], Path]) -> None:
        size = values.abs().flatten()
        count = min(self.k, len(size))
        for value, place in zip(*(t.tolist() for t in size.topk(count)), strict=True):
            if value <= self.threshold:
                break
            entry = (value, -next(self.order), path(*divmod(place, values.shape[1])))
            (heapq.heappush if len(self.heap) < self.k else heapq.heapreplace)(self.heap, entry)

    def paths(self) -> list[Path]:
        return [path for _, _, path in sorted(self.heap, reverse=True)]


def _longer(path: Path, suffix: tuple[int, ...]) -> Path:
    return Path(path.source, path.part, path.start, (*path.heads, *suffix))


def _adjoint(
    network: FrozenNetwork, target: Float[Tensor, "token width"], suffix: tuple[int, ...]
) -> Float[Tensor, "token width"]:
    """A of a suffix: one head's products per block, less than extending the node takes."""
    a = network.finish_adjoint(target)
    for block, choice in zip(reversed(network.blocks), reversed(suffix), strict=False):
        a = block.adjoint(a, choice)
    return a


def _first_blocks(network: FrozenNetwork) -> int:
    """After how many blocks all terms so far can still be kept."""
    size, most = network.output.numel(), 0
    for stop in range(len(network.blocks) + 1):
        if size * sum(network.count(event, stop) for event in network.events) <= _KEPT:
            most = stop
    return most


def terms_at(
    network: FrozenNetwork, stop: int
) -> tuple[Float[Tensor, "term token width"], list[Path]]:
    """All terms of the state after `stop` blocks."""
    terms, paths = [network.output.new_zeros(0, *network.output.shape)], []
    for event in network.events:
        for heads, x in network.walk(event, stop):
            terms.append(x)
            paths += [event.path(row) for row in heads]
    return torch.cat(terms), paths


def row_bounds(
    network: FrozenNetwork, first: int, kept: Float[Tensor, "term token width"]
) -> dict[int, Float[Tensor, " token"]]:
    """By block boundary, what ‖row i‖ is at most in any term that comes through a block before."""
    bounds: dict[int, Tensor] = {}
    rows = _largest_rows(kept) if len(kept) else network.output.new_zeros(len(network.output))
    rows = rows.double()
    for index in range(first, len(network.blocks)):
        block, boundary = network.blocks[index], index + 1
        after = propagate(block, rows)
        for event in network.events:
            if event.where == "branch" and event.start == index and block.branch is not None:
                terms = block.branch.every(event.value[None], inside=True)[0]
                after = torch.maximum(after, _largest_rows(terms))
        bounds[boundary] = rows = after
        for event in network.events:
            if event.where == "stream" and event.start == boundary:
                rows = torch.maximum(rows, event.value.norm(dim=1).double())
    return bounds


def _largest_rows(terms: Float[Tensor, "term token width"]) -> Float[Tensor, " token"]:
    return terms.norm(dim=2).amax(0).double()


def propagate(block: FrozenBlock, rows: Float[Tensor, " token"]) -> Float[Tensor, " token"]:
    """Row bounds after any choice: scales and P act on tokens, the rest has a largest gain."""
    after = torch.zeros_like(rows)
    if block.skip is not None:
        eye = torch.eye(_width(block), dtype=rows.dtype, device=rows.device)
        gain = _gain(_features(block.skip, eye)) if block.skip else 1.0
        after = rows * _scales(block.skip, rows) * gain
    if block.branch is not None:
        branch = block.branch
        eye = torch.eye(_width(block), dtype=rows.dtype, device=rows.device)
        values = _features(branch.before, eye) @ branch.value_weight.double().mT
        outputs = _features(branch.after, branch.output_weight.double())
        # ‖V U‖ = ‖R U‖ with V = Q R: the small factor is enough.
        gains = _gain(torch.linalg.qr(values).R @ outputs)
        mixed = branch.p.double() @ (rows * _scales(branch.before, rows))
        heads = gains[:, None] * mixed * _scales(branch.after, rows)
        after = torch.maximum(after, heads.amax(0))
    return after


def _gain(matrix: Tensor) -> Tensor:
    return torch.linalg.svdvals(matrix)[..., 0]


def _scales(norms: Sequence[FrozenNorm], like: Tensor) -> Tensor:
    scales = torch.ones_like(like)
    for norm in norms:
        scales = scales * norm.scale.double().flatten()
    return scales


def _features(norms: Sequence[FrozenNorm], matrix: Tensor) -> Tensor:
    """What norms without their scales do to features."""
    for norm in norms:
        if norm.norm.kind == "layer":
            matrix = matrix - matrix.mean(-1, keepdim=True)
        if norm.norm.weight is not None:
            matrix = matrix * norm.norm.weight.double()
    return matrix


def _width(block: FrozenBlock) -> int:
    assert block.branch is not None
    return block.branch.attention.output.weight.shape[0]


def _table(
    network: FrozenNetwork, paths: Sequence[Path], target: Tensor, layers: int
) -> dict[str, np.ndarray]:
    """Each path's description and measures, its term computed once more on its own."""
    heads = np.full((len(paths), layers), -1, dtype=np.int32)
    measured: list[dict[str, np.ndarray]] = []
    for row, path in zip(heads, paths, strict=True):
        row[path.start :] = path.heads
        measured.append(measure(network.term(path)[None], target))
    return {
        **{
            name: np.array([getattr(path, name) for path in paths])
            for name in PATH
            if name != "heads"
        },
        "heads": heads,
        **{name: np.concatenate([each[name] for each in measured]) for name in MEASURES},
    }
