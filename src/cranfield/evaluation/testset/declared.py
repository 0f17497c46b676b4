"""What a test set says that it may not: grades that are not on its declared scale, and unknown task types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cranfield.base.errors import Problem, did_you_mean, shorten
from cranfield.model import TestSet
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES

MAX_GRADES = 20
"""Most grades of a scale that raters judge on."""


@dataclass(frozen=True, slots=True)
class Undeclared:
    """One thing that was not declared."""

    query_id: str
    item: str
    """What is judged, or the value of the stratum."""
    sentence: str
    expected: str
    got: str
    hint: str | None = None

    def problem(self, path: str, line: int | None = None, column: int | None = None) -> Problem:
        """The problem, at a place of a file."""
        message = f"query {shorten(self.query_id)}: {self.sentence}"
        return Problem(message, path, line, column, self.expected, self.got, self.hint)


def off_the_scale(testset: TestSet) -> Iterator[Undeclared]:
    """Grades that the declared scale does not have; what is only pooled (under 0) has none."""
    scale = set(testset.meta.scale)
    if not scale:
        return
    written = ", ".join(f"{grade:g}" for grade in testset.meta.scale)
    low, high = min(scale), max(scale)

    def found(query_id: str, item: str, grade: float, by: str = "") -> Undeclared:
        return Undeclared(
            query_id, item, f"grade {grade:g} of {item}{by} is not on the scale {written}", written, f"{grade:g}"
        )

    for query_id in testset.query_ids:
        ratings = testset.ratings.get(query_id, ())
        between = {rating.doc_id for rating in ratings}  # what raters came to may lie between two grades
        for doc_id, grade in testset.grades.get(query_id, {}).items():
            made = doc_id in between and (low <= grade <= high or grade in {0, 1})  # of votes: 0 or 1 on any scale
            if grade >= 0 and grade not in scale and not made:
                yield found(query_id, doc_id, grade)
        for target in testset.targets.get(query_id, ()):
            if target.grade not in scale:
                yield found(query_id, target.label, target.grade)
        for rating in ratings:
            if rating.grade is not None and rating.grade not in scale:
                yield found(query_id, rating.doc_id, rating.grade, f" by {rating.rater}")


def scale_to_judge(testset: TestSet) -> tuple[float, ...]:
    """The grades that raters may give so that they are on one scale with those of a test set.

    Returns:
        The declared scale. Where none is declared, and there are grades over 3 that no ratings were combined to, the whole
        numbers up to the highest, from 1 on where these are 1 to 10; otherwise nothing: any usual scale does.
    """
    if testset.meta.scale:
        return testset.meta.scale
    given = {grade for judged in testset.grades.values() for grade in judged.values() if grade >= 0}
    highest = max(given, default=0.0)
    if not 3 < highest < MAX_GRADES or any(grade != int(grade) for grade in given) or any(testset.ratings.values()):
        return ()
    return tuple(map(float, range(int(highest == 10 and min(given) >= 1), int(highest) + 1)))


def unknown_task_types(testset: TestSet) -> Iterator[Undeclared]:
    """Task types of queries and labels that are none of the declared ones.

    Where none is declared and that of a query is a common name, of the common ones.
    """
    declared = testset.meta.task_types
    known = {name.casefold() for name in declared or TASK_TYPES}
    values = {query.id: query.strata[TASK_TYPE] for query in testset.queries if TASK_TYPE in query.strata}
    if not declared and not any(value.casefold() in known for value in values.values()):
        return
    names = list(declared or TASK_TYPES)
    expected = [(query_id, label.classifier_expectation) for query_id, label in testset.labels.items()]
    for query_id, value in (*values.items(), *((query_id, value) for query_id, value in expected if value)):
        if value.casefold() not in known:
            hint = did_you_mean(value.casefold(), names) or "`task_types` of the metadata declares others"
            yield Undeclared(
                query_id, value, f"unknown task type {shorten(value)}", ", ".join(names), shorten(value), hint
            )


def undeclared(testset: TestSet) -> tuple[Undeclared, ...]:
    """All of both."""
    return (*off_the_scale(testset), *unknown_task_types(testset))
