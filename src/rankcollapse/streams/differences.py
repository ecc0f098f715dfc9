"""Differences of nonlinear functions without cancellation, for residuals of any size."""

import torch
from jaxtyping import Float
from numpy.polynomial import chebyshev
from torch import Tensor

from rankcollapse.transformer.activations import Activation

_SERIES_REACH = 0.05
"""Largest |ρ| for `activation_difference`'s series; beyond it a plain difference is as good."""


def softmax_difference(
    scores: Float[Tensor, "batch head row token"],
    logits: Float[Tensor, "batch head 1 token"],
    exponent: Float[Tensor, " batch"],
) -> Float[Tensor, "batch head row token"]:
    """(softmax(r + E) − q) / 2^(2e), with E = 2^(2e) · `scores`, r = `logits`, q = softmax(r).

    With F = expm1(E) it is q ∘ (F − Fq) / (1 + Fq). What a row of E has in common changes no
    softmax and is taken out first, since it would cancel in F − Fq only. Where E is below rounding,
    F = E, and the power of two never enters, so there is no smallest residual. Where E is of the
    order of 1 nothing cancels, and the plain difference is taken, which cannot overflow and where
    E may bring back a token whose q is zero as a float.
    """
    weights = logits.softmax(-1)
    scores = scores - (scores * weights).sum(-1, keepdim=True)
    square = torch.exp2(2 * exponent).view(-1, 1, 1, 1)
    largest = (square * scores.abs().amax((1, 2, 3), keepdim=True)).flatten()
    if bool((largest < 1e-17).all()):
        change = scores
    else:
        tiny = (largest < 1e-17).view(-1, 1, 1, 1)
        safe = torch.where(tiny, 1.0, square)
        change = torch.where(tiny, scores, torch.expm1(square * scores).clamp(max=1e300) / safe)
    shift = (change * weights).sum(-1, keepdim=True)
    small = weights * (change - shift) / (1 + square * shift)
    wide = largest > 1
    if bool(wide.any()):
        whole = (logits + square * scores).softmax(-1) - weights
        small = torch.where(wide.view(-1, 1, 1, 1), whole / square, small)
    if float(weights.max()) <= 0.5:
        return small
    # Rows sum to zero. Where one token has nearly all the weight its own difference is the one that
    # cancels, so it is had from the others.
    top = weights.argmax(-1, keepdim=True).expand(*small.shape[:-1], 1)
    rest = small.scatter(-1, top, 0.0)
    return rest.scatter(-1, top, -rest.sum(-1, keepdim=True))


def activation_difference(
    activation: Activation,
    shared: Float[Tensor, "batch width"],
    residual: Float[Tensor, "batch token width"],
    exponent: Float[Tensor, " batch"],
) -> Float[Tensor, "batch token width"]:
    """(f(m + 2^e R) − f(m)) / 2^e for m = `shared`, R = `residual`.

    Smooth f: R · ∫₀¹ f'(m + t 2^e R) dt. While h = 2^e max|R| is small, f' is taken at a few
    Chebyshev nodes of [m − h, m + h], once per feature and sample and not per token, and the
    polynomial through them is integrated; one node is enough once h is below rounding.
    """
    if activation.pieces is not None:
        return _piecewise_difference(activation.pieces, shared, residual, exponent)
    scale = torch.exp2(exponent).view(-1, 1, 1)
    size = residual.abs().amax((1, 2), keepdim=True)
    reach = scale * size
    center = shared.unsqueeze(1)
    if bool((reach <= _SERIES_REACH).all()):
        return _series(activation, center, residual, reach, size)
    function = activation.function
    plain = (function(center + scale * residual) - function(center)) / scale
    if bool((reach > _SERIES_REACH).all()):
        return plain
    series = _series(activation, center, residual, reach.clamp(max=_SERIES_REACH), size)
    return torch.where(reach > _SERIES_REACH, plain, series)


def _series(
    activation: Activation, center: Tensor, residual: Tensor, reach: Tensor, size: Tensor
) -> Tensor:
    """R Σ_k c_k u^k / (k + 1), with u = R / max|R| and Σ c_k u^k the interpolant of f'(m + hu)."""
    largest = float(reach.max())
    # Interpolation errs by about (h/2)^K; this keeps it below rounding with the fewest nodes.
    nodes = next(k for k, limit in _NODES if largest <= limit)
    points = torch.as_tensor(
        chebyshev.chebpts1(nodes), dtype=residual.dtype, device=residual.device
    )
    values = activation.derivative(center + reach * points.view(1, -1, 1))
    powers = torch.linalg.inv(torch.vander(points, increasing=True))
    coefficients = powers @ values
    if nodes == 1:
        return residual * coefficients
    u = residual / torch.where(size > 0, size, 1.0)
    total = coefficients[:, -1:] / nodes
    for k in range(nodes - 2, -1, -1):
        total = torch.addcmul(coefficients[:, k : k + 1] / (k + 1), total, u)
    return residual * total


_NODES = ((1, 1e-17), (2, 1e-9), (3, 1e-6), (5, 1e-3), (9, _SERIES_REACH))


def _piecewise_difference(power: int, shared: Tensor, residual: Tensor, exponent: Tensor) -> Tensor:
    """For relu(x)^power: exact, across the kink too. m / 2^e may well overflow to infinity."""
    inverse = torch.exp2(-exponent).view(-1, 1, 1)
    kink = (shared.unsqueeze(1) * inverse).nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    change = torch.where(kink > 0, torch.maximum(residual, -kink), (residual + kink).clamp(min=0))
    if power == 1:
        return change
    before = shared.unsqueeze(1).clamp(min=0)
    return change * (2 * before + torch.exp2(exponent).view(-1, 1, 1) * change)
