"""What a lower bound says here: how much of the residual is certain to survive, and how far."""

import numpy as np

from rankcollapse.report.certificate.bound import Bound
from rankcollapse.report.certificate.words import at, capital, share, share_at_least


def sentence(bound: Bound, why: str) -> str:
    """Return one sentence on a lower bound.

    Args:
        bound: the bound.
        why: which of its hypotheses fail somewhere; "" if none does.
    """
    name = capital(bound.name_in_text)
    every, applying = bound.numbers(bound.stated), bound.numbers(bound.applying)
    if not applying:
        return f"{name} applies at no layer ({why}), so it certifies nothing here."
    only = "" if applying == every else f"; it applies {at(applying, every)} only ({why})"
    saying = bound.applying & ~bound.vacuous.any(axis=0)
    vacuous = bound.numbers(bound.applying & bound.vacuous.all(axis=0))
    partly = [layer for layer in applying if layer not in [*vacuous, *bound.numbers(saying)]]
    silent = [f"vacuous {at(vacuous, every)}"] if vacuous else []
    silent += [f"vacuous in some texts {at(partly, every)}"] if partly else []
    if not saying.any():
        return f"{name} is {' and '.join(silent)}{only}."
    rest = f"; it is {' and '.join(silent)}" if silent else ""
    certified = (_deep if bound.deep else _shallow)(bound, saying)
    return f"{name} certifies that {certified}{rest}{only}."


def _certified(bound: Bound) -> np.ndarray:
    """Return by layer log10 of the certified share of what the bound starts from.

    The smallest of all samples, so that it is certain for each of them.
    """
    finite = np.isfinite(bound.logs) & np.isfinite(bound.entering)
    parts = np.where(finite, bound.logs, 0.0) - np.where(finite, bound.entering, 0.0)
    return np.where(finite, parts, -np.inf).min(axis=0)


def _shallow(bound: Bound, saying: np.ndarray) -> str:
    shares = _certified(bound).tolist()
    found = np.flatnonzero(saying).tolist()
    low, high = (pick(found, key=lambda n: shares[n]) for pick in (min, max))
    least, most = share_at_least(shares[low]), share_at_least(shares[high])
    if len(found) == 1:
        return (
            f"at least {least} of the residual survives layer {bound.layers[low]} "
            f"({_measured(bound, low)})"
        )
    where = at(bound.numbers(saying), bound.numbers(bound.stated))
    if least == most:
        return f"at least {least} of the residual that enters a layer survives it, {where}"
    return (
        f"at least {least} (layer {bound.layers[low]}) to {most} (layer {bound.layers[high]}) of "
        f"the residual that enters a layer survives it, {where}"
    )


def _deep(bound: Bound, saying: np.ndarray) -> str:
    n = int(np.flatnonzero(saying)[-1])
    share_left = share_at_least(float(_certified(bound)[n]))
    return (
        f"at least {share_left} of the input's residual is left behind "
        f"layer {bound.layers[n]} ({_measured(bound, n)})"
    )


def _measured(bound: Bound, n: int) -> str:
    return f"measured: {share(float((bound.measured - bound.entering)[:, n].mean()))}"
