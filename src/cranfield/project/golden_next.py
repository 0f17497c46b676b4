"""The next step on the way to a golden set, as a command to type: of each command that ends a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cranfield.agents.record_folder import PLAN
from cranfield.golden.batch_review import FEEDBACK, read_sample, review_of
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.index import RecordStatus
from cranfield.golden.review import HOURS, ONE_PERSON, ReviewOutcome, ReviewProfile, ReviewReport
from cranfield.golden.states import PLANNED, STATES
from cranfield.project.golden_review import Collected
from cranfield.project.golden_second_look import SecondLook
from cranfield.words import command_word, n_of

UNKNOWN = "DIR"
"""For a folder of the repository that the command was not given."""


def after_run(run: Path, statuses: Sequence[RecordStatus], repo: Path | str = UNKNOWN) -> str:
    """Of a run: go on with it, or let people review it; which ends that replies are asked for again."""
    review = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}`"
    resume = f"`cranfield golden run --resume {command_word(run)} --repo {command_word(repo)}`"
    if not all(STATES[each.state].is_end for each in statuses):
        return resume
    n_unreadable = sum(each.is_unreadable for each in statuses)
    if not any(STATES[each.state].fills_cell or STATES[each.state].with_person for each in statuses):
        review = f"no record can be reviewed: `cranfield golden status {command_word(run)}` shows why"
    if not n_unreadable or (run / Step.REVIEW_SAMPLES).is_file():
        return review
    records = f"{n_of(n_unreadable, 'records')} without a readable reply, where their cells have room"
    return f"{resume} asks again for {records}; or {review}, after which nothing is asked again"


def after_status(folder: RunFolder, statuses: Sequence[RecordStatus]) -> str:
    """Of a run as it stands: as `after_run`; once there is a sample, what the review says; once it is passed, the set."""
    if read_sample(folder) is None or not all(STATES[each.state].is_end for each in statuses):
        return after_run(folder.path, statuses)
    if review_of(folder).outcome is ReviewOutcome.PASSED:
        return f"`cranfield golden assemble {command_word(folder.path)} --repo {UNKNOWN}`"
    return f"`cranfield golden reviewed {command_word(folder.path)}`"


def after_breach(run: Path, source: str, repo: Path | str = UNKNOWN) -> str:
    """Of a batch with too many defects: the whole of it is made again."""
    if source == PLANNED:
        given = f" --feedback {command_word(run / FEEDBACK)}" if (run / FEEDBACK).is_file() else ""
        return f"`cranfield golden run {command_word(run / PLAN)} --repo {command_word(repo)}{given}` makes the batch again"
    return f"correct the set, then `cranfield golden enter SET --repo {command_word(repo)}` lets it enter again"


def after_review(run: Path, found: Collected, report: ReviewReport, source: str, db: str = "") -> tuple[str, ...]:
    """Of a review: what is to be done, in that order.

    Args:
        run: folder of the run.
        found: what came back from the books.
        report: what it comes to.
        source: of the records: `plan`, or the name of an existing set.
        db: option of the commands over books, with a space before it; empty: they are in the default database.
    """
    steps = []
    if found.sent_back:
        n = n_of(len(found.sent_back), "records")
        steps.append(
            f"`cranfield golden run --resume {command_word(run)} --repo {UNKNOWN}`: {n} sent back to the oracle"
        )
        steps.append(f"then `cranfield golden review {command_word(run)} --repo {UNKNOWN}{db}` adds them to the book")
    if report.outcome is ReviewOutcome.BREACHED:
        return (*steps, after_breach(run, source))
    if found.undecided:
        steps += _to_judge(found.book, len(found.undecided), "a reviewer", db)
        steps += people_steps(run, report.rules, found.book, db=db)
    who = "the same person as a lead" if found.second else "a lead who did not review them"
    steps += _to_lead(found.book, len(found.differing), who, db)
    for name in found.skipped:
        again = f"`cranfield book reopen {command_word(found.book)} --query {command_word(name)}{db}`"
        steps.append(f"{again}: it could not be judged, and there is no other reviewer; then decide on it")
    if found.second is not None:
        steps += second_look_steps(run, found.second, found.unconfirmed, db=db)
    if not steps and report.outcome is ReviewOutcome.PASSED:
        steps.append(f"`cranfield golden assemble {command_word(run)} --repo {UNKNOWN}`")
    return tuple(steps)


def _to_judge(book: str, n: int, what: str, db: str) -> list[str]:
    """The page of a book, where so many records wait."""
    wait = "waits" if n == 1 else "wait"
    return [f"`cranfield judge {command_word(book)}{db}`: {n_of(n, 'records')} {wait} for {what}"] if n else []


def _to_lead(book: str, n: int, who: str, db: str) -> list[str]:
    """The page of a book on which a lead decides so many records."""
    return [f"`cranfield judge {command_word(book)}{db}`, page Adjudicate: {n_of(n, 'records')} for {who}"] if n else []


def second_look_steps(
    run: Path,
    second: SecondLook,
    unconfirmed: Mapping[str, str] = MappingProxyType({}),
    repo: Path | str = UNKNOWN,
    db: str = "",
) -> list[str]:
    """Of the second look of one person."""
    steps = _to_judge(second.book, len(second.opened), "the second look", db)
    steps += _to_lead(second.book, len(second.skipped), "the same person as a lead", db)
    again = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}{db}`"
    if second.due:
        steps.append(f"{again}: the second look at {n_of(len(second.due), 'records')} is due")
    if second.early:
        n = n_of(len(second.early), "records")
        steps.append(f"from {second.due_at} on, {again}: the second look at {n}, {HOURS} after the first")
    for name, why in unconfirmed.items():
        steps.append(f"`cranfield book reopen {command_word(second.book)} --query {command_word(name)}{db}`: {why}")
    return steps


def people_steps(run: Path, profile: ReviewProfile, book: str, repo: Path | str = UNKNOWN, db: str = "") -> list[str]:
    """Under which names two people review, and what one person alone does; nothing of a profile of one person."""
    if profile.people == 1:
        return []
    profile_name = f"{profile.name}-{ONE_PERSON}"
    alone = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)} --profile {profile_name}{db}`"
    return [
        (
            "two people review, each under a name, which is stated and not verified: "
            f"`cranfield judge {command_word(book)} --as NAME{db}` on this machine; "
            f"or by accounts, `cranfield people add NAME{db}` and `cranfield serve --accounts{db}`"
        ),
        f"one person alone: {alone}, and looks at each record again a day later",
    ]
