"""How results are found in answers: made-up documents with a known list, and the ids that are read from them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.app.init.shape import Known, shape_of
from cranfield.config import system_config
from cranfield.systems.calls.extract import Extractor

NOTHING = Known()


def read(extract, output):
    config = system_config("sut", {"command": ["x", "{query}"], "extract": dict(extract)})
    return [hit.id for hit in Extractor(config).read(output, 10).hits]


ELASTIC = {"took": 1, "hits": {"total": {"value": 2}, "hits": [{"_id": "a", "_score": 2.5}, {"_id": "b", "_score": 1}]}}
SOLR = {
    "response": {"numFound": 1, "docs": [{"id": "a", "score": 1.5, "title": ["x"]}]},
    "facets": {"year": [{"n": 1}]},
}


@pytest.mark.parametrize(
    ("output", "extract", "ids"),
    [
        (ELASTIC, {"json": "hits.hits", "id": "_id", "score": "_score"}, ["a", "b"]),
        (SOLR, {"json": "response.docs", "id": "id", "score": "score"}, ["a"]),
        (["a", "b"], {"json": "@"}, ["a", "b"]),
        ([{"url": "u", "title": "A"}], {"json": "@", "id": "url", "title": "title"}, ["u"]),
        ({"results": ["a"], "suggestions": ["b", "c"]}, {"json": "results"}, ["a"]),
        ({"data": {"hits": [{"payload": {"docno": 7}}]}}, {"json": "data.hits", "id": "payload.docno"}, ["7"]),
        (
            [{"author": {"id": 7}, "url": "u"}, {"author": {"id": 7}, "url": "v"}],
            {"json": "@", "id": "url"},
            ["u", "v"],
        ),
        ([{"title": "A", "paper": {"doc_id": "p"}}], {"json": "@", "id": "paper.doc_id", "title": "title"}, ["p"]),
        ({"my results": [{"id": "a"}]}, {"json": '"my results"', "id": "id"}, ["a"]),
        (
            {"hits": [{"id": "a", "snippet": "s"}]},
            {"json": "hits", "id": "id", "result_fields": {"text": "snippet"}},
            ["a"],
        ),
    ],
)
def test_a_list_of_results_in_json(output, extract, ids):
    text = json.dumps(output)
    shape = shape_of([text], NOTHING)
    assert dict(shape.extract) == extract
    assert read(shape.extract, text) == ids


@pytest.mark.parametrize(
    ("output", "ids"),
    [
        ('{"id": "a", "score": 2}\n{"id": "b", "score": 1}\n', ["a", "b"]),
        ("q1 Q0 a 1 2.5 tag\nq1 Q0 b 2 1e-3 tag\n", ["a", "b"]),
        ("a\t0.5\nb\t0.25\n", ["a", "b"]),
        ("0.5\ta\n0.25\tb\n", ["a", "b"]),
        ("src/a.py:12: def f\nsrc/b.py:3-9: class G\n", ["src/a.py", "src/b.py"]),
        ("Found:\n1. [A](docs://x/a) and more\n2. [B](docs://x/b)\n", ["docs://x/a", "docs://x/b"]),
        ("1. alpha  the first\n2. beta  the second\n", ["alpha", "beta"]),
        ("a\nb\n", ["a", "b"]),
        ("a the first\nb the second\n", ["a", "b"]),
    ],
)
def test_results_in_text(output, ids):
    assert read(shape_of([output], NOTHING).extract, output) == ids


@pytest.mark.parametrize(
    "output", ["", "  \n", '{"error": "no index"}', '{"hits": []}', '{"n": [1.5, 2.5]}', "[[1], [2]]"]
)
def test_no_results_are_found_where_there_are_none(output):
    assert shape_of([output], NOTHING) is None


def test_the_test_set_tells_the_id_from_other_fields():
    output = json.dumps({"hits": [{"id": 1, "path": "a.py", "url": "u1"}, {"id": 2, "path": "b.py", "url": "u2"}]})
    assert shape_of([output], NOTHING).extract["id"] == "id"
    assert shape_of([output], Known(frozenset({"b.py"}))).extract["id"] == "path"


@pytest.mark.parametrize(
    ("known", "files", "extract"),
    [
        (Known(frozenset({"a.md"})), "a.md b.md a.md", {"id": "source"}),
        (Known(patterns=(re.compile(r"(^|/)a\.md$"),)), "a.md b.md c.md", {"id": "source"}),
        (
            Known(patterns=(re.compile(r"(^|/)a\.md$"),)),
            "a.md b.md a.md",
            {"id": "chunk_id", "result_fields": {"path": "source"}},
        ),
        (
            Known(patterns=(re.compile("^https://d.example/a"),)),
            "https://d.example/a https://d.example/a",
            {"id": "chunk_id", "result_fields": {"url": "source"}},
        ),
    ],
)
def test_chunks_of_a_file_that_conditions_are_on_have_ids_of_their_own(known, files, extract):
    results = [{"chunk_id": f"c{n}", "source": file} for n, file in enumerate(files.split())]
    assert dict(shape_of([json.dumps(results)], known).extract) == {"json": "@", **extract}


def test_the_test_set_tells_the_list_from_other_lists():
    output = json.dumps({"results": [{"id": "x"}], "more": [{"id": "a"}]})
    assert shape_of([output], Known(frozenset({"a"}))).extract["json"] == "more"


def test_the_test_set_tells_the_form_of_a_text():
    output = "1. alpha docs://a\n2. beta docs://b\n"
    assert read(shape_of([output], Known(frozenset({"alpha"}))).extract, output) == ["alpha", "beta"]


def test_a_list_that_some_answers_lack_is_empty_there():
    found, nothing = json.dumps({"root": {"children": [{"id": "a"}]}}), json.dumps({"root": {}})
    extract = shape_of([found, nothing], NOTHING).extract
    assert (read(extract, found), read(extract, nothing)) == (["a"], [])


KEYS = st.text(max_size=8).filter(lambda key: key not in {"id", "_id"})
IDS = st.text(alphabet=st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=9)
RESULTS = st.lists(IDS, min_size=1, max_size=6, unique=True)
LEAVES = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)


@given(RESULTS, st.lists(KEYS, max_size=3), st.dictionaries(KEYS, LEAVES, max_size=3))
def test_any_list_of_objects_with_ids_is_found(ids, steps, around):
    document = [{"id": doc_id, "n": 0.5} for doc_id in ids]
    for step in steps:
        document = {**around, step: document}
    text = json.dumps(document)
    assert read(shape_of([text], NOTHING).extract, text) == ids


@given(
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    )
)
def test_any_json_is_read_or_refused(document):
    text = json.dumps(document)
    shape = shape_of([text], NOTHING)
    if shape is not None:
        read(shape.extract, text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    shape = shape_of([text], NOTHING)
    if shape is not None:
        read(shape.extract, text)


def test_title_and_text_are_found_whatever_is_judged() -> None:
    output = json.dumps([{"id": "a", "title": "A", "snippet": "the a"}, {"id": "b", "title": None, "snippet": "the b"}])
    for known in (Known(), Known(frozenset({"a"}))):
        shape = shape_of([output], known)
        assert shape is not None
        assert shape.extract == {"json": "@", "id": "id", "title": "title", "result_fields": {"text": "snippet"}}
