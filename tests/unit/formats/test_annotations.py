"""Exports of Label Studio and Argilla, with the answers of every annotator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cranfield import load
from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import detect_format, read_testset
from cranfield.formats.tools.samples import context_id


def label_studio(*annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"id": 1, "data": data, "annotations": list(annotations), "predictions": [{"result": []}], "meta": {}}


def annotation(by: object, value: dict[str, Any], kind: str, name: str = "relevance", **more: Any) -> dict[str, Any]:
    result = {"from_name": name, "to_name": "text", "type": kind, "value": value}
    return {"completed_by": by, "result": [result, *more.pop("others", [])], **more}


NOTE = {"from_name": "why", "to_name": "text", "type": "textarea", "value": {"text": ["right colour"]}}
TASKS = [
    label_studio(
        annotation(1, {"rating": 3}, "rating", others=[NOTE]),
        annotation({"email": "bob@example.org"}, {"number": 1}, "number"),
        query="red shoes", document_id="d1", text="Shoes in red",
    ),
    label_studio(
        annotation(1, {"choices": ["0 not relevant"]}, "choices"),
        annotation(2, {}, "rating", was_cancelled=True),
        query="red shoes", document_id="d2",
    ),
    label_studio(annotation(1, {"choices": ["Relevant"]}, "choices"), query="hats", text="A hat"),
]  # fmt: skip
RECORDS = [
    {
        "id": "r1",
        "fields": {"query": "red shoes", "document": "Shoes in red"},
        "metadata": {"doc_id": "d1"},
        "suggestions": {"relevance": {"value": 0}},
        "responses": {
            "relevance": [
                {"value": 3, "user_id": "u1", "status": "submitted"},
                {"value": "1", "user_id": "u2"},
                {"value": 2, "user_id": "u3", "status": "draft"},
                {"value": None, "user_id": "u4", "status": "discarded"},
            ],
            "comment": [{"value": "fine", "user_id": "u1"}],
        },
    },
    {
        "fields": {"query": "red shoes", "document": "Blue"},
        "metadata": {"doc_id": "d2"},
        "responses": [{"user_id": "u1", "status": "submitted", "values": {"relevance": {"value": "not relevant"}}}],
    },
]


def written(path: Path, records: list[dict[str, Any]], *, lines: bool = False) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records, indent=2))
    return path


def ratings_of(path: Path) -> dict[str, list[tuple[str, str, float | None, str]]]:
    testset = read_testset(path)
    texts = {query.id: query.text for query in testset.queries}
    return {
        texts[query_id]: [(each.doc_id, each.rater, each.grade, each.reason) for each in ratings]
        for query_id, ratings in testset.ratings.items()
    }


def test_tasks_of_label_studio(tmp_path: Path) -> None:
    path = written(tmp_path / "tasks.json", TASKS)
    assert detect_format(path, "testset", None, TestSetError).name == "label-studio"
    assert ratings_of(path) == {
        "red shoes": [
            ("d1", "1", 3.0, "right colour"),
            ("d1", "bob@example.org", 1.0, ""),
            ("d2", "1", 0.0, ""),
            ("d2", "2", None, ""),
        ],
        "hats": [(context_id("A hat"), "1", 1.0, "")],
    }
    testset = load(path)
    assert testset.grades[testset.query_ids[0]] == {"d1": 1.0, "d2": 0.0}  # the lower one of two in the middle
    assert any("3 predictions" in note.text for note in testset.notes)


@pytest.mark.parametrize("lines", [False, True])
def test_records_of_argilla(lines: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "records.json", RECORDS, lines=lines)
    assert detect_format(path, "testset", None, TestSetError).name == "argilla"
    assert ratings_of(path) == {
        "red shoes": [
            ("d1", "u1", 3.0, ""),
            ("d1", "u2", 1.0, ""),
            ("d1", "u4", None, ""),
            ("d2", "u1", 0.0, ""),
        ]
    }
    notes = " ".join(note.text for note in read_testset(path).notes)
    assert "answers that are drafts: 1" in notes
    assert "answers to 'comment': 1" in notes


def test_ids_of_queries_are_kept_where_every_task_has_one(tmp_path: Path) -> None:
    tasks = [label_studio(annotation(1, {"rating": 2}, "rating"), query_id="q7", query="hats", doc_id="d1")]
    testset = load(written(tmp_path / "tasks.json", tasks))
    assert [(query.id, query.text) for query in testset.queries] == [("q7", "hats")]
    assert testset.grades == {"q7": {"d1": 2.0}}


def test_every_task_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    tasks = [
        label_studio(annotation(1, {"choices": ["somewhat"]}, "choices"), query="hats", doc_id="d1"),
        label_studio(annotation(1, {"rating": 2}, "rating"), title="hats", doc_id="d1"),
        label_studio(annotation(1, {"rating": 2}, "rating"), query="hats", price=3),
    ]
    with pytest.raises(TestSetError) as caught:
        read_testset(written(tmp_path / "tasks.json", tasks))
    assert [problem.message for problem in caught.value.problems] == [
        "an answer is not a grade",
        "a task without a query",
        "a task without a document",
    ]
    assert caught.value.problems[0].got == "['somewhat']"


def test_of_several_questions_the_grade_must_be_known(tmp_path: Path) -> None:
    answers = [annotation(1, {"rating": 2}, "rating", name=name) for name in ("fluency", "helpfulness")]
    tasks = [label_studio(*answers, query="hats", doc_id="d1")]
    with pytest.raises(TestSetError, match=r"several questions, none with a usual name.*got 'fluency', 'helpfulness'"):
        read_testset(written(tmp_path / "tasks.json", tasks))
    with pytest.raises(TestSetError, match="no task is annotated"):
        read_testset(written(tmp_path / "tasks.json", [label_studio(query="hats", doc_id="d1")]))
