"""The pipeline: author, screen, oracle, gate, adversary, agree. A run that was interrupted goes on from its folder.

Candidates are screened in rounds: where records fail, reserves take their places in the next round. A round begins when no
record of the one before is under way, so that the set does not depend on the order in which models answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from cranfield.base.concurrency.loop import run_all
from cranfield.golden.index import RecordStatus
from cranfield.golden.records import QueryCandidate
from cranfield.golden.states import ENTERS_AT, PLANNED, STATES, EntryStep, State
from cranfield.golden.steps.answer import answer, check_answer
from cranfield.golden.steps.author import author_all, reopen, reserve_rest, screen
from cranfield.golden.steps.context import StepContext, Waiting, WaitingError
from cranfield.golden.steps.review import conclude, queue, review


class Until(StrEnum):
    """The last step of a call."""

    AUTHOR = "author"
    SCREEN = "screen"
    ORACLE = "oracle"
    GATE = "gate"
    ADVERSARY = "adversary"
    AGREE = "agree"

    def reaches(self, other: Until) -> bool:
        """Whether `other` is this step or one before it."""
        steps = list(Until)
        return steps.index(other) <= steps.index(self)


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Where every record stands after a call."""

    statuses: tuple[RecordStatus, ...]
    waiting: tuple[Waiting, ...]
    """Records that have no answer for now; the run can be resumed."""

    @property
    def counts(self) -> Counter[State]:
        """Records by state."""
        return Counter(each.state for each in self.statuses)

    @property
    def is_complete(self) -> bool:
        """Whether every record has an end."""
        return all(STATES[each.state].is_end for each in self.statuses)


async def run_pipeline(context: StepContext, until: Until = Until.AGREE) -> PipelineResult:
    """Take every record as far as it goes, up to a step."""
    for record in context.index.agreements:  # a process may be killed between two files
        queue(context, record)
    reopen(context)
    if context.index.folder.manifest.source == PLANNED:
        await _planned(context, until)
    else:
        await _advance_all(context, list(context.index.candidates), until)
    return PipelineResult(tuple(context.index.statuses()), tuple(context.waiting))


async def _planned(context: StepContext, until: Until) -> None:
    await author_all(context)
    if context.waiting or not until.reaches(Until.SCREEN):
        return
    judged: set[str] = set()
    accepted: list[QueryCandidate] = []
    while chosen := screen(context, accepted, judged):
        await _advance_all(context, [each.query_id for each in chosen], until)
        if context.waiting:
            return
        accepted = [
            each for each in (*accepted, *chosen) if STATES[context.index.status(each.query_id).state].fills_cell
        ]
    if until is Until.AGREE:
        reserve_rest(context, judged)


async def _advance_all(context: StepContext, query_ids: list[str], until: Until) -> None:
    await run_all(_advance(context, query_id, until) for query_id in query_ids)


async def _advance(context: StepContext, query_id: str, until: Until) -> None:
    """Take a record from step to step, up to its end or the last step of the call."""
    try:
        while await _step(context, query_id, until):
            pass
    except WaitingError as error:
        context.waiting.append(error.waiting)


async def _step(context: StepContext, query_id: str, until: Until) -> bool:
    """Take the next step; False where there is none."""
    state = context.index.status(query_id).state
    if state is State.AUTHORED and until.reaches(Until.ORACLE):
        await answer(context, query_id)
    elif state is State.ANSWERED and until.reaches(Until.GATE):
        await context.parse()
        is_checked = _enters_after_gate(context, query_id) or check_answer(context, query_id)
        if not is_checked or not until.reaches(Until.ADVERSARY):
            return False
        await review(context, query_id)
    elif state is State.REPORTED and until.reaches(Until.AGREE):
        await conclude(context, query_id)
    else:
        return False
    return True


def _enters_after_gate(context: StepContext, query_id: str) -> bool:
    """Whether the answer is one of an existing set that is known to pass the gate; a new answer of an oracle is not."""
    entry = context.index.folder.manifest.more.get(ENTERS_AT)
    return entry == EntryStep.ADVERSARY and context.index.attempt(query_id) == 1
