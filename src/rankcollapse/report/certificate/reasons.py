"""Why a bound does not apply, in words."""

import re

import numpy as np
import xarray as xr

from rankcollapse.report.certificate.bound import Bound
from rankcollapse.report.certificate.summary import holds, statements
from rankcollapse.report.certificate.words import capital
from rankcollapse.report.metadata import listing
from rankcollapse.report.numbers import number

FAILING = {
    "content_only": "the scores have a positional term",
    "no_mask": "the scores are masked",
    "no_norm": "norms lie between the layers",
    "sum_over_heads": "the heads' composite norms do not add up",
}


def reason(dataset: xr.Dataset, bound: Bound) -> str:
    """Return which hypotheses of a bound fail somewhere, as "max δ = 1.62 exceeds 1.2564"."""
    texts = statements(dataset)
    failing = [name for name in bound.requires if not holds(dataset, name)[:, 1:].all()]
    return listing([_failing(dataset, name, texts[name]) for name in failing])


def _failing(dataset: xr.Dataset, name: str, statement: str) -> str:
    limit = re.search(r"≤ *([\d.]*\d)", statement)
    if name == "small_delta" and limit is not None:
        delta = dataset["max_delta"].transpose("sample", "layer").values
        return f"max δ = {_span(delta[~holds(dataset, name) & ~np.isnan(delta)])} > {limit[1]}"
    return FAILING.get(name, f"“{capital(statement)}” fails")


def _span(values: np.ndarray) -> str:
    if values.size == 0:
        return "unknown"
    low, high = number(float(values.min())), number(float(values.max()))
    return low if low == high else f"{low} to {high}"
