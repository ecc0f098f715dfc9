"""Where tensors come from: safetensors, `.bin` files read without their code, a live model.

Tensors are read one at a time when asked for. Safetensors and live models are never held whole.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from rankcollapse.errors import CheckpointError


@runtime_checkable
class Weights(Protocol):
    """A checkpoint: names and tensors."""

    def names(self) -> Iterable[str]:
        """All tensor names."""
        ...

    def read(self, name: str) -> Tensor:
        """One tensor, in the checkpoint's dtype."""
        ...


class SafetensorsWeights:
    """One `model.safetensors` or the shards that `model.safetensors.index.json` lists."""

    def __init__(self, files: dict[str, Path]) -> None:
        """`files` says which file holds which tensor."""
        self._files = files

    @classmethod
    def open(cls, paths: Iterable[Path]) -> "SafetensorsWeights":
        """Reads the headers of all `paths`.

        Raises:
            CheckpointError: A file is missing, truncated or not safetensors.
        """
        files: dict[str, Path] = {}
        for path in paths:
            try:
                with safe_open(path, framework="pt") as file:
                    files.update(dict.fromkeys(file.keys(), path))
            except FileNotFoundError:
                raise CheckpointError(
                    f"the checkpoint's index names {path.name}, but {path} does not exist: "
                    "download the missing shard."
                ) from None
            except (SafetensorError, OSError) as error:
                raise CheckpointError(
                    f"{path} cannot be read as safetensors ({error}): it is truncated or damaged; "
                    "download or save it again."
                ) from None
        return cls(files)

    def names(self) -> Iterable[str]:
        """All tensor names."""
        return self._files

    def read(self, name: str) -> Tensor:
        """One tensor, copied out of its file."""
        with safe_open(self._files[name], framework="pt") as file:
            return file.get_tensor(name)


class StateDictWeights:
    """A state dict: of a live model (views of its own weights) or of a `.bin` file."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors

    @classmethod
    def open(cls, paths: Iterable[Path]) -> "StateDictWeights":
        """Reads `.bin` files with `weights_only`, which runs no code, mapped into memory.

        Raises:
            CheckpointError: A file is missing, damaged, or needs pickle's code to load.
        """
        tensors: dict[str, Tensor] = {}
        for path in paths:
            try:
                stored = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except Exception as error:  # torch raises many types for a damaged or unsafe file
                raise CheckpointError(
                    f"{path} cannot be loaded as plain weights ({_first_line(error)}): convert it "
                    "to safetensors with save_pretrained()."
                ) from None
            if not isinstance(stored, dict):
                raise CheckpointError(
                    f"{path} holds {type(stored).__name__}, not named tensors: save a state dict."
                )
            for name, tensor in stored.items():
                if not isinstance(name, str) or not isinstance(tensor, Tensor):
                    raise CheckpointError(
                        f"{path} holds {name!r}: {type(tensor).__name__}, not a named tensor: save "
                        "a plain state dict."
                    )
            tensors |= stored
        return cls(tensors)

    def names(self) -> Iterable[str]:
        """All tensor names."""
        return self._tensors

    def read(self, name: str) -> Tensor:
        """One tensor, shared with its owner."""
        return self._tensors[name].detach()


def open_folder(folder: Path) -> Weights:
    """The weights of a folder: safetensors first, single or sharded, `.bin` otherwise.

    Raises:
        CheckpointError: There are none, or they cannot be read.
    """
    for stem, opened in (
        ("model.safetensors", SafetensorsWeights),
        ("pytorch_model.bin", StateDictWeights),
    ):
        index = folder / f"{stem}.index.json"
        if (folder / stem).is_file():
            return opened.open([folder / stem])
        if index.is_file():
            return opened.open(_shards(index))
    raise CheckpointError(
        f"{folder} has no weights (neither model.safetensors nor pytorch_model.bin, nor an index "
        "of shards): save the model there, or pass init='random' (--init random)."
    )


def _shards(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return [index.parent / name for name in sorted(names)]
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(
            f"{index} is no index of shards (no readable 'weight_map'): download it again."
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
