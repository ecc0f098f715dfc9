"""What a certificate says of this model and this text, in a sentence for each bound."""

import numpy as np
import xarray as xr

from rankcollapse.report.certificate import lower, upper
from rankcollapse.report.certificate.bound import Bound, mean_log
from rankcollapse.report.certificate.reasons import reason
from rankcollapse.report.certificate.summary import PAPER, bounds, measured
from rankcollapse.report.certificate.words import value

CHANGE = np.log10(2.0)
CUBIC = ("theorem_2_3", "corollary_3_2")


def alarms(dataset: xr.Dataset) -> list[str]:
    """Return a sentence for each bound that a measurement crosses although it applies.

    There is none unless a bound, its hypotheses or a measurement is computed wrongly.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    return [text for bound in bounds(dataset) for text in upper.crossing(bound)]


def findings(dataset: xr.Dataset) -> list[str]:
    """Return sentences about the certificate: those of `of_model`, then those of `of_bounds`.

    Values are averages of log10 over the texts, a share that is certified is the smallest of any
    text, and a bound applies where its hypotheses hold in every text.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    vacuous = any((b.vacuous & b.applies).any() for b in bounds(dataset, upper=True))
    return [
        *of_model(dataset),
        *([upper.VACUOUS] if vacuous else []),
        *of_bounds(dataset).values(),
    ]


def of_model(dataset: xr.Dataset) -> list[str]:
    """Return what was measured, the sharpest upper bounds, and whether those in depth can shrink.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    sentences = _measured(dataset)
    for deep in (False, True):
        compared = bounds(dataset, upper=True, deep=deep, norm=PAPER)
        if len(compared) > 1:
            sentences.append(upper.sharpest(compared))
        cubic = next((bound for bound in compared if bound.name in CUBIC), None)
        if deep and cubic is not None:
            sentences += _contraction(dataset, cubic)
    return sentences


def of_bounds(dataset: xr.Dataset) -> dict[str, str]:
    """Return for each bound, by name, what it says here and whether its hypotheses hold.

    Args:
        dataset: what `rankcollapse.certify` returns.
    """
    return {
        bound.name: upper.sentence(dataset, bound)
        if bound.upper
        else lower.sentence(bound, reason(dataset, bound))
        for bound in bounds(dataset)
    }


def _measured(dataset: xr.Dataset) -> list[str]:
    means = mean_log(measured(dataset, PAPER))
    layers = dataset["layer"].values
    first, last = value(means[0]), value(means[-1])
    if np.isnan(means[[0, -1]]).any() or len(layers) < 2:
        return []
    if (means == -np.inf).all():
        return ["Measured, ‖res(X)‖₁,∞ is 0 at every layer."]
    if np.isfinite(means[[0, -1]]).all() and abs(means[-1] - means[0]) < CHANGE:
        return [
            f"Measured, ‖res(X)‖₁,∞ is {first} at layer {layers[0]} and {last} at layer "
            f"{layers[-1]}."
        ]
    verb = "falls" if means[-1] < means[0] else "rises"
    return [f"Measured, ‖res(X)‖₁,∞ {verb} from {first} to {last} at layer {layers[-1]}."]


def _contraction(dataset: xr.Dataset, bound: Bound) -> list[str]:
    """Set the condition under which a bound in depth tends to zero beside the paper's."""
    contraction, condition = (
        dataset[name].values[~np.isnan(dataset[name].values)]
        for name in ("log10_contraction", "log10_paper_condition")
    )
    if contraction.size == 0:
        return []
    below = int((contraction < 0).sum())
    size = f"√c‖res(X)‖ = {_range(contraction)}"
    subject = f"the bound of {bound.name_in_text}"
    would = "" if bound.applying[bound.stated].all() else "would "
    if below == contraction.size:
        said = f"{size} < 1: {subject} {would}{'tend' if would else 'tends'} to zero"
    elif below == 0:
        said = f"{size} ≥ 1: {subject} {would}{'grow' if would else 'grows'}"
        said += " without limit"
    else:
        said = (
            f"{size}, below 1 in {below} of {contraction.size} texts: only there {subject} "
            f"{would}{'tend' if would else 'tends'} to zero"
        )
    said += " with depth" + (" if its hypotheses held" if would else "")
    return [f"{said}; {_paper(condition, below, contraction.size)}."]


def _paper(condition: np.ndarray, below: int, texts: int) -> str:
    """Say of the paper's condition whether it holds and whether it points the same way."""
    holding = int((condition < 0).sum())
    name = "the paper's condition 4γβH < √d_qk, neither necessary nor sufficient,"
    if 0 < holding < condition.size:
        return f"{name} holds in {holding} of {condition.size} texts"
    points = "holds" if holding else "does not hold"
    agrees = below in (0, texts) and bool(holding) == bool(below)
    if agrees:
        return f"{name} {points} either" if not holding else f"{name} {points}, too"
    return f"{name} {points} all the same" if holding else f"{name} {points}"


def _range(logs: np.ndarray) -> str:
    low, high = value(float(logs.min())), value(float(logs.max()))
    return low if low == high else f"{low} to {high}"
