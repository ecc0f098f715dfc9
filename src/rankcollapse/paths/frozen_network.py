"""One sample's network with its nonlinear parts fixed: what single paths are terms of.

A real pass gives attention matrices, scales of norms and outputs of MLPs; with these as constants
each block is linear and its branches multiply out to paths (docs/theory.md §2). Memory: H matrices
of n × n per block. A term costs one head's value and output product per block not skipped.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Batch, Inputs, Sample, batches, prepare
from rankcollapse.metrics import TokenMatrix
from rankcollapse.streams.graded import attention_bias, frozen_norm, norm_scale, through_heads
from rankcollapse.transformer import MLP, Attention, Layout, Norm, Transformer, Variant
from rankcollapse.transformer.attention import attention_rows, heads_of
from rankcollapse.transformer.forward import apply_block
from rankcollapse.transformer.parts import Linear

_ENTRIES = 2**20  # numbers in all terms that are extended at a time

Terms = Float[Tensor, "term token width"]


@dataclass(frozen=True)
class Path:
    """A choice of head or skip at every block that remains after the path's source.

    Attributes:
        source: "input", "mlp" or "bias".
        part: What gives the source: "input", "mlp", or whose bias it is: "attention",
            "attention_norm", "mlp_norm" or "final_norm".
        start: Number of blocks passed when the path begins.
        heads: One number per remaining block, 0 for the skip and h = 1..H for a head.
    """

    source: str
    part: str
    start: int
    heads: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of heads on the path."""
        return sum(head > 0 for head in self.heads)

    def __str__(self) -> str:
        """Such as "mlp after 1 block, head 3 of block 2, head 1 of block 4"."""
        begin = f"{self.part} bias" if self.source == "bias" else self.part
        if self.part != "input":
            begin += f" after {self.start} block{'' if self.start == 1 else 's'}"
        steps = enumerate(self.heads, self.start + 1)
        return ", ".join(
            [begin, *(f"head {head} of block {block}" for block, head in steps if head)]
        )


@dataclass(frozen=True)
class Event:
    """Where paths begin: `value` enters the stream, the branch of the next block, or the output."""

    source: str
    part: str
    start: int
    value: Float[Tensor, "token width"]
    where: Literal["stream", "branch", "output"] = "stream"

    def path(self, heads: Sequence[int]) -> Path:
        """The path that takes these heads from here."""
        return Path(self.source, self.part, self.start, tuple(int(head) for head in heads))


@dataclass(frozen=True)
class FrozenNorm:
    """A norm without its bias, its scale per token given."""

    norm: Norm
    scale: Float[Tensor, "1 token 1"]

    def __call__(self, x: Terms) -> Terms:
        """The linear map."""
        return frozen_norm(x, self.norm, self.scale.expand(len(x), -1, -1))

    def adjoint(self, a: Terms) -> Terms:
        """Its transpose."""
        a = a * self.scale if self.norm.weight is None else a * self.scale * self.norm.weight
        return a - a.mean(-1, keepdim=True) if self.norm.kind == "layer" else a


@dataclass(frozen=True)
class Branch:
    """X ↦ after(P_h before(X) W_V,h W_O,h) for every head h, with P_h given."""

    attention: Attention
    p: Float[Tensor, "head token token"]
    before: tuple[FrozenNorm, ...]
    after: tuple[FrozenNorm, ...] = ()

    @property
    def value_weight(self) -> Float[Tensor, "head size width"]:
        """W_V,hᵀ of every query head."""
        a = self.attention
        weight = a.value.weight.unflatten(0, (a.key_heads, -1))
        return weight.repeat_interleave(a.heads // a.key_heads, dim=0)

    @property
    def output_weight(self) -> Float[Tensor, "head size width"]:
        """W_O,h of every query head."""
        return self.attention.output.weight.unflatten(1, (self.attention.heads, -1)).movedim(0, 2)

    def every(self, x: Terms, inside: bool = False) -> Float[Tensor, "term head token width"]:
        """All heads of every term; `inside` where x already is what attention reads."""
        a = self.attention
        x = x if inside else _through(self.before, x)
        value = heads_of(Linear(a.value.weight), x, a.key_heads)
        value = value.repeat_interleave(a.heads // a.key_heads, dim=1)
        y = ((self.p @ value) @ self.output_weight).flatten(0, 1)
        return _through(self.after, y).unflatten(0, (len(x), a.heads))

    def one(self, x: Terms, head: int, inside: bool = False) -> Terms:
        """One head, counted from 1."""
        h, x = head - 1, x if inside else _through(self.before, x)
        return _through(
            self.after, self.p[h] @ (x @ self.value_weight[h].T) @ self.output_weight[h]
        )

    def every_adjoint(
        self, a: Float[Tensor, "token width"]
    ) -> tuple[Float[Tensor, "head token width"], Float[Tensor, "head token width"]]:
        """All heads' transposes, at what attention reads and before the norm in front of it."""
        back = _back(self.after, a.unsqueeze(0))
        inside = self.p.mT @ (back @ self.output_weight.mT) @ self.value_weight
        return inside, _back(self.before, inside)

    def one_adjoint(self, a: Float[Tensor, "token width"], head: int) -> Tensor:
        """One head's transpose, counted from 1."""
        h, back = head - 1, _back(self.after, a.unsqueeze(0))
        inside = self.p[h].T @ (back @ self.output_weight[h].T) @ self.value_weight[h]
        return _back(self.before, inside)[0]


@dataclass(frozen=True)
class FrozenBlock:
    """The linear ways through a block; None where the variant leaves none."""

    skip: tuple[FrozenNorm, ...] | None
    branch: Branch | None

    @property
    def choices(self) -> list[int]:
        """0 for the skip where there is one, then the heads 1..H."""
        heads = [] if self.branch is None else range(1, self.branch.attention.heads + 1)
        return [*([] if self.skip is None else [0]), *heads]

    def through(self, x: Terms, choice: int, inside: bool = False) -> Terms:
        """After one choice; `inside` where x already is what attention reads."""
        if choice:
            assert self.branch is not None
            return self.branch.one(x, choice, inside)
        assert self.skip is not None
        return _through(self.skip, x)

    def children(self, x: Terms) -> Float[Tensor, "term choice token width"]:
        """Every term after every choice, in the order of `choices`."""
        parts = [] if self.skip is None else [_through(self.skip, x).unsqueeze(1)]
        parts += [] if self.branch is None else [self.branch.every(x)]
        return torch.cat(parts, dim=1)

    def adjoint(self, a: Float[Tensor, "token width"], choice: int) -> Float[Tensor, "token width"]:
        """The transpose of one choice."""
        if choice:
            assert self.branch is not None
            return self.branch.one_adjoint(a, choice)
        assert self.skip is not None
        return _back(self.skip, a.unsqueeze(0))[0]


@dataclass(frozen=True)
class FrozenNetwork:
    """Blocks and the events at which paths begin; the sum over all paths is `output`."""

    blocks: tuple[FrozenBlock, ...]
    events: tuple[Event, ...]
    final: tuple[FrozenNorm, ...]
    output: Float[Tensor, "token width"]

    def count(self, event: Event, stop: int | None = None) -> int:
        """Number of paths from an event to the output, or to the state after `stop` blocks."""
        end = len(self.blocks) if stop is None else stop
        if event.where == "output":
            return 1 if stop is None else 0
        if event.start + (event.where == "branch") > end:
            return 0
        ways = [len(block.choices) for block in self.blocks[event.start : end]]
        if event.where == "branch":
            ways[0] = self.blocks[event.start].choices[-1]
        return math.prod(ways)

    def walk(self, event: Event, stop: int | None = None) -> Iterator[tuple[np.ndarray, Terms]]:
        """All paths from an event in lexicographic order, a batch at a time, each edge once.

        Yields heads (term × blocks passed) and terms at the output, or after `stop` blocks.
        """
        end, none = len(self.blocks) if stop is None else stop, np.zeros((1, 0), dtype=np.int64)
        x = event.value.unsqueeze(0)
        if not self.count(event, stop):
            return
        if event.where == "output":
            yield none, x
            return
        if event.where == "stream":
            parts = self._extend(event.start, end, none, x)
        else:
            branch = self.blocks[event.start].branch
            assert branch is not None
            heads = np.arange(1, branch.attention.heads + 1)[:, None]
            parts = self._extend(event.start + 1, end, heads, branch.every(x, inside=True)[0])
        for heads, terms in parts:
            yield heads, terms if stop is not None else self.finish(terms)

    def _extend(
        self, index: int, end: int, heads: np.ndarray, x: Terms
    ) -> Iterator[tuple[np.ndarray, Terms]]:
        if index == end:
            yield heads, x
            return
        block = self.blocks[index]
        choices = np.array(block.choices)
        size = max(1, _ENTRIES // (x[0].numel() * len(choices)))
        for first in range(0, len(x), size):
            some = heads[first : first + size]
            longer = np.concatenate(
                [some.repeat(len(choices), axis=0), np.tile(choices, len(some))[:, None]], axis=1
            )
            after = block.children(x[first : first + size]).flatten(0, 1)
            yield from self._extend(index + 1, end, longer, after)

    def term(self, path: Path) -> Float[Tensor, "token width"]:
        """The term of one path: P_path X W_path, with norms and what starts it as they are."""
        event = next(
            e
            for e in self.events
            if (e.source, e.part, e.start) == (path.source, path.part, path.start)
        )
        x = event.value.unsqueeze(0)
        for index, head in enumerate(path.heads, path.start):
            inside = event.where == "branch" and index == path.start
            x = self.blocks[index].through(x, head, inside)
        return (x if event.where == "output" else self.finish(x))[0]

    def finish(self, x: Terms) -> Terms:
        """After the final norm, where there is one."""
        return _through(self.final, x)

    def finish_adjoint(self, a: Float[Tensor, "token width"]) -> Float[Tensor, "token width"]:
        """Its transpose."""
        return _back(self.final, a.unsqueeze(0))[0]


def freeze(model: Transformer, batch: Batch, variant: Variant) -> FrozenNetwork:
    """Runs one sample and keeps what makes the rest of the network linear.

    Args:
        model: The model; its dtype is that of the pass and of all terms.
        batch: A batch of one sample.
        variant: Which parts are on.
    """
    if len(batch.samples) != 1:
        raise ValueError("a frozen network is that of one sample")
    x = model.read_embedding()(batch.ids, batch.positions, batch.types)
    events, blocks = [Event("input", "input", 0, x[0])], []
    for index in range(len(model.blocks)):
        recorder = _Recorder(index)
        state = apply_block(recorder.enter(x), model.blocks[index], batch.layout, variant, recorder)
        events += state.events
        blocks.append(FrozenBlock(state.skip, state.branch))
        x = state.total
    final: tuple[FrozenNorm, ...] = ()
    if model.final_norm is not None and "final_norm" in variant:
        norm = model.final_norm
        final = (FrozenNorm(norm, norm_scale(x, norm)),)
        x = norm(x)
        if norm.bias is not None:
            value = norm.bias.expand_as(x[0])
            events.append(Event("bias", "final_norm", len(blocks), value, "output"))
    return FrozenNetwork(tuple(blocks), tuple(events), final, x[0])


def one_by_one(
    model: Any, inputs: Inputs, tokens: int | None, truncate: bool
) -> tuple[Transformer, list[Sample], list[Batch]]:
    """The model, its samples, and batches of one sample each, in the order of the samples."""
    if not isinstance(model, Transformer):
        model = load(model)
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    parts = batches(samples, 1, None, model.device)
    return model, samples, sorted(parts, key=lambda batch: batch.samples)


def _through(norms: Sequence[FrozenNorm], x: Terms) -> Terms:
    for norm in norms:
        x = norm(x)
    return x


def _back(norms: Sequence[FrozenNorm], a: Terms) -> Terms:
    for norm in reversed(norms):
        a = norm.adjoint(a)
    return a


@dataclass(frozen=True)
class _Recorded:
    """A state within a block, and how what entered the block has come to it."""

    total: Float[Tensor, "1 token width"]
    events: tuple[Event, ...]
    skip: tuple[FrozenNorm, ...] | None
    branch: Branch | None


class _Recorder:
    """The arithmetic that watches one block's pass, so that placements are known in one place."""

    name = "recorder"
    floor = 0.0

    def __init__(self, index: int) -> None:
        self.index = index

    def enter(self, x: Float[Tensor, "1 token width"]) -> _Recorded:
        return _Recorded(x, (), (), None)

    def attend(self, x: _Recorded, attention: Attention, layout: Layout) -> _Recorded:
        p = torch.cat([rows for _, rows in attention_rows(x.total, attention, layout)], dim=2)
        total, bias = through_heads(p, x.total, attention), attention_bias(attention)
        events = tuple(replace(e, where="branch", start=self.index) for e in x.events)
        if bias is not None:
            total = total + bias
            events += (self._event("bias", "attention", bias.expand_as(total[0])),)
        return _Recorded(total, events, None, Branch(attention, p[0], x.skip or ()))

    def mlp(self, x: _Recorded, mlp: MLP) -> _Recorded:
        return self._constant(mlp(x.total))

    def activate(self, x: _Recorded, mlp: MLP) -> _Recorded:
        return self._constant(mlp.activate(x.total))

    def normalize(self, x: _Recorded, norm: Norm) -> _Recorded:
        frozen = FrozenNorm(norm, norm_scale(x.total, norm))
        # What starts in the branch meets this norm there, as one of `after`.
        events = tuple(
            e if e.where == "branch" else replace(e, value=frozen(e.value.unsqueeze(0))[0])
            for e in x.events
        )
        if norm.bias is not None:
            # In a post-norm block; in a pre-norm one the second norm's bias ends in the MLP.
            second = any(e.source == "mlp" for e in x.events)
            part = "mlp_norm" if second else "attention_norm"
            events += (self._event("bias", part, norm.bias.expand_as(x.total[0])),)
        skip = None if x.skip is None else (*x.skip, frozen)
        branch = x.branch and replace(x.branch, after=(*x.branch.after, frozen))
        return _Recorded(norm(x.total), events, skip, branch)

    def add(self, x: _Recorded, y: _Recorded) -> _Recorded:
        skip = x.skip if x.skip is not None else y.skip
        return _Recorded(x.total + y.total, x.events + y.events, skip, x.branch or y.branch)

    def tokens(self, x: _Recorded, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        return TokenMatrix.of(x.total, mask)

    def plain(self, x: _Recorded) -> Float[Tensor, "1 token width"]:
        return x.total

    def _constant(self, total: Float[Tensor, "1 token width"]) -> _Recorded:
        return _Recorded(total, (self._event("mlp", "mlp", total[0]),), None, None)

    def _event(self, source: str, part: str, value: Float[Tensor, "token width"]) -> Event:
        return Event(source, part, self.index + 1, value)
