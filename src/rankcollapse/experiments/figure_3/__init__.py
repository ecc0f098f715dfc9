"""Figure 3: two points that are led around a circle by their own predictions."""

from rankcollapse.experiments.figure_3.figure_3 import EXPERIMENT

__all__ = ["EXPERIMENT"]
