"""Options that make sense only together: refused before anything is loaded."""

from pathlib import Path

from rankcollapse.errors import OptionError


def check_seed(seed: int | None, init: str) -> None:
    """Raises `OptionError` where --seed is given and nothing is random."""
    if seed is not None and init != "random":
        raise OptionError(
            f"--seed {seed} has no effect on pretrained weights; add --init random or leave it out."
        )


def check_overwrite(overwrite: bool, out: Path | None) -> None:
    """Raises `OptionError` where --overwrite is given and nothing is written."""
    if overwrite and out is None:
        raise OptionError("--overwrite has nothing to replace; add --out or leave it out.")
