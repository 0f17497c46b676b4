"""Counts, lists and printable text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.words import (
    and_list,
    capitalised,
    count_noun,
    first_line,
    join_first,
    last_lines,
    plural,
    printable,
    printable_lines,
    short_name,
    shorten_to,
    width,
)


@pytest.mark.parametrize(
    ("things", "one"),
    [
        ("spans of lines", "1 span of lines"),
        ("graded document ids", "1 graded document id"),
        ("negative queries", "1 negative query"),
        ("strata", "1 stratum"),
        ("query classes", "1 query class"),
        ("entities", "1 entity"),
        ("expected files", "1 expected file"),
        ("line ranges of records that expect entities", "1 line range of records that expect entities"),
    ],
)
def test_one_thing_is_in_the_singular_and_more_are_as_they_stand(things: str, one: str) -> None:
    assert count_noun(1, things) == one
    assert count_noun(2, things) == f"2 {things}"
    assert count_noun(0, things) == f"0 {things}"


def test_a_number_may_have_its_own_format() -> None:
    assert count_noun(12345, "queries", "{:,}".format) == "12,345 queries"


@pytest.mark.parametrize(("word", "many"), [("query", "queries"), ("key", "keys"), ("class", "classes"), ("y", "ys")])
def test_plurals(word: str, many: str) -> None:
    assert plural(word) == many


@pytest.mark.parametrize(
    ("n", "text"), [(0, ""), (1, "0"), (3, "0, 1, 2"), (4, "0, 1, 2 and 1 more"), (2000, "0, 1, 2 and 1,997 more")]
)
def test_the_first_of_many_are_listed_and_the_rest_counted(n: int, text: str) -> None:
    assert join_first(range(n), 3, number="{:,}".format) == text


@pytest.mark.parametrize(
    ("names", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_names_are_joined_by_and(names: tuple[str, ...], text: str) -> None:
    assert and_list(names) == text


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


@pytest.mark.parametrize(("text", "expected"), [("one query", "One query"), ("nDCG", "NDCG"), ("", "")])
def test_a_capital_changes_only_the_beginning(text: str, expected: str) -> None:
    assert capitalised(text) == expected


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


def test_marks_without_width_are_cut_too() -> None:
    assert shorten_to("a" + "\u0301" * 100_000, 10) == "a" + "\u0301" * 39 + "…"
    assert shorten_to("e\u0301" * 10, 10) == "e\u0301" * 10


def test_the_last_lines_are_those_that_are_not_blank() -> None:
    assert last_lines("a\n\n  b\nc\n\n", 2) == "b / c"
    assert last_lines("a", 2) == "a"
    assert last_lines(" \n", 2) == ""


def test_a_name_of_a_hundred_characters_is_whole_and_a_longer_one_as_long() -> None:
    assert short_name("n" * 100) == "n" * 100
    assert short_name("n" * 101) == "n" * 99 + "…"
