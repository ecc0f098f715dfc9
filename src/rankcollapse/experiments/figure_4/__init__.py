"""Figure 4: what sub-networks of one path length know of three tasks."""

from rankcollapse.experiments.figure_4.figure_4 import EXPERIMENT

__all__ = ["EXPERIMENT"]
