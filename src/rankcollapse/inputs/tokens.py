"""From texts or token ids to batches of real tokens: padding is taken out here, for good.

Samples of one length form a batch, so no mask is needed anywhere in the pass. A token keeps the
position it had in its padded row, as in Hugging Face.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from rankcollapse.errors import InputError, TokenizerError
from rankcollapse.transformer import Architecture, Layout

Inputs = str | Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """The real tokens of one input.

    Attributes:
        ids: Token ids.
        positions: Index of each token in its padded row.
        types: Segment ids, where given.
        special: Which tokens the tokenizer calls special, None where that is not known.
    """

    ids: np.ndarray
    positions: np.ndarray
    types: np.ndarray | None = None
    special: np.ndarray | None = None


@dataclass(frozen=True)
class Batch:
    """Samples of one length, stacked. `samples` are their indices among all inputs."""

    samples: tuple[int, ...]
    ids: Int[Tensor, "batch token"]
    positions: Int[Tensor, "batch token"]
    types: Int[Tensor, "batch token"] | None
    counted: Bool[Tensor, "batch token"] | None

    @property
    def layout(self) -> Layout:
        """Where the tokens stand, relative to the first."""
        return Layout(self.positions[0] - self.positions[0, 0], self.types)


def prepare(
    inputs: Inputs,
    read_tokenizer: Callable[[], Any],
    architecture: Architecture,
    tokens: int | None = None,
    truncate: bool = False,
) -> list[Sample]:
    """Reads and checks inputs.

    Args:
        inputs: Texts, or a mapping with `input_ids` and, if any, `attention_mask`,
            `token_type_ids` and `special_tokens_mask`, as Hugging Face tokenizers return it.
        read_tokenizer: Loads the tokenizer; called for texts only.
        architecture: Sizes to check against.
        tokens: At most so many tokens of each text are used, from its beginning.
        truncate: Whether texts longer than the model's positions are cut; an error otherwise.

    Raises:
        InputError: An input is empty, one token long, too long, all padding, or has ids beyond
            the vocabulary.
        TokenizerError: Texts were given and there is no tokenizer.
    """
    if tokens is not None and tokens < 2:
        raise InputError(f"tokens={tokens} leaves nothing to compare: use at least 2.")
    if isinstance(inputs, Mapping):
        samples = _from_mapping(inputs)
        if tokens is not None:
            samples = [_first(sample, tokens) for sample in samples]
    else:
        if not isinstance(inputs, Iterable):
            raise InputError(
                f"inputs are {type(inputs).__name__}: pass texts, or a mapping with input_ids."
            )
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        samples = _from_texts(texts, read_tokenizer(), tokens, truncate, architecture.positions)
    if not samples:
        raise InputError("there are no inputs: pass at least one text or one row of token ids.")
    limit = architecture.positions
    if truncate and limit is not None:
        samples = [_within(sample, limit) for sample in samples]
    for index, sample in enumerate(samples):
        _check(index, sample, architecture)
    return samples


def batches(
    samples: Sequence[Sample], tokens_per_batch: int, leave_out: str | None, device: torch.device
) -> list[Batch]:
    """Groups samples of equal length and positions, at most `tokens_per_batch` tokens each.

    Args:
        samples: What `prepare` returned.
        tokens_per_batch: Upper limit, exceeded only by a single sample that is longer.
        leave_out: "special" or "first": tokens that metrics do not count; they stay in the pass.
        device: Where the tensors go.

    Raises:
        InputError: Special tokens are to be left out but are not known, or too few tokens remain.
    """
    groups: dict[tuple[bytes, bool], list[int]] = defaultdict(list)
    for index, sample in enumerate(samples):
        offsets = sample.positions - sample.positions[0]
        groups[offsets.tobytes(), sample.types is None].append(index)
    result = []
    for members in groups.values():
        size = max(1, tokens_per_batch // len(samples[members[0]].ids))
        for start in range(0, len(members), size):
            chosen = members[start : start + size]
            parts = [samples[i] for i in chosen]
            counted = [_counted(i, samples[i], leave_out) for i in chosen] if leave_out else None
            types = None if parts[0].types is None else _stack([p.types for p in parts], device)
            result.append(
                Batch(
                    tuple(chosen),
                    _stack([p.ids for p in parts], device),
                    _stack([p.positions for p in parts], device),
                    types,
                    None if counted is None else _stack(counted, device),
                )
            )
    return result


def digest(samples: Sequence[Sample]) -> str:
    """SHA-256 over all token ids, which says whether two runs saw the same tokens."""
    sha = hashlib.sha256()
    for sample in samples:
        sha.update(sample.ids.astype("<i8").tobytes() + b"|")
    return sha.hexdigest()


def _from_texts(
    texts: list[str], tokenizer: Any, tokens: int | None, truncate: bool, limit: int | None
) -> list[Sample]:
    if not texts:
        return []  # some tokenizers fail on nothing
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"input {index} is {type(text).__name__}, not text: pass strings.")
        if not text.strip():
            raise InputError(f"text {index} is empty: remove it or give it words.")
    if not callable(tokenizer):
        raise TokenizerError(f"{type(tokenizer).__name__} is not a tokenizer: pass one, or ids.")
    # The tokenizer cuts, so that its closing special tokens stay.
    cut = tokens if not truncate or limit is None else min(limit, tokens or limit)
    encoded: Any = tokenizer(
        texts, return_special_tokens_mask=True, truncation=cut is not None, max_length=cut,
        verbose=False,
    )  # fmt: skip
    types = encoded.get("token_type_ids")
    samples = []
    for index, ids in enumerate(encoded["input_ids"]):
        row = np.asarray(ids, dtype=np.int64)
        samples.append(
            Sample(
                row,
                np.arange(len(row)),
                None if types is None else np.asarray(types[index], dtype=np.int64),
                np.asarray(encoded["special_tokens_mask"][index], dtype=bool),
            )
        )
    return samples


def _from_mapping(inputs: Mapping[str, Any]) -> list[Sample]:
    if "input_ids" not in inputs:
        raise InputError(f"the mapping has no input_ids, only {sorted(inputs)}: add them.")
    rows = _rows(inputs["input_ids"], "input_ids")
    others = {
        name: _rows(inputs[name], name) if inputs.get(name) is not None else None
        for name in ("attention_mask", "token_type_ids", "special_tokens_mask")
    }
    for name, values in others.items():
        if values is not None and [len(row) for row in values] != [len(row) for row in rows]:
            raise InputError(
                f"{name} and input_ids differ in shape: give each token one entry in both."
            )
    samples = []
    for index, ids in enumerate(rows):
        mask, types, special = (None if v is None else v[index] for v in others.values())
        if mask is not None and not np.isin(mask, (0, 1)).all():
            raise InputError(f"attention_mask of row {index} holds more than 0 and 1: mend it.")
        real = np.flatnonzero(mask) if mask is not None else np.arange(len(ids))
        if len(ids) and not len(real):
            raise InputError(f"row {index} is all padding: remove it.")
        samples.append(
            Sample(
                ids[real],
                real,
                None if types is None else types[real],
                None if special is None else special[real].astype(bool),
            )
        )
    return samples


def _rows(values: Any, name: str) -> list[np.ndarray]:
    """A tensor, array or nested list as one integer array per row; a single row is taken as one."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or not isinstance(values, np.ndarray | list | tuple):
        kind = type(values).__name__
        raise InputError(f"{name} is a single {kind}: pass one list of integers per sample.")
    if len(values) and not hasattr(values[0], "__len__"):
        values = [values]
    return [_row(row, f"{name} row {index}") for index, row in enumerate(values)]


def _row(row: Any, name: str) -> np.ndarray:
    wrong = InputError(f"{name} is not a row of integers: pass one list of integers per sample.")
    try:
        array = np.asarray(row.detach().cpu() if isinstance(row, Tensor) else row)
    except ValueError:  # rows within the row, of different lengths
        raise wrong from None
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    whole = array.dtype == bool or np.issubdtype(array.dtype, np.integer)
    if not whole and np.issubdtype(array.dtype, np.floating):
        whole = bool(np.isfinite(array).all() and (array == np.trunc(array)).all())
    if array.ndim != 1 or not whole:
        raise wrong
    return array.astype(np.int64)


def _check(index: int, sample: Sample, architecture: Architecture) -> None:
    length = len(sample.ids)
    if length == 0:
        raise InputError(f"input {index} has no tokens: remove it or give it words.")
    if length == 1:
        raise InputError(f"input {index} has one token: rank needs at least two; use longer text.")
    beyond = sample.ids[(sample.ids < 0) | (sample.ids >= architecture.vocabulary)]
    if len(beyond):
        raise InputError(
            f"input {index} has token id {beyond[0]}, beyond the model's vocabulary of "
            f"{architecture.vocabulary}: use the model's own tokenizer."
        )
    limit, last = architecture.positions, int(sample.positions[-1]) + 1
    if limit is not None and last > limit:
        raise InputError(
            f"input {index} has {last} tokens, but the model has {limit} positions: use tokens="
            f"{limit} (--tokens {limit}), shorten it, or cut it with truncate=True (--truncate)."
        )
    if sample.types is not None and architecture.segments:
        wrong = sample.types[(sample.types < 0) | (sample.types >= architecture.segments)]
        if len(wrong):
            raise InputError(
                f"input {index} has token type {wrong[0]}, but the model has "
                f"{architecture.segments}: use the model's own tokenizer."
            )


def _first(sample: Sample, count: int) -> Sample:
    return _select(sample, np.arange(len(sample.ids)) < count)


def _within(sample: Sample, limit: int) -> Sample:
    return _select(sample, sample.positions < limit)


def _select(sample: Sample, keep: np.ndarray) -> Sample:
    def part(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[keep]

    return Sample(
        sample.ids[keep], sample.positions[keep], part(sample.types), part(sample.special)
    )


def _counted(index: int, sample: Sample, leave_out: str) -> np.ndarray:
    if leave_out == "first":
        counted = np.arange(len(sample.ids)) > 0
    elif sample.special is None:
        raise InputError(
            "special tokens cannot be left out of token ids: pass texts, or add "
            "special_tokens_mask to the mapping."
        )
    else:
        counted = ~sample.special
    if counted.sum() < 2:
        raise InputError(
            f"input {index} has {counted.sum()} tokens once {leave_out} ones are left out: rank "
            "needs at least two; use longer text."
        )
    return counted


def _stack(rows: Sequence[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(np.stack(rows)).to(device)
