"""What an upper bound says here: how far it lies above the measurement, and what it proves."""

import math

import numpy as np
import xarray as xr

from rankcollapse.report.certificate.bound import Bound
from rankcollapse.report.certificate.reasons import reason
from rankcollapse.report.certificate.summary import FROBENIUS
from rankcollapse.report.certificate.words import at, capital, power, times, value

VACUOUS = (
    "An upper bound is vacuous where it does not lie below what it starts from: the residual that "
    "enters the layer or, in depth, the input's own."
)


def sentence(dataset: xr.Dataset, bound: Bound) -> str:
    """Return one sentence on an upper bound."""
    values = _deep(bound) if bound.deep else _shallow(bound)
    return f"{capital(bound.name_in_text)} {values}; {_standing(dataset, bound)}."


def sharpest(found: list[Bound]) -> str:
    """Return which of the upper bounds on one norm that apply is the lowest, and where."""
    layers = found[0].layers
    best: dict[str, list[int]] = {}
    for n in range(1, len(layers)):
        usable = [b for b in found if b.applying[n] and np.isfinite(b.above[n])]
        if usable:
            lowest = min(usable, key=lambda bound: bound.mean[n])
            best.setdefault(lowest.name, []).append(int(layers[n]))
    how = "in depth" if found[0].deep else "from layer to layer"
    if not best and any((b.applying & b.zero).any() for b in found):
        return f"Where they apply, the upper bounds {how} are 0, as the measured residual is."
    if not best and any(b.applying.any() for b in found):
        return f"The upper bounds {how} are beyond what can be compared with the measured residual."
    if not best:
        return f"No upper bound {how} applies at any layer."
    by_name = {bound.name: bound for bound in found}
    every = [int(layer) for layer in layers[1:]]
    order = sorted(best, key=lambda name: -len(best[name]))
    clauses = [f"{by_name[name].name_in_text} {at(best[name], every)}" for name in order]
    ratios = [
        float(by_name[name].above[list(layers).index(layer)])
        for name in order
        for layer in best[name]
    ]
    text = f"The sharpest upper bound on ‖·‖₁,∞ that applies {how} is {', '.join(clauses)}"
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    if finite:
        text += f": {_range(min(finite), max(finite))} times the measured residual"
    if not any((b.applying & ~b.vacuous.all(axis=0)).any() for b in found):
        text += f", and not below {_start(found[0])}"
    return f"{text}."


def crossing(bound: Bound) -> list[str]:
    """Return an alarm for a bound, upper or lower, that the measurement crosses."""
    places = np.argwhere(bound.crossed)
    if not places.size:
        return []
    sample, n = (int(place) for place in places[0])
    side, kind = ("above", "upper") if bound.upper else ("below", "lower")
    others = len(places) - 1
    more = f", and at {others} more place{'s' if others > 1 else ''}" if others else ""
    return [
        f"DEFECT: at layer {bound.layers[n]} of text {sample} the measured residual "
        f"{power(bound.measured[sample, n])} is {side} the {kind} bound "
        f"{power(bound.logs[sample, n])} of {bound.name_in_text}, whose hypotheses hold{more}. "
        "One of the two numbers is wrong; trust neither, and please report it."
    ]


def _shallow(bound: Bound) -> str:
    """Say how far above the measurement the bound is where it applies, or else anywhere."""
    ratios = bound.above
    usable = [n for n in np.flatnonzero(_chosen(bound)) if math.isfinite(ratios[n])]
    if not usable and bound.zero[_chosen(bound)].all():
        return "is 0, as the measured residual is"
    if not usable and np.isposinf(bound.mean[_chosen(bound)]).all():
        return "has no finite value beside the measured residual"
    if not usable:
        return "has no value that can be compared with the measured residual"
    low, high = (pick(usable, key=lambda n: ratios[n]) for pick in (min, max))
    text = f"is {_range(ratios[low], ratios[high])} times the measured {_residual(bound)}"
    one = times(ratios[low]) == times(ratios[high])
    return text if one else f"{text} (sharpest at layer {bound.layers[low]})"


def _deep(bound: Bound) -> str:
    """Say what the bound is at the last layer at which it applies, or else at the last."""
    n = int(np.flatnonzero(_chosen(bound))[-1])
    layer = bound.layers[n]
    if bound.mean[n] == np.inf:
        return f"has no finite value at layer {layer}"
    ratio = bound.above[n]
    beside = f", {times(ratio)} times the measured one" if math.isfinite(ratio) else ""
    return f"gives {value(bound.mean[n])} for the {_residual(bound)} at layer {layer}{beside}"


def _range(low: float, high: float) -> str:
    least, most = times(low), times(high)
    return least if least == most else f"{least} to {most}"


def _start(bound: Bound) -> str:
    return "the input's own residual" if bound.deep else "the residual that enters the layer"


def _residual(bound: Bound) -> str:
    return "residual in the Frobenius norm" if bound.norm == FROBENIUS else "residual"


def _chosen(bound: Bound) -> np.ndarray:
    return bound.applying if bound.applying.any() else bound.stated


def _standing(dataset: xr.Dataset, bound: Bound) -> str:
    """Say where the hypotheses hold, and whether anything is proved there."""
    every, applying = bound.numbers(bound.stated), bound.numbers(bound.applying)
    if not bound.requires:
        return f"it needs no hypothesis and {_proof(bound, f' {at(every, every)}')}"
    if applying == every:
        return f"its hypotheses hold {at(every, every)}, where it {_proof(bound)}"
    why = reason(dataset, bound)
    if applying:
        return f"its hypotheses hold {at(applying, every)} only ({why}), where it {_proof(bound)}"
    partly = bound.numbers(bound.stated & (bound.holding > 0))
    if partly:
        some = f"at no layer in every text, in some {at(partly, every)}"
        return f"its hypotheses hold {some} ({why}), so it is proved for some texts only"
    return f"its hypotheses hold at no layer ({why}), so its proof does not reach this network"


def _proof(bound: Bound, everywhere: str = "") -> str:
    """Say where, among the layers at which it applies, the bound is below what it starts from."""
    applying = bound.numbers(bound.applying)
    proving = bound.numbers(bound.applying & ~bound.vacuous.any(axis=0))
    vacuous = bound.numbers(bound.applying & bound.vacuous.all(axis=0))
    start = _start(bound)
    if vacuous == applying:
        return f"is vacuous{everywhere}"
    if proving == applying:
        return f"is below {start}{everywhere}"
    if not proving:
        return f"is vacuous in some texts, or all{',' if everywhere else ''}{everywhere}"
    some = "" if len(proving) + len(vacuous) == len(applying) else " in some texts, or all,"
    return f"is below {start} {at(proving, applying)} but vacuous{some} elsewhere"
