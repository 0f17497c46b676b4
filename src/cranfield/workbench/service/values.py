"""What the parts of the service give: ids as ints, times as milliseconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from cranfield.base.errors import Problem
from cranfield.evaluation.evidence.values import caveat_sentences
from cranfield.evaluation.latency import CallsResult
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, SystemResult
from cranfield.evaluation.values import MeasureComparison, Summary
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.workbench.service.requests import CompareRequest, JobRequest, Settings
from cranfield.workbench.service.responses import (
    AnyJob,
    BenefitOutcome,
    EvaluationState,
    JobProblemResponse,
    RunResponse,
    SetResponse,
    Trigger,
)

Json = dict[str, Any]


class SetInfo(SetResponse):
    """A version of a test set, without its queries; one of the config that was not used yet has no digest and no counts either."""

    account_id: int | None = Field(exclude=True)


class RunInfo(RunResponse):
    """A stored run, without its answers."""

    account_id: int | None = Field(exclude=True)


class JobProblem(JobProblemResponse):
    """Why a job failed; `code` is a `ProblemCode`."""

    @property
    def problem(self) -> Problem:
        """The same, for a message."""
        return Problem(self.message, path=self.where or None, hint=self.hint or None)


class JobInfo(AnyJob):
    """A job, for the server."""

    request: JobRequest
    problems: tuple[JobProblem, ...]
    key: str | None
    account_id: int | None
    worker: str
    """Server that has it, or had it last: `HOST:PID`."""
    fence: int
    """Number of its last claim."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that a worker has taken, until its lease ends. `fence` is what each of its writes is checked by."""

    job: int
    fence: int
    worker: str


@dataclass(frozen=True, slots=True)
class EvaluationFacts:
    """What a server knows of an evaluation beside its record and the calls of its system."""

    k: int | None = None
    """Results requested for each query; None for an uploaded run."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure to the number of queries, as the rule `failures` of a gate counts them; the kinds that happened only."""
    latency_ms: Json | None = None
    """`p50`, `p95`, `p99`, `n`, `sum`, and `buckets`: a list of upper bound (ms; null is no bound) and count up to it. None: no call was timed."""
    gate: Mapping[str, bool | None] | None = None
    """Rule of the config's gate, in words, to whether it holds; None without rules for this test set. Rules on a baseline compare
    with the pinned evaluation. A rule that could not be decided is null, and a warning of the record has the reason."""


@dataclass(frozen=True)
class EvaluationInfo:
    """An evaluation without its queries; `payload` of the store has all."""

    id: int
    job_id: int | None
    position: int
    """Among those of the job."""
    testset_id: int
    testset_name: str
    testset_version: str
    testset_digest: str
    run_id: int
    system: str
    """Name of the system; of an uploaded run, its name."""
    variant: str
    components: str
    """Separated by commas; empty: all."""
    config_digest: str
    trigger: Trigger
    at: int
    configured: bool
    """Metrics and alerts follow it: live answers of a system of the config, scored as the config or a schedule says."""
    account_id: int | None
    account: str
    record: EvaluationResult
    """Without its queries: see `without_queries`. The primary measure is the first."""
    facts: EvaluationFacts
    void: tuple[str, ...]
    """Why its figures do not count; empty where they do."""
    book_id: int | None
    tags: tuple[str, ...]
    note: str
    pinned: bool
    """The baseline of its test set."""
    n_waiting: int = 0
    """Items that its book had when it was made, and that still wait for a grade; 0 where the book is closed."""

    @property
    def scores(self) -> SystemResult:
        """The part of the record about the system."""
        return self.record.systems[0]

    @property
    def primary(self) -> Measure | None:
        """The measure that decides; None where no query is judged."""
        return next(iter(self.scores.measures), None)

    @property
    def summary(self) -> Summary | None:
        """The primary measure over all queries."""
        return next(iter(self.scores.measures.values()), None)

    @property
    def has_value(self) -> bool:
        """Whether a query has a value of the primary measure; none has before the first grade."""
        return self.summary is not None and self.summary.n > 0

    @property
    def pilot(self) -> bool:
        """Whether it is not for the record."""
        return self.scores.pilot

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats and notes; what makes the figures void is in `void`."""
        return (*caveat_sentences(self.record.evidence), *self.scores.warnings)

    @property
    def n_failed(self) -> int:
        """Queries that failed or have no answer."""
        return sum(self.facts.failures.values())

    @property
    def strata(self) -> Mapping[str, Mapping[str, Mapping[Measure, Summary]]]:
        """Key of strata to value to measures; a stratum whose queries are all of one class also has those of that class."""
        found: dict[str, dict[str, Mapping[Measure, Summary]]] = {}
        for each in self.scores.by_stratum:
            found.setdefault(each.key, {})[each.value] = each.measures
        return found

    @property
    def state(self) -> EvaluationState:
        """Whether its figures count."""
        if self.void:
            return EvaluationState.VOID
        if self.n_waiting:
            return EvaluationState.WAITING
        if self.book_id is not None:
            return EvaluationState.GRADED
        return EvaluationState.VALID if self.has_value else EvaluationState.NO_VALUE

    @property
    def broken_rules(self) -> tuple[str, ...]:
        """Rules of the gate that it breaks; none where its figures do not count."""
        gate = {} if self.void else self.facts.gate or {}
        return tuple(rule for rule, holds in gate.items() if holds is False)

    @property
    def label(self) -> str:
        """`search`, `search (boosted)`, `search [bm25]`."""
        return label_of(self.system, self.variant, self.components)


def label_of(system: str, variant: str, components: str) -> str:
    """What an evaluation is called: `search (boosted) [bm25]`."""
    return system + (f" ({variant})" if variant else "") + (f" [{components}]" if components else "")


@dataclass(frozen=True, slots=True)
class EvaluationFilter:
    """Conditions; all of them hold."""

    testset: str | None = None
    """Name of the test set."""
    system: str | None = None
    variant: str | None = None
    """Empty: none."""
    components: str | None = None
    tag: str | None = None
    pinned: bool | None = None
    book: int | None = None
    """Id of the book that its results are judged in."""
    since: int | None = None
    """Made at this time or later."""
    limit: int = 100
    before: int | None = None
    """Ids under this one: the next page."""


@dataclass(frozen=True, slots=True)
class ComparisonInfo:
    """A comparison without its queries; `payload` of the store has all."""

    id: int
    job_id: int | None
    baseline: EvaluationInfo
    candidate: EvaluationInfo
    request: CompareRequest
    record: ComparisonResult
    """Without its queries: see `without_queries`."""
    at: int
    account_id: int | None
    account: str

    @property
    def difference(self) -> MeasureComparison:
        """The primary measure on both sides."""
        return self.record.comparisons[self.record.primary]

    @property
    def p_value(self) -> float | None:
        """That of the declared test on the primary measure."""
        tested = self.difference.tests.get(self.record.test)
        return None if tested is None else tested.p_two_sided

    @property
    def is_of_record(self) -> bool:
        """Whether its verdict says something of the candidate as a whole: no side is a pilot, and both are of the same components."""
        is_pilot = self.baseline.pilot or self.candidate.pilot
        return not is_pilot and self.baseline.components == self.candidate.components

    @property
    def is_regression(self) -> bool:
        """Whether the candidate lost; the pinned baseline does not lose by what is newer and better."""
        is_lost = self.record.verdict in {VerdictCode.WORSE, VerdictCode.MIXED}
        return self.is_of_record and is_lost and not self.candidate.pinned


@dataclass(frozen=True, slots=True)
class VariantInfo:
    """A system of the config with other values of the parameters that the operator opens."""

    id: int
    name: str
    system: str
    params: Json
    note: str
    created_at: int
    account_id: int | None
    account: str


@dataclass(frozen=True, slots=True)
class QueryCount:
    """A production query and how often it came."""

    text: str
    n: int
    first_day: str
    last_day: str


@dataclass(frozen=True)
class NewEvaluation:
    """An evaluation that a job made, for `jobs.finish`."""

    testset: int
    run: NewRun | int
    """The answers, or the id of the stored run."""
    system: str
    settings: Settings
    record: EvaluationResult
    """With every query and its answers."""
    calls: CallsResult
    facts: EvaluationFacts = field(default_factory=EvaluationFacts)
    variant: str = ""
    components: str = ""
    config_digest: str = ""
    void: tuple[str, ...] = ()
    book_id: int | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    configured: bool = False
    """As `EvaluationInfo.configured`."""


@dataclass(frozen=True)
class NewRun:
    """Answers of a system, for `jobs.finish`."""

    name: str
    digest: str
    content: bytes = field(repr=False)
    n_queries: int


@dataclass(frozen=True)
class NewComparison:
    """A comparison that a job made, for `jobs.finish`."""

    request: CompareRequest
    record: ComparisonResult
    """With every query and its answers."""
    calls: CallsResult


Result = NewEvaluation | NewComparison | BenefitOutcome
