"""Remark 1: efficient attention, and whether it collapses faster or more slowly."""

from rankcollapse.experiments.xformers.xformers import EXPERIMENT

__all__ = ["EXPERIMENT"]
