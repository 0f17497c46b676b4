"""An evaluation and a comparison: measures by query and in the mean, classes, unjudged results, verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield.base.display import DisplayedByQuery, OneLine, in_line
from cranfield.base.errors import NotEvaluatedError, UsageError
from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_percent,
    format_value,
)
from cranfield.base.words import and_list, count_noun
from cranfield.evaluation.absence import absence_sentences, judged_share
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import Finding, void_sentences
from cranfield.evaluation.flat import FlatValue, flat, key_of, measure_keys
from cranfield.evaluation.options.blocks import CompareOptions, LatencyRule, Limits
from cranfield.evaluation.unseen import Caveat, CaveatKind, Unseen
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Convention, Run, TestSet
from cranfield.ranking.value import FloatQ, Ranking
from cranfield.stats.describe import TOLERANCE
from cranfield.stats.result import TestResult

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

    from cranfield.evaluation.confusion import Confusion
    from cranfield.stats.scale import Scale


WITHOUT = ""
"""Label of the queries that have no class."""
CHANGED = (VerdictCode.BETTER, VerdictCode.WORSE)

Move = Literal["rises", "falls", "level"]


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of queries, with its verdict."""

    label: str
    """Name of the class, or value of the stratum; empty for the queries without one."""
    measure: Measure
    """That decides within the class."""
    test: str
    query_ids: tuple[str, ...]
    """That have a value on both sides."""
    n_nonzero: int
    baseline: float | None
    candidate: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    """Upper end of the interval of the mean difference, or of what the test estimates; not adjusted for the number of
    classes."""
    result: TestResult | None
    """None where no query has a pair; its `p_adjusted` is None where the class cannot decide."""
    code: VerdictCode = VerdictCode.NOT_SIGNIFICANT
    too_few: str = ""
    """Why the test cannot be significant, if so."""
    estimate: float | None = None
    """What the interval is about, where that is not the mean difference: the Hodges-Lehmann estimate, the median."""
    unseen: Unseen | None = None
    """Queries of a kind that is not among these, and what would turn the verdict of the class; None from 50 queries on, and
    where the class cannot decide."""
    n: int = field(init=False, default=0)
    """Queries with a value on both sides."""
    can_decide: bool = field(init=False, default=False)
    """Whether the class counts in the family of tests."""
    move: Move = field(init=False, default="level")
    """Where the difference moves, in favour of the candidate or against it, significant or not."""

    def __post_init__(self) -> None:
        gain = (self.shown or 0.0) * (1 if CATALOGUE[self.measure.name].higher_is_better else -1)
        derived = {
            "n": len(self.query_ids),
            "can_decide": self.result is not None and self.result.p_adjusted is not None,
            "move": "rises" if gain > TOLERANCE else "falls" if gain < -TOLERANCE else "level",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The label, or `queries without a class`."""
        return self.label or "queries without a class"

    @property
    def shown(self) -> float | None:
        """The estimate that the interval is about, else the mean difference."""
        return self.delta if self.estimate is None else self.estimate


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """The verdicts of all classes, the test over all queries, and the verdict of the mean."""

    key: str
    """`class`, or the key of the strata."""
    rows: tuple[ClassRow, ...]
    overall: TestResult
    """The declared test on the primary measure, over all queries, with the classes as strata."""
    pooled: VerdictCode
    """The verdict of the mean over all queries."""
    n_tested: int = field(init=False, default=0)
    """Classes in the family of Holm's adjustment."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_tested", sum(row.can_decide for row in self.rows))

    def with_code(self, code: VerdictCode) -> tuple[ClassRow, ...]:
        """The classes with this verdict."""
        return tuple(row for row in self.rows if row.code is code)

    @property
    def falling(self) -> tuple[ClassRow, ...]:
        """Classes with a lower mean of the candidate that is not significant."""
        return tuple(row for row in self.rows if row.move == "falls" and row.code is not VerdictCode.WORSE)


class UnjudgedKind(StrEnum):
    """What the judgments of unjudged results can make of a verdict."""

    HOLDS = "holds"
    """No grades bring another verdict."""
    CAN_TURN = "can_turn"
    UNKNOWN = "unknown"
    """No grades were found that bring another verdict, and none are excluded."""
    NO_BOUND = "no_bound"
    """The measure or the convention has no joint bounds, or there is too much to compute."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The unjudged results of two systems beside the verdict on them."""

    kind: UnjudgedKind
    n_results: int | None
    """Unjudged documents within the cutoff of either list; None without bounds."""
    n_queries: int | None
    """Queries that have them."""
    n_judgments: int | None = None
    """The fewest judgments found that turn the verdict, if all turn out that way."""
    verdict: VerdictCode | None = None
    """The verdict that they bring."""
    why: str = ""
    """Why there are no bounds."""
    low_shares: tuple[str, ...] = ()
    """Without bounds: the judged share of each side below the limit, `B: Judged@10 14.0 %`."""
    limit: float | None = None
    """The smallest judged share without a caveat."""
    of: str = ""
    """`over all queries`, where classes decide the verdict."""
    command: str = ""
    """The command that makes a pool of these results."""
    best: tuple[str, ...] = ()
    """Systems that are best with these judgments, of three and more; empty where no two differ significantly then."""

    sentence: str = field(init=False, default="")
    """One sentence for reports; empty where there is nothing to say."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def _sentence(self) -> str:
        if self.kind is UnjudgedKind.NO_BOUND:
            if not self.low_shares:
                return ""
            shares = f"{' and '.join(self.low_shares)}, under {format_percent(self.limit)}"
            return f"most results are unjudged ({shares}), and their effect on the verdict is not bounded: {self.why}"
        lead = f"{self.of}: " if self.of else ""
        among = f"{count_noun(self.n_results or 0, 'unjudged results', format_count)} in {count_noun(self.n_queries or 0, 'queries', format_count)}"
        if self.kind is UnjudgedKind.HOLDS:
            return f"{lead}the verdict is the same for any judgments of the unjudged results ({among})"
        if self.n_judgments is None:
            return f"{lead}no judgments were found that change the verdict, but they cannot be ruled out ({among})"
        judgments = count_noun(self.n_judgments, "judgments", format_count)
        if self.verdict is not None:
            return f"{lead}{judgments} could change it to {self.verdict.text} ({among})"
        best = f"{and_list(self.best)} {'are' if len(self.best) > 1 else 'is'} best" if self.best else "none is best"
        return f"{judgments} could change it: then {best} ({among})"

    @property
    def is_doubt(self) -> bool:
        """Whether it limits the verdict."""
        return self.kind is not UnjudgedKind.HOLDS


Value = TypeVar("Value")

RATED_BY_SLOT = "searchtweak"
"""The convention under which each measure has a scale of its own, and ratings are mapped to it one by one."""
GAINS = frozenset({"gains", "min_rel", "max_rel"})
"""Parameters of measures that use graded relevance."""
NOT_ON_ITS_SCALE = "the run was not ranked on the scale of this measure: request the measure together with the others"


def scale_for(measure: Measure) -> Scale | None:
    """`binary` where only relevance counts, `graded` where gains count; None where grades do not matter."""
    spec = CATALOGUE[measure.name]
    names = {parameter.name for parameter in spec.parameters}
    if spec.diagnostic or spec.needs is not None:
        return None
    return "graded" if names & GAINS or "rel" not in names else "binary"


def find_measure(measure: Measure, measures: Iterable[Measure]) -> Measure:
    """The measure as it is among others: with the name that is printed there, and on the detail scale where it is there alone."""
    found = {known: known for known in measures}
    return found.get(measure) or found.get(replace(measure, on_detail=True)) or measure


def known_mean(values: FloatQ) -> float | None:
    """Mean of the values that are not NaN."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


@dataclass(frozen=True, slots=True)
class Summary:
    """One measure over the scored queries of one system. All None when no query is scored."""

    mean: float | None
    median: float | None
    std: float | None
    """Sample standard deviation (n - 1); None under two queries."""
    ci_low: float | None
    ci_high: float | None
    """Student's t interval of the mean at `ci_level`; None under two queries."""
    n: int
    """Queries scored."""
    ci_level: float = 0.95
    aggregate: str = "mean"
    """What `mean` and its interval are of: `mean`; `geometric mean` or `sum` where the measure is summed up so."""
    total: float | None = None
    """Sum of the values."""
    geometric_mean: float | None = None
    """Values under 0.00001 count as that much, as in trec_eval; None where a value is under 0."""
    weighted_mean: float | None = None
    """Mean weighted by query frequency; None where all weights are equal or add up to 0."""


class ByMeasure(Mapping[Measure, Value]):
    """Something per measure, found by the `Measure` or by any of its spellings: `summaries["MRR@10"]`."""

    def __init__(self, items: Mapping[Measure, Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, measure: Measure | str) -> Value:
        found = self.measure(measure)
        if found not in self._items:
            known = [str(each) for each in self._items]
            hint = f"evaluate with measures={[*known, str(found)]}"
            raise NotEvaluatedError(f"{found} was not evaluated", expected=", ".join(known) or "no measure", hint=hint)
        return self._items[found]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In records it is a mapping."""
        from pydantic_core import core_schema

        inner = handler.generate_schema(dict[Measure, get_args(source)[0]])  # type: ignore[misc]  # known when it runs
        to_dict = core_schema.plain_serializer_function_ser_schema(dict, return_schema=inner)
        return core_schema.no_info_after_validator_function(cls, inner, serialization=to_dict)

    def __iter__(self) -> Iterator[Measure]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ByMeasure({self._items!r})"

    def measure(self, spelling: Measure | str) -> Measure:
        """The measure of a spelling: its own, an alias or a name of trec_eval.

        Raises:
            MeasureError: no measure is spelled so.
        """
        if isinstance(spelling, Measure):
            return spelling
        from cranfield.measures.parse import parse

        known = next((measure for measure in self._items if str(measure) == spelling), None)
        return known or find_measure(parse(spelling), self._items)


def failed_text(evaluation: Evaluation) -> str:
    """`60 failed: ProgrammingError: no such table`; `0 failed`."""
    why = evaluation.ranking.why_failed(evaluation.run)
    return f"{format_count(len(evaluation.failures))} failed" + (f": {why}" if why else "")


def invalid_reason(evaluations: Iterable[Evaluation], evidence: Iterable[Finding]) -> str:
    """`: new: 60 failed: no such table`: why a comparison does not count, as its one line has it; empty where it counts."""
    reasons = [
        *(f"{in_line(each.name)}: {failed_text(each)}" for each in evaluations if each.failures),
        *(void := void_sentences(evidence)),
    ]
    return f": {reasons[0]}" if void else ""


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(DisplayedByQuery):
    """One system on one test set: a value per query and measure, and the outcome of every query."""

    name: str
    testset: TestSet
    run_digest: str
    ranking: Ranking
    measures: tuple[Measure, ...]
    values: Mapping[Measure, FloatQ]
    """float64[Q] in `ranking.query_ids` order; meaningless where not scored."""
    scored: Mapping[Measure, NDArray[np.bool_]]
    """bool[Q]."""
    unscored: Mapping[Measure, Mapping[str, str]]
    """Query id to the reason it has no value."""
    summaries: ByMeasure[Summary]
    run: Run | None = None
    """The collected run with its logs, where there is one (a TREC file has none)."""
    pilot: bool = False
    warnings: tuple[str, ...] = ()
    """Sentences for people: queries without a relevant document, duplicates dropped, measures left out."""
    extra_queries: tuple[str, ...] = ()
    """Ids of the run that the test set does not have; ignored."""
    reading: Mapping[str, str | int | None] = field(default_factory=dict)
    """Options of the reader: depth, missing, duplicates."""
    confusions: tuple[Confusion, ...] = ()
    """Tables of a field of the answers against a stratum, where the run states fields."""
    scales: Mapping[Measure, str] = field(default_factory=dict)
    """Where each measure was computed on grades of its own scale: that scale."""
    on_scales: Mapping[str, Ranking] = field(default_factory=dict)
    """The ranking of each of these scales."""
    limits: Limits = field(default_factory=Limits)
    """Limits of the evidence checks."""
    latency_rule: LatencyRule = field(default_factory=LatencyRule)
    """Which timings count, and when a difference of latencies is a claim."""

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Ids of the Q queries averaged over."""
        return self.ranking.query_ids

    @property
    def failures(self) -> tuple[tuple[str, str, str], ...]:
        """`(query id, outcome, reason)` of every query the system failed on, in query order."""
        ranking = self.ranking
        return tuple(
            (query_id, outcome.value, ranking.reasons.get(query_id, ""))
            for query_id, outcome in zip(ranking.query_ids, ranking.outcomes, strict=True)
            if outcome.is_failure
        )

    def __getitem__(self, measure: Measure | str) -> Summary:
        """The summary of a measure: its mean, interval, median and number of queries.

        Raises:
            MeasureError: no measure is spelled so.
            NotEvaluatedError: it was not evaluated.
        """
        return self.summaries[measure]

    def mean(self, measure: Measure | str) -> float | None:
        """The mean of a measure, or how it is summed up otherwise; None when no query is scored.

        Args:
            measure: a measure or any of its spellings: `RR@10`, `MRR@10`.

        Raises:
            UsageError: no measure is spelled so, or it was not evaluated.
        """
        return self.summaries[measure].mean

    def value(self, measure: Measure | str, query_id: str) -> float | None:
        """One query's value; None when it is unscored.

        Args:
            measure: a measure or any of its spellings.
            query_id: id of a query that counts.

        Raises:
            UsageError: no measure is spelled so, it was not evaluated, or there is no such query.
        """
        _, measure = self.summaries[measure], self.summaries.measure(measure)
        if query_id not in self.index:
            raise UsageError(
                f"no query {query_id!r} in this evaluation", expected=", ".join(map(repr, self.query_ids[:3]))
            )
        index = self.index[query_id]
        return float(self.values[measure][index]) if self.scored[measure][index] else None

    def ranking_for(self, measure: Measure) -> Ranking | None:
        """The ranking that a measure is computed on; None where each scale has its own, and there is none of this one."""
        if not self.on_scales:
            return self.ranking
        scale = self.scales.get(measure) or scale_for(measure)
        return self.ranking if scale is None else self.on_scales.get(scale)

    @cached_property
    def evidence(self) -> tuple[Finding, ...]:
        """What the evidence checks find, what makes the scores void first."""
        return inspect_systems((self,), next(iter(self.measures), None), self.limits)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Query id to its position in the arrays."""
        return {query_id: i for i, query_id in enumerate(self.ranking.query_ids)}

    def to_dict(self) -> dict[str, FlatValue]:
        """The means as one flat dictionary with stable keys, for a dashboard or a log.

        `nDCG@10` has the keys `ndcg_at_10` (the mean), `ndcg_at_10_ci_low`, `ndcg_at_10_ci_high` and `ndcg_at_10_n`, the queries with
        a value. Besides them there are `n_queries`, `n_failed`, `judged_at_10` (the mean share of judged results), `system`, `testset`,
        `void` where the scores do not count (why), and `undefined` where keys are left out because they have no value (which).

        Example:
            >>> from cranfield import evaluate, load
            >>> evaluation = evaluate(
            ...     load({"q1": ["d1"], "q2": ["d2"]}), {"q1": ["d1"], "q2": ["d3", "d2"]}, measures=["RR"]
            ... )
            >>> {key: value for key, value in evaluation.to_dict().items() if key in ("rr", "rr_n", "n_failed")}
            {'rr': 0.75, 'rr_n': 2, 'n_failed': 0}
        """
        values: dict[str, FlatValue | None] = {"system": self.name, "testset": self.testset.name}
        for measure, key in measure_keys(self.summaries).items():
            values |= _flat_summary(key, self.summaries[measure])
        return flat([*values.items(), *_flat_counts(self).items(), *_flat_void(self.evidence)])

    def _summary(self) -> str:
        means = [f"{measure} {format_value(self.summaries[measure].mean)}" for measure in self.measures[:3]]
        counts = [count_noun(len(self.query_ids), "queries"), *([failed_text(self)] if self.failures else [])]
        about = f"{in_line(self.name)} on {in_line(self.testset.name)}"
        return f"{about}: {', '.join([*means, *counts, *(['pilot'] if self.pilot else [])])}"


@dataclass(frozen=True, slots=True, repr=False)
class MeasureComparison(OneLine):
    """One measure on the queries that both systems have a value for."""

    measure: Measure
    baseline: Summary
    candidate: Summary
    delta: float | None
    """Mean of candidate minus baseline, query by query."""
    ci_low: float | None
    ci_high: float | None
    """None where n is too small for the interval to be bounded at this alpha."""
    interval_method: str
    effect_size: float | None
    """Cohen's d_z: mean difference over the standard deviation of the differences; None when all are equal."""
    n: int
    n_nonzero: int
    mde: float | None
    """Smallest true mean difference that a two-sided t test at alpha would find with 80 % power, this n and spread."""
    tests: Mapping[str, TestResult]
    delta_median: float | None = None
    delta_std: float | None = None
    differences: Mapping[str, float] = field(default_factory=dict)
    """Query id to candidate minus baseline."""
    estimate: float | None = None
    """Point estimate of what the interval is about: `delta`, or the Hodges-Lehmann estimate or median of those not zero."""
    estimates: str = ""
    """Name of that: `mean difference`, `Hodges-Lehmann estimate`, `median difference`."""

    @property
    def shown(self) -> float | None:
        """The estimate that the interval is about; the mean difference where none is known."""
        return self.delta if self.estimate is None else self.estimate

    @property
    def mean_is_outside(self) -> bool:
        """Whether the mean difference lies outside the interval, which is of another quantity then."""
        low, high, delta = self.ci_low, self.ci_high, self.delta
        if delta is None or self.estimate == delta:
            return False
        return (low is not None and delta < low) or (high is not None and delta > high)

    def _summary(self) -> str:
        found = f"{format_delta(self.shown)} ({format_delta_interval((self.ci_low, self.ci_high))})"
        return f"{self.measure}: {found}, {count_noun(self.n, 'queries')}"


@dataclass(frozen=True, slots=True)
class StratumComparison:
    """One measure within one stratum."""

    key: str
    value: str
    n: int
    baseline_mean: float | None
    candidate_mean: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    """t interval of the difference; None under two queries."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the candidate, with its reasons."""

    code: VerdictCode
    sentence: str
    """One line: direction, size, interval, n."""
    reasons: tuple[str, ...] = ()
    """For `invalid`: each limit that was broken. For `not_significant`: the detectable difference."""
    disagreements: tuple[str, ...] = ()
    """Other measures or tests with another result, a sentence each."""
    unseen: Unseen | None = field(default=None, kw_only=True)
    """Queries of an unseen kind, and what would turn the verdict; None from 50 queries on."""

    @property
    def name(self) -> str:
        """The verdict as text: `no significant difference`."""
        return self.code.text


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(DisplayedByQuery):
    """Baseline against candidate, paired by query id."""

    baseline: Evaluation
    candidate: Evaluation
    primary: Measure
    options: CompareOptions
    """What was declared beforehand."""
    measures: Mapping[Measure, MeasureComparison]
    verdict: Verdict
    buckets: Mapping[str, tuple[str, ...]]
    """Every query in exactly one: see `partitions.BUCKETS`."""
    moves: Mapping[str, tuple[str, ...]]
    """The second partition, by the rank of the first relevant result: see `partitions.MOVES`."""
    rank_one: TestResult
    """Exact McNemar on "the first result is relevant": how many queries only one side gets right."""
    strata: tuple[StratumComparison, ...] = ()
    n_draws: int = 0
    """Random sign patterns of the permutation test; 0 where all of them were counted."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Query id to why it could not be paired on the primary measure (`only in the baseline`)."""
    evidence: tuple[Finding, ...] = ()
    """What the evidence checks found, what makes the verdict invalid first."""
    strata_by_measure: Mapping[Measure, tuple[StratumComparison, ...]] = field(default_factory=dict)
    """Every measure within each stratum."""
    by_class: ClassVerdict | None = None
    """The verdict of each class; None where the mean over all queries decides."""
    find_unjudged: Callable[[Comparison], Unjudged | None] | None = field(default=None, repr=False, compare=False)
    """What computes `unjudged`, when it is first read."""
    inputs: tuple[str, ...] | None = None
    """Test set, baseline and candidate as a command line names them; None: by their names."""

    @cached_property
    def unjudged(self) -> Unjudged | None:
        """What judgments of the unjudged results can make of the verdict; None where nothing is unjudged."""
        return None if self.find_unjudged is None else self.find_unjudged(self)

    @property
    def evaluations(self) -> tuple[Evaluation, Evaluation]:
        """The baseline and the candidate."""
        return self.baseline, self.candidate

    @property
    def pooled_code(self) -> VerdictCode:
        """The verdict of the mean over all queries, whether it decides or not."""
        return self.verdict.code if self.by_class is None else self.by_class.pooled

    @property
    def pilot(self) -> bool:
        """True when either side is a pilot."""
        return self.baseline.pilot or self.candidate.pilot

    def to_dict(self) -> dict[str, FlatValue]:
        """The verdict and the measures as one flat dictionary with stable keys, for a dashboard or a log.

        `nDCG@10` has the keys `ndcg_at_10` (the candidate's mean), `ndcg_at_10_baseline`, `ndcg_at_10_difference` with `_ci_low` and
        `_ci_high`, `ndcg_at_10_p` (of the declared test), `ndcg_at_10_p_holm` and `ndcg_at_10_n`, the queries with a value on both sides;
        `ndcg_at_10_estimate` where the interval is not of the mean difference. Besides them there are `verdict` (its code: `better`),
        `primary`, `baseline`, `candidate`, `testset`, the counts of `Evaluation.to_dict` for both sides, and `void` and `undefined` as there.
        """
        values: dict[str, FlatValue | None] = {
            "verdict": self.verdict.code.value, "primary": self.primary.canonical, "baseline": self.baseline.name,
            "candidate": self.candidate.name, "testset": self.candidate.testset.name,
        }  # fmt: skip
        for measure, key in measure_keys(self.measures).items():
            about = self.measures[measure]
            test = about.tests.get(self.options.test)
            values |= {
                key: about.candidate.mean, f"{key}_baseline": about.baseline.mean, f"{key}_difference": about.delta,
                f"{key}_difference_ci_low": about.ci_low, f"{key}_difference_ci_high": about.ci_high,
                f"{key}_p": test.p_two_sided if test else None, f"{key}_p_holm": test.p_adjusted if test else None, f"{key}_n": about.n,
            }  # fmt: skip
            if about.estimate != about.delta:
                values[f"{key}_estimate"] = about.estimate
        counts = _flat_counts(self.candidate) | {
            f"{key}_baseline": value for key, value in _flat_counts(self.baseline).items()
        }
        return flat([*values.items(), *counts.items(), *_flat_void(self.evidence)])

    def _summary(self) -> str:
        about = self.measures[self.primary]
        interval = f"{format_level(self.options.alpha)} CI {format_delta_interval((about.ci_low, about.ci_high))}"
        why = invalid_reason(self.evaluations, self.evidence)
        found = f"{self.primary} {format_delta(about.shown)} ({interval}), {count_noun(about.n, 'queries')}"
        return (
            f"{in_line(self.candidate.name)} against {in_line(self.baseline.name)}: {self.verdict.name}{why}, {found}"
        )


def _flat_summary(key: str, summary: Summary) -> dict[str, FlatValue | None]:
    """The mean of a measure, its interval and its number of queries, by flat keys."""
    return {
        key: summary.mean,
        f"{key}_ci_low": summary.ci_low,
        f"{key}_ci_high": summary.ci_high,
        f"{key}_n": summary.n,
    }


def _flat_counts(evaluation: Evaluation) -> dict[str, FlatValue | None]:
    """Queries, failures and the share of judged results of a system."""
    depth = next((measure.depth for measure in evaluation.measures), None)
    share = judged_share(evaluation.ranking, depth)
    return {
        "n_queries": len(evaluation.query_ids),
        "n_failed": len(evaluation.failures),
        key_of(share.measure.canonical): share.mean,
    }


def _flat_void(evidence: Iterable[Finding]) -> list[tuple[str, FlatValue | None]]:
    """Why the scores do not count; nothing where they do."""
    sentences = void_sentences(evidence)
    return [("void", "; ".join(sentences))] if sentences else []


def with_columns(evaluation: Evaluation, columns: Mapping[Measure, Evaluation]) -> Evaluation:
    """The evaluation with the measures of others in place of its own.

    Args:
        evaluation: the ranking, hits and failures are its.
        columns: each measure, in order, to an evaluation of the same queries that has it.
    """
    return replace(
        evaluation,
        measures=tuple(columns),
        values={measure: of.values[measure] for measure, of in columns.items()},
        scored={measure: of.scored[measure] for measure, of in columns.items()},
        unscored={measure: of.unscored.get(measure, {}) for measure, of in columns.items()},
        summaries=ByMeasure({measure: of.summaries[measure] for measure, of in columns.items()}),
    )


def joined(measures: Sequence[Measure], parts: Sequence[Evaluation]) -> Evaluation:
    """Evaluations of one run with other measures as one, with the ranking of the first measure's and the warnings of all."""
    of = {measure: (measure, part) for part in parts for measure in part.measures}
    columns = dict(of[measure] for measure in measures)
    whole = with_columns(columns[measures[0]], columns)
    return replace(whole, warnings=tuple(dict.fromkeys(_joined_warnings(whole, parts))))


def _joined_warnings(whole: Evaluation, parts: Sequence[Evaluation]) -> Iterator[str]:
    """Warnings of evaluations of one run: with the measures that they are about, where those of another evaluation differ.

    What absent queries count as is one sentence for all measures, where the judgments are the same.
    """
    shared = set(whole.warnings).intersection(*(part.warnings for part in parts))
    is_one_set = all(part.testset.grades == whole.testset.grades for part in parts)
    for part in parts:
        names = and_list([str(measure) for measure in part.measures])
        for line in part.warnings:
            kind = line.kind if isinstance(line, Caveat) else ()
            if is_one_set and CaveatKind.ABSENT in kind:
                yield from absence_sentences(whole.testset, whole.ranking, whole.measures, whole.values, whole.scored)
            elif line in shared or CaveatKind.NO_VALUE in kind:
                yield line
            else:
                yield Caveat(f"{names}: {line}", *kind, part.measures)


def as_printed(measures: Iterable[Measure], convention: Convention) -> tuple[Measure, ...]:
    """Measures with the names that a convention prints, but for those under an alias that was written."""
    names = dict(convention.names)
    return tuple(replace(measure, shown=measure.shown or names.get(measure.name, "")) for measure in measures)
