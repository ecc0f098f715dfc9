"""How powers, shares and lists of layers are written."""

import math

import pytest

from rankcollapse.report.certificate.words import (
    at,
    capital,
    power,
    ranges,
    share,
    share_at_least,
    times,
    value,
)


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (3.94, "10^3.9"),
        (-0.04, "10^0.0"),
        (0.04, "10^0.0"),
        (-391.26, "10^-391.3"),
        (-400123.4, "10^-400123"),
        (2.6e47, "10^(2.6e47)"),
        (-4.0e7, "10^(-4.0e7)"),
        (1e308, "10^(1.0e308)"),
        (math.inf, "∞"),
        (-math.inf, "0"),
        (math.nan, "–"),
    ],
)
def test_powers(log, text):
    assert power(log) == text


@pytest.mark.parametrize(
    ("log", "text"),
    [(math.log10(236), "236"), (math.log10(0.024), "0.024"), (-2.1, "10^-2.1"), (5, "10^5.0")],
)
def test_values_are_plain_where_that_is_short(log, text):
    assert value(log) == text


def test_ratios_have_two_digits():
    assert [times(math.log10(x)) for x in (1, 1.62, 50, 0.5, 7e8)] == [
        "1",
        "1.6",
        "50",
        "0.5",
        "10^8.8",
    ]
    assert [times(math.log10(x)) for x in (1.0034, 0.99998, 1 + 1e-12)] == ["1.003", "0.99998", "1"]


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (2.96, "2.9 %"),
        (3, "3 %"),
        (97.99, "97 %"),
        (99.9734, "99.97 %"),
        (100, "100 %"),
        (129, "120 %"),
        (0.0569, "0.056 %"),
    ],
)
def test_a_certified_share_is_rounded_down(percent, text):
    assert share_at_least(math.log10(percent / 100)) == text


def test_small_shares_are_powers():
    assert share_at_least(-12.41) == "10^-12.5"
    assert share_at_least(-math.inf) == "0"
    assert share(-12.41) == "10^-12.4"
    assert share(math.log10(0.158)) == "15.8 %"


def test_layers():
    assert ranges([1, 2, 3, 5, 7, 8]) == "1–3, 5, 7–8"
    every = [1, 2, 3, 4]
    assert at(every, every) == "at every layer"
    assert at([], every) == "at no layer"
    assert at([3, 4], every) == "from layer 3 on"
    assert at([1, 2], every) == "up to layer 2"
    assert at([1, 3], every) == "at layers 1, 3"
    assert at([4], every) == "at layer 4"
    assert at([1], [1]) == "at layer 1"


def test_a_symbol_is_no_letter_to_capitalise():
    assert capital("the tanh bound") == "The tanh bound"
    assert capital("γ-free bound") == "γ-free bound"
