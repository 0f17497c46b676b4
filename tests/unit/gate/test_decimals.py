"""Exact numbers: the fraction next to a float, exact means, and how a number beside its bound is written."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.gate.decimals import as_text, exact, mean, percent_text


@pytest.mark.parametrize(
    ("value", "fraction"),
    [
        (0.1 + 0.2, Fraction(3, 10)),  # 0.30000000000000004
        (1 - 0.9, Fraction(1, 10)),  # 0.09999999999999998
        (2 / 3, Fraction(2, 3)),
        ((1 / 1 + 2 / 3 + 3 / 7) / 3, Fraction(44, 63)),  # AP of ranks 1, 3 and 7: (21 + 14 + 9) / 21 / 3
        (0.0, Fraction(0)),
        (-0.5, Fraction(-1, 2)),
        (17.0, Fraction(17)),
        (1e-300, Fraction("1e-300")),  # and not 0, which is nearer than any denominator of a million
        (1 / math.log2(3), Fraction("0.6309297535714575")),  # no simple fraction is within its last digits
    ],
)
def test_a_float_stands_for_the_simplest_fraction_within_its_last_digits(value: float, fraction: Fraction) -> None:
    assert exact(value) == fraction


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_float_moves_by_more_than_its_last_digits(value: float) -> None:
    assert abs(exact(value) - Fraction(repr(value))) <= Fraction(1, 2**50) * abs(Fraction(repr(value)))


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_every_quotient_of_small_numbers_is_recognised(numerator: int, denominator: int) -> None:
    assert exact(numerator / denominator) == Fraction(numerator, denominator)


def test_a_mean_is_what_it_is_where_floats_give_less() -> None:
    values = [0.1] * 10
    assert sum(values) / 10 < 0.1
    assert mean([exact(value) for value in values]) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("number", "against", "text"),
    [
        ("0.7", None, "0.7000"),
        ("0.7", "0.7", "0.7000"),
        ("0.69996", "0.7", "0.69996"),  # to four decimals it would be 0.7000
        ("0.6999999", "0.7", "0.6999999"),
        ("-0.05", None, "\u22120.0500"),
        ("12.5", None, "12.5000"),
    ],
)
def test_a_number_beside_its_bound_is_never_written_like_it(number: str, against: str | None, text: str) -> None:
    assert as_text(Fraction(number), None if against is None else Fraction(against)) == text


@pytest.mark.parametrize(
    ("share", "against", "text"),
    [
        ("-0.05", "-0.05", "\u22125.0 %"),
        ("-0.0501", "-0.05", "\u22125.01 %"),
        ("0.8", None, "+80.0 %"),
        ("0", None, "0.0 %"),
    ],
)
def test_a_share_is_written_in_per_cent(share: str, against: str | None, text: str) -> None:
    assert percent_text(Fraction(share), None if against is None else Fraction(against), signed=True) == text
