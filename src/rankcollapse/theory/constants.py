"""What bounds need of the weights alone: norms per head, Lipschitz constants of the MLP.

Float64. Cost: two width × width products per head, O(H d² d_h), once per block.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rankcollapse.transformer.activations import ACTIVATIONS
from rankcollapse.transformer.parts import MLP, Attention

PerHead = Float[Tensor, " head"]


@dataclass(frozen=True)
class HeadNorms:
    """Norms of the matrices of every head of one attention layer.

    Attributes:
        query_key: |scale| ‖W_QK,h‖₁, W_QK,h = W_Q,h W_K,hᵀ (largest column sum).
        column: ‖W_h‖₁, W_h = W_V,h W_O,h.
        row: ‖W_h‖∞ (largest row sum).
        spectral: ‖W_h‖₂.
        value: W_V,h, and `output` W_O,h.
    """

    query_key: PerHead
    column: PerHead
    row: PerHead
    spectral: PerHead
    value: Float[Tensor, "head width size"]
    output: Float[Tensor, "head size width"]

    @property
    def value_output(self) -> Float[Tensor, "head width width"]:
        """The matrices W_h, which take a width of memory more than their factors."""
        return self.value @ self.output

    @property
    def composite(self) -> PerHead:
        """‖W_h‖₁,∞."""
        return (self.column * self.row).sqrt()

    @classmethod
    def of(cls, attention: Attention) -> "HeadNorms":
        """Norms of `attention`'s heads; queries that share keys and values count as heads."""
        groups = attention.heads // attention.key_heads
        query = attention.query.weight.double().unflatten(0, (attention.heads, -1))
        key = attention.key.weight.double().unflatten(0, (attention.key_heads, -1))
        value = attention.value.weight.double().unflatten(0, (attention.key_heads, -1))
        output = attention.output.weight.double().unflatten(1, (attention.heads, -1))
        key, value = (part.repeat_interleave(groups, 0) for part in (key, value))
        output = output.permute(1, 2, 0)
        query_key = torch.stack(
            [(q.T @ k).abs().sum(0).amax() for q, k in zip(query, key, strict=True)]
        )
        products = [(v.T @ o).abs_() for v, o in zip(value, output, strict=True)]
        return cls(
            query_key=abs(attention.scale) * query_key,
            column=torch.stack([size.sum(0).amax() for size in products]),
            row=torch.stack([size.sum(1).amax() for size in products]),
            spectral=_spectral(value.mT, output),
            value=value.mT,
            output=output,
        )


@dataclass(frozen=True)
class Lipschitz:
    """Lipschitz constants of a map of tokens, one for each norm of the residual.

    Attributes:
        column: Of ‖·‖₁ of the token matrix, which are sums over tokens.
        row: Of ‖·‖∞, which are ℓ₁ norms of single tokens.
        spectral: Of the Frobenius norm, ℓ₂ norms of single tokens.
    """

    column: float
    row: float
    spectral: float

    @property
    def composite(self) -> float:
        """Of ‖·‖₁,∞: the geometric mean of the first two."""
        return math.sqrt(self.column * self.row)

    @classmethod
    def of(cls, mlp: MLP, projections: bool = True) -> "Lipschitz":
        """Those of x ↦ V f(Ux), from |f(a) − f(b)| ≤ s |a − b| with s the largest slope of f.

        Entry by entry |MLP(x) − MLP(y)| ≤ s |V||U| |x − y|, so the largest row sum of |V||U| serves
        sums over tokens, the largest column sum ℓ₁ norms, and ‖V‖₂‖U‖₂ ℓ₂ norms. A gated MLP is a
        product of two maps and has no such constant: infinity. Without its `projections` the
        MLP is f alone.
        """
        slope = ACTIVATIONS[mlp.activation].slope
        if not projections:
            return cls(slope, slope, slope)
        if mlp.gate is not None or math.isinf(slope):
            return cls(math.inf, math.inf, math.inf)
        up, down = mlp.up.weight.double(), mlp.down.weight.double()
        spectral = _largest_singular_value(down) * _largest_singular_value(up)
        up, down = up.abs(), down.abs()
        return cls(
            column=slope * float((down @ up.sum(1)).max()),
            row=slope * float((down.sum(0) @ up).max()),
            spectral=slope * spectral,
        )


def _largest_singular_value(matrix: Float[Tensor, "out in"]) -> float:
    """From the smaller of AᵀA and AAᵀ, which for the largest one loses nothing."""
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    return math.sqrt(max(0.0, float(torch.linalg.eigvalsh(gram)[-1])))


def _spectral(
    left: Float[Tensor, "head width size"], right: Float[Tensor, "head size width"]
) -> PerHead:
    """‖AB‖₂ of thin factors: with A = Q₁R₁ and Bᵀ = Q₂R₂ it is ‖R₁R₂ᵀ‖₂."""
    first, second = (torch.linalg.qr(part).R for part in (left, right.mT))
    return torch.linalg.matrix_norm(first @ second.mT, 2)
