"""Ids of queries where a format has none: made from content, stable under insertion, fit for TREC, and matched by rule."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.errors import TestSetError, UnknownNameError, UsageError
from cranfield.formats.convert import convert
from cranfield.formats.registry import COLUMN_ID
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.model import ID_RULES, Query, Span, TestSet, content_id
from cranfield.model.query_ids import HASH_LENGTH, SLUG_LENGTH
from cranfield.model.renaming import match_ids, own_id, rule_of_digest, under_rule
from cranfield.project.loading import TestSetOptions, load

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


@pytest.mark.parametrize("name", FORMS)
def test_a_set_knows_its_rule_and_the_ids_of_the_others(tmp_path, name):
    path = put(tmp_path, FORMS[name])
    testset = read_testset(path)
    assert testset.meta.ids == "content"
    assert "rule `content`" in str(testset.notes[0])
    for rule in ID_RULES:
        other = read_testset(path, ids=rule)
        assert other.meta.ids == rule
        assert other.digest == under_rule(testset, rule).digest
        assert under_rule(other, "content").digest == testset.digest
        assert [own_id(testset, query_id) for query_id in other.query_ids] == list(testset.query_ids)
    assert read_testset(path, ids="row").query_ids == ("1", "2")


def test_the_metadata_beside_a_file_name_the_rule_and_an_argument_goes_before_it(tmp_path):
    path = put(tmp_path)
    put(tmp_path, json.dumps({"ids": "row"}), "truth.csv.meta.json")
    assert load(path).query_ids == ("1", "2")
    assert load(path).meta.ids == "row"
    assert load(path, options=TestSetOptions(ids="content")).meta.ids == "content"


def test_a_split_that_was_drawn_by_row_is_that_of_the_same_queries(tmp_path):
    path = put(tmp_path)
    split = {"seed": 1, "share": 0.5, "held_out": ["2"]}
    put(tmp_path, json.dumps({"split": split, "counts": {"queries": 2}}), "truth.csv.meta.json")
    assert load(path).meta.split.held_out == (content_id("what is it"),)
    put(tmp_path, json.dumps({"split": split, "counts": {"queries": 3}}), "truth.csv.meta.json")
    with pytest.raises(TestSetError, match="named by row, and were drawn from 3 queries"):
        load(path)


def test_equal_questions_are_an_error_that_names_the_rows(tmp_path):
    path = put(tmp_path, SPANS + "where  is it,c.rs:1-2:1\n")
    with pytest.raises(TestSetError) as caught:
        read_testset(path)
    assert "the question 'where is it' is that of queries 1, 3" in str(caught.value)
    assert caught.value.problems[0].path == str(path)
    assert read_testset(path, ids="row").query_ids == ("1", "2", "3")


def test_a_rule_for_a_file_with_ids_is_refused_and_so_is_an_unknown_rule(tmp_path):
    with pytest.raises(UsageError, match="the ids of the queries stand in the file"):
        read_testset(put(tmp_path, "id,query,result1\nx,a,b.rs:1-2:1\n"), ids="row")
    with pytest.raises(UnknownNameError, match="rule of ids"):
        read_testset(put(tmp_path), ids="rows")


def test_a_file_without_ids_is_written_without_them_and_other_ids_get_a_column(tmp_path):
    testset = read_testset(put(tmp_path))
    written, losses = convert(testset, tmp_path / "again.csv", "spans-csv")
    assert (tmp_path / "again.csv").read_text() == SPANS
    assert (written.digest, losses) == (testset.digest, ())
    by_row = read_testset(put(tmp_path), ids="row")
    written, _ = convert(by_row, tmp_path / "rows.csv", "spans-csv")
    assert (tmp_path / "rows.csv").read_text().splitlines()[1] == "1,where is it,a.rs:1-2:2"
    assert written.digest == by_row.digest


def test_a_yaml_file_says_which_rule_made_its_ids(tmp_path):
    testset = read_testset(put(tmp_path))
    write_testset_yaml(testset, tmp_path / "set.yaml")
    assert "ids: content" in (tmp_path / "set.yaml").read_text()
    again = read_testset_yaml(tmp_path / "set.yaml")
    assert (again.meta.ids, again.digest, again.query_ids) == ("content", testset.digest, testset.query_ids)


def test_row_numbers_are_matched_only_where_all_of_them_are_rows(tmp_path):
    testset = read_testset(put(tmp_path))
    assert match_ids(testset, ["1", "2"]).names == dict(zip(["1", "2"], testset.query_ids, strict=True))
    assert match_ids(testset, ["2"]).rule == "row"
    assert match_ids(testset, ["2", "3"]) is None
    assert match_ids(testset, ["where is it", "another"]).rule == "text"
    assert match_ids(testset, [testset.query_ids[0], "1"]) is None
    assert match_ids(TestSet("t", (Query("a", "x"),)), ["1"]) is None


def test_the_rule_under_which_a_set_has_a_digest_is_found(tmp_path):
    testset = read_testset(put(tmp_path))
    by_row = read_testset(put(tmp_path), ids="row")
    assert rule_of_digest(testset, by_row.digest) == "row"
    assert rule_of_digest(by_row, testset.digest) == "content"
    assert rule_of_digest(testset, testset.digest) is None
    other = read_testset(put(tmp_path, SPANS + "third,c.rs:1-2:1\n"), ids="row")
    assert rule_of_digest(testset, other.digest) is None


def test_renaming_keeps_everything_that_is_known_by_query_id(tmp_path):
    testset = read_testset(put(tmp_path))
    by_row = under_rule(testset, "row")
    assert by_row.targets == {"1": (Span("a.rs", 1, 2, 2),), "2": (Span("b.rs", 3, 4),)}
    assert by_row.meta.ids == "row"
    assert under_rule(by_row, "content") == testset
