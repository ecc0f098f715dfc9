import torch

from rankcollapse.streams import Frozen, Graded
from tests.streams.contract import ArithmeticContract


class TestGraded(ArithmeticContract):
    def arithmetic(self) -> Graded:
        return Graded(torch.float64)


class TestFrozen(ArithmeticContract):
    def arithmetic(self) -> Frozen:
        return Frozen()
