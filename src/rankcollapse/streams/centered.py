"""The arithmetic that follows a residual below machine precision (docs/theory.md §6).

X = 1mᵀ + 2^e R: the shared row m, the residual R and a scale are carried apart, so nothing is lost
when R is 10^-1000 of m. Every operation is an identity for the difference, free of cancellation;
none is an approximation beyond rounding. Cost against `Dense` in float64: the same matrix
products, rows of one n × n matrix per head, elementwise work (`benchmarks/centered.py`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rankcollapse.metrics import TokenMatrix
from rankcollapse.streams.differences import activation_difference, softmax_difference
from rankcollapse.transformer.activations import ACTIVATIONS
from rankcollapse.transformer.attention import attention_rows, heads_of, row_blocks
from rankcollapse.transformer.parts import MLP, Attention, Linear, Norm
from rankcollapse.transformer.scores import Layout

Rows = Float[Tensor, "batch token width"]


SMALLEST = -1e308
"""The exponent stops here, 10^-3e307: a cubic rate gets there in about 645 layers."""


@dataclass(frozen=True)
class CenteredState:
    """X = 1 `shared`ᵀ + 2^`exponent` · `residual`; the residual's rows sum to zero."""

    shared: Float[Tensor, "batch width"]
    residual: Float[Tensor, "batch token width"]
    exponent: Float[Tensor, " batch"]

    @property
    def scale(self) -> Float[Tensor, "batch 1 1"]:
        """2^exponent, which may be 0 as a float64."""
        return torch.exp2(self.exponent).view(-1, 1, 1)

    @property
    def values(self) -> Rows:
        """X, as far as float64 holds it."""
        return self.shared.unsqueeze(1) + self.scale * self.residual


def state(
    shared: Float[Tensor, "batch width"], residual: Rows, exponent: Float[Tensor, " batch"]
) -> CenteredState:
    """Moves the mean of the residual into the shared row and its size into the exponent."""
    mean = residual.mean(1)
    shared = shared + torch.exp2(exponent).unsqueeze(1) * mean
    residual = residual - mean.unsqueeze(1)
    largest = residual.abs().amax((1, 2))
    shift = torch.frexp(largest).exponent.double()
    residual = residual * torch.exp2(-shift).view(-1, 1, 1)
    return CenteredState(shared, residual, (exponent + shift).clamp(min=SMALLEST))


class Centered:
    """Shared row, residual and scale apart, in float64."""

    name = "centered"
    floor = 0.0

    def enter(self, x: Rows) -> CenteredState:
        """Splits a plain state; what rounding took before cannot be given back."""
        x = x.double()
        shared = x.mean(1)
        return state(shared, x - shared.unsqueeze(1), x.new_zeros(len(x)))

    def attend(self, x: CenteredState, attention: Attention, layout: Layout) -> CenteredState:
        """Σ_h P_h X W_h + 1bᵀ: cubic in the residual for content alone, linear with positions."""
        mixed = self._mix_positional if attention.positional else self._mix_content
        value = Linear(attention.value.weight)
        groups = attention.heads // attention.key_heads
        residual = heads_of(value, x.residual, attention.key_heads).repeat_interleave(groups, 1)
        mean, residual, exponent = mixed(x, residual, attention, layout)
        shared = attention.value(x.shared).unflatten(-1, (attention.key_heads, -1))
        shared = shared.repeat_interleave(groups, 1) + mean
        merged = residual.transpose(1, 2).flatten(2)
        return state(
            attention.output(shared.flatten(1)), merged @ attention.output.weight.T, exponent
        )

    def _mix_content(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
        layout: Layout,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """P = 1qᵀ + 2^(2e) G, so the new residual is 2^(3e) G R and the row moves by 2^e qᵀR."""
        groups = attention.heads // attention.key_heads
        query = heads_of(Linear(attention.query.weight), x.residual, attention.heads)
        key = heads_of(Linear(attention.key.weight), x.residual, attention.key_heads)
        key = key.repeat_interleave(groups, 1)
        shared = attention.query(x.shared).unflatten(-1, (attention.heads, -1)).unsqueeze(2)
        scale = x.scale.unsqueeze(-1)
        logits = attention.scale * scale * (shared @ key.mT)
        parts = []
        for rows in row_blocks(*query.shape[:3]):
            scores = attention.scale * (query[:, :, rows] @ key.mT)
            parts.append(softmax_difference(scores, logits, x.exponent) @ value)
        mean = (scale * (logits.softmax(-1) @ value)).squeeze(2)
        return mean, torch.cat(parts, dim=2), 3 * x.exponent

    def _mix_positional(
        self,
        x: CenteredState,
        value: Float[Tensor, "batch head token size"],
        attention: Attention,
        layout: Layout,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """P is not near rank one, so that P R loses nothing; rows of P sum to 1, so m stays."""
        rows = attention_rows(x.values, attention, layout)
        mixed = torch.cat([p @ value for _, p in rows], dim=2)
        return torch.zeros_like(mixed[:, :, 0]), mixed, x.exponent

    def mlp(self, x: CenteredState, mlp: MLP) -> CenteredState:
        """The MLP of every token, gated or plain."""
        up, up_residual = mlp.up(x.shared), x.residual @ mlp.up.weight.T
        function = ACTIVATIONS[mlp.activation]
        if mlp.gate is None:
            residual = activation_difference(function, up, up_residual, x.exponent)
            shared = function.function(up)
        else:
            gate, gate_residual = mlp.gate(x.shared), x.residual @ mlp.gate.weight.T
            active = function.function(gate)
            change = activation_difference(function, gate, gate_residual, x.exponent)
            shared = active * up
            residual = (
                change * up.unsqueeze(1)
                + active.unsqueeze(1) * up_residual
                + x.scale * change * up_residual
            )
        return state(mlp.down(shared), residual @ mlp.down.weight.T, x.exponent)

    def activate(self, x: CenteredState, mlp: MLP) -> CenteredState:
        """The MLP's activation alone."""
        function = ACTIVATIONS[mlp.activation]
        residual = activation_difference(function, x.shared, x.residual, x.exponent)
        return state(function.function(x.shared), residual, x.exponent)

    def normalize(self, x: CenteredState, norm: Norm) -> CenteredState:
        """LN(m + ρ) − LN(m) = c(ρ)/σ_y − c(m) Δ / (σ_m σ_y (σ_m + σ_y)), Δ = σ_y² − σ_m²."""
        layer = norm.kind == "layer"
        m = x.shared - x.shared.mean(-1, keepdim=True) if layer else x.shared
        rho = x.residual - x.residual.mean(-1, keepdim=True) if layer else x.residual
        m = m.unsqueeze(1)
        spread = (m.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        moved = ((m + x.scale * rho).square().mean(-1, keepdim=True) + norm.eps).sqrt()
        change = (2 * m * rho + x.scale * rho.square()).mean(-1, keepdim=True)
        residual = rho / moved - m * (change / (spread * moved * (spread + moved)))
        shared = (m / spread).squeeze(1)
        if norm.weight is not None:
            residual, shared = residual * norm.weight, shared * norm.weight
        if norm.bias is not None:
            shared = shared + norm.bias
        return state(shared, residual, x.exponent)

    def add(self, x: CenteredState, y: CenteredState) -> CenteredState:
        """Rows add; residuals add on the larger of the two scales."""
        exponent = torch.maximum(x.exponent, y.exponent)
        residual = sum(
            part.residual * torch.exp2(part.exponent - exponent).view(-1, 1, 1) for part in (x, y)
        )
        assert isinstance(residual, Tensor)
        return state(x.shared + y.shared, residual, exponent)

    def tokens(self, x: CenteredState, mask: Bool[Tensor, "batch token"] | None) -> TokenMatrix:
        """The residual as it is carried, centred on the counted tokens."""
        return TokenMatrix.split(x.values, x.residual, x.exponent, mask)

    def plain(self, x: CenteredState) -> Rows:
        """X, as far as float64 holds it."""
        return x.values
