"""States of the records of a run, in one table. Every draft that was asked of an author ends in exactly one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a record stands."""

    AUTHORED = "authored"
    ANSWERED = "answered"
    REPORTED = "reported"
    NOT_AUTHORED = "not_authored"
    SCREENED_OUT = "screened_out"
    RESERVE = "reserve"
    NO_ANSWER = "no_answer"
    GATE_FAILED = "gate_failed"
    NO_REPORT = "no_report"
    NO_RATING = "no_rating"
    BLOCKED = "blocked"
    QUEUED = "queued"
    PASSED = "passed"
    KEPT = "kept"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class StateInfo:
    """What a state means."""

    sentence: str
    is_end: bool = True
    """False: the next `golden run --resume` continues it."""
    fills_cell: bool = False
    """It is a record of the set, or a person may make it one: no reserve takes its place."""
    with_person: bool = False
    """A person decides what follows."""


STATES: Mapping[State, StateInfo] = {
    State.AUTHORED: StateInfo("waits for the oracle", is_end=False, fills_cell=True),
    State.ANSWERED: StateInfo("waits for the gate and the adversary", is_end=False, fills_cell=True),
    State.REPORTED: StateInfo("waits for the judge", is_end=False, fills_cell=True),
    State.NOT_AUTHORED: StateInfo("the author gave no candidate"),
    State.SCREENED_OUT: StateInfo("the candidate was rejected by a rule"),
    State.RESERVE: StateInfo("not needed: its cell, or a quota, is full"),
    State.NO_ANSWER: StateInfo("the oracle gave no answer", with_person=True),
    State.GATE_FAILED: StateInfo("the answer failed the mechanical gate", with_person=True),
    State.NO_REPORT: StateInfo("the adversary gave no report", with_person=True),
    State.NO_RATING: StateInfo("the judge gave no rating", with_person=True),
    State.BLOCKED: StateInfo("a claim is not supported, or has no verdict", with_person=True),
    State.QUEUED: StateInfo("a person decides", fills_cell=True, with_person=True),
    State.PASSED: StateInfo("passed every step that ran", fills_cell=True),
    State.KEPT: StateInfo("a person kept it", fills_cell=True),
    State.DROPPED: StateInfo("a person dropped it"),
}
"""In the order of the steps, then of people."""
REJECTIONS = frozenset(
    {
        State.NOT_AUTHORED,
        State.SCREENED_OUT,
        State.RESERVE,
        State.NO_ANSWER,
        State.NO_REPORT,
        State.NO_RATING,
        State.DROPPED,
    }
)
"""States that a line of `05_rejected.jsonl` gives a record."""
PLANNED = "plan"
"""Source of a run whose candidates its plan asks for; others have those of an existing set."""
ENTERS_AT = "enters_at"
"""Key of the manifest of a run of an existing set: an `EntryStep`."""


class EntryStep(StrEnum):
    """Where the records of an existing set go on from."""

    GATE = "gate"
    ADVERSARY = "adversary"
    """The gate does not run."""
    PEOPLE = "people"
    """Neither do the adversary and the judge: the sample of the review is drawn from the records."""


SKIPPED: Mapping[EntryStep, str] = {
    EntryStep.GATE: "author, oracle",
    EntryStep.ADVERSARY: "author, oracle, gate",
    EntryStep.PEOPLE: "author, oracle, gate, adversary, judge",
}
"""Steps that did not run on the records of an existing set, but on those that people sent back."""
