"""Evaluations and comparisons as records: plain values, from which JSON is written and read.

Same inputs give the same record, in any folder and at any time: no path, no clock, no latency enters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from cranfield.evaluation.absence import MeanJudgedShare, effect_of, judged_share
from cranfield.evaluation.causes import Causes, causes_of
from cranfield.evaluation.classes import (
    ClassComparison,
    ClassResult,
    by_class,
    class_measures_by_stratum,
    compare_classes,
)
from cranfield.evaluation.confusion import Confusion
from cranfield.evaluation.evaluate import (
    ExpectedItemsByQuery,
    StrataContrast,
    StratumSummary,
    summaries_by_stratum,
    summarise,
)
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.headroom import Headroom, headroom_of
from cranfield.evaluation.many import (
    LeaderboardLine,
    ManyComparison,
    OrderAgreement,
    PairComparison,
    Ranks,
    StratumRow,
)
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.score_terms import flatten, most_of
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.slices import SliceSearch, slices_of
from cranfield.evaluation.unseen import Caveat, Unseen
from cranfield.evaluation.values import (
    WITHOUT,
    ClassVerdict,
    Comparison,
    Evaluation,
    MeasureComparison,
    StratumComparison,
    Summary,
    Unjudged,
)
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.measures.kernels import first_relevant_rank
from cranfield.model import CONVENTIONS, Absence, Explanation, Outcome, Scalar, TestSet
from cranfield.model.query import NEGATIVE, class_of, query_strata
from cranfield.model.results import Record, TestSetRecord, from_jsonable
from cranfield.ranking.value import RankedHit
from cranfield.stats.result import TestResult

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

SHOWN_TERMS = 60
"""Terms of a score that a record has: of an explanation with more, those that are the least deep."""
V = TypeVar("V")
E = TypeVar("E", bound="EvaluationResult")
S = TypeVar("S", StratumSummary, StratumComparison)


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """A query that a system failed on."""

    query: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class StratumMeasures:
    """Measures of one system within one stratum."""

    key: str
    value: str
    measures: Mapping[Measure, Summary]


@dataclass(frozen=True, slots=True)
class StratumDifferences:
    """Measures of two systems within one stratum."""

    key: str
    value: str
    measures: Mapping[Measure, StratumComparison]


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system on the test set."""

    name: str
    digest: str
    """Digest of its run."""
    config_digest: str | None
    """Digest of the settings of the system; None for a run that was not collected from one."""
    pilot: bool
    config: Mapping[str, Any] | None
    """Those settings, without secrets."""
    order: str
    """Order of its results: `given`, or by score: `descending`, `ascending`."""
    reading: Mapping[str, str | int | None]
    """Options of the reader: depth, missing, duplicates."""
    n_queries: int
    measures: Mapping[Measure, Summary]
    by_stratum: tuple[StratumMeasures, ...]
    classes: tuple[ClassResult, ...]
    unclassed: Summary | None
    """The first measure over the queries without a class, where others have one."""
    confusion: tuple[Confusion, ...]
    n_failed: int
    failures: tuple[QueryFailure, ...]
    failures_count: str
    """What they count as: `counted as 0`, `without a value`; empty where nothing depends on them."""
    outcomes: Mapping[str, int]
    """Every outcome and how many queries had it."""
    judged: MeanJudgedShare
    mean_returned: float | None
    """Results per query."""
    n_duplicates: int
    """Results dropped because the list had them before."""
    warnings: tuple[Caveat, ...]
    queries: Mapping[str, Mapping[Measure, float | None]]
    """Query to its value of each measure; None: it has none, and `unscored` says why."""
    unscored: Mapping[str, Mapping[Measure, str]]
    headroom: Headroom | None
    """How much better it could be on the primary or first measure; None without the answers, and for measures of whole lists."""


@dataclass(frozen=True, slots=True)
class HitRecord:
    """A result, as it was judged."""

    rank: int
    id: str
    title: str | None
    state: str
    """`judged`, `pooled` (in the pool, and not judged), `unjudged`, or `forbidden` (its query forbids it)."""
    grade: int | None
    """None: not judged."""
    gain: float
    item: str | None
    """The expected item that it matched."""
    credited: bool
    span: str | None
    terms: Mapping[str, float] | None = None
    """The terms of its score as the system explains it, at most `SHOWN_TERMS`; not in JSON where there are none."""
    n_terms_cut: int = 0
    """Parts of the explanation that these leave out, or that the run does not have because of its bounds; not in JSON where it is 0."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In records of results without explanations there is no word of them."""
        from pydantic_core import core_schema

        def write(hit: HitRecord, as_written: Callable[[HitRecord], dict[str, Any]]) -> dict[str, Any]:
            written = as_written(hit)
            if not hit.n_terms_cut:
                del written["n_terms_cut"]
            if hit.terms is None:
                del written["terms"]
            return written

        found: Any = handler(source)
        found["serialization"] = core_schema.wrap_serializer_function_ser_schema(write)
        return cast("CoreSchema", found)


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """The answer of one system to one query."""

    system: str
    outcome: str | None
    """None: the query is left out of the means of this system, because its run does not answer it."""
    reason: str | None = None
    n_returned: int = 0
    n_duplicates: int = 0
    first_relevant_rank: int | None = None
    missed: tuple[str, ...] = ()
    """Expected items that it does not have, best first."""
    fields: Mapping[str, Any] | None = None
    """What the answer says of itself."""
    hits: tuple[HitRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """An expected item of a query."""

    item: str
    """Document id, pattern or place."""
    grade: float
    ranks: tuple[int | None, ...]
    """Ranks of the first result that is this item, on each system; None: it was not returned."""


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query, and what each system answered."""

    text: str
    strata: Mapping[str, str]
    params: Mapping[str, Scalar]
    query_class: str
    expected: tuple[ExpectedRecord, ...]
    """Best first."""
    nothing_expected: str
    """Why there is none; empty where there are any."""
    sides: tuple[SystemAnswer, ...]
    bucket: str = ""
    """Bucket of the query in a comparison of two: improved, regressed and so on."""
    move: str = ""
    """Move of the first relevant result, in a comparison of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult(Record):
    """Systems on one test set, side by side."""

    kind: Literal["evaluation", "comparison", "many"] = "evaluation"
    testset: TestSetRecord
    convention: str
    convention_sentence: str
    ci_level: float | None
    systems: tuple[SystemResult, ...]
    evidence: tuple[Finding, ...]
    """What the evidence checks found, what makes scores void first."""
    contrasts: tuple[StrataContrast, ...]
    versions: Mapping[str, str]
    """What made it."""
    queries: Mapping[str, QueryRecord] | None
    """What each system answered; None in what is printed."""

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, in order."""
        return tuple(system.name for system in self.systems)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult(EvaluationResult):
    """Two systems compared."""

    kind: Literal["comparison"] = "comparison"
    baseline: str
    candidate: str
    verdict: VerdictCode
    verdict_sentence: str
    reasons: tuple[Caveat, ...]
    disagreements: tuple[str, ...]
    unseen: Unseen | None
    primary: Measure
    test: str
    alpha: float
    margin: float | None
    seed: int
    n_draws: int
    limits: Limits
    comparisons: Mapping[Measure, MeasureComparison]
    by_stratum: tuple[StratumDifferences, ...]
    verdict_by_class: ClassVerdict | None
    """None: the mean over all queries decides."""
    classes: tuple[ClassComparison, ...]
    rank_one: TestResult
    buckets: Mapping[str, tuple[str, ...]]
    moves: Mapping[str, tuple[str, ...]]
    unpaired: Mapping[str, str]
    """Query to why it could not be paired."""
    unjudged: Unjudged | None
    sensitivity: Sensitivity | None
    causes: Causes | None
    """Why the values of the primary measure differ, without its queries in what is printed; None where the scores do not count."""
    slices: SliceSearch | None = None
    """Which kind of query changed; None without answers, where the scores do not count, and where there are too few queries or none
    differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyResult(EvaluationResult):
    """Three systems or more compared."""

    kind: Literal["many"] = "many"
    baseline: str | None
    verdict: VerdictCode
    verdict_sentence: str
    best: tuple[str, ...]
    reasons: tuple[Caveat, ...]
    disagreements: tuple[str, ...]
    unseen: Unseen | None
    primary: Measure
    test: str
    adjust: str
    adjusted: str
    """Short name of the adjustment: `max-T`."""
    procedure: str
    """`permutation, 10,153 pairs, max-T, 100,000 draws`."""
    can_find: bool
    """Whether any pair could be significant."""
    smallest_p: float
    alpha: float
    margin: float | None
    seed: int
    n_draws: int
    limits: Limits
    n: int
    """Queries that count for the primary measure."""
    means: Mapping[Measure, Mapping[str, Summary]]
    """Over the queries that all systems have a value for."""
    leaderboard: tuple[LeaderboardLine, ...]
    pairs: tuple[PairComparison, ...]
    against_baseline: tuple[PairComparison, ...]
    omnibus: Mapping[str, TestResult]
    ranks: Ranks | None
    orders: tuple[OrderAgreement, ...]
    strata: tuple[StratumRow, ...]
    unpaired: Mapping[str, str]
    unjudged: Unjudged | None


def result_of(
    result: Evaluation | Sequence[Evaluation] | Comparison | ManyComparison,
    contrasts: Sequence[StrataContrast] = (),
    sensitivity: Sensitivity | None = None,
    *,
    with_answers: bool = False,
    always: Collection[str] = (),
) -> EvaluationResult | ComparisonResult | ManyResult:
    """The record of evaluations, or of a comparison of two or many.

    Args:
        result: what was computed.
        contrasts: of strata, where any were asked for.
        sensitivity: of a comparison of two, where it was asked for.
        with_answers: with the texts of the queries and what each system answered, as files have it.
        always: keys of strata that are not left out where each query has another value.
    """
    evaluations = evaluations_of(result)
    summaries = [summary for evaluation in evaluations for summary in evaluation.summaries.values()]
    about: dict[str, Any] = {
        "testset": TestSetRecord.of(evaluations[0].testset),
        "convention": evaluations[0].ranking.convention.name,
        "convention_sentence": evaluations[0].ranking.convention.sentence,
        "ci_level": summaries[0].ci_level if summaries else None,
        "systems": tuple(
            _system(each, getattr(result, "primary", None), always, with_headroom=with_answers) for each in evaluations
        ),
        "contrasts": tuple(contrasts),
        "queries": _queries(evaluations, result) if with_answers else None,
    }
    if isinstance(result, Comparison):
        return _of_two(result, about, sensitivity, with_answers=with_answers)
    if isinstance(result, ManyComparison):
        return _of_many(result, about)
    found = tuple(replace(finding, system=each.name) for each in evaluations for finding in each.evidence)
    return EvaluationResult(**about, evidence=found, versions=versions("numpy"))


def without_answers(record: E) -> E:
    """The record as it is printed: without what each system answered, and what names documents of single queries."""
    systems = tuple(replace(system, headroom=None) for system in record.systems)
    if isinstance(record, ComparisonResult) and record.causes is not None:
        return replace(record, systems=systems, queries=None, causes=replace(record.causes, queries={}))
    return replace(record, systems=systems, queries=None)


def without_queries(record: E) -> E:
    """The record of an evaluation, or of a comparison of two, without its parts that list queries: for lists of records."""
    less: dict[str, Any] = {
        "classes": (),
        "failures": (),
        "queries": {},
        "unscored": {},
        "confusion": (),
        "headroom": None,
    }
    lighter: dict[str, Any] = {
        "systems": tuple(replace(system, **less) for system in record.systems),
        "evidence": tuple(replace(finding, query_ids=()) for finding in record.evidence),
        "queries": None,
    }
    if isinstance(record, ComparisonResult):
        lighter |= {
            "comparisons": {measure: replace(each, differences={}) for measure, each in record.comparisons.items()},
            "verdict_by_class": None,
            "classes": (),
            "buckets": {},
            "moves": {},
            "unpaired": {},
            "causes": None,
            "slices": None,
        }
    return replace(record, **lighter)


KINDS: Mapping[object, type[EvaluationResult]] = {
    "evaluation": EvaluationResult,
    "comparison": ComparisonResult,
    "many": ManyResult,
}


def result_from(data: Mapping[str, Any]) -> EvaluationResult:
    """The record that JSON of `to_jsonable` holds, of one of `KINDS`; measures have the names that its convention prints.

    Raises:
        ValueError: it is no such JSON.
    """
    kind = KINDS.get(data.get("kind"))
    if kind is None:
        message = f"kind is {data.get('kind')!r}, and not one of {', '.join(map(str, KINDS))}"
        raise ValueError(message)
    record = from_jsonable(kind, data)
    printed = dict(CONVENTIONS[record.convention].names) if record.convention in CONVENTIONS else {}
    return _with_names(record, printed) if printed else record


def _with_names(value: V, printed: Mapping[str, str]) -> V:
    """The value with the name that is printed in each measure in it."""
    found: Any = value
    if isinstance(found, Measure):
        found = replace(found, shown=printed.get(found.name, ""))
    elif isinstance(found, Mapping):
        found = {_with_names(key, printed): _with_names(entry, printed) for key, entry in found.items()}
    elif isinstance(found, tuple):
        found = tuple(_with_names(entry, printed) for entry in found)
    elif is_dataclass(found):
        found = replace(
            cast("Any", found),
            **{each.name: _with_names(getattr(found, each.name), printed) for each in fields(found) if each.init},
        )
    return cast("V", found)


def evaluations_of(result: Evaluation | Sequence[Evaluation] | Comparison | ManyComparison) -> tuple[Evaluation, ...]:
    """The evaluations of a result, in order."""
    if isinstance(result, Evaluation):
        return (result,)
    return tuple(result.evaluations if isinstance(result, Comparison | ManyComparison) else result)


def _of_two(
    comparison: Comparison, about: Mapping[str, Any], sensitivity: Sensitivity | None, *, with_answers: bool
) -> ComparisonResult:
    strata = _by_stratum(comparison.strata_by_measure)
    verdict = comparison.verdict
    is_explained = with_answers and verdict.code is not VerdictCode.INVALID
    return ComparisonResult(
        **about,
        evidence=comparison.evidence,
        versions=versions("numpy", "scipy"),
        baseline=comparison.baseline.name,
        candidate=comparison.candidate.name,
        verdict=verdict.code,
        verdict_sentence=verdict.sentence,
        reasons=_caveats(verdict.reasons),
        disagreements=verdict.disagreements,
        unseen=verdict.unseen,
        primary=comparison.primary,
        test=comparison.options.test,
        alpha=comparison.options.alpha,
        margin=comparison.options.margin,
        seed=comparison.options.seed,
        n_draws=comparison.n_draws,
        limits=comparison.options.limits,
        comparisons=comparison.measures,
        by_stratum=tuple(StratumDifferences(*place, measures) for place, measures in strata.items()),
        verdict_by_class=comparison.by_class,
        classes=compare_classes(comparison) if comparison.baseline.ranking.classes else (),
        rank_one=comparison.rank_one,
        buckets=comparison.buckets,
        moves=comparison.moves,
        unpaired=comparison.dropped,
        unjudged=comparison.unjudged,
        sensitivity=sensitivity,
        causes=causes_of(comparison) if is_explained else None,
        slices=slices_of(comparison) if is_explained else None,
    )


def _of_many(many: ManyComparison, about: Mapping[str, Any]) -> ManyResult:
    options, verdict = many.options, many.verdict
    return ManyResult(
        **about,
        evidence=many.evidence,
        versions=versions("numpy", "scipy"),
        baseline=many.baseline,
        verdict=verdict.code,
        verdict_sentence=verdict.sentence,
        best=verdict.best,
        reasons=_caveats(verdict.reasons),
        disagreements=verdict.disagreements,
        unseen=verdict.unseen,
        primary=many.primary,
        test=options.test,
        adjust=options.adjustment,
        adjusted=many.procedure.adjusted,
        procedure=many.procedure.text,
        can_find=many.procedure.can_find,
        smallest_p=many.procedure.smallest_p,
        alpha=options.alpha,
        margin=options.margin,
        seed=options.seed,
        n_draws=many.n_draws,
        limits=options.limits,
        n=len(many.query_ids),
        means={measure: dict(zip(many.names, row, strict=True)) for measure, row in many.summaries.items()},
        leaderboard=many.leaderboard,
        pairs=many.pairs,
        against_baseline=many.against,
        omnibus=many.omnibus,
        ranks=many.ranks,
        orders=many.agreements,
        strata=many.strata,
        unpaired=many.dropped,
        unjudged=many.unjudged,
    )


def _by_stratum(found: Mapping[Measure, Sequence[S]]) -> dict[tuple[str, str], dict[Measure, S]]:
    """Key and value of each stratum to what is known of each measure there."""
    strata: dict[tuple[str, str], dict[Measure, S]] = {}
    for measure, rows in found.items():
        for row in rows:
            strata.setdefault((row.key, row.value), {})[measure] = row
    return strata


def _caveats(sentences: Sequence[str]) -> tuple[Caveat, ...]:
    return tuple(map(Caveat.of, sentences))


def _system(
    evaluation: Evaluation, primary: Measure | None, always: Collection[str], *, with_headroom: bool
) -> SystemResult:
    measure = primary or next(iter(evaluation.measures), None)
    failures = tuple(QueryFailure(*each) for each in evaluation.failures)
    measured: dict[Measure, tuple[StratumSummary, ...]] = {
        each: summaries_by_stratum(evaluation, each, always) for each in evaluation.measures
    }
    if evaluation.ranking.classes:
        measured |= class_measures_by_stratum(evaluation, always)
    strata = _by_stratum(measured)
    columns = {
        each: [value if scored else None for value, scored in zip(evaluation.values[each].tolist(), known, strict=True)]
        for each in evaluation.measures
        for known in [evaluation.scored[each].tolist()]
    }
    rows = zip(*columns.values(), strict=True) if columns else ((),) * len(evaluation.query_ids)
    unscored: dict[str, dict[Measure, str]] = {}
    for each in evaluation.measures:
        for query_id, why in evaluation.unscored[each].items():
            unscored.setdefault(query_id, {})[each] = str(why)
    return SystemResult(
        name=evaluation.name,
        digest=evaluation.run_digest,
        config_digest=None if evaluation.run is None else evaluation.run.config_digest,
        pilot=evaluation.pilot,
        config=None if evaluation.run is None or not evaluation.run.config else dict(evaluation.run.config),
        order="given" if evaluation.run is None else evaluation.run.order,
        reading=evaluation.reading,
        n_queries=len(evaluation.query_ids),
        measures={each: evaluation.summaries[each] for each in evaluation.measures},
        by_stratum=tuple(
            StratumMeasures(*place, {each: row.summary for each, row in rows.items()}) for place, rows in strata.items()
        ),
        classes=by_class(evaluation) if evaluation.ranking.classes else (),
        unclassed=_unclassed(evaluation),
        confusion=evaluation.confusions,
        n_failed=len(failures),
        failures=failures,
        failures_count=effect_of(
            np.flatnonzero([outcome.is_failure for outcome in evaluation.ranking.outcomes]),
            evaluation.measures,
            evaluation.values,
            evaluation.scored,
        ),
        outcomes=outcome_counts(evaluation),
        judged=judged_share(evaluation.ranking, None if measure is None else measure.depth),
        mean_returned=float(returned.mean()) if (returned := evaluation.ranking.n_returned).size else None,
        n_duplicates=duplicates(evaluation),
        warnings=_caveats(evaluation.warnings),
        queries={
            query_id: dict(zip(columns, row, strict=True))
            for query_id, row in zip(evaluation.query_ids, rows, strict=True)
        },
        unscored={query_id: unscored[query_id] for query_id in evaluation.query_ids if query_id in unscored},
        headroom=headroom_of(evaluation, measure) if with_headroom and measure is not None else None,
    )


def _unclassed(evaluation: Evaluation) -> Summary | None:
    classes, first = evaluation.ranking.classes, next(iter(evaluation.measures), None)
    without = np.array([label == WITHOUT for label in classes], dtype=np.bool_)
    if first is None or not without.any():
        return None
    return summarise(evaluation.values[first][without & evaluation.scored[first]], measure=first)


def _queries(evaluations: Sequence[Evaluation], result: object) -> dict[str, QueryRecord]:
    pair = result if isinstance(result, Comparison) else None
    buckets, moves = (
        {query_id: name for name, query_ids in parts.items() for query_id in query_ids}
        for parts in ((pair.buckets, pair.moves) if pair is not None else ({}, {}))
    )
    testset, expected = evaluations[0].testset, [ExpectedItemsByQuery(evaluation) for evaluation in evaluations]
    sides = [_sides(evaluation, of_system) for evaluation, of_system in zip(evaluations, expected, strict=True)]
    return {
        query.id: QueryRecord(
            query.text,
            query_strata(query),
            query.params,
            class_of(query),
            (wanted := _expected(testset, query.id, expected)),
            "" if wanted else _nothing_expected(testset, query.id),
            tuple(side(query.id) for side in sides),
            buckets.get(query.id, ""),
            moves.get(query.id, ""),
        )
        for query in testset.queries
    }


def _expected(testset: TestSet, query_id: str, expected: Sequence[ExpectedItemsByQuery]) -> tuple[ExpectedRecord, ...]:
    grades: dict[str, float] = {}
    ranks: dict[str, list[int | None]] = {}
    for place, of_system in enumerate(expected):
        for item in of_system.get(query_id, ()):
            grades.setdefault(item.name, item.grade)
            ranks.setdefault(item.name, [None] * len(expected))[place] = item.rank
    if not grades:  # left out of the means of every system
        grades = {doc_id: grade for doc_id, grade in testset.grades.get(query_id, {}).items() if grade > 0}
        grades |= {target.label: target.grade for target in testset.targets.get(query_id, ())}
    unknown = [None] * len(expected)
    return tuple(ExpectedRecord(name, grade, tuple(ranks.get(name, unknown))) for name, grade in grades.items())


def _nothing_expected(testset: TestSet, query_id: str) -> str:
    if class_of(testset.by_id[query_id]) == NEGATIVE:
        return "nothing"
    return str(Absence.NONE_RELEVANT if testset.is_judged(query_id) else Absence.NEVER_JUDGED)


def _sides(evaluation: Evaluation, expected: ExpectedItemsByQuery) -> Callable[[str], SystemAnswer]:
    """From a query to the answer of a system."""
    ranking, first = evaluation.ranking, first_ranks(evaluation)

    def side(query_id: str) -> SystemAnswer:
        place = evaluation.index.get(query_id)
        if place is None:
            return SystemAnswer(evaluation.name, None)
        answer = evaluation.run.answers.get(query_id) if evaluation.run is not None else None
        hits = () if answer is None else reversed(answer.hits)
        explained = {hit.public_id: hit.explanation for hit in hits if hit.explanation is not None}
        return SystemAnswer(
            evaluation.name,
            ranking.outcomes[place].value,
            ranking.reasons.get(query_id),
            int(ranking.n_returned[place]),
            int(ranking.n_duplicates[place]),
            first[query_id],
            tuple(item.name for item in expected[query_id] if item.rank is None),
            None if answer is None or not answer.fields else dict(answer.fields),
            tuple(_hit(hit, explained.get(hit.id)) for hit in ranking.top.get(query_id, ())),
        )

    return side


def _hit(hit: RankedHit, explanation: Explanation | None) -> HitRecord:
    state = hit.state.name.lower()
    grade = hit.level if state == "judged" else None
    state = "forbidden" if hit.forbidden else state
    terms = flatten(explanation)
    shown = most_of(terms, SHOWN_TERMS)
    n_cut = 0 if explanation is None else explanation.n_cut + len(terms) - len(shown)
    return HitRecord(
        hit.rank,
        hit.id,
        hit.title,
        state,
        grade,
        hit.gain,
        hit.item,
        hit.credited,
        hit.span,
        None if explanation is None else shown,
        n_cut,
    )


def outcome_counts(evaluation: Evaluation) -> dict[str, int]:
    """Every outcome and how many queries had it, zeros included."""
    counts = Counter(evaluation.ranking.outcomes)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def first_ranks(evaluation: Evaluation) -> dict[str, int | None]:
    """Query id to the rank of its first relevant result in the whole list kept; None where there is none."""
    ranks = first_relevant_rank(evaluation.ranking)
    return {
        query_id: int(rank) if math.isfinite(rank) else None
        for query_id, rank in zip(evaluation.query_ids, ranks.tolist(), strict=True)
    }


def duplicates(evaluation: Evaluation) -> int:
    """Results dropped because the list had them before."""
    return int(evaluation.ranking.n_duplicates.sum())


def versions(*libraries: str) -> Mapping[str, str]:
    """What made this result: Cranfield, Python, and the libraries named."""
    import importlib
    import sys

    from cranfield.base.version import __version__

    made = {"cranfield": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    # Not importlib.metadata: it reads mail headers, and that takes longer to import than these two to load.
    return made | {library: str(importlib.import_module(library).__version__) for library in libraries}
