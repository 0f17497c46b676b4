"""An explanation of two conventions as a record: plain values, of which reports and JSON are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cranfield.evaluation.explain import Choice, Explanation, MeasureExplanation, NarrowTie, count
from cranfield.evaluation.margins import Margin, tie_margin, unjudged_margin
from cranfield.evaluation.values import known_mean
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Convention
from cranfield.numbers import subtract
from cranfield.ranking.value import Ranking
from cranfield.results import Record
from cranfield.results.testset import TestSetRecord


@dataclass(frozen=True, slots=True)
class Effect:
    """What one choice does to the mean of one measure, and to how many queries."""

    choice: str
    alone: float | None
    """Switched, all others as A has them."""
    n_alone: int
    in_order: float | None
    """Switched after those before it; these add up to the difference."""
    n_in_order: int

    @property
    def is_any(self) -> bool:
        """Whether any value changes."""
        return self.n_alone > 0 or self.n_in_order > 0


@dataclass(frozen=True, slots=True)
class QueryEffect:
    """A query under both conventions."""

    a: float | None
    b: float | None
    difference: float | None
    steps: Mapping[str, float | None]
    """Choice to what it does after those before it; None where there is no value before or after."""
    causes: tuple[str, ...]
    """Choices that change it, in the order they are switched."""
    narrow_tie: NarrowTie | None
    """Of a query that changes by the width of scores."""
    why_not_a: str | None
    why_not_b: str | None


@dataclass(frozen=True, slots=True)
class MeasureEffect:
    """A measure under both conventions."""

    a: float | None
    """Mean."""
    b: float | None
    n_a: int
    n_b: int
    difference: float | None
    changed: tuple[str, ...]
    """Queries whose value differs or is there on one side only, those that differ most first."""
    parts: tuple[Effect, ...]
    queries: Mapping[str, QueryEffect]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and the highest mean of a measure under a convention."""

    measure: Measure
    convention: str
    low: float | None
    high: float | None
    n_results: int
    """Results that the bounds are over."""
    n_queries: int
    """Queries that have them."""
    why: str
    """Why the means are not known; empty where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationResult(Record):
    """One run under two conventions."""

    run: str
    testset: TestSetRecord
    a: Convention
    b: Convention
    choices: tuple[Choice, ...]
    """On which the two differ."""
    unused: tuple[str, ...]
    """Of these, those that change no value here."""
    measures: Mapping[Measure, MeasureEffect]
    ties: tuple[Bounds, ...]
    """Over the orders of equal scores; empty where they were not asked for."""
    unjudged: tuple[Bounds, ...]
    """Over the grades of unjudged results; empty where they were not asked for."""


def explanation_result(explanation: Explanation, *, ties: bool = False, unjudged: bool = False) -> ExplanationResult:
    """The record of an explanation.

    Args:
        explanation: one run under two conventions.
        ties: with the worst and best case of how equal scores fall.
        unjudged: with the bounds given what is unjudged.
    """
    return ExplanationResult(
        run=explanation.run,
        testset=TestSetRecord.of(explanation.testset),
        a=explanation.a,
        b=explanation.b,
        choices=explanation.choices,
        unused=tuple(choice.name for choice in explanation.unused),
        measures={about.measure: _measure(explanation, about) for about in explanation.measures},
        ties=_bounds(explanation, tie_margin) if ties else (),
        unjudged=_bounds(explanation, unjudged_margin) if unjudged else (),
    )


def _measure(explanation: Explanation, about: MeasureExplanation) -> MeasureEffect:
    ids = explanation.query_ids
    return MeasureEffect(
        a=known_mean(about.a),
        b=known_mean(about.b),
        n_a=count(about.a),
        n_b=count(about.b),
        difference=about.difference,
        changed=tuple(ids[place] for place in about.most_changed()),
        parts=tuple(
            Effect(
                *(part.choice.name, part.step_alone, int(np.count_nonzero(part.changed_alone))),
                *(part.step, int(np.count_nonzero(part.changed))),
            )
            for part in about.parts
        ),
        queries={query_id: _query(explanation, about, place, query_id) for place, query_id in enumerate(ids)},
    )


def _query(explanation: Explanation, about: MeasureExplanation, place: int, query_id: str) -> QueryEffect:
    a, b = about.values(place)
    causes = tuple(part.choice.name for part in about.causes(place))
    return QueryEffect(
        a=a,
        b=b,
        difference=subtract(b, a),
        steps={part.choice.name: part.step_of(place) for part in about.parts},
        causes=causes,
        narrow_tie=explanation.narrow_tie(query_id) if "score_width" in causes else None,
        why_not_a=about.reasons_a.get(query_id),
        why_not_b=about.reasons_b.get(query_id),
    )


def _bounds(explanation: Explanation, margin_of: Callable[[Measure, Ranking], Margin]) -> tuple[Bounds, ...]:
    return tuple(
        Bounds(
            about.measure, convention.name, found.mean_low, found.mean_high, found.n_results, found.n_queries, found.why
        )
        for about in explanation.measures
        if not CATALOGUE[about.measure.name].diagnostic
        for convention, ranking in zip((explanation.a, explanation.b), explanation.rankings, strict=True)
        for found in [margin_of(about.measure, ranking)]
    )
