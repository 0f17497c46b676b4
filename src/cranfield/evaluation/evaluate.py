"""Evaluate a ranking: expected items with their ranks, strata, measures and their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import MeasureError, Problem, UnknownNameError, UsageError
from cranfield.base.numbers import format_value
from cranfield.base.words import join_first, short_name
from cranfield.evaluation.absence import absence_sentences, without_judgment
from cranfield.evaluation.margins import tie_margin
from cranfield.evaluation.requirements import requirement_caveats
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.evaluation.values import ByMeasure, Comparison, Evaluation, Summary, as_printed
from cranfield.measures import CATALOGUE, DEFAULT_MEASURES, Measure, compute, parse_all
from cranfield.measures.catalogue import is_composed
from cranfield.measures.families.composite import mean_range, strata_groups
from cranfield.measures.measure import Reason
from cranfield.model import Absence, Run, TestSet, is_in_stratum
from cranfield.model.query import CLASS, NOTHING_EXPECTED, negative_of
from cranfield.ranking.prepared import prepared
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking, n_judged_tied
from cranfield.stats.contrast import GroupContrast
from cranfield.stats.describe import (
    SMALLEST_FACTOR,
    describe,
    geometric_mean,
    stratified_interval,
    t_interval,
    total,
    weighted_mean,
)


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """One expected item of a query."""

    name: str
    """Document id, or pattern."""
    grade: float
    rank: int | None
    """Rank of the first result that is this item; None: it was not returned."""


class ExpectedItemsByQuery(Mapping[str, tuple[ExpectedItem, ...]]):
    """Query id to its expected items, best first, made on access; none for a query that nothing is known of."""

    def __init__(self, evaluation: Evaluation) -> None:
        ranking = evaluation.ranking
        judgments = prepared(evaluation.testset, ranking.convention)
        self._places = {query_id: place for place, query_id in enumerate(judgments.query_ids)}
        self._names, self._starts = judgments.expected.labels, judgments.expected.start.tolist()
        self._evaluation = evaluation
        self._first = ranking.expected_start.tolist()
        self._rows = list(
            zip(
                ranking.expected_rank.tolist(),
                ranking.expected_level.tolist(),
                ranking.expected_gain.tolist(),
                strict=True,
            )
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluation.query_ids)

    def __len__(self) -> int:
        return len(self._evaluation.query_ids)

    def __getitem__(self, query_id: str) -> tuple[ExpectedItem, ...]:
        at, place = self._evaluation.index[query_id], self._places.get(query_id)
        rows = self._rows[self._first[at] : self._first[at + 1]]
        names = () if place is None else self._names[self._starts[place] : self._starts[place + 1]]
        if len(names) != len(rows):
            return ()
        grades = self._evaluation.testset.grades.get(query_id, {})
        return tuple(
            ExpectedItem(name, grades.get(name, level), rank or None)
            for name, (rank, level, gain) in zip(names, rows, strict=True)
            if level >= 1 or gain > 0
        )


Scored = tuple[FloatQ, NDArray[np.bool_], dict[str, str]]
"""What `compute` returns: values, which are scored, and why the others are not."""

REPORTED_ONCE = frozenset((NOTHING_EXPECTED, Absence.NEVER_JUDGED, Absence.NO_CONSENSUS))
"""Reasons that one sentence covers for all measures."""
SAME = 1e-12
"""Means closer than this are equal."""


def evaluate_ranking(  # noqa: PLR0913 - facts about the run, each typed by name
    testset: TestSet,
    ranking: Ranking,
    measures: Sequence[Measure] | None = None,
    *,
    name: str,
    run_digest: str,
    run: Run | None = None,
    extra_queries: Sequence[str] = (),
    warnings: Sequence[str] = (),
    reading: Mapping[str, str | int | None] | None = None,
    keep_undefined: bool = False,
) -> Evaluation:
    """Score a ranking.

    Args:
        testset: where the ranking's queries and judgments came from.
        ranking: Q queries, ordered and joined.
        measures: what to compute; None is the default list, less those that no query of this test set allows, or Silence
            where nothing should be found for any.
        name: what to call the system.
        run_digest: identity of the run that was ranked.
        run: the collected run, for its logs and stamps.
        extra_queries: ids of the run that the test set does not have.
        warnings: of the reader, passed on.
        reading: options of the reader, passed on.
        keep_undefined: keep requested measures that have no value for any query; their summaries are empty.

    Raises:
        MeasureError: a measure requested by name is undefined for every query; gives the reason.
    """
    requested = as_printed(parse_all(DEFAULT_MEASURES) if measures is None else measures, ranking.convention)
    results = {measure: _computed(measure, ranking, testset) for measure in requested}
    impossible = {measure: reasons for measure, (_, scored, reasons) in results.items() if not scored.any()}
    notes = list(warnings)
    weights = np.array([testset.by_id[query_id].weight for query_id in ranking.query_ids], dtype=np.float64)
    if keep_undefined:
        impossible = {}
    if measures is not None and ranking.n_queries:
        _refuse({m: r for m, r in impossible.items() if not _is_of_the_run(m, r.values(), ranking)})
    else:
        for measure, reasons in impossible.items():
            at = f" at {ranking.cut_at}" if Reason.CUT_SHORT in reasons.values() else ""
            notes.append(f"{measure} is left out: {'; '.join(dict.fromkeys(reasons.values()))}{at}")
        requested = tuple(measure for measure in requested if measure not in impossible)
        if not requested and ranking.n_queries and ranking.is_negative.all():
            requested = parse_all(("Silence",))
            results |= {measure: compute(measure, ranking) for measure in requested}
    return Evaluation(
        name=short_name(name),
        testset=testset,
        run_digest=run_digest,
        ranking=ranking,
        measures=requested,
        values={measure: results[measure][0] for measure in requested},
        scored={measure: results[measure][1] for measure in requested},
        unscored={measure: results[measure][2] for measure in requested},
        summaries=ByMeasure({measure: _summary(measure, results[measure], weights, ranking) for measure in requested}),
        run=run,
        pilot=run.pilot if run is not None else False,
        warnings=tuple(notes + _warnings(testset, ranking, requested, results) + _unbounded(testset, ranking, run)),
        extra_queries=tuple(extra_queries),
        reading=dict(reading or {}),
    )


def _computed(measure: Measure, ranking: Ranking, testset: TestSet) -> Scored:
    """The values of a measure; queries that raters could not agree on are not called never judged."""
    values, scored, reasons = compute(measure, ranking)
    if testset.ratings and Absence.NEVER_JUDGED in reasons.values():
        absent = without_judgment(testset)
        reasons = {q: absent.get(q, why) if why is Absence.NEVER_JUDGED else why for q, why in reasons.items()}
    return values, scored, reasons


def clipped(
    interval: tuple[float, float] | None, values: FloatQ, within: tuple[float, float]
) -> tuple[float, float] | None:
    """An interval clipped to the range of the mean; unchanged where a value lies outside the range, as some conventions allow."""
    low, high = within
    if interval is None or not values.size or values.min() < low or values.max() > high:
        return interval
    return max(interval[0], low), min(interval[1], high)


def difference_range(measure: Measure) -> tuple[float, float]:
    """Range of the difference of two values of a measure."""
    low, high = CATALOGUE[measure.name].range
    return low - high, high - low


def summarise(
    values: FloatQ,
    level: float = 0.95,
    weights: FloatQ | None = None,
    *,
    measure: Measure | None = None,
    groups: NDArray[np.intp] | None = None,
) -> Summary:
    """Mean, median, spread, t interval and the other means of the scored values.

    The values of a weighted sum are contributions to it: only their mean and its interval are of the sum.

    Args:
        values: float64[n], of the scored queries.
        level: of the interval.
        weights: float64[n], query frequencies; None where unknown.
        measure: of the values; the interval is clipped to its range.
        groups: intp[n], the strata of the queries, whose numbers of queries the interval takes as given; None: it does not.
    """
    about = describe(values)
    interval = t_interval(values, level, about) if groups is None else stratified_interval(values, groups, level)
    if measure is not None:
        interval = clipped(interval, values, CATALOGUE[measure.name].range)
    low, high = interval if interval is not None else (None, None)
    if measure is not None and is_composed(measure):
        low, high = clipped(interval, values.mean(keepdims=True), mean_range(measure)) or (None, None)
        return Summary(about.mean, None, None, low, high, about.n, level)
    return Summary(
        about.mean,
        about.median,
        about.std,
        low,
        high,
        about.n,
        level,
        total=total(values),
        geometric_mean=geometric_mean(values),
        weighted_mean=None if weights is None else weighted_mean(values, weights),
    )


def groups_of(measure: Measure, ranking: Ranking, query_ids: Sequence[str]) -> NDArray[np.intp] | None:
    """intp[n]: the strata that a weighted sum makes of queries; None of another measure."""
    if not is_composed(measure) or not ranking.queries:
        return None
    return strata_groups(measure, [ranking.queries[query_id] for query_id in query_ids])


def _summary(measure: Measure, result: Scored, weights: FloatQ, ranking: Ranking) -> Summary:
    """The summary by the aggregate of the measure."""
    values, scored, _ = result
    groups = groups_of(measure, ranking, list(itertools.compress(ranking.query_ids, scored.tolist())))
    summary = summarise(values[scored], weights=weights[scored], measure=measure, groups=groups)
    aggregate = CATALOGUE[measure.name].aggregate
    if aggregate == "sum":
        return replace(summary, aggregate=aggregate, mean=summary.total, ci_low=None, ci_high=None)
    if aggregate == "geometric mean":
        interval = t_interval(np.log(np.maximum(values[scored], SMALLEST_FACTOR)), summary.ci_level)
        low, high = (math.exp(end) for end in interval) if interval is not None else (None, None)
        return replace(summary, aggregate=aggregate, mean=summary.geometric_mean, ci_low=low, ci_high=high)
    return summary


HINTS: Mapping[Reason, str] = {
    Reason.NEEDS_COUNT: "give expected_count, use credit: once, or choose RR, P@k or Success@k",
    Reason.NO_SUBTOPICS: "{format=subtopics} reads the second column of qrels as the subtopic",
    Reason.NO_JUDGES: "{format=judges} reads the second column of qrels as the judge",
    Reason.NO_PREFERENCES: "{format=preferences} reads a file of preferences",
    Reason.NO_FILES: "write `files` of a query in the test set: the paths its results should cover",
    Reason.NO_LEGACY: "write `legacy` of a query in the test set: ids or patterns of the old form",
    Reason.NO_SOURCES: "write `sources` in the test set: names and patterns, the highest authority first",
    Reason.NO_FORBIDDEN: "write `forbidden` of a query in the test set: ids or conditions of what must not be found",
    Reason.NO_SUCH_GRADE: "give a grade that the judgments have",
    Reason.NO_NEGATIVE_QUERY: "write `negative: true` of a query for which nothing should be found",
}
"""Hints for a measure that is undefined for every query, by reason."""


def _is_of_the_run(measure: Measure, reasons: Iterable[str], ranking: Ranking) -> bool:
    """Whether a measure is undefined because of the run, and not because of the test set.

    A run without results has none whose cost it could state: it does not show that its system states no costs.
    """
    spec, found = CATALOGUE[measure.name], set(reasons)
    is_empty = Reason.NO_TOKENS in found and not ranking.n_returned.any()
    if Reason.CUT_SHORT in found:
        return True
    return (spec.unscored_by_run and spec.why_unscored in found) or is_empty


def _refuse(impossible: dict[Measure, dict[str, str]]) -> None:
    problems = []
    for measure, reasons in impossible.items():
        known = next((why for why in reasons.values() if isinstance(why, Reason) and why in HINTS), None)
        why = known or "; ".join(dict.fromkeys(reasons.values()))
        hint = "leave it out" if known is None else HINTS[known]
        problems.append(
            Problem(f"{measure} cannot be computed for any query: {why}", hint=hint, parameters=("format",))
        )
    if problems:
        raise MeasureError(problems)


def _surplus(ranking: Ranking) -> list[str]:
    """Queries where more results match a pattern than its expected count."""
    rows = ranking.closed_world[ranking.query] & (ranking.gain > 0)
    entries = ranking.expected_start[ranking.query[rows]] + ranking.item[rows]
    found = np.bincount(entries, minlength=len(ranking.expected_count))
    over = (ranking.expected_count != UNKNOWN_COUNT) & (found > ranking.expected_count)
    return [ranking.query_ids[query] for query in sorted(set(ranking.expected_query[over].tolist()))]


def _warnings(
    testset: TestSet, ranking: Ranking, measures: Sequence[Measure], results: Mapping[Measure, Scored]
) -> list[str]:
    """Caveats of the numbers."""
    total, negative = ranking.n_queries, ranking.is_negative
    values = {measure: results[measure][0] for measure in measures}
    scored = {measure: results[measure][1] for measure in measures}
    sentences: list[str] = [
        *requirement_caveats(testset, ranking),
        *absence_sentences(testset, ranking, measures, values, scored),
    ]
    surplus = _surplus(ranking)
    if surplus:
        why, what = "more results match a pattern than its expected_count", "R, AP and nDCG"
        if ranking.convention.credit == "every":
            why, what = f"{ranking.convention.name} credits an expected item more than once", "AP and nDCG"
        sentences.append(
            Caveat(
                f"{why} in {len(surplus)} of {ranking.n_queries} queries ({what} may exceed 1 there): {join_first(surplus)}",
                CaveatKind.SURPLUS,
            )
        )
    if negative.any():
        named = join_first(itertools.compress(ranking.query_ids, negative.tolist()))
        about = f"nothing should be found for {int(negative.sum())} of {total} queries (only Silence has a value)"
        loud = list(itertools.compress(ranking.query_ids, (negative & ~ranking.keeps_silence).tolist()))
        broken = f"; {len(loud)} returned something, or failed: {join_first(loud)}" if loud else ""
        sentences.append(Caveat(f"{about}: {named}{broken}", CaveatKind.NEGATIVE))
    if ranking.unplaced is not None:
        vague = list(itertools.compress(ranking.query_ids, (ranking.unplaced > 0).tolist()))
        n_vague = int(ranking.unplaced.sum())
        about = f"{n_vague} results in {len(vague)} of {total} queries lack line numbers, a text or a field that is expected"
        text = f"{about}, so they cannot match: {join_first(vague)}"
        sentences.append(Caveat(text, CaveatKind.NO_LINES))
    n_duplicates = int(ranking.n_duplicates.sum())
    if n_duplicates:
        where = int((ranking.n_duplicates > 0).sum())
        text = f"duplicate results dropped, the first of each kept: {n_duplicates} in {where} of {total} queries"
        sentences.append(Caveat(text, CaveatKind.DUPLICATES))
    if ranking.n_identical is not None:
        where = int((ranking.n_identical > 0).sum())
        text = f"results left out because their id is that of their query: {int(ranking.n_identical.sum())} in {where} of {total} queries"
        sentences.append(Caveat(text, CaveatKind.IDENTICAL_IDS))
    if measures and (tied := _tied(ranking, measures[0])):
        sentences.append(Caveat(tied, CaveatKind.TIES))
    return [*sentences, *_unscored(ranking, measures, results)]


def _unscored(ranking: Ranking, measures: Sequence[Measure], results: Mapping[Measure, Scored]) -> Iterator[str]:
    """Measures without a value for some queries, with the reason; one sentence for measures that share both."""
    shared: dict[tuple[str, tuple[str, ...]], list[Measure]] = {}
    for measure in measures:
        queries: dict[str, list[str]] = {}
        for query_id, why in results[measure][2].items():
            queries.setdefault(why, []).append(query_id)
        for why, query_ids in queries.items():
            if measure.name != "Judged" and why not in REPORTED_ONCE:
                shared.setdefault((why, tuple(query_ids)), []).append(measure)
    for (why, unscored), same in shared.items():
        have = "has" if len(same) == 1 else "have"
        yield Caveat(
            f"{', '.join(map(str, same))} {have} no value for {len(unscored)} of {ranking.n_queries} queries "
            f"({why}): {join_first(unscored)}",
            CaveatKind.NO_VALUE,
            tuple(same),
            why,
        )


def _unbounded(testset: TestSet, ranking: Ranking, run: Run | None) -> list[str]:
    """Warn where results break a silence because they lack the score or field that its bound is about."""
    bare = []
    for place in np.flatnonzero(ranking.is_negative).tolist():
        query_id = ranking.query_ids[place]
        negative = negative_of(testset.by_id[query_id])
        if negative is None or negative.below is None or not ranking.n_returned[place]:
            continue
        if negative.field:
            answer = run.answers.get(query_id) if run is not None else None
            has_field = answer is not None and negative.field in answer.fields
        else:
            has_field = all(hit.score is not None for hit in ranking.top.get(query_id, ())[:1])
        if not has_field:
            bare.append(query_id)
    if not bare:
        return []
    what = "the bound of these negative queries is on a score or a field that is missing from this run"
    return [Caveat(f"{what}, so any result counts: {join_first(bare)}", CaveatKind.NO_BOUND)]


def _tied(ranking: Ranking, primary: Measure) -> str:
    """Number of tied judged results, and the range of the primary measure over their orders."""
    if not n_judged_tied(ranking).any():
        return ""
    margin = tie_margin(primary, ranking)
    found = f"judged documents in ties: {margin.n_results} in {margin.n_queries} of {ranking.n_queries} queries"
    low, high = margin.mean_low, margin.mean_high
    if ranking.convention.ties == "expected":
        found += "; every value is the mean over all their orders"
    if low is None or high is None:
        return found
    if high - low < SAME:
        return f"{found}; {primary} is the same for every order of the ties"
    if format_value(low) == format_value(high):
        return f"{found}; {primary} is {format_value(low)} for every order of the ties"
    return f"{found}; {primary} is between {format_value(low)} and {format_value(high)}, depending on the order of the ties"


ContrastSpec = tuple[str, str, str]
"""Key of the strata, and two of its values: `("difficulty", "standard", "hard")`."""


@dataclass(frozen=True, slots=True)
class StratumSummary:
    """One measure over the scored queries of one stratum."""

    key: str
    value: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class StrataContrast:
    """One measure in two strata: of one system, or of the difference between candidate and baseline."""

    key: str
    a: str
    b: str
    measure: Measure
    what: str
    """Name of the system, or `difference` of a comparison."""
    groups: GroupContrast
    ceilings: tuple[str, ...] = ()
    """A sentence for each stratum at the ceiling of the measure."""


def strata_of(
    testset: TestSet, query_ids: Sequence[str], always: Collection[str] = ()
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(key, value, query ids) of every stratum, keys as they are met and values sorted; classes of queries under `class`.

    Keys with a different value for each query are left out, but not those of `always`.
    """
    for key, values in _by_stratum(testset, query_ids).items():
        if key in always or max(len(members) for members in values.values()) > 1:
            yield from ((key, value, tuple(values[value])) for value in sorted(values))


def summaries_by_stratum(
    evaluation: Evaluation, measure: Measure, always: Collection[str] = ()
) -> tuple[StratumSummary, ...]:
    """Mean, interval, median and spread of a measure within each stratum; of which keys: see `strata_of`.

    Nothing of a weighted sum, which is one number over the strata.
    """
    if is_composed(measure):
        return ()
    values, scored = evaluation.values[measure], evaluation.scored[measure]
    rows = []
    for key, value, query_ids in strata_of(evaluation.testset, evaluation.query_ids, always):
        places = np.array([evaluation.index[query_id] for query_id in query_ids])
        places = places[scored[places]]
        weights = np.array([evaluation.testset.by_id[evaluation.query_ids[i]].weight for i in places.tolist()])
        rows.append(StratumSummary(key, value, summarise(values[places], weights=weights, measure=measure)))
    return tuple(rows)


def contrast_strata(
    evaluation: Evaluation,
    key: str,
    a: str,
    b: str,
    measure: Measure | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> StrataContrast:
    """Contrast the means of one system in two strata.

    Args:
        evaluation: one system.
        key: of the strata.
        a: value of the first stratum.
        b: value of the second; the difference is a minus b.
        measure: one that was evaluated; None is the first.
        alpha: the interval covers 1 - alpha.
        seed: of the random labellings.

    Raises:
        UsageError: no such key, value or measure; or the two values are one.
    """
    from cranfield.stats.contrast import two_groups

    measure = _measure(measure, evaluation.measures)
    rows = dict(zip(evaluation.query_ids, evaluation.scored[measure].tolist(), strict=True))
    values = {q: v for q, v in zip(evaluation.query_ids, evaluation.values[measure].tolist(), strict=True) if rows[q]}
    sides = _sides(evaluation.testset, key, (a, b), values)
    groups = two_groups(*sides, alpha=alpha, seed=seed)
    ceilings = _ceilings(evaluation.name, (a, b), sides, measure)
    return StrataContrast(key, a, b, measure, evaluation.name, groups, ceilings)


def contrast_gain(comparison: Comparison, key: str, a: str, b: str, measure: Measure | None = None) -> StrataContrast:
    """Contrast the candidate's gain (candidate minus baseline, query by query) in two strata.

    Raises:
        UsageError: as in `contrast_strata`.
    """
    from cranfield.stats.contrast import two_groups

    measure = _measure(measure or comparison.primary, tuple(comparison.measures))
    sides = _sides(comparison.baseline.testset, key, (a, b), comparison.measures[measure].differences)
    groups = two_groups(*sides, alpha=comparison.options.alpha, seed=comparison.options.seed)
    return StrataContrast(key, a, b, measure, "difference", groups)


def _measure(measure: Measure | None, known: Sequence[Measure]) -> Measure:
    if not known:
        raise UsageError("no measure has a value here, so strata cannot be contrasted")
    if measure is not None and measure not in known:
        raise UsageError(f"{measure} was not evaluated", expected=", ".join(map(str, known)))
    return measure or known[0]


def _sides(testset: TestSet, key: str, names: tuple[str, str], values: Mapping[str, float]) -> tuple[FloatQ, FloatQ]:
    strata = _by_stratum(testset, (query.id for query in testset.queries))
    if not strata:
        hint = "{strata} adds them"
        raise UsageError(f"test set {testset.name!r} has no strata to contrast", hint=hint, parameters=("strata",))
    if key not in strata:
        raise UnknownNameError.among("key of strata", key, strata)
    groups = strata[key] | {
        name: found
        for name in names
        if key == CLASS and (found := [q.id for q in testset.queries if is_in_stratum(q, key, name)])
    }
    for name in names:
        if name not in groups:
            raise UnknownNameError.among(f"value of {key}", name, strata[key])
    if names[0] == names[1]:
        raise UsageError(f"{key} {names[0]!r} cannot be contrasted with itself", expected="two values")
    first, second = (np.array([values[q] for q in groups[name] if q in values], dtype=np.float64) for name in names)
    return first, second


def _ceilings(system: str, names: tuple[str, str], sides: tuple[FloatQ, FloatQ], measure: Measure) -> tuple[str, ...]:
    from cranfield.stats.contrast import at_ceiling

    spec = CATALOGUE[measure.name]
    if not spec.higher_is_better or spec.diagnostic:
        return ()
    found = ((name, at_ceiling(side, spec.range[1])) for name, side in zip(names, sides, strict=True))
    return tuple(f"{system}, {name}: {sentence}" for name, sentence in found if sentence)


def _by_stratum(testset: TestSet, query_ids: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Key to value to query ids."""
    groups: dict[str, dict[str, list[str]]] = {}
    if not testset.strata:
        return groups
    wanted = set(query_ids)
    for query_id, strata in testset.strata.items():
        for key, value in strata.items() if query_id in wanted else ():
            groups.setdefault(key, {}).setdefault(value, []).append(query_id)
    return groups
