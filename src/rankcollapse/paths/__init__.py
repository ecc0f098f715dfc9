"""Paths through a stack of attention layers: at each layer one head, or the skip connection.

The output of a stack is a sum over its paths, one term each (theory: the path decomposition).

>>> from rankcollapse import paths
>>> paths.count_paths(12, 12)
23298085122481
>>> gpt3 = paths.length_distribution(96, 96)
>>> round(float(gpt3.mean_length), 2), round(float(gpt3.share.sel(length=96)), 4)
(95.01, 0.3698)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankcollapse.paths.architectures import FIGURE_5, Stack
from rankcollapse.paths.configurations import read_stack
from rankcollapse.paths.counting import count_paths, length_distribution, length_distributions

if TYPE_CHECKING:
    from rankcollapse.paths.listing import enumerate_paths
    from rankcollapse.paths.sampling import sample
    from rankcollapse.paths.search import top
    from rankcollapse.paths.subnetwork import subnetwork_path, subnetwork_sum

__all__ = [
    "FIGURE_5",
    "Stack",
    "count_paths",
    "enumerate_paths",
    "length_distribution",
    "length_distributions",
    "read_stack",
    "sample",
    "subnetwork_path",
    "subnetwork_sum",
    "top",
]

# These need PyTorch, which takes seconds to import; counting does without.
_HOMES = {
    "enumerate_paths": "listing",
    "sample": "sampling",
    "subnetwork_path": "subnetwork",
    "subnetwork_sum": "subnetwork",
    "top": "search",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rankcollapse.paths.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rankcollapse.paths' has no attribute {name!r}")
