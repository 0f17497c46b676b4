"""All records of a run by id, and the state of each: what `golden status` prints, and what a resumed run goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from cranfield.base.errors import InputError, Problem
from cranfield.formats.io.files import shown
from cranfield.golden.agreement import LabelOutcome
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.outcomes import AgreementRecord, GateFailure, QueueEntry, RecordFinding, Rejection, is_unreadable
from cranfield.golden.records import AdversaryReport, HumanReview, OracleAnswer, QueryCandidate
from cranfield.golden.states import ENTERS_AT, STATES, EntryStep, State
from cranfield.model.judging import Disposition


class _Attempted(Protocol):
    @property
    def query_id(self) -> str: ...

    @property
    def attempt(self) -> int: ...


Record = TypeVar("Record", bound=_Attempted)


class Attempts(Generic[Record]):
    """Records of a step by id and attempt. Of two lines about the same attempt, the first holds."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records: dict[tuple[str, int], Record] = {}
        for each in records:
            self.add(each)

    def add(self, record: Record) -> None:
        """Add a record."""
        self._records.setdefault((record.query_id, record.attempt), record)

    def remove(self, query_id: str, attempt: int) -> None:
        """Take a record away."""
        del self._records[query_id, attempt]

    def get(self, query_id: str, attempt: int) -> Record | None:
        """The record of an attempt."""
        return self._records.get((query_id, attempt))

    def __getitem__(self, key: tuple[str, int]) -> Record:
        """The record of an attempt that has one, by its state."""
        return self._records[key]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Where a record stands, and why."""

    query_id: str
    task_type: str
    difficulty: str
    state: State
    attempt: int
    reasons: tuple[RecordFinding, ...] = ()
    agreement: AgreementRecord | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether it ended because no reply of a role could be read."""
        return is_unreadable(self.reasons)

    @property
    def reason(self) -> str:
        """The kinds of the reasons, each once."""
        return ", ".join(dict.fromkeys(each.kind for each in self.reasons))


class RunIndex:
    """The records of a run folder."""

    def __init__(self, folder: RunFolder) -> None:
        """Read them.

        Raises:
            InputError: with every line that is damaged, or two end states of one record.
        """
        self.folder = folder
        self.candidates = {each.query_id: each for each in folder.read(Step.CANDIDATES, QueryCandidate)}
        self.answers = Attempts(folder.read(Step.ANSWERS, OracleAnswer))
        self.reports = Attempts(folder.read(Step.REPORTS, AdversaryReport))
        self.agreements = Attempts(folder.read(Step.AGREEMENTS, AgreementRecord))
        self.gate_failures = Attempts(folder.read(Step.GATE_FAILURES, GateFailure))
        self.queue = Attempts(folder.read(Step.REVIEW_QUEUE, QueueEntry))
        lines = folder.read(Step.REJECTED, Rejection)
        last = {(each.query_id, each.attempt): each for each in lines}
        rejections = [each for each in lines if not self._is_superseded(each, last)]
        self.rejections = Attempts([each for each in rejections if each.state is not State.DROPPED])
        self.dropped = {(each.query_id, each.attempt): each for each in rejections if each.state is State.DROPPED}
        self.reviews: dict[str, list[HumanReview]] = {}
        for review in folder.read(Step.HUMAN_REVIEWS, HumanReview):
            self.reviews.setdefault(review.query_id, []).append(review)
        self._check()

    def add(self, step: Step, record: BaseModel) -> None:
        """Append a record to its file, and to this index."""
        self.folder.append(step, record)
        if isinstance(record, QueryCandidate):
            self.candidates[record.query_id] = record
        elif isinstance(record, OracleAnswer):
            self.answers.add(record)
        elif isinstance(record, AdversaryReport):
            self.reports.add(record)
        elif isinstance(record, AgreementRecord):
            self.agreements.add(record)
        elif isinstance(record, GateFailure):
            self.gate_failures.add(record)
        elif isinstance(record, QueueEntry):
            self.queue.add(record)
        elif isinstance(record, Rejection):
            self.rejections.add(record)

    def reopen(self, query_id: str) -> None:
        """Ask again for what could not be read: the record goes on from the step before."""
        self.rejections.remove(query_id, self.attempt(query_id))

    def attempt(self, query_id: str) -> int:
        """1, and one more for each time that a person sent the record back."""
        reviews = self.reviews.get(query_id, ())
        return 1 + sum(each.disposition is Disposition.SEND_BACK for each in reviews)

    def hint(self, query_id: str) -> str:
        """What the person wrote who sent the record back last; empty on the first attempt."""
        sent = [each for each in self.reviews.get(query_id, ()) if each.disposition is Disposition.SEND_BACK]
        return sent[-1].hint if sent else ""

    def status(self, query_id: str) -> RecordStatus:
        """Status of a candidate, or of a draft that did not become one."""
        attempt = self.attempt(query_id)
        state, reasons = self._by_people(query_id, attempt)
        rejection = self.rejections.get(query_id, attempt)
        about = self.candidates.get(query_id) or rejection
        task_type, difficulty = (about.task_type, about.difficulty) if about is not None else (None, None)
        agreement = self.agreements.get(query_id, attempt)
        return RecordStatus(query_id, task_type or "", difficulty or "", state, attempt, tuple(reasons), agreement)

    def statuses(self) -> list[RecordStatus]:
        """Status of every draft by its id, those that did not become a candidate included."""
        return [
            self.status(query_id)
            for query_id in sorted({*self.candidates, *(each.query_id for each in self.rejections)})
        ]

    def _by_people(self, query_id: str, attempt: int) -> tuple[State, Sequence[RecordFinding]]:
        """What a person decided of this attempt, or what the steps did."""
        state, reasons = self._by_steps(query_id, attempt)
        reviews = self.reviews.get(query_id, ())
        last = reviews[-1] if reviews else None
        if (dropped := self.dropped.get((query_id, attempt))) is not None:
            return State.DROPPED, dropped.reasons
        if last is not None and last.disposition is Disposition.DROP:
            return State.DROPPED, [RecordFinding(kind=last.failure_mode or last.verdict, message=last.reason)]
        if (
            last is not None
            and last.disposition is Disposition.KEEP
            and STATES[state].fills_cell
            and STATES[state].is_end
        ):
            return State.KEPT, reasons
        return state, reasons

    def _by_steps(self, query_id: str, attempt: int) -> tuple[State, Sequence[RecordFinding]]:
        has_answer = self.answers.get(query_id, attempt) is not None
        rejection = self.rejections.get(query_id, attempt)
        if rejection is not None and not (rejection.state is State.RESERVE and has_answer):
            return rejection.state, rejection.reasons
        if (failure := self.gate_failures.get(query_id, attempt)) is not None:
            return State.GATE_FAILED, failure.failures
        if (agreement := self.agreements.get(query_id, attempt)) is not None:
            return _OF_OUTCOME[agreement.outcome], agreement.reasons
        if self.reports.get(query_id, attempt) is not None:
            return State.REPORTED, ()
        if attempt == 1 and has_answer and self.folder.manifest.more.get(ENTERS_AT) == EntryStep.PEOPLE:
            return State.PASSED, ()
        return (State.ANSWERED if has_answer else State.AUTHORED), ()

    def _is_superseded(self, rejection: Rejection, last: Mapping[tuple[str, int], Rejection]) -> bool:
        """Whether a later call asked again for what could not be read, with whatever end."""
        key = rejection.query_id, rejection.attempt
        if not is_unreadable(rejection.reasons):
            return False
        if last[key] is not rejection:
            return True
        came: Mapping[State, bool] = {
            State.NOT_AUTHORED: rejection.query_id in self.candidates,
            State.NO_ANSWER: self.answers.get(*key) is not None,
            State.NO_REPORT: self.reports.get(*key) is not None,
            State.NO_RATING: self.agreements.get(*key) is not None,
        }
        return came.get(rejection.state, False)

    def _check(self) -> None:
        """Raise where a record has two end states."""
        ends: dict[tuple[str, int], list[str]] = {}
        for step, found in (
            (Step.REJECTED, self.rejections),
            (Step.GATE_FAILURES, self.gate_failures),
            (Step.AGREEMENTS, self.agreements),
        ):
            for each in found:
                if not (isinstance(each, Rejection) and each.state is State.RESERVE):  # a reserve may be needed later
                    ends.setdefault((each.query_id, each.attempt), []).append(step)
        twice = {key: steps for key, steps in ends.items() if len(steps) > 1}
        if twice:
            raise InputError(
                [
                    Problem(f"{query_id} has an end in {' and in '.join(steps)}", path=shown(self.folder.path))
                    for (query_id, _), steps in twice.items()
                ]
            )


_OF_OUTCOME = {
    LabelOutcome.PASSED: State.PASSED,
    LabelOutcome.QUEUED: State.QUEUED,
    LabelOutcome.BLOCKED: State.BLOCKED,
}
