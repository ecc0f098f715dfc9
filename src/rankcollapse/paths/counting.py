"""How many paths there are of each length, as exact integers; only their logarithms are rounded.

With skip connections a path picks at each of L layers one of H heads or the skip, and its length
is the number of heads on it: C(L, l) Hˡ paths have length l, (1 + H)^L there are in all. Without
them every one of the H^L paths goes through all layers.
"""

import json
import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import xarray as xr

from rankcollapse.errors import OptionError
from rankcollapse.paths.architectures import Stack

# Beyond, exact integers take minutes and gigabytes; no transformer comes near.
MOST = {"layers": 10_000, "heads": 1_000_000}

_ATTRS = {
    "length": ("path length", "number of attention heads that a path goes through, at most L"),
    "log10_count": (
        "log10 of the number of paths",
        "log10 of the number of paths of length l: C(L, l) H^l with skip connections; without "
        "them H^L at l = L and none elsewhere (-inf)",
    ),
    "log10_share": (
        "log10 of the share of paths",
        "log10 of the share of paths of length l, kept where the share is no float any more",
    ),
    "share": (
        "share of paths",
        "number of paths of length l over the number of all; with skip connections the "
        "probability of l under Binomial(L, H / (1 + H))",
    ),
    "is_mode": ("most frequent length", "whether no other length has more paths; two can tie"),
    "log10_paths": (
        "log10 of the number of all paths",
        "log10 of the number of paths of any length: (1 + H)^L with skip connections, H^L without",
    ),
    "mean_length": (
        "mean path length",
        "mean of the length over all paths, each counted once: L H / (1 + H) with skip "
        "connections, L without",
    ),
    "std_length": (
        "standard deviation of path length",
        "standard deviation of the length over all paths: sqrt(L H) / (1 + H) with skip "
        "connections, 0 without",
    ),
}
_LOG10_2, _LN_10 = math.log10(2), math.log(10)


def count_paths(layers: int, heads: int, skips: bool = True) -> int:
    """Returns the number of all paths: (1 + H)^L with skip connections, H^L without.

    Raises:
        OptionError: `layers` or `heads` is no whole number of at least 1, or beyond `MOST`.
    """
    return (_whole("heads", heads) + bool(skips)) ** _whole("layers", layers)


def length_distribution(layers: int, heads: int, skips: bool = True) -> xr.Dataset:
    """Counts the paths of each length l = 0..L through L layers of H heads.

    Args:
        layers: L, at most 10 000.
        heads: H of every layer, at most 1 000 000.
        skips: whether a path may take the skip connection in place of a head. With skips there
            are C(L, l) Hˡ paths of length l; without, H^L of length L and no others.

    Returns:
        Over `length`: `log10_count`, `log10_share`, `share` and the bool `is_mode` (two lengths
        can tie); for all lengths together `log10_paths`, `mean_length` and `std_length`. The
        logarithms are of exact integers, right to the last digits of a float at any size.

    Raises:
        OptionError: `layers` or `heads` is no whole number of at least 1, or too large.

    Example:
        >>> length_distribution(2, 3).share.values.tolist()
        [0.0625, 0.375, 0.5625]
    """
    depth, width = _whole("layers", layers), _whole("heads", heads)
    counts = [0] * depth + [width**depth]
    if skips:
        counts = [1]
        for length in range(1, depth + 1):
            counts.append(counts[-1] * (depth - length + 1) * width // length)
    every = count_paths(depth, width, skips)
    most = max(counts)
    per_length = {
        "log10_count": [math.log10(count) if count else -math.inf for count in counts],
        "log10_share": [_log10_ratio(count, every) for count in counts],
        "share": [count / every for count in counts],
        "is_mode": [count == most for count in counts],
    }
    overall = {
        "log10_paths": math.log10(every),
        "mean_length": depth * width / (1 + width) if skips else float(depth),
        "std_length": math.sqrt(depth * width) / (1 + width) if skips else 0.0,
    }
    run = {"layers": depth, "heads": width, "skips": bool(skips)}
    return xr.Dataset(
        {
            **{name: ("length", values, _attrs(name)) for name, values in per_length.items()},
            **{name: ((), value, _attrs(name)) for name, value in overall.items()},
        },
        coords={"length": ("length", np.arange(depth + 1), _attrs("length"))},
        attrs={"metadata": json.dumps(run)},
    )


def length_distributions(stacks: Sequence[Stack], skips: bool = True) -> xr.Dataset:
    """Counts the paths of several stacks side by side.

    Args:
        stacks: what to count, such as `FIGURE_5`; their names must differ.
        skips: as in `length_distribution`.

    Returns:
        The variables of `length_distribution` with the further dimension `architecture`, along
        which `layers`, `heads` and `note` lie, too. Lengths beyond a stack's layers are NaN.

    Raises:
        OptionError: there is no stack, two have the same name, or one cannot be counted.
    """
    names = [stack.name for stack in stacks]
    if not names:
        raise OptionError("there is no architecture to count the paths of: pass at least one.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"two architectures have the name {twice!r}: give them different ones.")
    parts = [length_distribution(stack.layers, stack.heads, skips) for stack in stacks]
    longest = max(part.sizes["length"] for part in parts)
    joined = xr.Dataset(
        coords={
            "architecture": ("architecture", names, {"long_name": "architecture"}),
            "length": ("length", np.arange(longest), _attrs("length")),
            "layers": ("architecture", [s.layers for s in stacks], {"long_name": "layers"}),
            "heads": ("architecture", [s.heads for s in stacks], {"long_name": "heads"}),
            "note": ("architecture", [s.note for s in stacks], {"long_name": "what is counted"}),
        },
        attrs={"metadata": json.dumps({"skips": bool(skips)})},
    )
    for name, array in parts[0].data_vars.items():
        values = [part[name].values for part in parts]
        if array.dims:
            fill = False if array.dtype == bool else np.nan
            rows = [np.append(v, np.full(longest - len(v), fill, v.dtype)) for v in values]
            joined[name] = (("architecture", "length"), np.stack(rows), array.attrs)
        else:
            joined[name] = ("architecture", np.stack(values), array.attrs)
    return joined


def _log10_ratio(part: int, whole: int) -> float:
    """log10(part / whole) to the last digits, near 1 as well as far below the smallest float."""
    if part == 0:
        return -math.inf
    if 2 * part > whole:
        return math.log1p(-((whole - part) / whole)) / _LN_10 + 0.0
    shift = whole.bit_length() - part.bit_length()
    return math.log10((part << shift) / whole) - shift * _LOG10_2


def _whole(name: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool | np.bool_):
        raise OptionError(
            f"{name}={value!r} cannot be counted: pass a whole number of at least 1."
        ) from None
    if number > MOST[name]:
        raise OptionError(
            f"{name}={number} is more than can be counted exactly: pass at most {MOST[name]}."
        )
    return number


def _attrs(name: str) -> dict[str, str]:
    long_name, definition = _ATTRS[name]
    return {"long_name": long_name, "units": "1", "definition": definition}
