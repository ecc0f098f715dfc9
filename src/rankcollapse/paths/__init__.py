"""Paths through a stack of attention layers: at each layer one head, or the skip connection.

The output of a stack is a sum over its paths, one term each (theory: the path decomposition).

>>> from rankcollapse import paths
>>> paths.count_paths(12, 12)
23298085122481
>>> gpt3 = paths.length_distribution(96, 96)
>>> round(float(gpt3.mean_length), 2), round(float(gpt3.share.sel(length=96)), 4)
(95.01, 0.3698)
"""

from rankcollapse.paths.architectures import FIGURE_5, Stack
from rankcollapse.paths.configurations import read_stack
from rankcollapse.paths.counting import count_paths, length_distribution, length_distributions

__all__ = [
    "FIGURE_5",
    "Stack",
    "count_paths",
    "length_distribution",
    "length_distributions",
    "read_stack",
]
