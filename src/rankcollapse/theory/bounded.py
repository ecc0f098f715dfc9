"""The arithmetic that carries bounds on the residual through a block, beside the state itself.

Every operation of the forward pass maps bounds to bounds: attention sets upper bounds from the
state that enters it, norms and MLPs multiply them by a factor, a skip connection adds, norm by
norm. So one pass over any block, of any family and variant, gives what theory says of its output
(docs/theory.md §3, §4). Cost: that of `Centered`, and per head an n × n singular value problem and
n³/2 differences.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.streams.centered import Centered, CenteredState
from rankcollapse.theory.attention_bounds import (
    BOUNDS,
    LogNorms,
    attention_bounds,
    recentering,
)
from rankcollapse.theory.constants import HeadNorms, Lipschitz
from rankcollapse.theory.near_rank_one import NearRankOne
from rankcollapse.theory.norm_factor import norm_factor
from rankcollapse.transformer.parts import MLP, Attention, Block, Norm
from rankcollapse.transformer.scores import Layout
from rankcollapse.transformer.variants import Variant


@dataclass(frozen=True)
class BoundedState:
    """A state, and bounds on its residual about the token mean; logarithms are natural.

    Attributes:
        real: The state.
        upper: Bounds from above, one per name of `BOUNDS`, and one on the Frobenius norm.
        lower: Ln of a bound on the Frobenius norm from below; −inf where it is vacuous, NaN behind
            a norm or a branch, for which none is stated.
        near: The attention matrices that the block formed, once it has.
        attended: What attention's own bounds were.
    """

    real: CenteredState
    upper: LogNorms
    lower: Float[Tensor, " batch"]
    near: NearRankOne | None = None
    attended: LogNorms | None = None

    @classmethod
    def known(cls, real: CenteredState) -> "BoundedState":
        """A state whose residual is known: every bound is the residual itself."""
        upper = LogNorms.of(real)
        return cls(real, upper, upper.frobenius)


class Bounded:
    """Bounds beside `Centered` states, for the weights of one block."""

    name = "bounded"
    floor = 0.0

    def __init__(self, heads: HeadNorms, mlp: Lipschitz | None) -> None:
        self.heads, self.lipschitz = heads, mlp
        self.centered = Centered()

    @classmethod
    def of(cls, block: Block, variant: Variant) -> "Bounded":
        """For `block`, without what `variant` switches off."""
        mlp = None
        if block.mlp is not None and "mlp" in variant:
            mlp = Lipschitz.of(block.mlp, "mlp_projections" in variant)
        return cls(HeadNorms.of(block.attention), mlp)

    def enter(self, x: Float[Tensor, "batch token width"]) -> BoundedState:
        """The state that enters the block, all of it known."""
        return BoundedState.known(self.centered.enter(x))

    def attend(self, x: BoundedState, attention: Attention, layout: Layout) -> BoundedState:
        """Bounds from the state itself, not from what is known of it."""
        near = NearRankOne.of(x.real, attention, layout)
        upper = attention_bounds(x.real, near, self.heads)
        real = self.centered.attend(x.real, attention, layout)
        return BoundedState(real, upper, upper.frobenius * math.nan, near, upper)

    def mlp(self, x: BoundedState, mlp: MLP) -> BoundedState:
        """Lipschitz constants, about the image of the mean token."""
        return self._through_mlp(x, self.centered.mlp(x.real, mlp))

    def activate(self, x: BoundedState, mlp: MLP) -> BoundedState:
        """Lipschitz constants of the activation alone."""
        return self._through_mlp(x, self.centered.activate(x.real, mlp))

    def _through_mlp(self, x: BoundedState, real: CenteredState) -> BoundedState:
        assert self.lipschitz is not None
        constants = self.lipschitz
        factors = (constants.column, constants.row, constants.spectral)
        return _multiplied(x, real, *(x.lower.new_tensor(factor) for factor in factors))

    def normalize(self, x: BoundedState, norm: Norm) -> BoundedState:
        """The norm's factors for the tokens that enter it."""
        return _multiplied(x, self.centered.normalize(x.real, norm), *norm_factor(x.real, norm))

    def add(self, x: BoundedState, y: BoundedState) -> BoundedState:
        """Each norm by itself; from below, what the branch `y` cannot take away from `x`.

        Lemma A.2 adds nothing: of its composite norm no such bound is known.
        """
        column = torch.logaddexp(x.upper.column, y.upper.column)
        row = torch.logaddexp(x.upper.row, y.upper.row)
        stated = torch.tensor([bound != "lemma_a2" for bound in BOUNDS]).unsqueeze(1)
        stated = stated.to(column.device)
        frobenius = torch.logaddexp(x.upper.frobenius, y.upper.frobenius)
        return replace(
            x,
            real=self.centered.add(x.real, y.real),
            upper=LogNorms(
                torch.where(stated, column, math.nan), torch.where(stated, row, math.nan), frobenius
            ),
            lower=log_difference(x.lower, y.upper.frobenius),
            near=y.near if x.near is None else x.near,
            attended=y.attended if x.attended is None else x.attended,
        )

    def tokens(self, x: BoundedState, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """Those of the state."""
        return self.centered.tokens(x.real, mask)

    def plain(self, x: BoundedState) -> Float[Tensor, "batch token width"]:
        """The state."""
        return self.centered.plain(x.real)


def _multiplied(
    x: BoundedState, real: CenteredState, column: Tensor, row: Tensor, frobenius: Tensor
) -> BoundedState:
    """The mean minimises the Frobenius norm, so only the other two pay for the centre."""
    moved = recentering(real.residual.shape[1])
    upper = LogNorms(
        _times(x.upper.column, column.log() + moved),
        _times(x.upper.row, row.log() + moved),
        _times(x.upper.frobenius, frobenius.log()),
    )
    return replace(x, real=real, upper=upper, lower=x.lower * math.nan)


def _times(log: Tensor, log_factor: Tensor) -> Tensor:
    """Equal tokens stay equal, even where no factor is finite."""
    return torch.where(log == -torch.inf, log, log + log_factor)


def log_difference(
    log_a: Float[Tensor, " batch"], log_b: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """Ln(a − b), −inf where b ≥ a; NaN where a is."""
    ratio = (log_b - log_a).exp()
    result = log_a + torch.log1p(-ratio.clamp(max=1))
    vacuous = (log_b >= log_a) | (log_a == -torch.inf)
    return torch.where(vacuous, -torch.inf, result)
