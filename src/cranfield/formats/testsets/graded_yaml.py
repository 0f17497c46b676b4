"""Queries with graded documents, in YAML or JSON: `query_id`, `query_text`, `query_type`, `relevant_docs`.

A list of them, or a mapping with `name`, `version`, `description`, `scale`, `meta` and the list under `queries`. As a retrieval
service for medical literature specifies its test sets, whose grades are 0 to 3 where `scale` declares no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import as_number
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import RECORDS, OpenModel, indexed_objects, load_records, write_records
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields, check_graded
from cranfield.formats.testsets.vocabulary import version_problems
from cranfield.model import Meta, Query, TestSet
from cranfield.model.kinds import FilledText, Grade, Id, Text, source_text, whole
from cranfield.model.note import not_carried

TYPE = "query_type"
"""The stratum, and its key."""
LOWEST, HIGHEST = 0, 3
"""Grades of the format, where no scale is declared."""


class _Judged(OpenModel):
    doc_id: FilledText
    grade: Grade


class _Record(OpenModel):
    query_id: FilledText
    query_text: FilledText
    query_type: Text | None = None
    strata: dict[Id, Text] = Field(default_factory=dict)
    relevant_docs: list[_Judged]


class _File(OpenModel):
    name: Text = ""
    version: Text = ""
    description: Text = ""
    scale: list[Grade] = Field(default_factory=list)
    meta: Meta = Field(default_factory=Meta)
    queries: Annotated[list[_Record], Field(min_length=1)]


def read_graded_yaml(path: Path | str) -> TestSet:
    """Read queries with graded documents.

    The type of a query is its stratum `query_type`, whatever it says. Keys that are not known are strata where two
    queries say the same; the others are counted in the notes.

    Raises:
        TestSetError: with everything that is wrong, each at its line and column.
    """
    return _testset(load_records(Path(path)))


def _testset(located: Located) -> TestSet:
    builder = TestSetBuilder(located.path, located.mark)
    model = validate(located, _File, builder.problems)
    scale = _scale(located, builder, model)
    for index, raw in indexed_objects(located.sourced.get(RECORDS)):
        _judge(builder, raw, (RECORDS, index), scale)
    builder.problems.problems += version_problems(located)
    builder.problems.raise_if_any()
    if model is None:
        raise TestSetError("not a test set", path=str(located.path))
    more, inside = UnknownFields(), UnknownFields()
    for record in model.queries:
        more.take(record.query_id, record.model_extra)
        for number, judged in enumerate(record.relevant_docs):
            inside.take(f"{record.query_id} {number}", judged.model_extra)
    for record in model.queries:
        strata = {} if record.query_type is None else {TYPE: record.query_type}
        strata |= {**more.strata(record.query_id), **record.strata}
        builder.queries[record.query_id] = Query(record.query_id, record.query_text, strata)
    notes = [
        *more.notes(),
        *not_carried(f"{key!r} of documents" for key in (*inside.values, *inside.others)),
        *not_carried(f"the key {key!r} of the file" for key in model.model_extra or {}),
        *builder.repeated(),
    ]
    meta = replace(model.meta, scale=scale)
    return builder.testset(notes, name=model.name, version=model.version, description=model.description, meta=meta)


def _scale(located: Located, builder: TestSetBuilder, model: _File | None) -> tuple[float, ...]:
    """The declared grades, under `scale` or in `meta`; none: those of the format."""
    if model is None:
        return ()
    if model.scale and model.meta.scale and tuple(model.scale) != model.meta.scale:
        builder.problems.problems.append(located.problem("two scales", ("scale",), expected="that of `meta`, or none"))
    return tuple(model.scale) or model.meta.scale


def _judge(builder: TestSetBuilder, record: Mapping[str, Any], loc: Loc, scale: Sequence[float]) -> None:
    """Add a query and its judgments; values that are none are left to the model."""
    query_id = source_text(record.get("query_id"))
    if not isinstance(query_id, str):
        return
    is_new = builder.new_query(Query(query_id), (*loc, "query_id"))
    for place, judged in indexed_objects(record.get("relevant_docs")) if is_new else ():
        doc_id, grade = source_text(judged.get("doc_id")), as_number(judged.get("grade"))
        if isinstance(doc_id, str) and grade is not None:
            if grade not in scale if scale else not LOWEST <= grade <= HIGHEST:
                builder.problem(
                    f"the grade of {shorten(doc_id)} is not on the scale",
                    (*loc, "relevant_docs", place, "grade"),
                    expected=", ".join(f"{each:g}" for each in scale) or f"{LOWEST} to {HIGHEST}",
                    got=f"{grade:g}",
                    hint=None if scale else "`scale: [0, 1, 2, 3, 4]` at the top of the file declares other grades",
                )
            builder.judge(query_id, doc_id, grade, (*loc, "relevant_docs", place))


def write_graded_yaml(testset: TestSet, path: Path | str) -> None:
    """Write the graded ids of a test set, as YAML or, where the file's name ends in `.json`, as JSON.

    Raises:
        TestSetError: a query judged by a rule, or without text.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    check_graded(testset, path, problems)
    problems.raise_if_any()
    document: dict[str, Any] = {"name": testset.name}
    if testset.version:
        document["version"] = testset.version
    if testset.description:
        document["description"] = testset.description
    grades = {grade for judged in testset.grades.values() for grade in judged.values()}
    if scale := testset.meta.scale or (() if all(LOWEST <= each <= HIGHEST for each in grades) else sorted(grades)):
        document["scale"] = [whole(grade) for grade in scale]
    document[RECORDS] = [_entry(query, testset.grades.get(query.id, {})) for query in testset.queries]
    write_records(path, document, _testset)


def _entry(query: Query, grades: Mapping[str, float]) -> dict[str, Any]:
    entry: dict[str, Any] = {"query_id": query.id, "query_text": query.text}
    if TYPE in query.strata:
        entry[TYPE] = query.strata[TYPE]
    if strata := {key: value for key, value in query.strata.items() if key != TYPE}:
        entry["strata"] = strata
    entry["relevant_docs"] = [{"doc_id": doc_id, "grade": whole(grade)} for doc_id, grade in grades.items()]
    return entry
