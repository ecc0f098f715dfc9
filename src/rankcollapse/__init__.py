"""Whether the tokens of a transformer are becoming one vector, how fast, and what prevents it.

>>> import rankcollapse
>>> print(*sorted(rankcollapse.__all__))  # doctest: +NORMALIZE_WHITESPACE
FAMILIES RankCollapseError Transformer certify decompose inspect load paths report reproduce
residual
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rankcollapse.errors import RankCollapseError

if TYPE_CHECKING:
    from rankcollapse import paths, report
    from rankcollapse.certification import certify
    from rankcollapse.experiments.running.runner import reproduce
    from rankcollapse.families import FAMILIES
    from rankcollapse.families.load import load
    from rankcollapse.inspection import inspect
    from rankcollapse.paths.decompose import decompose
    from rankcollapse.theory.center import residual
    from rankcollapse.transformer import Transformer

__version__ = version("rankcollapse")
__all__ = [
    "FAMILIES",
    "RankCollapseError",
    "Transformer",
    "certify",
    "decompose",
    "inspect",
    "load",
    "paths",
    "report",
    "reproduce",
    "residual",
]

# PyTorch and transformers take seconds to import, so the public names are fetched on first use.
_HOMES = {
    "FAMILIES": "rankcollapse.families",
    "Transformer": "rankcollapse.transformer",
    "certify": "rankcollapse.certification",
    "decompose": "rankcollapse.paths.decompose",
    "inspect": "rankcollapse.inspection",
    "load": "rankcollapse.families.load",
    "reproduce": "rankcollapse.experiments.running.runner",
    "residual": "rankcollapse.theory.center",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("paths", "report"):
        return import_module(f"rankcollapse.{name}")
    raise AttributeError(f"module 'rankcollapse' has no attribute {name!r}")
