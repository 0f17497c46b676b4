"""Exports of annotation tools: tasks of Label Studio and records of Argilla, with the answers of every annotator.

Both leave the names of fields and questions to their users. The query and the document are found under the names that columns
of tables have; a document without an id goes by the digest of its text. A grade is a number, a choice that begins with one
(`2 relevant`), or `relevant` and `not relevant`, `yes` and `no`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS, as_number, is_id
from cranfield.formats.io.files import shown
from cranfield.formats.io.records import first_of_keys, json_records
from cranfield.formats.testsets.trec import RatingMore, TestSetBuilder
from cranfield.formats.tools.by_text import TextBuilder
from cranfield.formats.tools.samples import context_id
from cranfield.model import Query, TestSet
from cranfield.model.note import not_carried

QUERY_IDS = ("query_id", "qid", "q_id", "query-id", "topic_id")
QUERY_TEXTS = ("query", "query_text", "question", "user_input", "search_query", "topic")
DOCUMENT_TEXTS = ("document", "doc", "passage", "text", "content", "body", "context", "answer", "result")
"""Keys of a task or a record, the likeliest first."""
DOCUMENT_IDS = tuple(name for name in JUDGMENT_COLUMNS["doc_id"] if name not in DOCUMENT_TEXTS)
GRADES = (*JUDGMENT_COLUMNS["grade"], "relevancy", "quality")
"""Names of the question that is the grade, where there are several."""
ANONYMOUS = "anonymous"
"""The rater of an answer without a user."""
_WORDS = {
    **dict.fromkeys(("not relevant", "irrelevant", "non-relevant", "nonrelevant", "not_relevant", "no", "false"), 0.0),
    **dict.fromkeys(("relevant", "yes", "true"), 1.0),
}
_NUMBERED = re.compile(r"\s*(?P<grade>[+-]?\d+(?:\.\d+)?)(?![\w.]).*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Annotation:
    """What an annotator answered to one question."""

    rater: str
    question: str
    value: object
    """None: nothing, as where the annotator passed over it."""
    reason: str = ""


def read_label_studio(path: Path | str) -> TestSet:
    """Read tasks of Label Studio (JSON): `data` names query and document, `annotations` hold ratings, numbers or choices.

    Raises:
        TestSetError: with every task without a query or a document, and every answer that is no grade.
    """
    return _read(Path(path), "task", lambda record: [record.get("data")], _of_label_studio)


def read_argilla(path: Path | str) -> TestSet:
    """Read records of Argilla (JSON or JSONL): `fields` and `metadata` name query and document, `responses` hold the grades.

    Raises:
        TestSetError: as `read_label_studio`.
    """
    return _read(Path(path), "record", lambda record: [record.get("metadata"), record.get("fields")], _of_argilla)


def _of_label_studio(record: Mapping[str, Any], lost: Counter[str]) -> Iterator[_Annotation]:
    lost["predictions"] += len(_objects(record.get("predictions")))
    for annotation in _objects(record.get("annotations")):
        by = annotation.get("completed_by")
        names = by if isinstance(by, Mapping) else {"id": by}
        rater, results = _named(names, ("email", "username", "id")) or ANONYMOUS, _objects(annotation.get("result"))
        texts = [result["value"].get("text") for result in results if isinstance(result.get("value"), Mapping)]
        reason = " ".join(str(part) for text in texts if text for part in (text if isinstance(text, list) else [text]))
        if annotation.get("was_cancelled"):
            yield _Annotation(rater, "", None, reason)
            continue
        for result in results:
            value, kind = result.get("value"), str(result.get("type", ""))
            if kind in {"rating", "number", "choices"} and isinstance(value, Mapping):
                yield _Annotation(rater, str(result.get("from_name", "")), value.get(kind), reason)
            elif kind != "textarea":
                lost[f"results of type {shorten(kind)}"] += 1


def _of_argilla(record: Mapping[str, Any], lost: Counter[str]) -> Iterator[_Annotation]:
    lost["suggestions"] += len(record.get("suggestions") or ())
    responses = record.get("responses")
    if isinstance(responses, Mapping):  # question to its answers
        answers = [
            (str(name), answer, answer.get("value")) for name, given in responses.items() for answer in _objects(given)
        ]
    else:  # of version 1: answers of a user, by question
        answers = [
            (str(name), response, value.get("value") if isinstance(value, Mapping) else value)
            for response in _objects(responses)
            for name, value in (response.get("values") or {}).items()
        ]
    for question, answer, value in answers:
        if answer.get("status") == "draft":
            lost["answers that are drafts"] += 1
        else:
            discarded = answer.get("status") == "discarded"
            yield _Annotation(_named(answer, ("user_id",)) or ANONYMOUS, question, None if discarded else value)


def _read(path: Path, what: str, fields_of: Any, answers_of: Any) -> TestSet:
    problems, lost = ProblemList(TestSetError), Counter[str]()
    rows: list[tuple[int, str, str, str, list[_Annotation]]] = []
    """Line, id and text of the query, document, and answers."""
    for line, record in json_records(path, problems):
        fields: dict[str, Any] = {}
        for part in fields_of(record):
            fields |= part if isinstance(part, Mapping) else {}
        named = {role: _named(fields, names) for role, names in (("id", QUERY_IDS), ("text", QUERY_TEXTS))}
        doc_id, text = _named(fields, DOCUMENT_IDS), _named(fields, DOCUMENT_TEXTS)
        place = {"path": shown(path), "line": line, "got": shorten(", ".join(map(str, fields)))}
        if not named["id"] and not named["text"]:
            problems.add(f"a {what} without a query", expected=" or ".join((*QUERY_IDS, *QUERY_TEXTS)), **place)
        elif not doc_id and not text:
            problems.add(
                f"a {what} without a document", expected=" or ".join((*DOCUMENT_IDS, *DOCUMENT_TEXTS)), **place
            )
        else:
            rows.append((line, named["id"], named["text"], doc_id or context_id(text), list(answers_of(record, lost))))
    question = _question(
        path,
        [annotation.question for *_, answers in rows for annotation in answers if annotation.value is not None],
        problems,
    )
    builder = (TestSetBuilder if rows and all(row[1] for row in rows) else TextBuilder)(path, problems=problems)
    for line, query_id, text, doc_id, answers in rows:
        key = query_id if type(builder) is TestSetBuilder else text or query_id
        builder.queries.setdefault(key, Query(key if type(builder) is TestSetBuilder else "", text or query_id))
        for annotation in answers:
            grade = _grade(annotation.value)
            if annotation.question not in {"", question}:
                lost[f"answers to {shorten(annotation.question)}"] += 1
            elif annotation.value is not None and grade is None:
                problems.add(
                    "an answer is not a grade", path=shown(path), line=line, got=shorten(annotation.value),
                    expected="a number, a choice that begins with a number (`2 relevant`), or `relevant` and `not relevant`",
                )  # fmt: skip
            else:
                more: RatingMore = {"reason": annotation.reason} if annotation.reason else {}
                builder.rate(key, doc_id, annotation.rater, grade, line, more)
    problems.raise_if_any()
    if not builder.ratings.values:
        expected = "answers of annotators; predictions and suggestions do not count"
        raise TestSetError(f"no {what} is annotated", path=shown(path), expected=expected)
    return builder.testset(
        not_carried(count_noun(n, things) if " " not in things else f"{things}: {n}" for things, n in lost.items() if n)
    )


def _question(path: Path, names: Sequence[str], problems: ProblemList) -> str:
    """The question whose answers are grades."""
    questions = list(dict.fromkeys(names))
    usual = [name for name in GRADES if name in questions]
    if len(questions) > 1 and not usual:
        problems.add(
            "several questions, none with a usual name", path=shown(path), expected=" or ".join(GRADES),
            got=", ".join(map(shorten, questions)), hint="rename the question that is the grade, or leave the others out of the export",
        )  # fmt: skip
    return usual[0] if usual else next(iter(questions), "")


def _named(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """The value of the first of some names, as text; empty where there is none."""
    name = first_of_keys(fields, names)
    return str(fields[name]) if name is not None and is_id(fields[name]) and str(fields[name]).strip() else ""


def _grade(value: object) -> float | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        if value.strip().lower() in _WORDS:
            return _WORDS[value.strip().lower()]
        found = _NUMBERED.fullmatch(value)
        return float(found["grade"]) if found else None
    return as_number(value)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
