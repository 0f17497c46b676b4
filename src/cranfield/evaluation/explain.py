"""Why one run scores differently under two conventions: which choice changes which query, and by how much; and its record.

The choices that differ are switched from A's to B's: each alone, and one after another in the order they apply, so that
the steps add up to the whole difference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.base.numbers import subtract
from cranfield.evaluation.evaluate import SAME
from cranfield.evaluation.margins import Margin, tie_margin, unjudged_margin
from cranfield.evaluation.values import RATED_BY_SLOT, known_mean
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.measures.measure import convention_for
from cranfield.model import Absence, Convention, TestSet
from cranfield.model.convention import CHOICES, RANKING_CHOICES, differing, with_choice
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.value import FloatQ, Ranking

Rank = Callable[[Convention], Ranking]
"""The run under a convention."""

"""Values closer than this are equal."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice on which the two conventions differ."""

    name: str
    a: str | int | None
    b: str | int | None


@dataclass(frozen=True, eq=False)
class ChoiceEffect:
    """The effect of one choice on one measure, switched from A's to B's."""

    choice: Choice
    before: FloatQ
    """float64[Q]: with the choices before it switched; NaN where a query has no value."""
    after: FloatQ
    """float64[Q]: with this one switched too."""
    first: FloatQ
    """float64[Q]: under A."""
    alone: FloatQ
    """float64[Q]: with this one switched and no other."""

    @property
    def changed(self) -> NDArray[np.bool_]:
        """bool[Q]: queries whose value changes, appears or disappears when it is switched after those before it."""
        return differ(self.before, self.after)

    @property
    def changed_alone(self) -> NDArray[np.bool_]:
        """bool[Q]: the same for A with this choice of B's."""
        return differ(self.first, self.alone)

    @property
    def has_effect(self) -> bool:
        """Whether any value changes, after those before it or alone."""
        return bool((self.changed | self.changed_alone).any())

    @property
    def step(self) -> float | None:
        """How it moves the mean after those before it; the steps of all choices add up to the difference of the means."""
        return subtract(known_mean(self.after), known_mean(self.before))

    @property
    def step_alone(self) -> float | None:
        """How it alone moves the mean of A."""
        return subtract(known_mean(self.alone), known_mean(self.first))

    def step_of(self, place: int) -> float | None:
        """How it moves one query's value after those before it; None where there is no value before or after."""
        return subtract(_value_or_none(self.after[place]), _value_or_none(self.before[place]))


@dataclass(frozen=True, eq=False)
class MeasureExplanation:
    """One measure under both conventions."""

    measure: Measure
    a: FloatQ
    """float64[Q]: under A; NaN where a query has no value."""
    b: FloatQ
    parts: tuple[ChoiceEffect, ...]
    """One per choice that differs, in the order they are switched."""
    reasons_a: Mapping[str, str]
    """Query id to why it has no value under A."""
    reasons_b: Mapping[str, str]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """bool[Q]: queries whose value differs, or exists under one convention only."""
        return differ(self.a, self.b)

    @property
    def difference(self) -> float | None:
        """Mean under B minus mean under A, each over the queries that have a value there."""
        return subtract(known_mean(self.b), known_mean(self.a))

    def values(self, place: int) -> tuple[float | None, float | None]:
        """One query's value under A and under B."""
        return _value_or_none(self.a[place]), _value_or_none(self.b[place])

    def causes(self, place: int) -> tuple[ChoiceEffect, ...]:
        """The choices that change one query, in the order they are switched."""
        return tuple(part for part in self.parts if part.changed[place])

    def most_changed(self) -> list[int]:
        """Places of the queries that changed, most first; those with a value under one convention only come before all."""
        places = np.flatnonzero(self.changed)
        size = np.nan_to_num(np.abs(self.b - self.a)[places], nan=np.inf)
        return [int(place) for place in places[np.argsort(-size, kind="stable")]]


@dataclass(frozen=True, slots=True)
class NarrowTie:
    """Two results whose scores differ at 64 bits and are equal at 32, where the second goes first."""

    above: str
    below: str
    above_score: float
    below_score: float


@dataclass(frozen=True)
class Explanation:
    """A run under two conventions."""

    run: str
    testset: TestSet
    a: Convention
    b: Convention
    choices: tuple[Choice, ...]
    measures: tuple[MeasureExplanation, ...]
    rankings: tuple[Ranking, Ranking]
    """The run under A and under B."""

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Q, those of the test set."""
        return self.testset.query_ids

    def narrow_tie(self, query_id: str) -> NarrowTie | None:
        """The first results of a query whose scores are equal at 32 bits alone, among those kept; None where there are none."""
        wide, narrow = sorted(self.rankings, key=lambda ranking: -ranking.convention.score_width)
        if wide.convention.score_width == narrow.convention.score_width:
            return None
        hits = [hit for hit in wide.top.get(query_id, ()) if hit.score is not None]
        others = {hit.id: hit.rank for hit in narrow.top.get(query_id, ())}
        for above, below in itertools.pairwise(hits):
            if above.score == below.score or _single(above.score) != _single(below.score):
                continue
            ranks = [others.get(hit.id, math.inf) for hit in (above, below)]
            if ranks[1] < ranks[0]:
                return NarrowTie(above.id, below.id, float(above.score or 0), float(below.score or 0))
        return None

    @property
    def unused(self) -> tuple[Choice, ...]:
        """Choices that change no value here, alone or after others."""
        busy = {part.choice for about in self.measures for part in about.parts if part.has_effect}
        return tuple(choice for choice in self.choices if choice not in busy)


def explain(
    testset: TestSet, rank: Rank, a: Convention, b: Convention, measures: Sequence[Measure], *, run: str = "run"
) -> Explanation:
    """Score one run under two conventions and under everything between them.

    Args:
        testset: what the run is judged by.
        rank: gives the run's Ranking under a convention; called once for each order, credit and gain.
        a: the current convention.
        b: the convention it is compared with.
        measures: at least one.
        run: what to call the run.

    Raises:
        UsageError: A is B, or one of them makes grades of the ratings measure by measure.
    """
    if a.name == b.name:
        raise UsageError(f"both conventions are {a.name}", expected="two conventions")
    if testset.ratings and RATED_BY_SLOT in {a.name, b.name}:
        raise UsageError(
            f"under {RATED_BY_SLOT} each measure has its own grades, computed from the ratings: the rankings of the two sides cannot be "
            "compared",
            hint="{to_scale=binary} maps the ratings to one scale for all measures",
            parameters=("to_scale",),
        )
    score = _Scorer(testset, rank)
    choices = tuple(Choice(name, getattr(a, name), getattr(b, name)) for name in differing(a, b))
    between = [a]
    for choice in choices:
        between.append(with_choice(between[-1], choice.name, b))
    explained = []
    for measure in measures:
        values = [score(measure, convention) for convention in between]
        # The first choice, switched alone, is the first step.
        alone = [*values[1:2], *(score(measure, with_choice(a, choice.name, b)) for choice in choices[1:])]
        parts = [
            ChoiceEffect(choice, before, after, values[0], by_itself)
            for choice, (before, after), by_itself in zip(choices, itertools.pairwise(values), alone, strict=True)
        ]
        reasons = [score.reasons(measure, convention) for convention in (between[0], between[-1])]
        explained.append(MeasureExplanation(measure, values[0], values[-1], tuple(parts), reasons[0], reasons[1]))
    return Explanation(run, testset, a, b, choices, tuple(explained), (score.ranking(a), score.ranking(b)))


class _Scorer:
    """Values of a run under any convention; ranks again only where the ranking can differ."""

    def __init__(self, testset: TestSet, rank: Rank) -> None:
        self._rank = rank
        self._places = {query_id: place for place, query_id in enumerate(testset.query_ids)}
        self._rankings: dict[tuple[object, ...], Ranking] = {}

    def ranking(self, convention: Convention) -> Ranking:
        key = tuple(getattr(convention, name) for name in CHOICES if name in RANKING_CHOICES)
        if key not in self._rankings:
            self._rankings[key] = self._rank(convention)
        return replace(self._rankings[key], convention=convention)

    def __call__(self, measure: Measure, convention: Convention) -> FloatQ:
        ranking = self.ranking(convention_for(measure, convention))
        found, scored, _ = compute(measure, ranking)
        values = np.full(len(self._places), np.nan)
        places = np.array([self._places[query_id] for query_id in ranking.query_ids], dtype=np.intp)
        values[places] = np.where(scored, found, np.nan)
        return values

    def reasons(self, measure: Measure, convention: Convention) -> dict[str, str]:
        ranking = self.ranking(convention_for(measure, convention))
        _, _, reasons = compute(measure, ranking)
        ranked = set(ranking.query_ids)
        return {query_id: Absence.NOT_RETURNED for query_id in self._places if query_id not in ranked} | reasons


def _single(score: float | None) -> float:
    """The score as a 32-bit float."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(score or 0.0))


def differ(before: FloatQ, after: FloatQ) -> NDArray[np.bool_]:
    """bool[Q]: different values, or a value on one side only."""
    with np.errstate(invalid="ignore"):
        moved: NDArray[np.bool_] = np.abs(after - before) > SAME
    there: NDArray[np.bool_] = np.isnan(before) != np.isnan(after)
    return there | moved


def count(values: FloatQ) -> int:
    """Number of values that are not NaN."""
    return int((~np.isnan(values)).sum())


def _value_or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


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
    """Tie that changes the query, where it changes by the width of scores."""
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
class MeanBounds:
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
    """Choices of these that change no value here."""
    measures: Mapping[Measure, MeasureEffect]
    ties: tuple[MeanBounds, ...]
    """Over the orders of equal scores; empty where they were not asked for."""
    unjudged: tuple[MeanBounds, ...]
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
                part.choice.name,
                part.step_alone,
                int(np.count_nonzero(part.changed_alone)),
                part.step,
                int(np.count_nonzero(part.changed)),
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


def _bounds(explanation: Explanation, margin_of: Callable[[Measure, Ranking], Margin]) -> tuple[MeanBounds, ...]:
    return tuple(
        MeanBounds(
            about.measure, convention.name, found.mean_low, found.mean_high, found.n_results, found.n_queries, found.why
        )
        for about in explanation.measures
        if not CATALOGUE[about.measure.name].diagnostic
        for convention, ranking in zip((explanation.a, explanation.b), explanation.rankings, strict=True)
        for found in [margin_of(about.measure, ranking)]
    )
