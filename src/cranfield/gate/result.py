"""What a gate says, as values. Nothing is computed here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cranfield.evaluation.values import Evaluation

Status = Literal["passed", "failed", "inconclusive"]
GateStatus = Literal["passed", "failed", "inconclusive", "invalid"]
"""`invalid`: a limit of the config is broken, so that no number counts: too many failures where no rule speaks of them, or too
few judged results."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule."""

    kind: str
    """Which rule of the table: `floor`, `drop` ..."""
    rule: str
    """The rule in words: `P@1 is 1 on every query with difficulty: easy`."""
    status: Status
    got: str
    """The number that decided, in exact decimals as it was compared: `0.4120`, `-5.0 %`."""
    expected: str
    """The bound it was held against: `at least 0.40`."""
    sentence: str
    """A line a person can paste: what happened, with n and interval where there is one."""
    queries: tuple[str, ...] = ()
    """Ids of the queries that broke the rule, or that lost most where it is about a mean."""


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """One measure now and in the baseline, over the queries that both have a value for."""

    measure: str
    current: float | None
    baseline: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class StratumChange:
    """The primary measure within one stratum, now and in the baseline."""

    key: str
    value: str
    n: int
    current: float | None
    baseline: float | None
    delta: float | None


@dataclass(frozen=True, slots=True)
class QueryChange:
    """The primary measure on one query, now and in the baseline."""

    query_id: str
    text: str
    current: float | None
    baseline: float | None
    outcome: str
    """What became of the call: `answered`, `timeout` ..."""


@dataclass(frozen=True, slots=True)
class BaselineFacts:
    """Where a baseline came from."""

    path: str
    ref: str
    """The git ref it was read from; empty where it was read from the working tree."""
    system: str
    commit: str
    accepted: str
    """ISO date."""


@dataclass(frozen=True)
class GateResult:
    """All rules of one system on one test set, and the evidence."""

    status: GateStatus
    explanation: str
    """Why it has this status: `2 of 7 rules broken`."""
    rules: tuple[RuleResult, ...]
    evaluation: Evaluation
    primary: str
    baseline: BaselineFacts | None = None
    """None where no rule needs one."""
    measures: tuple[MeasureChange, ...] = ()
    strata: tuple[StratumChange, ...] = ()
    worse: tuple[QueryChange, ...] = ()
    """Queries that got worse or broke a rule, the worst first."""
    notes: tuple[str, ...] = field(default=())
    """What else a reader must know: rules that differ from those of a ref, answers that were kept, queries without a value."""
    alpha: float = 0.05
    """Of the intervals of `measures`: they cover 1 - alpha."""
    test: str = "permutation"
    """Whose intervals they are."""

    @property
    def sentence(self) -> str:
        """The verdict in a line: `failed: 2 of 7 rules broken`."""
        return f"{self.status}: {self.explanation}"

    @property
    def is_passed(self) -> bool:
        """True when every rule was kept."""
        return self.status == "passed"


@dataclass(frozen=True)
class BaselineChange:
    """What accepting a baseline changes, shown before anything is written."""

    testset: str
    """Name of the test set where a config has several; empty otherwise."""
    path: str
    facts: tuple[tuple[str, str, str], ...]
    """What is set to something else: its name, what it was, what it will be. Empty text where there was none."""
    measures: tuple[MeasureChange, ...]
    """`current` is of the run, `baseline` of the file that is there; without a difference where the two do not fit."""
    worse: tuple[QueryChange, ...] = ()
    """On the primary measure, the worst first."""
    better: tuple[QueryChange, ...] = ()
    primary: str = ""
    notes: tuple[str, ...] = ()
