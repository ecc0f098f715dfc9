"""The paper's bounds in depth, in natural logarithms (Theorems 2.2 and 2.3, docs/theory.md §3).

Their exponent 3^L leaves float64 behind after a handful of layers as numbers, and after some 640
as logarithms, where they become ±infinite.
"""

import math

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, " sample"]


def cubic_bound(log_c: Values, log_residual: Values, layers: int) -> Values:
    """Ln of c^((3^L − 1)/2) ρ^(3^L), what L layers with ρ' ≤ cρ³ leave of ρ.

    Written as 3^L ln(√c ρ) − ½ ln c, it is visible that it tends to zero exactly where √c ρ < 1.

    Args:
        log_c: Ln c; c = 4γβH/√d_qk in Theorem 2.3, times the MLPs' Lipschitz constant λ in
            Corollary 3.2.
        log_residual: Ln ρ, the residual's composite norm at the input.
        layers: L.

    Source:
        Theorems 2.2 and 2.3, Corollary 3.2. Hypotheses: content-only attention without mask,
        max δ ≤ 1.256 at every layer, no norms, no skip connections.

    >>> float(np.exp(cubic_bound(np.log([2.0]), np.log([0.5]), 2))[0])  # 2⁴ / 2⁹
    0.03125
    """
    if layers == 0:
        return log_residual
    with np.errstate(invalid="ignore"):
        inner = _times(_power(layers), log_contraction(log_c, log_residual)) - log_c / 2
    # Where c is zero or infinite this is ∞ − ∞: equal tokens stay equal, else c decides.
    decides = np.where(log_residual == -np.inf, -np.inf, log_c)
    return np.where(np.isinf(decides), decides, inner)


def log_contraction(log_c: Values, log_residual: Values) -> Values:
    """Ln(√c ρ), negative exactly where the bounds in depth tend to zero."""
    return log_c / 2 + log_residual


def skip_bound(log_c: Values, log_residual: Values, layers: int) -> Values:
    """Ln of max_{0≤k≤L} (2c)^((3^k − 1)/2) 2^(3^k (L − k)) ρ^(3^k), with c as above.

    Source:
        §3.1 and its appendix: networks with skip connections. Hypotheses: those of Theorem 2.3,
        and that composite norms may be added. Vacuously large, as the paper says.
    """
    log_2c = log_c + math.log(2)
    terms = [
        cubic_bound(log_2c, log_residual + (layers - k) * math.log(2), k) for k in range(layers + 1)
    ]
    return np.max(terms, axis=0)


def _power(layers: int) -> float:
    """3^L as a float, infinite from 647 layers on."""
    return 3.0**layers if layers < 647 else math.inf


def _times(power: float, log: Values) -> Values:
    """Their product, without a warning where it leaves float64; 0 where the logarithm is 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(log == 0, 0.0, power * log)
