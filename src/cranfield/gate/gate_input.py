"""What rules are applied to: an evaluation, and the baseline if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import compress

import numpy as np

from cranfield.evaluation.absence import leaves_out
from cranfield.evaluation.latency import timed_calls
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline
from cranfield.gate.decimals import exact
from cranfield.measures import CATALOGUE, Measure, compute, parse
from cranfield.measures.catalogue import sign_of
from cranfield.measures.kernels import expected_relevant, first_relevant_rank
from cranfield.measures.measure import only_its_grades
from cranfield.model import Outcome, is_in_stratum, query_strata
from cranfield.stats.result import DEFAULT_DRAWS

Values = Mapping[str, Fraction]
"""Query id to the exact value of a measure; queries without a value are missing."""
Where = Mapping[str, str] | None


@dataclass(frozen=True)
class GateInput:
    """An evaluation, its baseline, and the defaults of rules."""

    evaluation: Evaluation
    baseline: Baseline | None = None
    test: str = "permutation"
    """Test of the intervals, unless the rule names one."""
    alpha: float = 0.05
    seed: int = 0
    n_draws: int = DEFAULT_DRAWS
    """Random sign patterns and resamples."""
    _known: dict[str, Values] = field(default_factory=dict, compare=False)
    _known_before: dict[str, Values] = field(default_factory=dict, compare=False)

    def values(self, measure: str) -> Values:
        """The current values."""
        if measure not in self._known:
            self._known[measure] = self._computed(parse(measure))
        return self._known[measure]

    def _computed(self, measure: Measure) -> Values:
        """Failed calls and empty lists count as 0, whatever the convention: missing answers must not improve a mean."""
        evaluation = self.evaluation
        ranking = evaluation.ranking_for(measure)
        if ranking is not None and (measure not in evaluation.values or leaves_out(ranking.convention)):
            convention = replace(ranking.convention, failed="zero", empty="zero")
            values, scored, _ = compute(measure, replace(ranking, convention=convention))
        else:
            values, scored = evaluation.values[measure], evaluation.scored[measure]
        found = zip(evaluation.query_ids, values.tolist(), scored.tolist(), strict=True)
        return {query_id: exact(value) for query_id, value, has in found if has}

    def lost(self, measure: str, queries: Iterable[str]) -> tuple[str, ...]:
        """Queries without a value that have one in the baseline, or that failed or found nothing relevant.

        None for a diagnostic measure: an empty list contains no unjudged results.
        """
        values, before, parsed = self.values(measure), self.before(measure), parse(measure)
        spec = CATALOGUE[parsed.name]
        if spec.diagnostic:
            return ()
        barren = self._barren(parsed) if spec.unscored_by_run else frozenset()
        return tuple(query for query in queries if query not in values and (query in before or query in barren))

    def _barren(self, measure: Measure) -> frozenset[str]:
        """Queries with relevant documents, none of which is within the depth of a measure."""
        ranking, rel = only_its_grades(measure, self.evaluation.ranking), measure.whole("rel", 1)
        first = first_relevant_rank(ranking, rel=rel, cutoff=measure.depth)
        findable = ~(expected_relevant(ranking, rel) == 0)  # if the number is unknown, at least one is assumed
        return frozenset(compress(ranking.query_ids, (np.isinf(first) & findable).tolist()))

    def before(self, measure: str) -> Values:
        """The values of the baseline; empty without one."""
        if self.baseline is None:
            return {}
        if measure not in self._known_before:
            self._known_before[measure] = self._accepted(self.baseline, measure)
        return self._known_before[measure]

    def _accepted(self, baseline: Baseline, measure: str) -> Values:
        values = baseline.values_of(str(parse(measure)))
        return {query_id: exact(value) for query_id, value in values.items()}

    def queries(self, where: Where = None) -> tuple[str, ...]:
        """Ids of the queries of some strata, in order; of all queries by default."""
        by_id = self.evaluation.testset.by_id
        return tuple(
            query_id
            for query_id in self.evaluation.query_ids
            if all(is_in_stratum(by_id[query_id], key, value) for key, value in (where or {}).items())
        )

    def groups(self, where: Where, by: str | None) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Labels and queries of a rule: all in one group, or one group per stratum."""
        queries = self.queries(where)
        if by is None:
            yield named(where), queries
            return
        by_id = self.evaluation.testset.by_id
        groups: dict[str, list[str]] = {}
        for query_id in queries:
            if (value := query_strata(by_id[query_id]).get(by)) is not None:
                groups.setdefault(value, []).append(query_id)
        for value, members in sorted(groups.items()):
            yield named({**(where or {}), by: value}), tuple(members)

    @property
    def unanswered(self) -> Mapping[str, str]:
        """Query id to outcome, for every query that failed or has no answer.

        A query without relevant documents that is missing from a run file counts as answered.
        """
        ranking = self.evaluation.ranking
        rows = zip(ranking.query_ids, ranking.outcomes, ranking.keeps_silence.tolist(), strict=True)
        return {
            query_id: outcome.value
            for query_id, outcome, silent in rows
            if outcome.is_failure or (outcome is Outcome.MISSING and not silent)
        }

    def sides(self, measure: str) -> tuple[Values, Values, int]:
        """The values now, those of the baseline, and 1 if higher is better, -1 if lower is."""
        return self.values(measure), self.before(measure), direction(measure)

    @cached_property
    def outcomes(self) -> Mapping[str, str]:
        """Query id to outcome."""
        ranking = self.evaluation.ranking
        return {query_id: outcome.value for query_id, outcome in zip(ranking.query_ids, ranking.outcomes, strict=True)}

    @property
    def latencies(self) -> Sequence[float]:
        """Latencies in milliseconds of the calls whose timings count."""
        return [log.latency_ms for log in timed_calls(self.evaluation).logs.values()]


def direction(measure: str) -> int:
    """1 if higher is better, -1 if lower is."""
    return sign_of(parse(measure))


def named(where: Where) -> str:
    """`difficulty: easy, area: code`; empty for all queries."""
    return ", ".join(f"{key}: {value}" for key, value in (where or {}).items())
