"""Ratings of the Rated Ranking Evaluator: topics, groups of queries that share judgments, placeholders of templates.

Topics and groups may be left out, as they are in what Quepid exports; a query's own judgments stand over its group's.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from cranfield.formats.io.delimited import as_number, number_of
from cranfield.formats.io.records import Loose, indexed_objects, load_json, write_json
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.tools.by_text import TextBuilder, counted, judged, params_of, written_texts
from cranfield.model import Query, Scalar, TestSet
from cranfield.model.kinds import Grade, PlainScalar, Text, UnfitError, source_text

PLACEHOLDER = "$query"
"""What stands for the text in a template, where the file names no other."""
TOPIC, GROUP = "topic", "query_group"
"""Strata that say where in the file a query stands."""


class _Gain(Loose):
    gain: Grade | None = None
    rating: Grade | None = None


def _all_rated(value: dict[str, list[Text] | _Gain]) -> dict[str, list[Text] | _Gain]:
    for name, judged_value in value.items():
        if isinstance(judged_value, list) and number_of(name) is None:
            raise UnfitError(
                f"has a list under {name!r}", expected="a number, which is the gain of the documents listed"
            )
        if isinstance(judged_value, _Gain) and judged_value.gain is None and judged_value.rating is None:
            raise UnfitError(f"has no gain for document {name!r}", expected='`{"gain": a number}`')
    return value


_Documents = Annotated[dict[str, list[Text] | _Gain], AfterValidator(_all_rated)]


class _Query(Loose):
    placeholders: Annotated[dict[str, PlainScalar], Field(min_length=1)]
    relevant_documents: _Documents | None = None


class _Group(Loose):
    name: Text | None = None
    description: Text | None = None
    queries: list[_Query]
    relevant_documents: _Documents | None = None


class _Topic(Loose):
    name: Text | None = None
    description: Text | None = None
    query_groups: list[_Group]


class _ByTopic(Loose):
    query_placeholder: Text | None = None
    topics: list[_Topic]


class _ByGroup(Loose):
    query_placeholder: Text | None = None
    query_groups: list[_Group]


class _Flat(_Group):
    query_placeholder: Text | None = None


def read_rre(path: Path | str) -> TestSet:
    """Read a file of ratings. Topics and groups are strata; other placeholders are parameters.

    Raises:
        TestSetError: with everything that is wrong, and both places of judgments that disagree.
    """
    path = Path(path)
    located = load_json(path)
    builder = TextBuilder(path, located.mark)
    data = located.sourced
    model = _ByTopic if "topics" in data else _ByGroup if "query_groups" in data else _Flat
    validate(located, model, builder.problems)
    placeholder = source_text(data.get("query_placeholder")) or PLACEHOLDER
    lost: Counter[str] = Counter()
    for topic, topic_loc in _inner(data, "topics", ()):
        for group, group_loc in _inner(topic, "query_groups", topic_loc):
            strata = {TOPIC: _name(topic)} if topic is not data else {}
            strata |= {GROUP: _group_name(group)} if group is not topic else {}
            for index, query in indexed_objects(group.get("queries")):
                lost["templates of queries"] += "template" in query or "template" in group
                loc = (*group_loc, "queries", index)
                key = _take(builder, query, loc, {k: v for k, v in strata.items() if v}, placeholder, lost)
                if key is not None:
                    owner, at = (query, loc) if query.get("relevant_documents") is not None else (group, group_loc)
                    _judge(builder, key, owner.get("relevant_documents"), (*at, "relevant_documents"))
    return builder.testset(counted(lost), name=source_text(data.get("index")) or "")


def _inner(node: Mapping[str, Any], key: str, loc: Loc) -> list[tuple[Mapping[str, Any], Loc]]:
    """The mappings of a list, each with its place; the node itself where it has no such list."""
    return [(entry, (*loc, key, i)) for i, entry in indexed_objects(node[key])] if key in node else [(node, loc)]


def _name(node: Mapping[str, Any]) -> str:
    """What the tool calls a topic."""
    return str(source_text(node.get("description")) or source_text(node.get("name")) or "")


def _group_name(node: Mapping[str, Any]) -> str:
    """What people call a group: its name, which its description only explains."""
    return str(source_text(node.get("name")) or source_text(node.get("description")) or "")


def _take(
    builder: TextBuilder,
    query: Mapping[str, Any],
    loc: Loc,
    strata: Mapping[str, str],
    placeholder: str,
    lost: Counter[str],
) -> Hashable | None:
    """Take a query; None where it has no text, which is a problem."""
    placeholders = query.get("placeholders")
    if not isinstance(placeholders, Mapping) or not placeholders:
        return None
    text = source_text(placeholders.get(placeholder))
    if not isinstance(text, str) or not text.strip():
        builder.problem(
            f"the query has no text under {placeholder!r}", (*loc, "placeholders"), expected="the text of the query"
        )
        return None
    rest = {name.removeprefix("$"): value for name, value in placeholders.items() if name != placeholder}
    params = params_of(rest, lost)
    key = (text, tuple(strata.items()), tuple(params.items()))
    builder.query(key, Query("", text, strata=dict(strata), params=params))
    return key


def _judge(builder: TextBuilder, key: Hashable, documents: object, loc: Loc) -> None:
    """Take judgments in either shape: gain to documents, or document to gain."""
    for name, judged_value in documents.items() if isinstance(documents, Mapping) else ():
        if isinstance(judged_value, list):
            grade, doc_ids = (
                number_of(name),
                [(source_text(doc_id), (*loc, name, i)) for i, doc_id in enumerate(judged_value)],
            )
        elif isinstance(judged_value, Mapping):
            gain = judged_value.get("gain")
            grade, doc_ids = as_number(judged_value.get("rating") if gain is None else gain), [(name, (*loc, name))]
        else:
            continue
        for doc_id, at in doc_ids:
            if grade is not None and isinstance(doc_id, str):
                builder.judge(key, doc_id, grade, at)


def write_rre(testset: TestSet, path: Path | str) -> None:
    """Write ratings; the name of the set is written as the index, and `template.json` as the template.

    Neighbours of one topic and group stand together, and share their judgments where these are the same.

    Raises:
        TestSetError: queries without a text, or that neither text, strata nor parameters tell apart.
    """
    path = Path(path)
    written_texts(testset, path, lambda q: (q.text, _place(q), tuple(q.params.items())))
    topics = [
        ({"description": topic} if topic else {})
        | {
            "query_groups": [
                _group(testset, name, list(queries)) for (_, name), queries in itertools.groupby(some, _place)
            ]
        }
        for topic, some in itertools.groupby(testset.queries, lambda query: query.strata.get(TOPIC, ""))
    ]
    document = {"index": testset.name, "id_field": "id", "topics": topics}
    write_json(path, document)


def _place(query: Query) -> tuple[str, str]:
    return query.strata.get(TOPIC, ""), query.strata.get(GROUP, "")


def _group(testset: TestSet, name: str, queries: list[Query]) -> dict[str, Any]:
    documents = [{doc_id: {"gain": gain} for doc_id, gain in judged(testset, query).items()} for query in queries]
    shared = all(each == documents[0] for each in documents)
    return {
        **({"name": name} if name else {}),
        "queries": [
            {"template": "template.json", "placeholders": _placeholders(query)}
            | ({} if shared else {"relevant_documents": own})
            for query, own in zip(queries, documents, strict=True)
        ],
        **({"relevant_documents": documents[0]} if shared else {}),
    }


def _placeholders(query: Query) -> dict[str, Scalar]:
    return {PLACEHOLDER: query.text} | {f"${name}": value for name, value in query.params.items()}
