"""The rates of docs/theory.md §5, measured."""

from rankcollapse.experiments.rates.rates import EXPERIMENT

__all__ = ["EXPERIMENT"]
