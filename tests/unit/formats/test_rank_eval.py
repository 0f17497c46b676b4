"""Requests to `_rank_eval`: bodies and templates, one index or several."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.tools.rank_eval import read_rank_eval, write_rank_eval
from cranfield.model import Query, TestSet

BODY = {
    "requests": [
        {
            "id": "amsterdam_query",
            "request": {"query": {"match": {"text": "amsterdam"}}},
            "ratings": [
                {"_index": "foo", "_id": "doc1", "rating": 0},
                {"_index": "foo", "_id": "doc2", "rating": 3},
            ],
        },
        {"id": "berlin_query", "request": {"query": {"match_all": {}}}, "ratings": []},
    ],
    "metric": {"precision": {"ignore_unlabeled": True}},
}
TEMPLATED = {
    "templates": [
        {"id": "t", "template": {"inline": {"query": {"match": {"{{field}}": {"query": "{{query_string}}"}}}}}}
    ],
    "requests": [
        {
            "id": "1",
            "template_id": "t",
            "params": {"field": "text", "query_string": "amsterdam", "size": 5, "tags": ["a"], "a-b": 1},
            "ratings": [{"_index": "foo", "_id": "d", "rating": 1}, {"_index": "bar", "_id": "d", "rating": 2}],
        }
    ],
}


@pytest.fixture
def file(tmp_path):
    def write(value):
        (tmp_path / "body.json").write_text(value if isinstance(value, str) else json.dumps(value))
        return tmp_path / "body.json"

    return write


def test_requests_are_read_with_their_ids_and_the_text_they_look_for(file):
    testset = read_testset(file(BODY))
    assert testset.queries == (Query("amsterdam_query", "amsterdam"), Query("berlin_query", "berlin_query"))
    assert testset.grades == {"amsterdam_query": {"doc1": 0, "doc2": 3}}
    assert testset.name == "foo"
    assert tuple(map(str, testset.notes)) == (
        "not carried over: 2 bodies of requests, in the query language of the engine",
        "1 request without a text: the id is used as the text",
    )


def test_parameters_of_a_template_are_those_of_the_query_and_several_indices_stand_before_the_ids(file):
    testset = read_testset(file(TEMPLATED))
    assert testset.queries == (Query("1", "amsterdam", params={"field": "text", "size": 5}),)
    assert testset.grades == {"1": {"foo/d": 1, "bar/d": 2}}
    assert testset.name == "body"
    assert tuple(map(str, testset.notes)) == (
        "not carried over: 1 template of requests",
        "not carried over: 2 parameters whose name is not a word, or whose value is not a text or number",
        "documents are of 2 indices: their ids are `index/_id`",
    )


def test_of_several_parameters_that_could_be_the_text_one_is_and_the_others_stay(file):
    (request,) = TEMPLATED["requests"]
    params = {"q": "amsterdam", "text": "title", "query": " "}
    body = {"requests": [{**request, "params": params}]}
    assert read_testset(file(body)).queries == (Query("1", "amsterdam", params={"text": "title", "query": " "}),)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"match": {"title": {"query": "boots", "boost": 2}}}, "boots"),
        ({"multi_match": {"query": "boots", "fields": ["a"]}}, "boots"),
        ({"query_string": {"query": "boots AND red"}}, "boots AND red"),
        ({"bool": {"filter": [{"range": {"price": {"lt": 5}}}], "must": [{"match_phrase": {"t": "boots"}}]}}, "boots"),
        ({"term": {"sku": {"value": "B07"}}}, "B07"),
        ({"function_score": {"query": {"match": {"t": "boots"}}}}, "boots"),
    ],
)
def test_the_first_text_that_is_looked_for_is_the_text(file, query, text):
    body = {"requests": [{"id": "q", "request": {"query": query}, "ratings": []}]}
    assert read_testset(file(body)).queries[0].text == text


def test_everything_that_is_wrong_is_said_with_its_place(file):
    text = """{"requests": [
 {"id": "a", "ratings": [{"_index": "i", "_id": "d", "rating": 1}, {"_index": "i", "_id": "d", "rating": 2}]},
 {"id": "a", "ratings": []},
 {"ratings": [{"_id": "d", "rating": 1.5}]},
 {"id": "c", "params": [], "ratings": [{"_index": "i", "_id": "d", "rating": -1}]}
]}"""
    with pytest.raises(TestSetError) as caught:
        read_rank_eval(file(text))
    assert [(p.line, p.column, p.message) for p in caught.value.problems] == [
        (2, 68, "query 'a', document 'd' is judged twice"),
        (3, 9, "query id 'a' is used twice; it also occurs on line 2"),
        (4, 2, "missing key 'id' in requests[2]"),
        (4, 15, "missing key '_index' in requests[2].ratings[0]"),
        (4, 38, "wrong value for requests[2].ratings[0].rating"),
        (5, 24, "wrong value for requests[3].params"),
        (5, 78, "wrong value for requests[3].ratings[0].rating"),
    ]
    assert caught.value.problems[4].expected == "a whole number"
    assert caught.value.problems[6].expected == "0 or more"


def test_what_the_format_cannot_say_is_not_written(tmp_path):
    testset = TestSet("t", (Query("a"), Query("b", "text", params={"q": 1})), {"a": {"d": 1}, "b": {"d": 1}})
    with pytest.raises(TestSetError) as caught:
        write_rank_eval(testset, tmp_path / "x.json")
    assert [problem.message for problem in caught.value.problems] == [
        "not written: query 'a' has no text",
        "not written: query 'b' has a parameter 'q'",
    ]


def test_what_is_written_says_index_metric_and_a_search_of_every_field(tmp_path):
    write_rank_eval(TestSet("shop", (Query("a", "boots"),), {"a": {"d": 2, "e": 0.5, "f": -1}}), tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "requests": [
            {
                "id": "a",
                "request": {"query": {"multi_match": {"query": "boots"}}},
                "ratings": [{"_index": "shop", "_id": "d", "rating": 2}],
            }
        ],
        "metric": {"dcg": {"k": 10, "normalize": True}},
    }


WORDS = st.from_regex(r"\w{1,4}( \w{1,4})?", fullmatch=True)
PARAMS = st.dictionaries(st.sampled_from(["size", "lang"]), st.integers(0, 9) | WORDS | st.booleans(), max_size=2)
JUDGED = st.dictionaries(WORDS, st.sampled_from([0.0, 1.0, 3.0]), min_size=1, max_size=3)


@given(st.dictionaries(WORDS, st.tuples(WORDS, PARAMS, JUDGED), min_size=1, max_size=3), WORDS)
def test_what_is_written_is_read(tmp_path_factory, said, name):
    queries = tuple(Query(query_id, text, params=params) for query_id, (text, params, _) in said.items())
    testset = TestSet(name, queries, {query_id: judged for query_id, (_, _, judged) in said.items()})
    path = tmp_path_factory.mktemp("r") / "t.json"
    write_rank_eval(testset, path)
    assert read_testset(path) == testset
