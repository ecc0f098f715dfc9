"""How numbers are written: digits, signs, scientific form and powers of ten."""

import math
from itertools import pairwise

import pytest

from rankcollapse.report.axis import along, deep_ticks, exponent_at, layer_ticks, log_ticks
from rankcollapse.report.numbers import decade, mean_and_std, number, plain_digits, power


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.6123, "0.612"),
        (0.0123, "0.012"),
        (0.00123, "1.2e-03"),
        (1.234, "1.23"),
        (0.99999, "1.00"),
        (12.34, "12.3"),
        (9.999, "10.0"),
        (123.4, "123"),
        (-0.25, "-0.250"),
        (1.9e-7, "1.9e-07"),
        (1.5e6, "1.5e+06"),
        (0.0, "0"),
        (math.nan, "–"),
    ],
)
def test_number(value: float, text: str):
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.612, 0.0138, "0.612 ± 0.014"),
        (1.9e-7, 2.1e-8, "1.9e-07 ± 2e-08"),
        (0.612, 4e-5, "0.612 ± 4e-05"),
        (1.0, 0.0, "1.00 ± 0"),
        (0.5, math.nan, "0.500"),
        (math.nan, math.nan, "–"),
    ],
)
def test_mean_and_std(mean: float, std: float, text: str):
    assert mean_and_std(mean, std) == text


def test_powers_of_ten():
    assert power(-400.26, 2.08) == "10^(-400.3±2.1)"
    assert power(-400.26, 0.012) == "10^(-400.3±0.01)"
    assert power(-1234.4, 12.3) == "10^(-1234±12)"
    assert power(-400.26) == "10^-400.3"
    assert power(-322790.6) == "10^-322791"
    assert power(-322790.6, 2063.4) == "10^(-322791±2063)"
    assert power(-1328.4, 0.31) == "10^(-1328±0.3)"
    assert power(-3.4567e20, 1.2e17) == "10^(-3.46e+20±1e+17)"
    assert power(-3.4567e20) == "10^(-3.46e+20)"


def test_powers_of_ten_on_an_axis():
    assert [decade(e) for e in (0, -3, -400, 12)] == ["1", "10⁻³", "10⁻⁴⁰⁰", "10¹²"]
    assert [decade(-(10**n)) for n in (3, 4, 5, 6)] == [
        "10⁻¹⁰⁰⁰",
        "10⁻¹⁰\u202f⁰⁰⁰",
        "10⁻¹⁰⁰\u202f⁰⁰⁰",
        "10⁻¹\u202f⁰⁰⁰\u202f⁰⁰⁰",
    ]
    assert decade(-(10**9)) == "10^−10⁹"
    assert plain_digits("⁻¹⁰\u202f⁰⁰⁰") == "−10\u202f000"


def test_ticks_of_the_doubly_logarithmic_axis_are_powers_of_powers():
    ticks = deep_ticks(-500_000.0, 0.5)
    assert ticks.values == [-100_000, -10_000, -1000, -100, -10, -1, 0]
    assert ticks.labels[-2:] == ["10⁻¹", "1"]
    assert deep_ticks(-400.0, 0.5).values == [-300, -100, -30, -10, -3, -1, 0]
    far = deep_ticks(-3e100, 0.5).values
    assert 5 <= len(far) <= 9 and far[-1] == 0


@pytest.mark.parametrize("exponent", [-4e5, -15.7, -0.2, 0.0, 0.3, 12.0])
def test_places_along_the_doubly_logarithmic_axis_have_one_exponent(exponent: float):
    assert exponent_at(along(exponent)) == pytest.approx(exponent)
    assert along(exponent) == pytest.approx(math.copysign(math.log(1 + abs(exponent)), exponent))


def test_ticks_over_many_decades_are_round_powers():
    ticks = log_ticks(-905.0, 3.0)
    assert ticks.values == [-800.0, -600.0, -400.0, -200.0, 0.0]
    assert ticks.labels == ["10⁻⁸⁰⁰", "10⁻⁶⁰⁰", "10⁻⁴⁰⁰", "10⁻²⁰⁰", "1"]


def test_ticks_within_a_decade_are_even_decimals():
    ticks = log_ticks(math.log10(0.39), math.log10(1.02))
    assert ticks.labels == ["0.4", "0.6", "0.8", "1"]
    assert [10**v for v in ticks.values] == pytest.approx([0.4, 0.6, 0.8, 1.0])


def test_ticks_over_two_decades_are_one_two_five():
    assert log_ticks(-0.05, 1.75).labels == ["1", "2", "5", "10", "20", "50"]


@pytest.mark.parametrize("layers", [0, 1, 2, 6, 12, 13, 24, 32, 36, 48, 96, 500])
def test_layers_are_ticked_from_the_first_to_the_last_without_crowding(layers: int):
    ticks = layer_ticks(layers)
    assert (ticks[0], ticks[-1]) == (0, layers)
    assert len(ticks) <= 14
    gaps = [b - a for a, b in pairwise(ticks)]
    assert all(gap >= 0.6 * max(gaps) for gap in gaps)
