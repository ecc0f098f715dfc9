"""Arithmetics: what a residual stream is made of and what a block does to it."""

from rankcollapse.streams.dense import Dense

__all__ = ["Dense"]
