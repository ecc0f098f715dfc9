"""Whether the tokens of a transformer are becoming one vector, how fast, and what prevents it.

>>> import rankcollapse
>>> sorted(rankcollapse.__all__)
['FAMILIES', 'RankCollapseError', 'Transformer', 'decompose', 'inspect', 'load', 'paths', 'report']
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rankcollapse.errors import RankCollapseError

if TYPE_CHECKING:
    from rankcollapse import paths, report
    from rankcollapse.families import FAMILIES
    from rankcollapse.families.load import load
    from rankcollapse.inspection import inspect
    from rankcollapse.paths.decompose import decompose
    from rankcollapse.transformer import Transformer

__version__ = version("rankcollapse")
__all__ = [
    "FAMILIES",
    "RankCollapseError",
    "Transformer",
    "decompose",
    "inspect",
    "load",
    "paths",
    "report",
]

# PyTorch and transformers take seconds to import, so the public names are fetched on first use.
_HOMES = {
    "FAMILIES": "rankcollapse.families",
    "Transformer": "rankcollapse.transformer",
    "decompose": "rankcollapse.paths.decompose",
    "inspect": "rankcollapse.inspection",
    "load": "rankcollapse.families.load",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("paths", "report"):
        return import_module(f"rankcollapse.{name}")
    raise AttributeError(f"module 'rankcollapse' has no attribute {name!r}")
