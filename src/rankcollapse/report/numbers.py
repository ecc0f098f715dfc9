"""How numbers are written in tables, tooltips, sentences and along axes.

Mean and standard deviation of a ratio share their decimals ("0.612 ± 0.014"); small and large
ones are scientific ("1.9e-07 ± 2e-08"); below 1e-300 a ratio is written as a power of ten whose
exponent has the mean and the deviation ("10^(-400.3±2.1)").
"""

import math

MISSING = "–"
THIN_SPACE = "\u202f"
HUGE = 1e7

_DIGITS, _RAISED = "-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


def _decimals(value: float) -> int | None:
    """Return the decimals that show `value` well, or None when it must be scientific."""
    size = abs(value)
    if size == 0:
        return 3
    if not 0.00995 <= size < 99_999.5:
        return None
    exponent = int(f"{size:.2e}".partition("e")[2])
    return max(0, 2 - exponent) if exponent >= 0 else 3


def number(value: float) -> str:
    """Write one value with two to four significant digits; `–` if it is not a number."""
    if math.isnan(value):
        return MISSING
    if value == 0:
        return "0"
    decimals = _decimals(value)
    return f"{value:.1e}" if decimals is None else f"{value:.{decimals}f}"


def deviation(std: float, mean: float) -> str:
    """Write a standard deviation with the decimals of its mean, or scientific if it is smaller."""
    decimals = _decimals(mean)
    if std == 0:
        return "0"
    if decimals is None or std < 0.5 * 10.0**-decimals:
        return f"{std:.0e}"
    return f"{std:.{decimals}f}"


def mean_and_std(mean: float, std: float) -> str:
    """Write "mean ± std", the mean alone when there is one sample, `–` when there is none."""
    if math.isnan(mean) or math.isnan(std):
        return number(mean)
    return f"{number(mean)} ± {deviation(std, mean)}"


def power(log10_mean: float, log10_std: float = math.nan) -> str:
    """Write a ratio too small for a float by the mean and deviation of its log10."""
    if abs(log10_mean) >= HUGE:
        spread = "" if math.isnan(log10_std) else f"±{log10_std:.0e}"
        exponent = f"{log10_mean:.2e}{spread}"
        return f"10^({exponent})"
    digits = 0 if abs(log10_mean) >= 1000 else 1
    exponent = f"{log10_mean:.{digits}f}"
    if math.isnan(log10_std):
        return f"10^{exponent}"
    coarse = log10_std < 0.5 * 10.0**-digits
    spread = f"{log10_std:.1g}" if coarse else f"{log10_std:.{digits}f}"
    return f"10^({exponent}±{spread})"


def decade(exponent: int) -> str:
    """Write a power of ten for an axis: "1", "10⁻³", from 10 000 on with thin spaces ("10⁻⁵⁰ ⁰⁰⁰").

    From ten million on the exponent is rounded to a power of ten and written as one ("10^−10⁹").
    """
    if exponent == 0:
        return "1"
    if abs(exponent) >= HUGE:
        sign = "−" if exponent < 0 else ""
        return f"10^{sign}{decade(round(math.log10(abs(exponent))))}"
    digits = f"{exponent:,}" if abs(exponent) >= 10_000 else str(exponent)
    return f"10{digits.translate(str.maketrans(_DIGITS + ',', _RAISED + THIN_SPACE))}"


def plain_digits(raised: str) -> str:
    """Write superscript digits as ordinary ones, with a minus sign."""
    return raised.translate(str.maketrans(_RAISED, "−" + _DIGITS[1:]))
