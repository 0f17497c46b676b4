"""What metrics are of: the last evaluations of a system on a test set, from the database or from a file of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cranfield.evaluation.options.blocks import Consequence
from cranfield.evaluation.result import SystemResult
from cranfield.gate.result import STATES
from cranfield.measures import Measure
from cranfield.measures.measure import KEEP_UNKNOWN
from cranfield.model import Outcome
from cranfield.model.results import TestSetRecord, from_jsonable
from cranfield.workbench.service.values import EvaluationFacts

Json = Mapping[str, Any]
FAILURES = tuple(each.value for each in Outcome if each.is_failure or each is Outcome.MISSING)
"""Kinds of failure, in order; each has a series, also where it is 0."""


@dataclass(frozen=True, slots=True, order=True)
class MeasuredSubject:
    """What is measured."""

    testset: str
    system: str
    variant: str = ""
    components: str = ""

    @property
    def is_whole(self) -> bool:
        """The system as the config has it."""
        return not (self.variant or self.components)


@dataclass(frozen=True)
class Measured:
    """An evaluation, as far as metrics show it."""

    at: float | None
    """Seconds since 1970; None where it is not known."""
    testset: TestSetRecord
    convention: str
    scores: SystemResult
    """Without its queries; with the measures of earlier evaluations that this one did not compute."""
    facts: EvaluationFacts
    void: tuple[str, ...] = ()
    times: Mapping[Measure, float] = field(default_factory=dict)
    """Time of the evaluation that computed a measure, of those that this one did not."""

    def n_values(self) -> int:
        """Number of means, over all queries and in strata."""
        return len(self.scores.measures) + sum(len(each.measures) for each in self.scores.by_stratum)


@dataclass(frozen=True)
class Observation:
    """The last evaluation of a subject, and the last one whose figures count.

    A void evaluation changes no measure: it would fake one, or resolve an alert. The figures before it stay, their age grows,
    and `evaluation_void` is 1.
    """

    subject: MeasuredSubject
    last: Measured
    valid: Measured | None
    """None: there was none yet."""


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule of the operator's file, and its last run that has ended."""

    name: str
    next: float | None
    """Seconds since 1970, as `ended`."""
    ended: float | None = None
    result: str | None = None
    """None: there was no run, or its comparison has not ended."""
    n_failed: int = 0
    """Runs that failed since the last that did not."""


@dataclass(frozen=True)
class MetricsSnapshot:
    """Everything that a scrape writes."""

    observations: Sequence[Observation]
    version: str
    now: float | None = None
    """Seconds since 1970; None in a file, where an age would stand still."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """State to number."""
    overdue_days: Mapping[str, int] = field(default_factory=dict)
    """Test set with a date of refresh to the days that it is overdue."""
    schedules: Sequence[ScheduleState] = ()
    spans: Mapping[str, int] = field(default_factory=dict)
    """What became of spans of applications to their number, since the server was started."""
    pooled: Mapping[str, int] = field(default_factory=dict)
    """The same of their documents."""
    left_out: int = 0
    """Subjects that are too many."""


def with_earlier(last: Measured, earlier: Measured) -> Measured:
    """An evaluation with the measures that only an earlier one computed."""
    more = {measure: found for measure, found in earlier.scores.measures.items() if measure not in last.scores.measures}
    if not more:
        return last
    strata = {(each.key, each.value): each for each in last.scores.by_stratum}
    for each in earlier.scores.by_stratum:
        kept = {measure: found for measure, found in each.measures.items() if measure in more}
        known = strata.get((each.key, each.value), each)
        own = {} if known is each else known.measures
        strata[each.key, each.value] = replace(known, measures={**kept, **own})
    measures = {**last.scores.measures, **more}
    times = {measure: earlier.at for measure in more if earlier.at is not None}
    scores = replace(last.scores, measures=measures, by_stratum=tuple(strata.values()))
    return replace(last, scores=scores, times={**times, **last.times})


def from_results(payload: Json, at: float | None) -> list[Observation]:
    """The evaluations of a `results.json`, or of the `gate.json` of a gate, with the state of its rules.

    Args:
        payload: the file.
        at: when it was made, in seconds since 1970.
    """
    if payload.get("kind") != "gate":
        systems = ((payload, system, tuple(_void(payload, str(system["name"])))) for system in payload["systems"])
        return [_observation(*each, at) for each in systems]
    found = []
    for gate in payload["gates"]:
        rules = {rule["as_written"]: STATES[rule["status"]] for rule in gate["rules"]}
        void = (f"invalid: {gate['explanation']}",) if gate["status"] == "invalid" else ()
        found.append(_observation(gate, gate["evaluation"], void, at, gate=rules, name=gate["name"]))
    return found


def _observation(
    made: Json,
    system: Json,
    void: tuple[str, ...],
    at: float | None,
    *,
    name: str = "",
    gate: Mapping[str, bool | None] | None = None,
) -> Observation:
    """One system of a file; `made` has the test set and the convention."""
    scores = from_jsonable(SystemResult, system, KEEP_UNKNOWN)
    testset = from_jsonable(TestSetRecord, made["testset"])
    failures = {kind: n for kind, n in scores.outcomes.items() if kind in FAILURES}
    measured = Measured(
        at, testset, str(made.get("convention") or ""), scores, EvaluationFacts(failures=failures, gate=gate), void
    )
    return Observation(MeasuredSubject(name or testset.name, scores.name), measured, None if void else measured)


def _void(payload: Json, system: str) -> Iterable[str]:
    """Sentences of the findings that make the scores of a system void; one that names no system is about all."""
    for finding in payload.get("evidence", ()):
        if finding["consequence"] == Consequence.VOID and finding.get("system") in {None, "", system}:
            yield str(finding["sentence"])
