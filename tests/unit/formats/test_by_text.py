"""Queries that are known by their texts: one rule for their ids."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.tools.by_text import TextBuilder, written_texts
from cranfield.model import Query, TestSet, content_id
from cranfield.model.query_ids import text_ids


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["boots", "red dress"], ["boots", "red dress"]),
        (["boots", "two\nlines", "a\tb"], ["boots", "two-lines-f273df8b7f", content_id("a b")]),
        (["jazz", "jazz", "jazz"], ["jazz", "jazz (2)", "jazz (3)"]),
        (["jazz", "jazz", "jazz (2)"], ["jazz", "jazz (3)", "jazz (2)"]),
        (["a\nb", content_id("a b")], [f"{content_id('a b')} (2)", content_id("a b")]),
    ],
    ids=["texts", "by content", "again", "taken", "content taken"],
)
def test_the_text_is_the_id_where_it_is_fit(texts, expected):
    assert text_ids(texts) == expected


@given(st.lists(st.text(alphabet="ab\n (2)q1", min_size=1, max_size=5), max_size=12))
def test_every_query_gets_its_own_id(texts):
    ids = text_ids(texts)
    assert len(set(ids)) == len(texts)
    assert not any("\n" in query_id for query_id in ids)


def test_judgments_that_disagree_name_both_lines_and_those_that_agree_are_counted():
    found = TextBuilder(Path("ratings.csv"))
    found.query("boots", Query("", "boots"))
    for line, grade in ((2, 1.0), (3, 1.0), (7, 2.0)):
        found.judge("boots", "d1", grade, line)
    with pytest.raises(TestSetError) as caught:
        found.testset()
    assert str(caught.value) == (
        "ratings.csv:7: query 'boots', document 'd1' is judged twice; expected 1, as on line 2, got 2."
    )
    found.problems.problems.clear()
    assert tuple(map(str, found.testset().notes)) == (
        MADE_IDS,
        "1 repeated judgment with the same grade, counted once",
    )


def test_queries_that_the_text_does_not_tell_apart_are_not_written():
    testset = TestSet("t", (Query("a", "jazz"), Query("b", "jazz"), Query("c")), {"a": {"d": 1}})
    with pytest.raises(TestSetError) as caught:
        written_texts(testset, Path("out.csv"))
    assert str(caught.value) == (
        "out.csv: not written: query 'c' has no text.\nHint: this format identifies a query by its text.\n"
        "out.csv: not written: queries 'a', 'b' have the same text.\nHint: this format identifies a query by its text."
    )
    with pytest.raises(TestSetError, match="not written: no query"):
        written_texts(TestSet("t", ()), Path("out.csv"))
