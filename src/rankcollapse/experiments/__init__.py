"""The paper's experiments, run again: one file a figure, and what they have in common.

`EXPERIMENTS` has them by the name they have on the command line; each is imported on first use.

>>> from rankcollapse.experiments import EXPERIMENTS
>>> list(EXPERIMENTS)
['fig2', 'fig3', 'fig4', 'fig5', 'rates', 'xformers', 'mlp']
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankcollapse.experiments.experiment import Experiment

__all__ = ["EXPERIMENTS"]

_MODULES = {
    "fig2": "figure_2",
    "fig3": "figure_3",
    "fig4": "figure_4",
    "fig5": "figure_5",
    "rates": "rates",
    "xformers": "xformers",
    "mlp": "mlp_strength",
}


class _Experiments(Mapping[str, "Experiment"]):
    def __getitem__(self, name: str) -> "Experiment":
        return import_module(f"{__name__}.{_MODULES[name]}").EXPERIMENT

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


EXPERIMENTS: Mapping[str, "Experiment"] = _Experiments()
"""All experiments, by name."""
