"""The arithmetic of training with dropout: `Dense`, with entries set to zero at random.

Cost: one random number per entry, drawn from a generator of its own so that runs repeat.
"""

import torch
from torch import Tensor

from rankcollapse.streams import Dense
from rankcollapse.transformer import Attention, Layout


class Dropout(Dense):
    """`Dense` with dropout behind the embedding and behind attention, before the skip is added.

    Entries are zero with probability `share`, and divided by 1 − share otherwise.
    """

    name = "dropout"

    def __init__(self, dtype: torch.dtype, share: float, generator: torch.Generator) -> None:
        super().__init__(dtype)
        self.share, self.generator = share, generator

    def enter(self, x: Tensor) -> Tensor:
        """The state with entries dropped."""
        return self._drop(x)

    def attend(self, x: Tensor, attention: Attention, layout: Layout) -> Tensor:
        """Σ_h P_h X W_h + 1bᵀ with entries dropped."""
        return self._drop(super().attend(x, attention, layout))

    def _drop(self, x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - self.share, generator=self.generator)
        return x * (kept / (1 - self.share))
