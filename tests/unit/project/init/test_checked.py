"""What `init` infers is checked against what it saw: the pattern `empty`, lines of results, the primary measure."""

from __future__ import annotations

import json

import pytest

from cranfield import Query, TestSet
from cranfield.model import Entity, File, Pattern
from cranfield.project.init.shape import shape_of
from cranfield.project.init.testset_choice import measures_for
from cranfield.project.init.trial import with_empty
from cranfield.project.init.values import UNLIKELY, Known

SETTINGS = {"command": ["search", "{query}"], "extract": {"regex": r"(?m)^(d\d+)$"}}


@pytest.mark.parametrize(
    ("nothing", "empty"),
    [
        ("Search of the manual\nno results\n", r"(?m)^[ \t]*no results"),  # the header stands in every answer
        ("Search of the manual\n", None),
        (f"Nothing found for '{UNLIKELY}'\n", r"(?m)^[ \t]*Nothing found for"),
        (f"{UNLIKELY}: not found\n", "not found"),
    ],
)
def test_the_pattern_of_an_empty_answer_matches_no_answer_with_results(nothing: str, empty: str | None) -> None:
    answered = ["Search of the manual\nd1\nd2\n"]
    assert with_empty(SETTINGS, nothing, answered, k=10).get("empty") == empty


def test_the_lines_of_a_result_are_found_beside_its_path() -> None:
    results = [
        {"path": "src/a.rs", "start_line": 4, "end_line": 9, "content": "x"},
        {"path": "src/a.rs", "start_line": 40, "end_line": 52, "content": "y"},
    ]
    shape = shape_of([json.dumps({"results": results})], Known())
    assert shape is not None
    assert shape.extract["id"] == "path"  # it repeats within the list, and the lines tell the results apart
    assert shape.extract["span"] == "join('-', [to_string(start_line), to_string(end_line)])"


def test_numbers_beside_an_id_that_is_no_file_are_no_lines() -> None:
    shape = shape_of([json.dumps([{"id": "d1", "start": 3, "end": 4}, {"id": "d2", "start": 1, "end": 2}])], Known())
    assert shape is not None
    assert "span" not in shape.extract


def truth(grades: dict[str, int] | None = None, *targets: object, files: tuple[str, ...] = ()) -> TestSet:
    query = Query("q1", "x")
    given = {"q1": tuple(targets)} if targets else {}
    return TestSet("t", (query,), {"q1": grades} if grades else {}, targets=given, files={"q1": files} if files else {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("testset", "measures"),
    [
        (truth(None, Pattern("^a$")), ("RR@10", "P@1", "P@5", "nDCG@10")),
        (truth({"d1": 1, "d2": 0}), ("RR@10", "P@1", "P@5", "nDCG@10")),
        (truth({"d1": 1, "d2": 1}), ("nDCG@10",)),
        (truth({"d1": 2}), ("nDCG@10",)),
        (truth(None, Entity("a.py::f"), files=("a.py",)), ("RR@10", "P@1", "P@5", "R@10", "FileCoverage@5")),
        (truth(None, File("a.py")), ("RR@10", "P@1", "P@5", "R@10")),
    ],
)
def test_the_primary_measure_is_chosen_by_the_truth(testset: TestSet, measures: tuple[str, ...]) -> None:
    assert measures_for(testset) == measures
