"""Truth by pattern, span, entity, file or predicate as rows of a rater `rule`, for pools and holes.

A test set of targets is closed: what no target matches is not relevant, and nothing is unjudged. In this view it is open:
a document that matches has the grade of its target, and any other is unjudged, until a person judges it. Evaluation,
gates and digests use the test set itself. What differs from it: each document that matches is an item of its own, also
where a pattern or a span credits the first match alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cranfield.base.patterns import search_limit
from cranfield.model import (
    CONVENTIONS,
    DEFAULT_CONVENTION,
    Answer,
    Hit,
    Run,
    TestSet,
)
from cranfield.model.query import negative_of
from cranfield.ranking.matching.expectation import by_place, expect
from cranfield.ranking.matching.place import place_name

RULE = "rule"
"""Name of the rater."""

Grades = Mapping[str, Mapping[str, float]]
"""Query id to document to grade."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A judgment of the rater `rule`."""

    query: str
    doc: str
    grade: float
    target: str
    """Label of the target that it matches."""


@dataclass(frozen=True, slots=True)
class GradeDifference:
    """A document that a person graded otherwise than the test set; the person's grade counts."""

    query: str
    doc: str
    grade: float
    """Grade of the test set: by rule or by id; 0 where the query expects nothing."""
    person: float


@dataclass(frozen=True)
class RuleView:
    """A test set and runs of it in which every judgment is about a document."""

    testset: TestSet
    """With graded ids alone. A target that no document matches is expected under its label."""
    runs: tuple[Run, ...]
    """With the documents' names in `testset` as ids: `id:lines` where results are places in files, else the id."""
    rows: tuple[RuleRow, ...]
    differences: tuple[GradeDifference, ...]
    is_rule: bool
    """Whether any query is judged by targets."""

    @property
    def prefilled(self) -> dict[tuple[str, str], float]:
        """Query and document to the grade of the rater `rule`."""
        return {(row.query, row.doc): row.grade for row in self.rows}


def rule_view(testset: TestSet, runs: Sequence[Run], *, people: Grades | None = None) -> RuleView:
    """The view of a test set over the documents of some runs.

    Args:
        testset: with its predicates evaluated. Of a set of graded ids it is the set itself, but for `people`.
        runs: whose documents the rules are applied to.
        people: grades of persons, which take the place of the test set's. A query where nothing should be found keeps
            that: grades above 0 are listed as differences.
    """
    convention = CONVENTIONS[DEFAULT_CONVENTION]
    rows: list[RuleRow] = []
    grades = {query_id: dict(of_query) for query_id, of_query in testset.grades.items()}
    for query_id in testset.targets:
        expectation = expect(testset, query_id, convention)
        is_place = by_place(testset, query_id)
        best: dict[str, int] = {}
        matched: set[int] = set()
        with search_limit(f"regular expressions of query {query_id}"):
            for hit in _hits(runs, query_id):
                items = expectation.matches(hit)
                matched.update(items)
                if items:
                    doc = place_name(hit) if is_place else hit.id
                    best[doc] = min(items[0], best.get(doc, items[0]))
        rows += (
            RuleRow(query_id, doc, expectation.grades[item], expectation.labels[item]) for doc, item in best.items()
        )
        missed = (item for item in range(len(expectation.labels)) if item not in matched)
        grades[query_id] = {expectation.labels[item]: expectation.grades[item] for item in missed}
    for row in rows:
        grades[row.query][row.doc] = row.grade
    differences = _overlay(testset, grades, people or {})
    return RuleView(
        replace(testset, grades=grades, targets={}, ratings={}, consensus="") if testset.targets or people else testset,
        tuple(named_by_place(testset, run) for run in runs),
        tuple(rows),
        tuple(differences),
        is_rule=bool(testset.targets),
    )


def _overlay(testset: TestSet, grades: dict[str, dict[str, float]], people: Grades) -> list[GradeDifference]:
    """Put the persons' grades in the place of others, and list where they differ."""
    differences = []
    for query_id, of_query in people.items():
        if query_id not in testset.by_id:
            continue
        expects_nothing = negative_of(testset.by_id[query_id]) is not None
        known = grades.setdefault(query_id, {}) if not expects_nothing else dict.fromkeys(of_query, 0.0)
        for doc, grade in of_query.items():
            before = known.get(doc)
            if before is not None and before >= 0 and before != grade:
                differences.append(GradeDifference(query_id, doc, before, grade))
            known[doc] = grade
    return differences


def _hits(runs: Sequence[Run], query_id: str) -> list[Hit]:
    answers = (run.answers.get(query_id) for run in runs)
    return [hit for answer in answers if answer is not None for hit in answer.hits]


def named_by_place(testset: TestSet, run: Run) -> Run:
    """The run with `id:lines` as the id of each result, in the queries whose results are places in files."""
    answers: dict[str, Answer] = {}
    for query_id, answer in run.answers.items():
        hits = tuple(map(_named, answer.hits)) if by_place(testset, query_id) else answer.hits
        answers[query_id] = answer if hits == answer.hits else replace(answer, hits=hits)
    return run if answers == run.answers else replace(run, answers=answers, testset_digest=None)


def _named(hit: Hit) -> Hit:
    name = place_name(hit)
    hides = hit.redacted_id is not None or hit.redacted_span is not None
    return (
        hit
        if name == hit.id
        else replace(hit, id=name, redacted_id=f"{hit.public_id}:{hit.public_span}" if hides else None)
    )
