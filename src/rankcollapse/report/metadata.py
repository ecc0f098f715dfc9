"""How a run was made: the JSON that the data set carries, and its variants in plain words."""

import json
from pathlib import Path
from typing import Any

import xarray as xr

PARTS = {
    "attention_skip": "attention skip connections",
    "mlp": "MLPs",
    "mlp_skip": "MLP skip connections",
    "attention_norm": "attention norms",
    "mlp_norm": "MLP norms",
    "final_norm": "the final norm",
    "norm": "norms",
}


def metadata(dataset: xr.Dataset) -> dict[str, Any]:
    """Return the run's metadata, an empty dictionary if the data set carries none."""
    text = dataset.attrs.get("metadata")
    return json.loads(text) if text else {}


def model_name(dataset: xr.Dataset) -> str:
    """Return the name of the model the data set describes, of a folder its last two parts."""
    name = str(metadata(dataset).get("model") or "model")
    return "/".join(Path(name).parts[-2:]) if Path(name).is_absolute() else name


def switched_off(dataset: xr.Dataset, variant: str) -> list[str] | None:
    """Return the parts that `variant` switches off, or None when the data set does not say."""
    entry = metadata(dataset).get("variants", {}).get(variant)
    if entry is None or entry.get("off") is None:
        return None
    return [str(part).lstrip("-") for part in entry["off"]]


def describe(dataset: xr.Dataset, variant: str) -> str:
    """Return `variant` as the beginning of a sentence: "Without MLPs (san+skip)"."""
    off = switched_off(dataset, variant)
    if off is None:
        return f"In the variant {variant}"
    if not off:
        return f"With everything on ({variant})"
    return f"Without {listing(part_names(off))} ({variant})"


def part_names(off: list[str]) -> list[str]:
    """Return the parts in plain words, the two kinds of skip connection taken together.

    An MLP that is off takes its own skip connection along, so the pair reads "skip connections
    and MLPs".
    """
    rest = [part for part in off if part != "mlp_skip"] if "mlp" in off else list(off)
    without_skips = "attention_skip" in off and ("mlp_skip" in off or "mlp" in off)
    if without_skips:
        rest = [part for part in rest if part not in ("attention_skip", "mlp_skip")]
    names = [PARTS.get(part, part.replace("_", " ")) for part in rest]
    return ["skip connections", *names] if without_skips else names


def listing(words: list[str]) -> str:
    """Join words as English does: "a", "a and b", "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
