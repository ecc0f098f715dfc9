"""How far an attention matrix is from rank one: δ, γ, q and Dobrushin's coefficient.

With X = 1xᵀ + R the scores are 1rᵀ + E up to constants along rows (docs/theory.md §3). Everything
is taken from a state whose residual is carried apart, and in logarithms, so that it holds where E
is far below the smallest float64. Cost: the attention matrices, and O(H n³) for the coefficient.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.errors import InputError
from rankcollapse.streams.centered import CenteredState
from rankcollapse.streams.differences import softmax_difference
from rankcollapse.transformer.attention import attention_rows, heads_of
from rankcollapse.transformer.parts import Attention, Linear
from rankcollapse.transformer.scores import Layout

LN2 = math.log(2)
LARGEST_DELTA = 1.2564312086261696
"""Root of e^δ = 1 + 2δ, up to which Lemma A.3 holds; the paper writes 1.256."""


@dataclass(frozen=True)
class NearRankOne:
    """Attention matrices P_h beside 1q_hᵀ, q_h = softmax(r_h). Logarithms are natural.

    Attributes:
        log_delta: ln δ_i, δ_i = max_{j,j'} |E_ij − E_ij'| from the content scores.
        log_gamma: ln γ, γ = √(Σδ_i / max δ_i) in [1, √n]; γ = 1 where all δ_i are zero.
        largest_weight: max_j q_j.
        log_dobrushin: ln τ, τ = ½ max_{i,k} Σ_j |P_ij − P_kj|, from P with all its terms.
        log_spectral: ln ‖ΠPΠ‖₂, Π = I − 11ᵀ/n, likewise.
        centered: ΠPΠ itself, where float64 holds it.
    """

    log_delta: Float[Tensor, "batch head token"]
    log_gamma: Float[Tensor, "batch head"]
    largest_weight: Float[Tensor, "batch head"]
    log_dobrushin: Float[Tensor, "batch head"]
    log_spectral: Float[Tensor, "batch head"]
    centered: Float[Tensor, "batch head token token"]

    @property
    def log_largest_delta(self) -> Float[Tensor, "batch head"]:
        """Ln max_i δ_i."""
        return self.log_delta.amax(-1)

    @property
    def log_t(self) -> Float[Tensor, "batch head token"]:
        """Ln t_i, t_i = 2 tanh(δ_i/4), which bounds Σ_j |P_ij − q_j| for every δ_i."""
        delta = self.log_delta.clamp(max=20).exp()
        return torch.where(
            self.log_delta < -18, self.log_delta - LN2, (2 * (delta / 4).tanh()).log()
        )

    @property
    def log_kappa(self) -> Float[Tensor, "batch head"]:
        """Ln((e^δ − 1)/δ) for the largest δ."""
        log = self.log_largest_delta
        delta = log.exp()
        return torch.where(log < -18, delta / 2, delta + (-torch.expm1(-delta)).log() - log)

    @classmethod
    def of(cls, x: CenteredState, attention: Attention, layout: Layout) -> "NearRankOne":
        """The matrices that `attention` forms from `x`.

        Raises:
            InputError: Their scores overflow float64.
        """
        groups = attention.heads // attention.key_heads
        query = heads_of(Linear(attention.query.weight), x.residual, attention.heads)
        key = heads_of(Linear(attention.key.weight), x.residual, attention.key_heads)
        key = key.repeat_interleave(groups, 1)
        shared = attention.query(x.shared).unflatten(-1, (attention.heads, -1)).unsqueeze(2)
        logits = attention.scale * x.scale.unsqueeze(-1) * (shared @ key.mT)
        scores = attention.scale * (query @ key.mT)
        twice = 2 * LN2 * x.exponent
        # γ is a ratio, taken before the scale comes in: as a logarithm that may be all there is.
        ranges = scores.amax(-1) - scores.amin(-1)
        largest = ranges.amax(-1)
        gamma = torch.where(largest > 0, (ranges.sum(-1) / largest).log() / 2, 0.0)
        delta = ranges.log() + twice.view(-1, 1, 1)
        if attention.positional:
            rows = attention_rows(x.values, attention, layout)
            p, scale = torch.cat([part for _, part in rows], dim=2), torch.zeros_like(twice)
        else:
            p, scale = softmax_difference(scores, logits, x.exponent), twice
        # P and P − 1qᵀ have the same differences of rows, and the same ΠPΠ.
        centered = p - p.mean(2, keepdim=True)
        centered = centered - centered.mean(3, keepdim=True)
        if not bool(centered.isfinite().all()):
            raise InputError(
                "The attention scores overflow float64, so no bound can be evaluated: scale the "
                "weights down, or leave on the norms that keep the states small."
            )
        spectral = torch.linalg.svdvals(centered)[..., 0]
        apart = torch.stack([torch.cdist(each, each, p=1).amax((-2, -1)) for each in p])
        if attention.positional:  # a difference below the rounding of P is not known to be zero
            rounding = (p.shape[-1] - 1) * torch.finfo(p.dtype).eps
            spectral, apart = spectral.clamp(min=rounding), apart.clamp(min=rounding)
        return cls(
            log_delta=delta,
            log_gamma=gamma,
            largest_weight=logits.softmax(-1).amax((-2, -1)),
            log_dobrushin=(apart / 2).log() + scale.unsqueeze(1),
            log_spectral=spectral.log() + scale.unsqueeze(1),
            centered=centered * scale.exp().view(-1, 1, 1, 1),
        )
