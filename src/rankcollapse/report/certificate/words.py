"""How powers of ten, shares and lists of layers are written in cells and sentences."""

import math
import re
from collections.abc import Sequence

from rankcollapse.report import numbers

PLAIN = (-2.0, 5.0)


def power(log: float) -> str:
    """Write a value by its log10: "10^3.9", "10^(2.6e47)", "0" and "∞" where that is infinite."""
    if math.isinf(log):
        return "∞" if log > 0 else "0"
    if math.isnan(log):
        return numbers.MISSING
    if abs(log) >= numbers.HUGE:
        return f"10^({re.sub(r'e[+]0?', 'e', f'{log:.1e}')})"
    return numbers.power(0.0 if abs(log) < 0.05 else log)


def value(log: float) -> str:
    """Write a value by its log10: as a plain number where that is short, as a power otherwise."""
    if math.isfinite(log) and PLAIN[0] <= log < PLAIN[1]:
        return numbers.number(10.0**log)
    return power(log)


def times(log: float) -> str:
    """Write a ratio: "1.6", "10^3.9", and near one with the first digit that differs: "1.003"."""
    if not math.isfinite(log) or abs(log) >= 2:
        return power(log)
    ratio = 10.0**log
    excess = abs(ratio - 1)
    if 1e-9 < excess < 0.05:
        return f"{ratio:.{-math.floor(math.log10(excess))}f}"
    return f"{float(f'{ratio:.2g}'):g}"


def share_at_least(log: float) -> str:
    """Write a share that is certified, so rounded down: "3 %", "10^-12.4"."""
    if not -4 <= log < 3:
        return power(math.floor(10 * log) / 10 if math.isfinite(log) else log)
    percent = 10.0 ** (log + 2)
    rest = 100 - percent
    near = 1e-7 < rest < 1
    unit = 10.0 ** (math.floor(math.log10(rest)) if near else math.floor(math.log10(percent)) - 1)
    # A share that is 100 % but for rounding is not 99.
    whole = math.floor(percent / unit * (1 + 1e-9)) * unit
    return f"{whole:.10g} %"


def share(log: float) -> str:
    """Write a share that is measured: "15.8 %", "10^-12.4"."""
    return f"{numbers.number(10.0 ** (log + 2))} %" if -4 <= log < 3 else power(log)


def ranges(layers: Sequence[int]) -> str:
    """Write increasing numbers of layers: "1–3, 5"."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def at(layers: Sequence[int], among: Sequence[int]) -> str:
    """Write where something is so: "at every layer", "from layer 3 on", "at layers 1–3, 5"."""
    found, every = list(layers), list(among)
    if not found:
        return "at no layer"
    if found == every and len(every) > 1:
        return "at every layer"
    if len(found) > 1 and found == every[-len(found) :]:
        return f"from layer {found[0]} on"
    if len(found) > 1 and found == every[: len(found)]:
        return f"up to layer {found[-1]}"
    return f"at layer{'s' if len(found) > 1 else ''} {ranges(found)}"


def capital(sentence: str) -> str:
    """Return a sentence with a capital at its beginning, unless that is a symbol such as γ."""
    first = sentence[:1]
    return first.upper() + sentence[1:] if first.isascii() else sentence
