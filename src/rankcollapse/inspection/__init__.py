"""Measuring a model through depth."""

from rankcollapse.inspection.inspect import inspect

__all__ = ["inspect"]
