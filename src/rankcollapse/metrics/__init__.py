"""Measures of token uniformity: pure functions on tensors, accumulated in float64."""

from rankcollapse.metrics.attention import attention_entropy, second_eigenvalue
from rankcollapse.metrics.magnitude import largest_token_ratio
from rankcollapse.metrics.norms import composite_norm, frobenius_norm
from rankcollapse.metrics.order import local_order
from rankcollapse.metrics.residual import (
    absolute_residual,
    log10_relative_residual,
    relative_residual,
    relative_residual_frobenius,
)
from rankcollapse.metrics.similarity import token_cosine
from rankcollapse.metrics.spectrum import effective_rank, singular_values, stable_rank
from rankcollapse.metrics.tokens import TokenMatrix

__all__ = [
    "TokenMatrix",
    "absolute_residual",
    "attention_entropy",
    "composite_norm",
    "effective_rank",
    "frobenius_norm",
    "largest_token_ratio",
    "local_order",
    "log10_relative_residual",
    "relative_residual",
    "relative_residual_frobenius",
    "second_eigenvalue",
    "singular_values",
    "stable_rank",
    "token_cosine",
]
