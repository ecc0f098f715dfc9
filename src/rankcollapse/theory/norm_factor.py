"""By how much a norm can enlarge the residual of the tokens that enter it (docs/theory.md §3)."""

from jaxtyping import Float
from torch import Tensor

from rankcollapse.streams.centered import CenteredState
from rankcollapse.transformer.parts import Norm

Factor = Float[Tensor, " batch"]


def norm_factor(x: CenteredState, norm: Norm) -> tuple[Factor, Factor, Factor]:
    """Factors on ‖·‖₁, ‖·‖∞ and ‖·‖_F of the residual, about the norm of the mean token.

    With x = m + ρ, ĉ(v) = c(v)/σ_v, g the weight, s = min_i σ_i over tokens, w_ik =
    |c(m) + c(x_i)|_k / (σ_m + σ_i) and K = 2(1 − 1/d), the norm of c as a map (1 for RMSNorm):

        ‖·‖₁: (K/s) (max_j g_j + max_j g_j|ĉ(m)_j| · mean_k max_i w_ik)
        ‖·‖∞: (K/s) (max_j g_j + mean_j g_j|ĉ(m)_j| · max_ik w_ik)
        ‖·‖_F: (1/s) (max_j g_j + √(mean_j g_j²ĉ(m)_j² · max_i mean_k w_ik²))

    Source:
        docs/theory.md §3, from N(x) − N(m) = g ∘ (c(ρ)/σ_x − ĉ(m) Δ/(σ_x(σ_m + σ_x))) with
        Δ = mean((c(m) + c(x)) c(ρ)).
    """
    layer = norm.kind == "layer"
    shared, values = x.shared.unsqueeze(1), x.values
    if layer:
        shared = shared - shared.mean(-1, keepdim=True)
        values = values - values.mean(-1, keepdim=True)
    spread = (shared.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    sigma = (values.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    weight = values.new_ones(()) if norm.weight is None else norm.weight.double().abs()
    direction = weight * (shared / spread).abs()
    w = (shared + values).abs() / (spread + sigma)
    largest, smallest = weight.max(), sigma.amin((1, 2))
    width = values.shape[-1]
    centering = 2 * (1 - 1 / width) if layer else 1.0
    column = largest + direction.amax((1, 2)) * w.amax(1).mean(-1)
    row = largest + direction.mean((1, 2)) * w.amax((1, 2))
    squares = direction.square().mean((1, 2)) * w.square().mean(-1).amax(-1)
    return (
        centering * column / smallest,
        centering * row / smallest,
        (largest + squares.sqrt()) / smallest,
    )
