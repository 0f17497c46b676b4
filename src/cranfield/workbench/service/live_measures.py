"""Measures of an evaluation whose results are being judged: they follow its book, and are null where nothing is graded."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from cranfield.app.evaluate import evaluate_with_options, scales_of
from cranfield.base.errors import Problem, UsageError
from cranfield.books.store.store import Store
from cranfield.evaluation.options.blocks import Limits, ScoringOptions
from cranfield.evaluation.testset.edit import recorded
from cranfield.evaluation.values import RATED_BY_SLOT, Evaluation
from cranfield.judging.book.freeze import Freezing
from cranfield.judging.book.grades import BookContents, contents_of, rated_book
from cranfield.judging.book.onto import put_onto
from cranfield.judging.pools.results import SystemResults
from cranfield.measures import Measure
from cranfield.model import Run, TestSet
from cranfield.ranking import Missing
from cranfield.ranking.value import ResultState
from cranfield.stats.scale import LEVELS, rules_between

_NO_DAY = date(2000, 1, 1)
"""Date of a version that is not kept."""


@dataclass(frozen=True, slots=True)
class LiveMeasure:
    """A measure with the current grades."""

    measure: Measure
    scale: str
    """On which it is computed; empty: that of the grades."""
    mean: float | None
    """Over the queries that have a value; None: none has one, which is not 0."""
    n: int
    """Queries with a value."""
    n_null: int
    """Queries without one."""
    n_shown: int
    """Results down to the depth of the measure."""
    n_judged: int
    """Those of them that have a grade."""
    n_rated: int
    """Those of them that a rater graded."""
    n_ties: int
    """Those of them whose votes are even: they have no grade."""


@dataclass(frozen=True)
class LiveMeasures:
    """An evaluation as the grades of its book are now."""

    evaluation: Evaluation
    rows: tuple[LiveMeasure, ...]
    texts: Mapping[str, str]
    """Query to its text, in the order of the test set."""
    progress: Mapping[str, tuple[int, int]]
    """Query to the results that are judged, and all, down to the depth of the snapshot."""
    void: tuple[str, ...] = ()
    """Why the figures do not count."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Kind to the number of queries that the system failed on."""

    def value(self, measure: Measure, query_id: str) -> float | None:
        """The value of a query; None where it has none."""
        return self.evaluation.value(measure, query_id) if query_id in self.evaluation.index else None

    def why_null(self, query_id: str) -> str:
        """Why a query has no value of a measure; empty where it has one of each."""
        return next((found[query_id] for found in self.evaluation.unscored.values() if query_id in found), "")


def without_map(measures: Sequence[Measure], grades: Sequence[int], convention: str) -> Iterator[Problem]:
    """Measures whose own scale the grades of a book cannot be mapped to, so that the first grade would end their evaluation."""
    if convention != RATED_BY_SLOT:
        return
    book_scale = next((name for name, levels in LEVELS.items() if levels == tuple(grades)), None)
    if book_scale is None:
        yield Problem(
            f"{RATED_BY_SLOT} has no mapping from the grades {', '.join(map(str, grades))}",
            path="convention",
            expected=f"one of the scales {', '.join(LEVELS)}",
            hint="choose another convention",
        )
        return
    for measure, own in scales_of(measures).items():
        try:
            rules_between(book_scale, own or book_scale)
        except UsageError:
            yield Problem(
                f"{measure} uses the scale {own}, and {book_scale} cannot be mapped to it",
                path="measures",
                expected=f"a book that is judged on the scale {own}",
                got=f"one on the scale {book_scale}",
                hint="leave the measure out, or judge on its scale",
            )


def judged_so_far(testset: TestSet, contents: BookContents) -> TestSet:
    """A test set with the grades that a book has now in the place of its own.

    Args:
        testset: whose queries count.
        contents: of the book, which may have further queries.

    Raises:
        UsageError: what the book has cannot be put onto the test set; see `put_onto`.
    """
    known = testset.by_id
    part = replace(
        contents,
        queries=tuple(query for query in contents.queries if query.name in known),
        items=tuple(item for item in contents.items if item.query in known),
    )
    if not part.items:
        return testset
    rated = rated_book(part)
    found = put_onto(testset, part, Freezing(recorded(rated.testset, "now", _NO_DAY), rated, 0, None), _NO_DAY)
    return replace(found, version=testset.version, meta=replace(found.meta, previous=testset.meta.previous))


def evaluate_in_book(
    store: Store,
    book: str | int,
    testset: TestSet,
    run: Run,
    measures: Sequence[str | Measure] | None,
    convention: str,
    *,
    depth: int | None = None,
    limits: Limits | None = None,
) -> Evaluation:
    """Score a run by the grades that a book has now.

    Args:
        store: of the book.
        book: name or id.
        testset: whose queries were asked; its judgments count where the book has no grade.
        run: the answers.
        measures: spellings; the first is the primary one. One without a value stays, with a mean of None.
        convention: `searchtweak` computes each measure on a scale of its own, and leaves out queries without a graded result;
            under the others a query that failed counts as 0.
        depth: results of each query that are looked at; None: all.
        limits: which evidence makes the evaluation void.

    Raises:
        UsageError: a measure that the scale of the book has no map for, or what `judged_so_far` refuses.
    """
    judged = judged_so_far(testset, contents_of(store, book))
    absent: Missing | None = None if convention == RATED_BY_SLOT else "zero"
    keep = depth or max((len(answer.hits) for answer in run.answers.values()), default=0)
    options = ScoringOptions(
        convention=convention,
        missing=absent,
        failed=absent,
        depth=depth,
        keep=keep,
        keep_undefined=True,
        limits=limits or Limits(),
    )
    return evaluate_with_options(judged, replace(run, testset_digest=None), measures, options)


def live_measures(evaluation: Evaluation, run: Run, depth: int | None) -> LiveMeasures:
    """What the page of an evaluation shows of it: that of `evaluate_in_book`, of a run, down to a depth."""
    judged = evaluation.testset
    rated = {(q, rating.doc_id) for q, given in judged.ratings.items() for rating in given if _is_graded(rating.grade)}
    scales = _scales(evaluation)
    rows = tuple(_row(evaluation, measure, scales.get(measure, ""), rated, depth) for measure in evaluation.measures)
    results = SystemResults(run.name, run)
    found = {}
    for query_id in judged.query_ids:
        hits, grades = results.top(query_id, depth or sys.maxsize), judged.grades.get(query_id, {})
        found[query_id] = sum(grades.get(hit.id, -1.0) >= 0 for hit in hits), len(hits)
    progress = found
    return LiveMeasures(evaluation, rows, {q.id: q.text for q in judged.queries}, progress)


def _is_graded(grade: float | None) -> bool:
    return grade is not None and grade >= 0


def _scales(evaluation: Evaluation) -> Mapping[Measure, str]:
    """The scale of each measure; before the first grade, that on which it will be computed."""
    is_graded = any(_is_graded(grade) for grades in evaluation.testset.grades.values() for grade in grades.values())
    if evaluation.scales or is_graded or evaluation.ranking.convention.name != RATED_BY_SLOT:
        return evaluation.scales
    own = scales_of(evaluation.measures)
    first = next((scale for scale in own.values() if scale is not None), "")
    return {measure: scale or first for measure, scale in own.items()}


def _row(
    evaluation: Evaluation, measure: Measure, scale: str, rated: Container[tuple[str, str]], depth: int | None
) -> LiveMeasure:
    ranking = evaluation.ranking_for(measure) or evaluation.ranking
    summary, cutoff = evaluation.summaries[measure], measure.depth or depth
    shown = [(q, hit) for q, hits in ranking.top.items() for hit in hits[:cutoff]]
    judged = [hit.state is ResultState.JUDGED for _, hit in shown]
    by_rater = [(q, hit.id) in rated or (q, f"{hit.id}:{hit.span}") in rated for q, hit in shown]
    return LiveMeasure(
        measure,
        scale,
        summary.mean,
        summary.n,
        len(evaluation.testset.queries) - summary.n,
        len(shown),
        sum(judged),
        sum(by_rater),
        sum(is_rated and not is_judged for is_rated, is_judged in zip(by_rater, judged, strict=True)),
    )
