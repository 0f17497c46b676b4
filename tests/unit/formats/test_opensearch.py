"""OpenSearch's judgment lists: ratings as text or numbers, imported or stored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.tools.opensearch import read_opensearch_judgments, write_opensearch_judgments
from cranfield.model import Query, TestSet

IMPORT = {
    "name": "ESCI",
    "description": "Made elsewhere",
    "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {"query": "metal frame", "ratings": [{"rating": "1.0", "docId": "B07"}, {"rating": "0.000", "docId": "B08"}]},
        {"query": "button", "ratings": [{"rating": 3, "docId": 17}]},
        {"query": "metal frame", "ratings": [{"rating": "1", "docId": "B07"}]},
        {"query": "nothing", "ratings": []},
    ],
}
STORED = {
    "took": 1,
    "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": IMPORT | {"type": "UBI_JUDGMENT"}}]},
}
WORDS = st.from_regex(r"\w{1,5}( \w{1,5})?", fullmatch=True)


@pytest.fixture
def file(tmp_path):
    def write(value):
        (tmp_path / "list.json").write_text(value if isinstance(value, str) else json.dumps(value))
        return tmp_path / "list.json"

    return write


def test_a_list_is_read(file):
    testset = under_texts(read_testset(file(IMPORT)))
    assert testset.query_ids == ("metal frame", "button", "nothing")
    assert testset.grades == {"metal frame": {"B07": 1, "B08": 0}, "button": {"17": 3}}
    assert (testset.name, testset.description) == ("ESCI", "Made elsewhere")
    assert tuple(map(str, testset.notes[1:])) == ("1 repeated judgment with the same grade, counted once",)


def test_a_stored_list_is_read_and_its_kind_is_said(file):
    testset = under_texts(read_testset(file(STORED)))
    assert testset.digest == under_texts(read_testset(file(IMPORT))).digest
    assert str(testset.notes[-1]) == "the list is of type UBI_JUDGMENT: its ratings were not made only by people"


def test_an_answer_with_several_lists_is_an_error(file):
    hit = {"_source": IMPORT}
    with pytest.raises(TestSetError, match=r"list.json:1:19: the answer holds 2 judgment lists; expected one"):
        read_testset(file({"hits": {"hits": [hit, hit]}}))


def test_everything_that_is_wrong_is_said_with_its_place(file):
    text = """{"judgmentRatings": [
 {"query": "a", "ratings": [{"docId": "d", "rating": "1.0"}, {"docId": "d", "rating": "2.0"}]},
 {"query": "b", "ratings": [{"docId": "", "rating": "NaN"}, {"docId": "d"}]},
 {"ratings": {}}
]}"""
    with pytest.raises(TestSetError) as caught:
        read_opensearch_judgments(file(text))
    assert [(p.line, p.column, p.message) for p in caught.value.problems] == [
        (2, 62, "query 'a', document 'd' is judged twice"),
        (3, 39, "judgmentRatings[1].ratings[0].docId is empty"),
        (3, 53, "wrong value for judgmentRatings[1].ratings[0].rating"),
        (3, 61, "missing key 'rating' in judgmentRatings[1].ratings[1]"),
        (4, 2, "missing key 'query' in judgmentRatings[2]"),
        (4, 14, "wrong value for judgmentRatings[2].ratings"),
    ]
    assert caught.value.problems[0].expected == "1, as on line 2, column 29"
    assert caught.value.problems[2].expected == "a number"


def test_ratings_are_written_as_text(tmp_path):
    write_opensearch_judgments(
        TestSet("t", (Query("1", "q"),), {"1": {"d": 1, "e": 0.25, "f": -1}}), tmp_path / "l.json"
    )
    assert json.loads((tmp_path / "l.json").read_text()) == {
        "name": "t",
        "description": "",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": "q", "ratings": [{"docId": "d", "rating": "1.0"}, {"docId": "e", "rating": "0.25"}]}
        ],
    }


@given(
    st.dictionaries(WORDS, st.dictionaries(WORDS, st.floats(0, 1e6), max_size=3), min_size=1, max_size=3), WORDS, WORDS
)
def test_what_is_written_is_read(tmp_path_factory, judged, name, description):
    queries = tuple(Query(text, text) for text in judged)
    testset = TestSet(name, queries, {q: docs for q, docs in judged.items() if docs}, description=description)
    path = tmp_path_factory.mktemp("o") / "t.json"
    write_opensearch_judgments(testset, path)
    assert under_texts(read_testset(path)) == testset
