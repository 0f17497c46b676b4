"""What metrics are of: the last evaluations of a system on a test set, from the database or from a file of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cranfield.evaluation.options.blocks import Consequence
from cranfield.gate.result import STATES
from cranfield.model import Outcome

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
    n_queries: int
    measures: Mapping[str, Json]
    """Spelling to `mean`, `n`, `ci_low`, `ci_high`."""
    strata: Mapping[str, Mapping[str, Mapping[str, Json]]] = field(default_factory=dict)
    """Key of strata to value to spelling to the same."""
    failures: Mapping[str, int] = field(default_factory=dict)
    judged: Json = field(default_factory=dict)
    """`mean` and `k`."""
    latency_ms: Json | None = None
    """`p50`, `p95`, `p99`, `n`, `sum`, `buckets`: upper bounds (null: none) with the counts up to them."""
    gate: Mapping[str, bool | None] | None = None
    """Rule to whether it holds; None: not decided."""
    void: tuple[str, ...] = ()
    version: str = ""
    """Version of the test set."""
    digest: str = ""
    convention: str = ""
    depth: int | None = None
    """Results requested for each query."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Spelling to the time of the evaluation that computed it, of those that this one did not."""

    def n_values(self) -> int:
        """Number of means, over all queries and in strata."""
        return len(self.measures) + sum(len(each) for values in self.strata.values() for each in values.values())


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
    left_out: int = 0
    """Subjects that are too many."""


def with_earlier(last: Measured, earlier: Measured) -> Measured:
    """An evaluation with the measures that only an earlier one computed."""
    more = {spelling: numbers for spelling, numbers in earlier.measures.items() if spelling not in last.measures}
    if not more:
        return last
    strata = {key: dict(values) for key, values in last.strata.items()}
    for key, values in earlier.strata.items():
        for value, measures in values.items():
            kept = {spelling: numbers for spelling, numbers in measures.items() if spelling in more}
            strata.setdefault(key, {})[value] = {**kept, **strata.get(key, {}).get(value, {})}
    times = {spelling: earlier.at for spelling in more if earlier.at is not None}
    return replace(last, measures={**last.measures, **more}, strata=strata, times={**times, **last.times})


def from_results(payload: Json, at: float | None) -> list[Observation]:
    """The evaluations of a `results.json`, or of the `gate.json` of a gate, with the state of its rules.

    Args:
        payload: the file.
        at: when it was made, in seconds since 1970.
    """
    if payload.get("kind") != "gate":
        systems = ((payload, system, tuple(_void(payload, str(system["name"])))) for system in payload["systems"])
        return [_observation(*each, at=at) for each in systems]
    found = []
    for gate in payload["gates"]:
        rules = {rule["as_written"]: STATES[rule["status"]] for rule in gate["rules"]}
        void = (f"invalid: {gate['explanation']}",) if gate["status"] == "invalid" else ()
        found.append(_observation(gate, gate["evaluation"], void, at=at, gate=rules, name=gate["name"]))
    return found


def _observation(made: Json, system: Json, void: tuple[str, ...], *, name: str = "", **other: Any) -> Observation:
    """One system of a file; `made` has the test set and the convention."""
    testset, judged = made["testset"], system.get("judged") or {}
    entries = system.get("by_stratum", ())
    found: dict[str, dict[str, Json]] = {}
    for entry in entries:
        found.setdefault(entry["key"], {})[entry["value"]] = entry["measures"]
    spelling = judged.get("measure")
    from cranfield.measures import parse

    depth = None if spelling is None else parse(spelling).depth
    measured = Measured(
        n_queries=int(system["n_queries"]),
        measures=system["measures"],
        strata=found,
        failures={kind: n for kind, n in system["outcomes"].items() if kind in FAILURES},
        judged={"mean": judged.get("mean"), "k": depth},
        void=void,
        version=str(testset.get("version") or ""),
        digest=str(testset.get("digest") or ""),
        convention=str(made.get("convention") or ""),
        **other,
    )
    return Observation(
        MeasuredSubject(str(name or testset["name"]), str(system["name"])), measured, None if void else measured
    )


def _void(payload: Json, system: str) -> Iterable[str]:
    """Sentences of the findings that make the scores of a system void; one that names no system is about all."""
    for finding in payload.get("evidence", ()):
        if finding["consequence"] == Consequence.VOID and finding.get("system") in {None, "", system}:
            yield str(finding["sentence"])
