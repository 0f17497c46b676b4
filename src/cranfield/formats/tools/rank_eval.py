"""Requests of the ranking evaluation API of Elasticsearch and OpenSearch: `requests` with `ratings`, templates or not.

What is asked of the engine (its query language) is not carried: of a request, its text; of a template, its parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import as_number
from cranfield.formats.io.records import Loose, indexed_objects, load_json, write_json
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.formats.tools.by_text import counted, judged, params_of
from cranfield.model import Query, TestSet
from cranfield.model.kinds import FilledText, source_text
from cranfield.model.note import info

TEXT_PARAMS = ("query_string", "query", "q", "text")
"""Parameters of a template that hold the text, the likeliest first."""
_TEXT_CLAUSES = ("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "term", "terms")
"""Clauses that go from a field to its text."""
TEMPLATE = "search"
"""Id of the template that is written where queries have parameters."""


class _Rated(Loose):
    index: FilledText = Field(alias="_index")
    id: FilledText = Field(alias="_id")
    rating: Annotated[int, Field(ge=0)]


class _Request(Loose):
    id: FilledText
    request: dict[str, JsonValue] | None = None
    params: dict[str, JsonValue] | None = None
    ratings: list[_Rated]


class _Body(Loose):
    requests: list[_Request]


def read_rank_eval(path: Path | str) -> TestSet:
    """Read the body of a request to `_rank_eval`. A document is its `_id`; `index/_id` where there are several indices.

    Raises:
        TestSetError: with everything that is wrong, request ids used twice, both places of judgments that disagree.
    """
    path = Path(path)
    located = load_json(path)
    builder = TestSetBuilder(path, located.mark)
    validate(located, _Body, builder.problems)
    requests = indexed_objects(located.sourced.get("requests"))
    named = (
        source_text(rated.get("_index"))
        for _, request_entry in requests
        for _, rated in indexed_objects(request_entry.get("ratings"))
    )
    indices = sorted({name for name in named if isinstance(name, str)})
    lost: Counter[str] = Counter()
    for index, request in requests:
        query_id, loc = source_text(request.get("id")), ("requests", index)
        if isinstance(query_id, str) and builder.new_query(_query(query_id, request, lost), (*loc, "id")):
            _judge(builder, query_id, request, loc, several=len(indices) > 1)
    notes = [*builder.repeated(), *counted({noun: n for noun, n in lost.items() if noun != _NO_TEXT})]
    if lost[_NO_TEXT]:
        notes += info(count_noun(lost[_NO_TEXT], _NO_TEXT))
    if len(indices) > 1:
        notes += info(f"documents are of {len(indices)} indices: their ids are `index/_id`")
    return builder.testset(notes, noun="query", name=indices[0] if len(indices) == 1 else "")


_NO_TEXT = "requests without a text: the id is used as the text"


def _query(query_id: str, request: Mapping[str, Any], lost: Counter[str]) -> Query:
    """The query of a request: its text, and the parameters of a template but for the one that is the text."""
    body, params = request.get("request"), request.get("params")
    given = params if isinstance(params, Mapping) else {}
    key = next((name for name in TEXT_PARAMS if isinstance(given.get(name), str) and given[name].strip()), "")
    text = given[key] if key else next(_texts(body.get("query")), "") if isinstance(body, Mapping) else ""
    lost["bodies of requests, in the query language of the engine"] += isinstance(body, Mapping)
    lost["templates of requests"] += "template_id" in request
    lost[_NO_TEXT] += not text.strip()
    rest = params_of({name: value for name, value in given.items() if name != key}, lost)
    return Query(query_id, text if text.strip() else query_id, params=rest)


def _texts(node: object) -> Iterator[str]:
    """Texts that a query of the engine looks for, in the order of the file."""
    if isinstance(node, list):
        for inner in node:
            yield from _texts(inner)
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            if key == "query" and isinstance(inner, str):
                yield inner
            elif key in _TEXT_CLAUSES and isinstance(inner, Mapping):
                yield from (value for value in inner.values() if isinstance(value, str))
                yield from (
                    text
                    for value in inner.values()
                    if isinstance(value, Mapping)
                    for text in (value.get("query"), value.get("value"))
                    if isinstance(text, str)
                )
            else:
                yield from _texts(inner)


def _judge(builder: TestSetBuilder, query_id: str, request: Mapping[str, Any], loc: Loc, *, several: bool) -> None:
    for index, rated in indexed_objects(request.get("ratings")):
        name, doc_id = source_text(rated.get("_index")), source_text(rated.get("_id"))
        grade = as_number(rated.get("rating"))
        if isinstance(name, str) and isinstance(doc_id, str) and grade is not None:
            builder.judge(query_id, f"{name}/{doc_id}" if several else doc_id, grade, (*loc, "ratings", index))


def write_rank_eval(testset: TestSet, path: Path | str) -> None:
    """Write requests that search every field for the text; the name of the set is written as the index.

    Queries with parameters are written for a template, whose body has to be replaced by that of the actual search.

    Raises:
        TestSetError: with every query without a text, or with a parameter that the text takes.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    templated = any(query.params for query in testset.queries)
    for query in testset.queries:
        if not query.text.strip():
            problems.add(f"not written: query {shorten(query.id)} has no text", path=str(path))
        if taken := [name for name in TEXT_PARAMS if name in query.params]:
            message = f"not written: query {shorten(query.id)} has a parameter {taken[0]!r}"
            problems.add(message, path=str(path), hint="in this format, parameters of that name contain the query text")
    problems.raise_if_any()
    document: dict[str, Any] = {
        "requests": [_request(testset, query, templated=templated) for query in testset.queries],
        "metric": {"dcg": {"k": 10, "normalize": True}},
    }
    if templated:
        search = {"query": {"multi_match": {"query": "{{query_string}}"}}}
        document["templates"] = [{"id": TEMPLATE, "template": {"inline": search}}]
    write_json(path, document)


def _request(testset: TestSet, query: Query, *, templated: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": query.id}
    if templated:
        entry |= {"template_id": TEMPLATE, "params": {"query_string": query.text, **query.params}}
    else:
        entry["request"] = {"query": {"multi_match": {"query": query.text}}}
    entry["ratings"] = [
        {"_index": testset.name, "_id": doc_id, "rating": grade}
        for doc_id, grade in judged(testset, query, fractions=False).items()
    ]
    return entry
