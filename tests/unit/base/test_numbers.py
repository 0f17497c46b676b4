from __future__ import annotations

import pytest

from cranfield.base import numbers

MINUS, DASH = "\u2212", "\u2013"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("value", 0.41204, "0.4120"),
        ("value", 1.25624, "1.2562"),
        ("value", 0, "0.0000"),
        ("value", -0.0, "0.0000"),
        ("value", -0.25, f"{MINUS}0.2500"),
        ("delta", 0.059, "+0.0590"),
        ("delta", -0.0021, f"{MINUS}0.0021"),
        ("delta", 0.0, "0.0000"),
        ("delta", -0.0, "0.0000"),
        ("delta", 0.00001, "+0.0000"),
        ("effect", -0.213, f"{MINUS}0.21"),
        ("p", 0.001147, ".0011"),
        ("p", 0.5, ".5000"),
        ("p", 0.0001, ".0001"),
        ("p", 0.00009999, "< .0001"),
        ("p", 0.0, "< .0001"),
        ("p", 1.0, "1"),
        ("p", 0.99996, "1"),
        ("percent", 0.1234, "12.3 %"),
        ("percent", 1, "100.0 %"),
        ("average", 9.25, "9.2"),
        ("ms", 3.21, "3.2 ms"),
        ("ms", 99.94, "99.9 ms"),
        ("ms", 99.96, "100 ms"),
        ("ms", 123.6, "124 ms"),
        ("ms", 12_345, "12.3 s"),
        ("count", 9999, "9999"),
        ("count", 12345, "12,345"),
        ("statistic", 1.5, "1.5"),
        ("statistic", 888.0, "888"),
        ("statistic", -0.57312, f"{MINUS}0.5731"),
        ("statistic", -0.00001, "0"),
        ("interval", (0.38, 0.44), "0.3800 to 0.4400"),
        ("delta interval", (-0.01, 0.02), f"{MINUS}0.0100 to +0.0200"),
        ("delta interval", (None, 0.02), "unbounded to +0.0200"),
        ("delta interval", (None, None), DASH),
    ],
)
def test_a_number_has_one_text(kind: numbers.Kind, value: object, text: str) -> None:
    assert numbers.format_cell(value, kind) == text


@pytest.mark.parametrize(
    "kind", ["text", "code", "count", "value", "delta", "effect", "p", "percent", "ms", "interval"]
)
def test_what_is_not_known_is_a_dash(kind: numbers.Kind) -> None:
    assert numbers.format_cell(None, kind) == DASH


def test_words_in_a_column_of_numbers_stand_as_they_are() -> None:
    assert numbers.format_cell("not found", "count") == "not found"


def test_numbers_in_a_column_of_text_are_not_formatted() -> None:
    assert numbers.format_cell("0.5", "text") == "0.5"


@pytest.mark.parametrize(("alpha", "text"), [(0.05, "95 %"), (0.1, "90 %"), (0.001, "99.9 %"), (0.005, "99.5 %")])
def test_a_confidence_level_is_said_in_percent(alpha: float, text: str) -> None:
    assert numbers.format_level(alpha) == text


@pytest.mark.parametrize(("value", "text"), [(0.05, "0.05"), (42, "42"), (-1, f"{MINUS}1"), (None, DASH)])
def test_a_setting_is_written_as_people_write_it(value: float | None, text: str) -> None:
    assert numbers.format_plain(value) == text


def test_kinds_that_are_numbers_line_up_at_the_right() -> None:
    assert numbers.is_numeric("interval")
    assert numbers.is_numeric("p")
    assert not numbers.is_numeric("code")
