"""Judgment lists of OpenSearch's search relevance workbench: `judgmentRatings`, with ratings as numbers in text.

Both the body that imports a list (`IMPORT_JUDGMENT`) and the answer that shows a stored one are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from cranfield.base.errors import TestSetError
from cranfield.formats.io.delimited import as_number, number_of
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import Loose, indexed_objects, load_json, write_json
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.tools.by_text import TextBuilder, judged, written_texts
from cranfield.model import Query, TestSet
from cranfield.model.kinds import FilledText, Grade, Text, source_text
from cranfield.model.note import info

IMPORTED = "IMPORT_JUDGMENT"


def _from_text(value: object) -> object:
    """A rating that is text as its number; what is no number stays, to be refused."""
    found = number_of(value) if isinstance(value, str) else None
    return value if found is None else found


class _Rating(Loose):
    docId: FilledText  # noqa: N815  the format's own name
    rating: Annotated[Grade, BeforeValidator(_from_text)]


class _Judged(Loose):
    query: FilledText
    ratings: list[_Rating]


class _List(Loose):
    name: Text | None = None
    description: Text | None = None
    type: Text | None = None
    judgmentRatings: list[_Judged]  # noqa: N815  the format's own name


def read_opensearch_judgments(path: Path | str) -> TestSet:
    """Read a judgment list.

    Raises:
        TestSetError: with everything that is wrong, and both places of judgments that disagree.
    """
    path = Path(path)
    located = _stored(load_json(path))
    builder = TextBuilder(path, located.mark)
    validate(located, _List, builder.problems)
    data = located.sourced
    for index, entry in indexed_objects(data.get("judgmentRatings")):
        _take(builder, entry, ("judgmentRatings", index))
    kind = source_text(data.get("type")) or IMPORTED
    notes = () if kind == IMPORTED else info(f"the list is of type {kind}: its ratings were not made only by people")
    return builder.testset(
        notes, name=source_text(data.get("name")) or "", description=source_text(data.get("description")) or ""
    )


def _stored(located: Located) -> Located:
    """The list within an answer that holds one; anything else as it is."""
    outer = located.sourced.get("hits")
    hits = outer.get("hits") if isinstance(outer, Mapping) else None
    if not isinstance(hits, list):
        return located
    if len(hits) != 1:
        message = f"the answer holds {len(hits)} judgment lists"
        hint = "ask for one list by its id"
        raise TestSetError(located.problem(message, ("hits", "hits"), expected="one", hint=hint))
    is_list = isinstance(hits[0], Mapping) and isinstance(hits[0].get("_source"), Mapping)
    return located.within("hits", "hits", 0, "_source") if is_list else located


def _take(builder: TextBuilder, entry: Mapping[str, Any], loc: Loc) -> None:
    """Take the ratings of one query; what is no rating is left to the schema."""
    text = source_text(entry.get("query"))
    if not isinstance(text, str):
        return
    builder.query(text, Query("", text))
    for index, rating in indexed_objects(entry.get("ratings")):
        doc_id, grade = source_text(rating.get("docId")), as_number(_from_text(rating.get("rating")))
        if isinstance(doc_id, str) and grade is not None:
            builder.judge(text, doc_id, grade, (*loc, "ratings", index))


def write_opensearch_judgments(testset: TestSet, path: Path | str) -> None:
    """Write the body that imports the list; ratings are text, as the workbench takes them.

    Raises:
        TestSetError: queries without a text, or with the text of another one.
    """
    path = Path(path)
    written_texts(testset, path)
    document = {
        "name": testset.name,
        "description": testset.description,
        "type": IMPORTED,
        "judgmentRatings": [
            {
                "query": query.text,
                "ratings": [
                    {"docId": doc_id, "rating": repr(float(grade))} for doc_id, grade in judged(testset, query).items()
                ],
            }
            for query in testset.queries
        ],
    }
    write_json(path, document)
