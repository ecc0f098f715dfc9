"""Arithmetics: what a residual stream is made of and what a block does to it."""

from rankcollapse.streams.centered import Centered, CenteredState
from rankcollapse.streams.dense import Dense
from rankcollapse.streams.frozen import Frozen
from rankcollapse.streams.graded import Graded, GradedState

__all__ = ["Centered", "CenteredState", "Dense", "Frozen", "Graded", "GradedState"]
