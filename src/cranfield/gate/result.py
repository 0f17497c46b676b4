"""Results of a gate, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cranfield.base.display import Displayed, in_line
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.result import SystemResult
from cranfield.evaluation.unseen import Unseen, nearest
from cranfield.model import Scalar
from cranfield.model.query import params_text
from cranfield.model.results import Record, TestSetRecord

Status = Literal["passed", "failed", "inconclusive"]
STATES: Mapping[Status, bool | None] = {"passed": True, "failed": False, "inconclusive": None}
"""Whether a rule holds, of each status."""
GateStatus = Literal["passed", "failed", "inconclusive", "invalid"]
"""`invalid`: a limit of the config is broken: too many failures (without a rule on failures), or too few judged results."""


SourceKind = Literal["interrupted gate", "answer cache", "run file", "run file of the config", "baseline"]
"""What something is that a gate reads and did not make."""


@dataclass(frozen=True, slots=True)
class EarlierSource:
    """Something that a gate read and did not make in this call."""

    path: str
    kind: SourceKind
    digest: str
    """SHA-256 of the file; of a baseline that of its content; empty where it is not known."""
    oldest: str
    """Time of the oldest answer (of a baseline the day it was accepted); empty where the file has none."""
    latest: str
    n_answers: int
    """Number of its answers to queries of the test set."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule."""

    kind: str
    """Which rule of the table: `floor`, `drop` ..."""
    rule: str
    """The rule in words, with the classes that it was checked in: `P@1 is 1 on every query with difficulty: easy`."""
    status: Status
    got: str
    """The value compared with the bound, in exact decimals: `0.4120`, `-5.0 %`."""
    expected: str
    """The bound: `at least 0.40`."""
    sentence: str
    """One sentence for reports: the result, with n and interval if there is one."""
    queries: tuple[str, ...] = ()
    """Ids of the queries that broke the rule, or, for a mean, those with the largest loss."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Query id to how its answer broke the rule, of a rule on answers."""
    unseen: tuple[Unseen, ...] = ()
    """Queries of a kind that is not among those tested, and what would turn the result: of a rule with a significance
    test, for all queries and for each group of fewer than 50."""
    as_written: str = ""
    """The rule as the config has it: its name in metrics."""

    @property
    def nearest_unseen(self) -> Unseen | None:
        """The one of them that the smallest difference turns."""
        return nearest(self.unseen)


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure now and in the baseline, over the queries with a value in both."""

    measure: str
    current: float | None
    baseline: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class StratumChange:
    """A measure within one stratum, now and in the baseline."""

    key: str
    value: str
    n: int
    current: float | None
    baseline: float | None
    delta: float | None
    measure: str = ""


@dataclass(frozen=True, slots=True)
class ListedResult:
    """One of the first results of a query."""

    rank: int
    id: str
    grade: str
    """`2`, `unjudged`, or `matched above` where an earlier result has the credit."""
    title: str | None = None


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query with its value of the measure that it is ranked by, now and in the baseline."""

    query_id: str
    text: str
    current: float | None
    baseline: float | None
    outcome: str
    """Outcome of the call: `answered`, `timeout` ..."""
    why: str = ""
    """The values that count against it, and the broken rules that they belong to."""
    measure: str = ""
    """That it is ranked by: of the broken rule, or the primary one."""
    results: tuple[ListedResult, ...] = ()
    """Its first results now; a baseline keeps values and no lists."""
    params: Mapping[str, Scalar] = field(default_factory=dict)
    """Its own parameters for the system, by which queries with one text differ."""

    @property
    def label(self) -> str:
        """Its text and its parameters: `install (library=store)`; without a text its id."""
        return (self.text or self.query_id) + (f" ({params_text(self.params)})" if self.params else "")


@dataclass(frozen=True, slots=True)
class BaselineFacts:
    """Where a baseline came from."""

    path: str
    ref: str
    """The git ref it was read from; empty for the working tree."""
    system: str
    commit: str
    accepted: str
    """ISO date."""


@dataclass(frozen=True, repr=False, kw_only=True)
class GateResult(Displayed):
    """All rules of one system on one test set, and the evidence."""

    name: str = ""
    """Name of the test set in the config; empty where that has one."""
    status: GateStatus
    explanation: str
    """Why it has this status: `2 of 7 rules broken`."""
    testset: TestSetRecord
    convention: str
    rules: tuple[RuleResult, ...]
    evaluation: SystemResult
    """Without the values of each query."""
    primary: str
    baseline: BaselineFacts | None = None
    """None if no rule needs one."""
    measures: tuple[MeasureChange, ...] = ()
    strata: tuple[StratumChange, ...] = ()
    """The primary measure."""
    by_stratum: tuple[StratumChange, ...] = ()
    """Every measure."""
    worse: tuple[QueryChange, ...] = ()
    """Queries that got worse or broke a rule, the worst first."""
    better: tuple[QueryChange, ...] = ()
    """Queries that got better than in the baseline on the primary measure, and are not among `worse`, the best first."""
    overruled: tuple[str, ...] = ()
    """What the config changes of the settings that a ref decides: the values of the ref count."""
    notes: tuple[str, ...] = ()
    """Notes: cached answers, queries without a value."""
    evidence: tuple[Finding, ...] = ()
    """What the evidence checks found, what makes the result invalid first."""
    alpha: float = 0.05
    """Significance level of the intervals of `measures`: they cover 1 - alpha."""
    test: str = "permutation"
    """The test that the intervals belong to."""
    earlier: tuple[EarlierSource, ...] = ()
    """What was read and not made in this call: finished runs, answers of an interrupted gate, the baseline."""
    n_earlier: int = 0
    """Number of answers that were not made in this call."""

    @property
    def sentence(self) -> str:
        """The verdict in a line: `failed: 2 of 7 rules broken`."""
        return f"{self.status}: {self.explanation}"

    @property
    def is_passed(self) -> bool:
        """True when every rule was kept."""
        return self.status == "passed"

    def _summary(self) -> str:
        return f"{in_line(self.evaluation.name)} on {in_line(self.testset.name)}: {self.sentence}"


WORST_FIRST: tuple[GateStatus, ...] = ("invalid", "failed", "inconclusive", "passed")


@dataclass(frozen=True, slots=True)
class NotOfThisCall:
    """Answers that a gate read and did not ask for."""

    n_answers: int
    of: int
    oldest: str | None
    """Time of the oldest that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport(Record):
    """What a gate found, on one test set or several."""

    kind: Literal["gate"] = "gate"
    not_of_this_call: NotOfThisCall
    status: GateStatus
    """The worst of the results."""
    gates: tuple[GateResult, ...]

    @classmethod
    def of(cls, results: Iterable[GateResult]) -> GateReport:
        """The report of results."""
        gates = tuple(results)
        sources = [source for result in gates for source in result.earlier if source.kind != "baseline"]
        earlier = NotOfThisCall(
            sum(result.n_earlier for result in gates),
            sum(result.evaluation.n_queries for result in gates),
            min((source.oldest for source in sources if source.oldest), default=None),
        )
        found = {result.status for result in gates}
        status = next(status for status in WORST_FIRST if status in found)
        return cls(not_of_this_call=earlier, status=status, gates=gates)


@dataclass(frozen=True, slots=True)
class BaselineFact:
    """A setting of a baseline file; an empty text for a missing value."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """What accepting a baseline changes, shown before anything is written."""

    testset: str
    """Name of the test set where a config has several; empty otherwise."""
    path: str
    facts: tuple[BaselineFact, ...]
    """Changed settings."""
    measures: tuple[MeasureChange, ...]
    """`current` is of the run, `baseline` of the existing file; no difference if the two are not comparable."""
    worse: tuple[QueryChange, ...] = ()
    """On the primary measure, the worst first."""
    better: tuple[QueryChange, ...] = ()
    primary: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_update(self) -> bool:
        """Whether a new value is next to each setting, or instead of it."""
        return any(fact.after for fact in self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineChanges(Record):
    """What accepting a run changes in the baseline of each test set, or what these are."""

    kind: Literal["baseline"] = "baseline"
    baselines: tuple[BaselineChange, ...]
