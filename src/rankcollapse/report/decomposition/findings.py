"""What a decomposition shows, in a few plain sentences, each said only where the numbers say so."""

import numpy as np
import xarray as xr

from rankcollapse.report.decomposition.summary import (
    TITLES,
    TOTAL,
    Spread,
    by_length,
    counted,
    largest_heads,
    overall,
    plain,
    sources,
    up_to,
    variant_off,
)
from rankcollapse.report.decomposition.target import target_name
from rankcollapse.report.metadata import listing
from rankcollapse.report.numbers import mean_and_std, number

MOST = 0.5
FACTOR = 2.0
AGAINST = -0.005


def findings(dataset: xr.Dataset) -> list[str]:
    """Return sentences about the data set, the most important first.

    Args:
        dataset: what `rankcollapse.decompose` returns.

    Returns:
        How long most paths and most of the output are, which sources it comes from, which lengths
        count against it, how the residual of the input's terms goes with length, how exactly the
        terms add up, and with a target the projection and the largest head.
    """
    return [
        *_lengths(dataset),
        *_sources(dataset),
        *_against(dataset),
        *_residual(dataset),
        _exactness(dataset),
        *_target(dataset),
    ]


def _lengths(dataset: xr.Dataset) -> list[str]:
    """Compare the shortest third of the lengths, by what they hold, with the longest, by count."""
    off = variant_off(dataset)
    layers = dataset.sizes["length"] - 1
    if "mlp_skip" in off and "mlp" not in off:
        return ["No path of the input reaches the output: each MLP without its skip ends them all."]
    if "attention_skip" in off:
        return [f"Without attention skip connections every path of the input has length {layers}."]
    third = layers // 3
    held = up_to(dataset, "share", third)
    few, whole = _range(0, third), plain(held.mean, abs(held.mean))
    spread = f" (± {plain(held.std, abs(held.mean))})" if held.std > 0 else ""
    rest = f"{few[:1].upper()}{few[1:]} {whole} of the output{spread}."
    paths = counted(dataset)
    long = 0.0 if paths is None else float(paths[layers - third :].sum())
    if long <= MOST:
        return [rest]
    many = f"Most paths are long: {_range(layers - third, layers)} {number(long)} of their number"
    if held.mean <= MOST:
        return [f"{many}.", rest]
    return [f"{many}; most of the output is short: {few} {whole} of it{spread}."]


def _range(first: int, last: int) -> str:
    return f"length {first} holds" if first == last else f"lengths {first} to {last} hold"


def _sources(dataset: xr.Dataset) -> list[str]:
    sums = overall(dataset, "share")
    present = [s for s in sources(dataset) if any(by_length(dataset, "share")[s])]
    largest = max((abs(sums[source].mean) for source in present), default=0.0)
    parts = [f"{plain(sums[s].mean, largest)} from {_source(s)}" for s in present]
    comes = listing(parts).replace(" from", " comes from", 1)
    return [f"Of the output, {comes}."] if parts else []


def _source(source: str) -> str:
    return {"input": "the input", "mlp": "MLPs"}.get(source, TITLES.get(source, source))


def _against(dataset: xr.Dataset) -> list[str]:
    """Return the lengths whose share is negative beyond a deviation of the samples."""
    totals = by_length(dataset, "share")[TOTAL]
    found = [
        str(n) for n, s in enumerate(totals) if s is not None and s.mean < AGAINST and _sure(s)
    ]
    if not found:
        return []
    if len(found) == 1:
        return [f"Length {found[0]} points against the output: its share is negative."]
    return [f"Lengths {listing(found)} point against the output: their shares are negative."]


def _sure(spread: Spread) -> bool:
    return np.isnan(spread.std) or spread.mean + spread.std < 0


def _residual(dataset: xr.Dataset) -> list[str]:
    column = by_length(dataset, "relative_residual").get("input", [])
    present = [(n, s) for n, s in enumerate(column) if s is not None and s.mean > 0]
    if len(present) < 2:
        return []
    (first, before), (last, after) = present[0], present[-1]
    ends = f"{number(before.mean)} at length {first}", f"{number(after.mean)} at length {last}"
    subject = "The relative residual of the input's terms"
    if 1 / FACTOR < after.mean / before.mean < FACTOR:
        return [f"{subject} is {ends[0]} and {ends[1]}."]
    return [
        f"{subject} {'falls' if after.mean < before.mean else 'rises'} from {' to '.join(ends)}."
    ]


def _exactness(dataset: xr.Dataset) -> str:
    error = float(dataset["error"].max())
    return f"The terms add up to the output of the pass within {error:.0e} of its norm."


def _target(dataset: xr.Dataset) -> list[str]:
    if "projection" not in dataset:
        return []
    whole = overall(dataset, "projection")[TOTAL]
    sentence = f"The projection on {target_name(dataset)} is {mean_and_std(whole.mean, whole.std)}"
    top = largest_heads(dataset, 1)
    if not top:
        return [f"{sentence}."]
    head = top[0]
    total = mean_and_std(head.total.mean, head.total.std)
    return [
        f"{sentence}; the paths through head {head.head} of layer {head.layer} add up to {total}, "
        "the largest total of a head in size."
    ]
