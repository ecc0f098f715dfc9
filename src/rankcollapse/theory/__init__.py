"""What theory says of a model, put beside what was measured."""

from rankcollapse.theory.attention_bounds import BOUNDS, LogNorms, attention_bounds, recentering
from rankcollapse.theory.bounded import Bounded, BoundedState
from rankcollapse.theory.center import Residual, residual
from rankcollapse.theory.constants import HeadNorms, Lipschitz
from rankcollapse.theory.depth import cubic_bound, log_contraction, skip_bound
from rankcollapse.theory.near_rank_one import LARGEST_DELTA, NearRankOne
from rankcollapse.theory.norm_factor import norm_factor
from rankcollapse.theory.rate import Rate, expected_rate, rates
from rankcollapse.theory.skip_operator import log_smallest_singular_value, skip_operator

__all__ = [
    "BOUNDS",
    "LARGEST_DELTA",
    "Bounded",
    "BoundedState",
    "HeadNorms",
    "Lipschitz",
    "LogNorms",
    "NearRankOne",
    "Rate",
    "Residual",
    "attention_bounds",
    "cubic_bound",
    "expected_rate",
    "log_contraction",
    "log_smallest_singular_value",
    "norm_factor",
    "rates",
    "recentering",
    "residual",
    "skip_bound",
    "skip_operator",
]
