"""Figure 2: the relative residual through depth in BERT, ALBERT and XLNet."""

from rankcollapse.experiments.figure_2.figure_2 import EXPERIMENT

__all__ = ["EXPERIMENT"]
