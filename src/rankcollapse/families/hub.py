"""From what the user typed to a folder with config.json: a local one or a hub snapshot."""

import json
from pathlib import Path
from typing import Any

from rankcollapse.errors import CheckpointError, UnsupportedModelError

_SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]


def download(source: str, revision: str | None, weights: bool) -> Path:
    """The folder of `source`; a hub id is fetched (or found in the cache) first.

    Args:
        source: A local folder, else a hub id.
        revision: Commit, branch or tag of the hub model.
        weights: Whether weights are needed; safetensors are preferred and nothing else is fetched
            where they exist.

    Raises:
        CheckpointError: It is neither a folder nor a hub model that can be reached.
    """
    folder = Path(source).expanduser()
    if not source.strip():
        raise CheckpointError("the model's name is empty: pass a folder or a hub id.")
    if folder.is_dir():
        return folder
    if folder.exists():
        raise CheckpointError(
            f"{source} is a file: pass the folder that holds config.json and the weights."
        )
    # Imported here: it is slow, and local folders do without it.
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError

    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise CheckpointError(f"there is no folder {source}: check the path, or pass a hub id.")
    try:
        patterns = list(_SMALL_FILES)
        if weights:
            # One request with a limit of its own; a listing of files would retry for half a minute.
            stored = HfApi().model_info(source, revision=revision, timeout=10).siblings or []
            safe = any(file.rfilename.endswith(".safetensors") for file in stored)
            patterns.append("*.safetensors" if safe else "pytorch_model*.bin")
        return Path(snapshot_download(source, revision=revision, allow_patterns=patterns))
    except HFValidationError:
        raise CheckpointError(
            f"{source!r} is neither a folder here nor a valid hub id: check the spelling."
        ) from None
    except Exception as error:  # no network, no such model, no access: the hub's words say which
        cached = _cached(source, revision)
        if cached is not None:
            return cached
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(
            f"{source!r} is no folder here and cannot be had from the hub ({first}): check the "
            "name, or download it and pass the folder."
        ) from None


def local_config(folder: Path) -> dict[str, Any]:
    """config.json as it is written.

    Raises:
        CheckpointError: There is none.
        UnsupportedModelError: It is not a JSON object.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(
            f"{folder} has no config.json: pass the folder that save_pretrained() wrote."
        )
    return read_config(path)


def read_config(path: Path) -> dict[str, Any]:
    """A configuration file as it is written.

    Raises:
        UnsupportedModelError: It is not a JSON object.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnsupportedModelError(f"{path} is not JSON ({error}): download it again.") from None
    if not isinstance(raw, dict):
        raise UnsupportedModelError(f"{path} is not a JSON object: download it again.")
    return raw


def _cached(source: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, revision=revision, local_files_only=True))
    except Exception:  # not in the cache either; the caller reports the first failure
        return None
