"""What a user may ask for, checked before anything runs."""

from collections.abc import Sequence
from pathlib import Path

from rankcollapse.errors import InputError, OptionError
from rankcollapse.experiments import EXPERIMENTS
from rankcollapse.experiments.experiment import Settings

ALL = "all"
PRETRAINED = ("bert", "albert", "xlnet")


def chosen(names: str | Sequence[str]) -> list[str]:
    """Returns the names of the experiments that are meant, each once.

    Args:
        names: One or more of `EXPERIMENTS`, or "all".

    Raises:
        OptionError: One does not exist, or there is none.
    """
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise OptionError(f"no experiment was named: use {_known()}.")
    for name in given:
        if name != ALL and name not in EXPERIMENTS:
            raise OptionError(f"experiment {name!r} does not exist: use {_known()}.")
    return list(EXPERIMENTS) if ALL in given else list(dict.fromkeys(given))


def check(settings: Settings, names: Sequence[str]) -> None:
    """Makes sure that the settings exist, and mean something to one of the experiments.

    Raises:
        OptionError: They do not.
        InputError: The text file is not there.
    """
    if settings.seeds is not None and settings.seeds < 1:
        raise OptionError(f"seeds is {settings.seeds}; use a whole number of at least 1.")
    meant_for = {
        "fig2": ("pretrained", settings.pretrained),
        "fig4": ("text", settings.text),
        "fig5": ("model", settings.models),
    }
    for name, (option, value) in meant_for.items():
        if value and name not in names:
            raise OptionError(f"{option} has no effect without {name}; add it or leave it out.")
    for family in settings.pretrained:
        if family not in PRETRAINED:
            raise OptionError(
                f"pretrained {family!r} is no panel of Figure 2: use {', '.join(PRETRAINED)}."
            )
    if settings.text is not None and not Path(settings.text).is_file():
        raise InputError(f"{settings.text} does not exist; name a text file.")


def _known() -> str:
    return ", ".join([*EXPERIMENTS, ALL])
