"""ALiBi: scores fall with the distance of query and key."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rankcollapse.transformer import Layout


@dataclass(frozen=True)
class Alibi:
    """−slope · |i − j|, whatever the scale of the scores (Press et al. 2022, both directions)."""

    slope: float
    scale: float

    def scores(
        self, query: Float[Tensor, "batch head row size"], layout: Layout, rows: slice
    ) -> Float[Tensor, "batch head row token"]:
        """The term for query rows `rows`; divided by `scale`, which multiplies it afterwards."""
        distance = (layout.positions[rows, None] - layout.positions).abs()
        term = -self.slope / self.scale * distance.to(query.dtype)
        return term.expand(*query.shape[:2], -1, -1)
