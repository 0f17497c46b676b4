"""The review of a run by people: what they are shown of it, and what their decisions come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cranfield.agents.record_folder import PLAN
from cranfield.base.errors import UsageError
from cranfield.base.words import command_word, count_noun, join_first
from cranfield.formats.io.files import shown, write_text
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.index import RecordStatus, RunIndex
from cranfield.golden.plan import load_plan
from cranfield.golden.records import HumanReview
from cranfield.golden.review import (
    ONE_PERSON,
    PROFILES,
    SPOT_CHECK,
    Reviewable,
    ReviewReport,
    ReviewTally,
    Sample,
    assess,
    draw_sample,
)
from cranfield.golden.states import STATES, State

FEEDBACK = "review_feedback.jsonl"
"""A line a failure; written anew each time."""
SENT_BACK = "sent_back_before"


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A record for people, as the steps left it."""

    status: RecordStatus
    reviewable: Reviewable
    messages: tuple[str, ...]
    """Why a person must see it, in sentences."""
    may_keep: bool


def waiting_records(index: RunIndex) -> list[ReviewCase]:
    """The records of a run that people may be shown: those with an answer that passed, or that a step left to a person.

    Raises:
        UsageError: the run is not finished.
    """
    statuses = index.statuses()
    unfinished = [each.query_id for each in statuses if not STATES[each.state].is_end]
    if unfinished:
        wait = "waits" if len(unfinished) == 1 else "wait"
        raise UsageError(
            f"the run is not finished: {count_noun(len(unfinished), 'records')} {wait} for a step: {join_first(unfinished)}",
            path=shown(index.folder.path),
            hint=f"finish it: `cranfield golden run --resume {command_word(index.folder.path)} --repo DIR`",
        )
    found = []
    for status in statuses:
        info = STATES[status.state]
        has_answer = index.answers.get(status.query_id, status.attempt) is not None
        if has_answer and (info.with_person or status.state in {State.PASSED, State.KEPT}):
            found.append(_waiting(index, status, may_keep=info.fills_cell))
    return found


def _waiting(index: RunIndex, status: RecordStatus, *, may_keep: bool) -> ReviewCase:
    candidate = index.candidates[status.query_id]
    kinds = [each.kind for each in status.reasons]
    messages = [each.message for each in status.reasons]
    if STATES[status.state].with_person and not kinds:
        kinds, messages = [status.state.value], [STATES[status.state].sentence]
    agreement = index.agreements.get(status.query_id, status.attempt)
    if agreement is not None and agreement.spot_check:
        kinds.append(SPOT_CHECK)
        messages.append("sample of the narratives compared by the judge, for a check by people")
    if status.attempt > 1:
        kinds.append(SENT_BACK)
        messages.append("it was already sent back to the oracle")
    reviewable = Reviewable(status.query_id, candidate.task_type, candidate.difficulty, tuple(dict.fromkeys(kinds)))
    return ReviewCase(status, reviewable, tuple(messages), may_keep)


def planned_profile(run: Path) -> str:
    """The profile of the review that the plan of a run declares; that of a run without a plan is `bootstrap`."""
    path = run / PLAN
    return load_plan(path).profile if path.is_file() else "bootstrap"


def next_sample(samples: Sequence[Sample], waiting: Sequence[ReviewCase], profile: str, seed: int) -> Sample:
    """The sample of a batch; once there is one, what must be seen besides: records that came back, or are new.

    Raises:
        UsageError: another profile than that of the sample that was drawn. Only one person may go on with what was drawn for
            two, since shares and ceilings are the same.
    """
    attempts = {each.reviewable.query_id: each.status.attempt for each in waiting}
    if not samples:
        drawn = draw_sample([each.reviewable for each in waiting], PROFILES[profile], seed)
        return drawn.model_copy(update={"attempts": {name: attempts[name] for name in drawn.to_review}})
    before = merged(samples)
    if profile not in {before.profile, f"{before.profile}-{ONE_PERSON}"}:
        raise UsageError(
            "the sample of this run was drawn for a different profile", expected=before.profile, got=profile
        )
    more = [
        each.reviewable
        for each in waiting
        if each.reviewable.must_see and before.attempts.get(each.reviewable.query_id) != each.status.attempt
    ]
    return before.model_copy(
        update={
            "profile": profile,
            "sampled": (),
            "must_see": {each.query_id: each.must_see for each in more},
            "cells": {each.query_id: each.cell for each in more},
            "attempts": {each.query_id: attempts[each.query_id] for each in more},
        }
    )


def merged(samples: Sequence[Sample]) -> Sample:
    """The sample that was drawn first, with everything that must be seen besides."""
    first = samples[0]
    must_see = {name: reasons for each in samples for name, reasons in each.must_see.items()}
    return first.model_copy(
        update={
            "profile": samples[-1].profile,
            "must_see": {name: reasons for name, reasons in must_see.items() if name not in first.sampled},
            "cells": {name: cell for each in samples for name, cell in each.cells.items()},
            "attempts": {name: number for each in samples for name, number in each.attempts.items()},
        }
    )


def read_sample(folder: RunFolder) -> Sample | None:
    """What people see of a run; None where no sample was drawn."""
    samples = folder.read(Step.REVIEW_SAMPLES, Sample)
    return merged(samples) if samples else None


def drawn_sample(folder: RunFolder) -> Sample:
    """Everything that people see of a run.

    Raises:
        UsageError: no record of it was given to people.
    """
    sample = read_sample(folder)
    if sample is None:
        hint = f"create a review book: `cranfield golden review {command_word(folder.path)} --repo DIR`"
        raise UsageError("no record of this run was given to reviewers", path=shown(folder.path), hint=hint)
    return sample


def review_of(folder: RunFolder, earlier: Iterable[Path] = ()) -> ReviewReport:
    """What the reviews of a run come to.

    Args:
        folder: of the run.
        earlier: folders of runs before it, for the cumulative rate.

    Raises:
        UsageError: no sample was drawn of this run, or of an earlier one.
    """
    sample = drawn_sample(folder)
    reviews = folder.read(Step.HUMAN_REVIEWS, HumanReview)
    before: list[ReviewTally] = [review_of(RunFolder.open(path)).tally for path in earlier]
    return assess(reviews, sample, PROFILES[sample.profile], before, folder.path.resolve().name)


def write_feedback(folder: RunFolder, report: ReviewReport) -> list[Path]:
    """Write what people found wrong beside the reviews, for the next run; the file, where there is anything."""
    path = folder.path / FEEDBACK
    if not report.feedback:
        return []
    write_text(path, (each.model_dump_json() + "\n" for each in report.feedback))
    return [path]
