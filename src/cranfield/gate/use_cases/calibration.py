"""Scores of systems calibrated against relevance, and scores for assertions of pytest.

A score for an assertion is a mean or the values of any measure, computed when it is requested. The last request is recorded, so that
a failing test can name the queries that made it fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.app.evaluate import compare, with_measure
from cranfield.base.errors import InputError, Problem, UnknownNameError, UsageError, shorten
from cranfield.base.words import count_noun, or_list
from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.evidence.values import caveat_sentences
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.gate.calibration.table import SCORE_COLUMNS, CalibrationAnswers, Correctness, ScoredAnswer, score_problem
from cranfield.gate.confidence import confidence_of
from cranfield.gate.gate_input import GateInput
from cranfield.measures import CATALOGUE, Measure, parse
from cranfield.measures.kernels import first_relevant_rank
from cranfield.measures.measure import Reason
from cranfield.measures.threshold import Threshold
from cranfield.model import Absence, Outcome, is_in_stratum, query_strata
from cranfield.model.answer_rule import answers_with_fields, field_of, is_absent
from cranfield.model.query import negative_of

DECIMALS = 12
"""Kept of a number: a mean that is 0.4 is not a hair under it."""
SHOWN = 10
"""Queries that a failure names."""


@dataclass
class LazyEvaluation:
    """An evaluation whose further measures are computed when they are requested."""

    evaluation: Evaluation

    def with_measure(self, spelled: str) -> Measure:
        """The measure, computed.

        Raises:
            UsageError: unknown, or one that no query allows.
        """
        measure = parse(spelled)
        if measure not in self.evaluation.measures:
            self.evaluation = with_measure(self.evaluation, measure)
        return measure


@dataclass(frozen=True, eq=False)
class Scores:
    """What one system scored on the queries of a test set, or on some of them."""

    lazy: LazyEvaluation
    query_ids: tuple[str, ...]
    """Ids of the queries that are looked at."""
    label: str = ""
    """Which those are, where they are not all: `difficulty=easy`."""
    requests: list[tuple[Scores, Measure]] = field(default_factory=list, repr=False)
    """Measures requested of these scores and of those taken from them, in order."""

    @classmethod
    def of(cls, lazy: LazyEvaluation, requests: list[tuple[Scores, Measure]] | None = None) -> Scores:
        """All queries of an evaluation; measures that are requested are added to `requests`."""
        return cls(lazy, lazy.evaluation.query_ids, requests=[] if requests is None else requests)

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation behind it, with its run, its ranking and all that was computed."""
        return self.lazy.evaluation

    def mean(self, measure: str) -> float:
        """Mean of a measure over these queries, to 12 decimals; as it is summed up where it is not by its mean.

        Raises:
            UsageError: an unknown measure; no query has a value, which is never a number.
        """
        __tracebackhide__ = True
        computed, places = self._places(measure)
        weights = np.array([self._weight(place) for place in places.tolist()])
        summary = summarise(self.evaluation.values[computed][places], weights=weights, measure=computed)
        if summary.mean is None:
            raise UsageError(f"{computed} has no {summary.aggregate} on {self!r}")
        return round(float(summary.mean), DECIMALS)

    def values(self, measure: str) -> dict[str, float]:
        """Query id to value, of those that have one, to 12 decimals."""
        computed, places = self._places(measure)
        values = self.evaluation.values[computed]
        return {self.evaluation.query_ids[i]: round(float(values[i]), DECIMALS) for i in places.tolist()}

    def worst(self, measure: str) -> float:
        """The value of the query that does worst: the lowest, or the highest where less is better."""
        values = self.values(measure).values()
        return min(values) if CATALOGUE[parse(measure).name].higher_is_better else max(values)

    def where(self, **strata: str) -> Scores:
        """Only the queries of these strata: `where(difficulty="easy")`; of a class: `where(**{"class": "prose"})`.

        Raises:
            UsageError: no query is of them.
        """
        queries = self.evaluation.testset.by_id
        for key in strata:
            self._require_key(key)
        kept = tuple(
            query_id
            for query_id in self.query_ids
            if all(is_in_stratum(queries[query_id], key, value) for key, value in strata.items())
        )
        labels = [*([self.label] if self.label else []), *(f"{key}={value}" for key, value in strata.items())]
        if not kept:
            known = {key: sorted(self._values_of(key)) for key in strata}
            expected = "; ".join(f"{key}: {', '.join(values)}" for key, values in known.items())
            raise UsageError(f"no query belongs to {', '.join(labels)}", expected=expected)
        return Scores(self.lazy, kept, ", ".join(labels), self.requests)

    def by(self, key: str) -> dict[str, Scores]:
        """Value of a stratum to its queries, in the order of the values.

        A value whose queries are all negative, so that no mean but that of `Silence` exists, is left to `where`.

        Raises:
            UsageError: no query has such a stratum.
        """
        self._require_key(key)
        groups = {value: self.where(**{key: value}) for value in sorted(self._values_of(key))}
        queries = self.evaluation.testset.by_id
        return {
            value: group
            for value, group in groups.items()
            if any(negative_of(queries[query_id]) is None for query_id in group.query_ids)
        }

    def against(self, baseline: Scores, **options: Any) -> Comparison:
        """The comparison with another system on the test set, on all queries; its verdict has a code: `worse`, `mixed`.

        Args:
            baseline: what the other system scored.
            options: of `cranfield.compare`: primary, test, alpha, margin, verdict, strata.

        Raises:
            UsageError: the two do not belong together, or an option is out of bounds.
        """
        return compare(baseline.evaluation, self.evaluation, **options)

    def __len__(self) -> int:
        """How many queries these are."""
        return len(self.query_ids)

    def __repr__(self) -> str:
        """What a failed assertion shows: system, test set, queries."""
        which = f", {self.label}" if self.label else ""
        return f"<{self.evaluation.name} on {self.evaluation.testset.name}: {count_noun(len(self), 'queries')}{which}>"

    def describe_worst(self, measure: Measure) -> str:
        """The queries with the lowest values of a measure, a line each, with what was found."""
        evaluation, queries = self.evaluation, self.evaluation.testset.by_id
        values, scored = evaluation.values[measure], evaluation.scored[measure]
        ranks = first_relevant_rank(evaluation.ranking)
        sign = 1 if CATALOGUE[measure.name].higher_is_better else -1
        places = sorted((evaluation.index[query_id] for query_id in self.query_ids), key=lambda i: sign * values[i])
        places = [place for place in places if scored[place]]
        at_fault = [place for place in places if values[place] != values[places[-1]]]
        places = at_fault or places
        lines = [f"caveat: {sentence}" for sentence in caveat_sentences(evaluation.evidence)]
        lines.append(f"{measure} on {self!r}, the worst first:")
        for place in places[:SHOWN]:
            query_id, outcome = evaluation.query_ids[place], evaluation.ranking.outcomes[place]
            rank, n = ranks[place], int(evaluation.ranking.n_returned[place])
            found = f"first relevant at rank {rank:.0f}" if np.isfinite(rank) else f"nothing relevant in {n} results"
            reason = evaluation.ranking.reasons.get(query_id, "")
            found = f"{outcome.value}: {reason}" if outcome.is_failure else found
            found = Absence.NOT_RETURNED if outcome is Outcome.MISSING else found
            lines.append(f"  {query_id}  {values[place]:.4f}  {found}  {queries[query_id].text!r}")
        if len(places) > SHOWN:
            lines.append(f"  and {len(places) - SHOWN} more")
        return "\n".join(lines)

    def _places(self, spelled: str) -> tuple[Measure, NDArray[np.intp]]:
        """The measure, and where in the arrays the queries are that have a value."""
        measure = self.lazy.with_measure(spelled)
        self.requests.append((self, measure))
        scored = self.evaluation.scored[measure]
        places = np.array([self.evaluation.index[query_id] for query_id in self.query_ids], dtype=np.intp)
        places = places[scored[places]]
        if not len(places):
            why = next(iter(self.evaluation.unscored[measure].values()), "no query")
            hint = f"request {measure.depth} results: k={measure.depth}" if why is Reason.CUT_SHORT else None
            raise UsageError(f"{measure} has no value on any of {self!r}", got=why, hint=hint)
        return measure, places

    def _weight(self, place: int) -> float:
        return self.evaluation.testset.by_id[self.evaluation.query_ids[place]].weight

    def _values_of(self, key: str) -> set[str]:
        queries = (self.evaluation.testset.by_id[query_id] for query_id in self.query_ids)
        return {strata[key] for query in queries if key in (strata := query_strata(query))}

    def _require_key(self, key: str) -> None:
        known = {name for query in self.evaluation.testset.queries for name in query_strata(query)}
        if key not in known:
            raise UnknownNameError.among("stratum", key, known)


SCORE_FIELDS = ("confidence", *(name for name in SCORE_COLUMNS if name != "confidence"))
"""The usual names of a confidence, as of a table; `score` is also the name of other things."""


def answers_of_run(evaluation: Evaluation, field: str | None, rule: Threshold) -> CalibrationAnswers:
    """The confidence that each answer of a run states, and whether it is correct by a measure.

    A query for which the measure has no value, such as one without relevant documents, has no correctness.

    Args:
        evaluation: of a collected run.
        field: of the answers, with dots where it is inside an object; None: the first of `SCORE_FIELDS` that an answer has.
        rule: a measure with its bound: `Success@5 >= 1`.

    Raises:
        UsageError: the run has no such field.
        InputError: with every confidence that is no number from 0 to 1.
    """
    answers = {} if evaluation.run is None else dict(answers_with_fields(evaluation.run))
    wanted = (field,) if field else SCORE_FIELDS
    columns = {name: {query: field_of(answer.fields, name) for query, answer in answers.items()} for name in wanted}
    field = next((name for name, values in columns.items() if not all(map(is_absent, values.values()))), None)
    if field is None:
        names = dict.fromkeys(name for answer in answers.values() for name in answer.fields)
        got = f"fields {', '.join(names)}" if names else "answers without fields"
        hint = "`extract: {fields: {confidence: PATH}}` in the config keeps a field of the output."
        raise UsageError(f"no answer has the field {or_list(wanted)}", path=evaluation.name, got=got, hint=hint)
    stated, problems = columns[field], []
    outcomes = _outcomes(evaluation, rule)
    found = []
    for query in evaluation.testset.queries:
        if query.id not in evaluation.query_ids:
            continue
        value = stated.get(query.id)
        known = query.id in stated and not is_absent(value) and value is not None
        score = confidence_of(value) if known else None
        if known and score is None:
            problems.append(_problem(value, query.id, evaluation.name))
        correctness = {} if query.id not in outcomes else {Correctness.STRUCTURAL: outcomes[query.id]}
        is_failed = query.id not in answers
        found.append(ScoredAnswer(query.id, score, correctness, query_strata(query), is_failed=is_failed))
    if problems:
        raise InputError(problems)
    judged = evaluation.testset
    about = ", ".join(filter(None, (f"{judged.name} {judged.version}".strip(), judged.meta.review)))
    return CalibrationAnswers(evaluation.name, field, {Correctness.STRUCTURAL: str(rule)}, found, about)


def _outcomes(evaluation: Evaluation, rule: Threshold) -> dict[str, bool]:
    """Query id to whether its answer is correct; an answer that finds nothing is not, whatever the convention."""
    given, name = GateInput(evaluation), str(rule.measure)
    values = given.values(name)
    found = {query: rule.holds(value) for query, value in values.items()}
    return found | dict.fromkeys(
        given.lost(name, (query for query in evaluation.query_ids if query not in values)), False
    )


def _problem(value: object, query_id: str, path: str) -> Problem:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return score_problem(float(value), query_id, {"path": path})
    return Problem(f"the confidence of {query_id} is not a number", path=path, got=shorten(value))
