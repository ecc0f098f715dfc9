"""How numbers are written: digits, signs, scientific form and powers of ten."""

import math
from itertools import pairwise

import pytest

from rankcollapse.report.axis import layer_ticks, log_ticks
from rankcollapse.report.numbers import decade, mean_and_std, number, power


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
    assert [decade(e) for e in (0, -3, -400, 12)] == ["1", "10⁻³", "10⁻⁴⁰⁰", "10¹²"]


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
