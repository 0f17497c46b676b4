"""Ids of queries where a format has none: made from content, stable under insertion, fit for TREC, and matched with other names."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.evaluation.testset.split import only
from cranfield.formats.convert import convert
from cranfield.formats.registry import COLUMN_ID
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.model import Query, Span, TestSet, content_id
from cranfield.model.query_ids import HASH_LENGTH, SLUG_LENGTH, ids_by_row, ids_by_text, renamed

SPANS = "query,result1\nwhere is it,a.rs:1-2:2\nwhat is it,b.rs:3-4:1\n"
RATED = "query,docid,rating\nred boots,d1,3\nblue boots,d2,1\n"
PATTERNS = "query\tpattern\nHashable\t^h\nCodable\t^c\nHashable\t^x\n"
FORMS = {"spans-csv": SPANS, "quepid-csv": RATED, "patterns": PATTERNS}


def put(tmp_path: Path, text: str = SPANS, name: str = "truth.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Where is class `MarkdownParser` implemented?", "where-is-class-markdownparser"),
        ("Größe des Straßenverkehrs", "grosse-des-strassenverkehrs"),
        ("東京の天気", "q"),
        ("", "q"),
        ("x" * 90, "x" * 40),
        ("#hash first", "hash-first"),
        ("two\nlines\tand a tab", "two-lines-and-a-tab"),
    ],
)
def test_an_id_is_words_of_the_question_and_a_hash(text, words):
    found = content_id(text)
    assert re.fullmatch(rf"{words}-[0-9a-f]{{{HASH_LENGTH}}}", found) if len(text) > 40 or words == "q" else True
    assert found.rpartition("-")[0].startswith(words)


@given(st.text(max_size=200))
def test_every_id_fits_a_column_of_trec(text):
    found = content_id(text)
    assert re.fullmatch(COLUMN_ID, found)
    assert found.isascii()
    assert found.isprintable()
    assert len(found) <= SLUG_LENGTH + 1 + HASH_LENGTH


@given(
    st.lists(st.text(alphabet="abAB \n", min_size=1, max_size=6).map(str.strip).filter(bool), max_size=9, unique=True)
)
def test_two_questions_have_two_ids(texts):
    normal = {" ".join(text.split()) for text in texts}
    assert len({content_id(text) for text in texts}) == len(normal)


def test_blanks_and_forms_of_unicode_do_not_change_an_id_and_parameters_do():
    assert content_id(" a\u0301  b\n") == content_id("\u00e1 b")
    assert content_id("a b") != content_id("A b")
    assert content_id("a", {}) == content_id("a") != content_id("a", {"version": 2})


@pytest.mark.parametrize("name", FORMS)
def test_inserting_a_row_changes_no_other_id(tmp_path, name):
    before = read_testset(put(tmp_path, FORMS[name]))
    header, *rows = FORMS[name].splitlines()
    new = rows[0].replace("where is it", "new").replace("red boots", "new").replace("Hashable", "new")
    after = read_testset(put(tmp_path, "\n".join([header, new, *rows, ""])))
    assert after.query_ids == (content_id("new"), *before.query_ids)
    assert {q: after.grades.get(q, after.targets.get(q)) for q in before.query_ids} == {
        q: before.grades.get(q, before.targets.get(q)) for q in before.query_ids
    }


def test_equal_questions_are_an_error_that_names_the_rows(tmp_path):
    path = put(tmp_path, SPANS + "where  is it,c.rs:1-2:1\n")
    with pytest.raises(TestSetError) as caught:
        read_testset(path)
    assert "the question 'where is it' is the same for queries 1, 3" in str(caught.value)
    assert caught.value.problems[0].path == str(path)


def test_a_file_without_ids_is_written_without_them_and_other_ids_get_a_column(tmp_path):
    testset = read_testset(put(tmp_path))
    written, losses = convert(testset, tmp_path / "again.csv", "spans-csv")
    assert (tmp_path / "again.csv").read_text() == SPANS
    assert (written.digest, losses) == (testset.digest, ())
    by_row = renamed(testset, dict(zip(testset.query_ids, "12", strict=True)))
    written, _ = convert(by_row, tmp_path / "rows.csv", "spans-csv")
    assert (tmp_path / "rows.csv").read_text().splitlines()[1] == "1,where is it,a.rs:1-2:2"
    assert written.digest == by_row.digest


@pytest.mark.parametrize("name", FORMS)
def test_a_file_without_ids_says_so_and_one_with_ids_does_not(tmp_path, name):
    testset = read_testset(put(tmp_path, FORMS[name]))
    assert testset.made_ids == testset.query_ids == tuple(content_id(query.text) for query in testset.queries)
    assert str(testset.notes[0]) == MADE_IDS
    named = read_testset(put(tmp_path, "id,query,result1\nx,a,b.rs:1-2:1\n"))
    assert (named.made_ids, named.query_ids, named.notes) == ((), ("x",), ())


def test_rows_are_matched_only_where_all_of_them_are_rows_up_to_the_last(tmp_path):
    testset = read_testset(put(tmp_path))
    rows = dict(zip("12", testset.query_ids, strict=True))
    assert ids_by_row(testset, ["1", "2"]) == ids_by_row(testset, ["2"]) == rows
    assert ids_by_row(testset, ["1"]) == ids_by_row(testset, ["2", "3"]) == ids_by_row(testset, []) == {}
    assert ids_by_row(only(testset, testset.query_ids[1:]), ["1", "2"]) == rows
    assert ids_by_row(TestSet("t", (Query("a", "x"),)), ["1"]) == {}


def test_texts_are_matched_where_one_query_has_them_and_its_id_is_not_given(tmp_path):
    testset = read_testset(put(tmp_path))
    first, second = testset.query_ids
    assert ids_by_text(testset, ["where is it", "another"]) == {"where is it": first}
    assert ids_by_text(testset, ["where is it", first, "what is it"]) == {"what is it": second}
    with_ids = TestSet("t", (Query("a", "x"), Query("b", "y")))
    assert ids_by_text(with_ids, ["x"]) == {"x": "a"}
    assert ids_by_text(with_ids, ["x", "b"]) == {}  # a run that knows the ids means its own by another name


def test_renaming_keeps_everything_that_is_known_by_query_id(tmp_path):
    testset = read_testset(put(tmp_path))
    by_row = renamed(testset, dict(zip(testset.query_ids, "12", strict=True)))
    assert by_row.targets == {"1": (Span("a.rs", 1, 2, 2),), "2": (Span("b.rs", 3, 4),)}
    assert renamed(by_row, dict(zip("12", testset.query_ids, strict=True))) == testset
