"""Ratings of the Rated Ranking Evaluator: either shape of judgments, with groups or without."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.tools.rre import read_rre, write_rre
from cranfield.model import Query, TestSet


def query(text, **more):
    return {"template": "only_q.json", "placeholders": {"$query": text, **more}}


BASSES = {
    "index": "core1",
    "corpora_file": "basses.json",
    "id_field": "id",
    "topics": [
        {
            "description": "Fender basses",
            "query_groups": [
                {
                    "name": "Brand",
                    "description": "Searches on the brand",
                    "queries": [query("fender"), query("Fender", **{"$strings": 4})],
                    "relevant_documents": {"1": {"gain": 3}, "2": {"rating": 2.5}},
                },
                {
                    "name": "Jazz",
                    "queries": [query("jazz"), query("fender jazz") | {"relevant_documents": {"0": ["9"]}}],
                    "relevant_documents": {"3": ["1", 2], "1": ["7"]},
                },
            ],
        }
    ],
}
# What Quepid exports, and what it imports.
FLAT = {
    "id_field": "id",
    "index": "Movies",
    "template": "template.json",
    "queries": [
        {"placeholders": {"$query": "star wars"}, "relevant_documents": {"11": {"gain": 3}}},
        {"placeholders": {"$query": "star trek"}, "relevant_documents": {"1": ["193"], "2": ["157"]}},
        {"placeholders": {"$query": "unrated"}, "relevant_documents": {}},
    ],
}


@pytest.fixture
def file(tmp_path):
    def write(value):
        (tmp_path / "ratings.json").write_text(value if isinstance(value, str) else json.dumps(value))
        return tmp_path / "ratings.json"

    return write


def test_queries_of_a_group_share_its_judgments_and_groups_are_strata(file):
    testset = under_texts(read_testset(file(BASSES)))
    brand, jazz = ({"topic": "Fender basses", "query_group": name} for name in ("Brand", "Jazz"))
    assert testset.queries == (
        Query("fender", "fender", brand),
        Query("Fender", "Fender", brand, {"strings": 4}),
        Query("jazz", "jazz", jazz),
        Query("fender jazz", "fender jazz", jazz),
    )
    assert testset.grades == {
        "fender": {"1": 3, "2": 2.5},
        "Fender": {"1": 3, "2": 2.5},
        "jazz": {"1": 3, "2": 3, "7": 1},
        "fender jazz": {"9": 0},
    }
    assert testset.name == "core1"
    assert tuple(map(str, testset.notes)) == (
        MADE_IDS,
        "not carried over: 4 templates of queries",
    )


def test_a_file_without_topics_is_read(file):
    testset = under_texts(read_testset(file(FLAT)))
    assert testset.query_ids == ("star wars", "star trek", "unrated")
    assert testset.grades == {"star wars": {"11": 3}, "star trek": {"193": 1, "157": 2}}


def test_a_file_may_name_its_placeholder(file):
    groups = [{"queries": [{"placeholders": {"%q": "boots"}}], "relevant_documents": {"1": ["d"]}}]
    testset = under_texts(read_testset(file({"index": "i", "query_placeholder": "%q", "query_groups": groups})))
    assert testset.queries == (Query("boots", "boots"),)
    assert testset.grades == {"boots": {"d": 1}}


def test_everything_that_is_wrong_is_said_with_its_place(file):
    text = """{"queries": [
 {"placeholders": {"$query": "a"}, "relevant_documents": {"1": ["d"], "2": ["d"]}},
 {"placeholders": {"$q": "b"}, "relevant_documents": {"high": ["d"]}},
 {"placeholders": {"$query": "c"}, "relevant_documents": {"d": {}}},
 {"placeholders": {}, "relevant_documents": {"d": {"gain": "3"}}},
 {"template": "x"}
]}"""
    with pytest.raises(TestSetError) as caught:
        read_rre(file(text))
    assert [(p.line, p.column, p.message) for p in caught.value.problems] == [
        (2, 77, "query 'a', document 'd' is judged twice"),
        (3, 54, "queries[1].relevant_documents has a list under 'high'"),
        (3, 19, "the query has no text under '$query'"),
        (4, 58, "queries[2].relevant_documents has no gain for document 'd'"),
        (5, 19, "queries[3].placeholders is empty"),
        (5, 60, "wrong value for queries[3].relevant_documents.d.gain"),
        (6, 2, "missing key 'placeholders' in queries[4]"),
    ]
    assert caught.value.problems[0].expected == "1, as on line 2, column 65"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"topics": [{"query_groups": 3}], "x": {"placeholders": 1}}',
            "topics.0..query_groups; expected a list, got 3",
        ),
        ('{"queries": [{"placeholders": {"$query": "a"}}', r"ratings.json:1:47: not valid JSON: a comma or bracket"),
    ],
)
def test_what_is_no_file_of_ratings_is_an_error(file, text, message):
    with pytest.raises(TestSetError, match=message):
        read_testset(file(text))


def test_queries_of_a_group_are_written_with_one_set_of_judgments_where_it_is_one(tmp_path):
    queries = (Query("1", "a", {"query_group": "g"}), Query("2", "b", {"query_group": "g"}), Query("3", "c"))
    testset = TestSet("t", queries, {"1": {"d": 1}, "2": {"d": 1}, "3": {"e": 2, "f": -1}})
    write_rre(testset, tmp_path / "t.json")
    placeholders = [{"template": "template.json", "placeholders": {"$query": text}} for text in "abc"]
    assert json.loads((tmp_path / "t.json").read_text()) == {
        "index": "t",
        "id_field": "id",
        "topics": [
            {
                "query_groups": [
                    {"name": "g", "queries": placeholders[:2], "relevant_documents": {"d": {"gain": 1}}},
                    {"queries": placeholders[2:], "relevant_documents": {"e": {"gain": 2}}},
                ]
            }
        ],
    }


def test_queries_that_nothing_tells_apart_are_not_written(tmp_path):
    testset = TestSet("t", (Query("1", "a"), Query("2", "a"), Query("3", "a", params={"k": 1})), {"1": {"d": 1}})
    with pytest.raises(TestSetError, match="queries '1', '2' have the same text"):
        write_rre(testset, tmp_path / "t.json")


WORDS = st.from_regex(r"\w{1,4}( \w{1,4})?", fullmatch=True)
STRATA = st.dictionaries(st.sampled_from(["topic", "query_group"]), st.sampled_from(["a", "b", "c d"]), max_size=2)
PARAMS = st.dictionaries(st.sampled_from(["size", "lang"]), st.integers(0, 9) | WORDS | st.booleans(), max_size=2)
JUDGED = st.dictionaries(WORDS, st.sampled_from([0.0, 1.0, 2.5]), max_size=2)


@given(st.dictionaries(WORDS, st.tuples(STRATA, PARAMS, JUDGED), min_size=1, max_size=4), WORDS)
def test_what_is_written_is_read(tmp_path_factory, said, name):
    queries = tuple(Query(text, text, strata, params) for text, (strata, params, _) in said.items())
    testset = TestSet(name, queries, {text: judged for text, (_, _, judged) in said.items() if judged})
    path = tmp_path_factory.mktemp("r") / "t.json"
    write_rre(testset, path)
    assert under_texts(read_testset(path)) == testset
