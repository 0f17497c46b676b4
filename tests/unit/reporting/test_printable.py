from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.reporting.renderers.printable import first_line, printable, printable_lines, shorten_to, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("tab\tand\r\nlines", "tab and lines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("nul\x00", "nul\\x00"),
        ("right\u202eleft", "right\\u202eleft"),
        ("byte \udc80", "byte \\x80"),
        ("half \ud83d", "half \\ud83d"),
        ("日本語 é ß", "日本語 é ß"),
    ],
)
def test_what_would_be_obeyed_is_spelled(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_printable_text_can_be_written_and_is_one_line(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


def test_lines_are_kept_where_they_mean_something() -> None:
    assert printable_lines("a\r\nb\rc\x07\td") == "a\nb\nc\\x07\td"


@pytest.mark.parametrize(
    ("text", "first"), [("\n  boom \nmore", "boom"), ("", ""), (" \n ", ""), ("\x1b[1mx", "\\x1b[1mx")]
)
def test_the_first_line_is_the_first_that_says_something(text: str, first: str) -> None:
    assert first_line(text) == first


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0)])
def test_width_is_counted_as_a_terminal_counts_it(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("ab cd", 4, "ab…"),
    ],
)
def test_text_is_cut_to_columns_not_characters(text: str, columns: int, cut: str) -> None:
    assert shorten_to(text, columns) == cut


@given(st.text(), st.integers(1, 40))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    assert width(shorten_to(text, columns)) <= columns
