import torch

from rankcollapse.streams import Dense
from tests.streams.contract import ArithmeticContract


class TestDense(ArithmeticContract):
    def arithmetic(self) -> Dense:
        return Dense(torch.float64)
