"""Rows of an existing set: checkers vote on each, independently of each other, and a majority decides.

A row is a place that a set says answers a query, with its grade. What a program can tell comes first: a row whose file or
lines do not exist is not put to the vote. A place, and a grade, has a majority where more than half of the votes that were
asked for agree on it exactly; nothing is averaged, and a vote that did not come counts for nothing. What has no majority
goes to a person.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from cranfield.agents.loop import Toolset, Transcript
from cranfield.agents.protocol import Usage
from cranfield.agents.recording import Kept
from cranfield.agents.retrying import run_kept
from cranfield.agents.settings import ModelSettings
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import RowCheck
from cranfield.golden.roles import RolePrompts, check_task
from cranfield.model import Entity, File, Span, Target, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.matching.place import ENTITY_MARK

Place = tuple[str, int, int]
Vote = TypeVar("Vote")


class RowState(StrEnum):
    """What the check of a row came to."""

    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    """The majority agrees on other lines, or another grade."""
    REMOVED = "removed"
    """The majority finds that it does not belong to the answer."""
    BROKEN = "broken"
    """Its file, lines or symbol do not exist, or its lines are of no expected entity; it was not put to the vote."""
    NO_MAJORITY = "no_majority"
    UNANSWERED = "unanswered"
    """Too few votes came for a majority."""
    OTHER_PLACE = "other_place"
    """The majority names other lines for an entity or a file, which only a person can rename."""
    LAST_ROW = "last_row"
    """The majority rejects the last row of its query."""


FOR_PEOPLE = frozenset(
    {RowState.BROKEN, RowState.NO_MAJORITY, RowState.UNANSWERED, RowState.OTHER_PLACE, RowState.LAST_ROW}
)
"""States on which a person decides."""
CHANGES = frozenset({RowState.CORRECTED, RowState.REMOVED})
"""States that change the set."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A place that a set says answers a query."""

    query_id: str
    query_text: str
    target: Span | Entity | File
    grades: tuple[float, ...] = ()
    """All that the set uses, in order."""
    entities: tuple[str, ...] = ()
    """Ids of all that the query expects."""

    @property
    def file(self) -> str:
        """Path of its file."""
        return self.target.id.partition(ENTITY_MARK)[0] if isinstance(self.target, Entity) else self.target.path

    @property
    def entity(self) -> str:
        """Id of its entity; empty where it is none."""
        return self.target.id if isinstance(self.target, Entity) else ""

    @property
    def lines(self) -> tuple[int, int] | None:
        """First and last line; None of a file, and of an entity without lines."""
        if isinstance(self.target, Span):
            return self.target.start, self.target.end
        return self.target.lines[0] if isinstance(self.target, Entity) and self.target.lines else None

    @property
    def grade(self) -> float:
        """As the set has it."""
        return self.target.grade

    @property
    def place(self) -> Place:
        """File and lines; 0 for lines that it does not have."""
        return self.file, *(self.lines or (0, 0))


@dataclass(frozen=True, slots=True)
class RowRecord:
    """A row, what it came to, and its votes, for the person who decides on it."""

    query: str
    text: str
    row: str
    grade: float
    state: RowState
    becomes: str
    """The corrected place and grade; empty where it is not corrected."""
    votes: str
    why: str
    """A person decides."""
    reasons: tuple[str, ...]
    """Reasons of the votes."""


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row, the votes on it, and what follows."""

    row: TargetRow
    state: RowState
    votes: tuple[RowCheck, ...] = ()
    problem: str = ""
    """Why a person decides."""
    target: Target | None = None
    """The corrected one."""

    @property
    def record(self) -> RowRecord:
        """As reports and files have it."""
        row, target = self.row, self.target if self.state is RowState.CORRECTED else None
        return RowRecord(
            row.query_id,
            row.query_text,
            row.target.label,
            row.grade,
            self.state,
            "" if target is None else f"{target.label}:{target.grade:g}",
            ", ".join(
                f"{vote.place.file}:{vote.place.start}-{vote.place.end} {vote.grade}" if vote.place else f"{vote.grade}"
                for vote in self.votes
            ),
            self.problem,
            tuple(vote.reason for vote in self.votes),
        )


def rows_of(testset: TestSet) -> list[TargetRow]:
    """Every span, entity and file that a query expects, in the order of the set."""
    grades = tuple(sorted({target.grade for targets in testset.targets.values() for target in targets}))
    return [
        TargetRow(query.id, query.text, target, grades, entities)
        for query in testset.queries
        for targets in [testset.targets.get(query.id, ())]
        for entities in [tuple(target.id for target in targets if isinstance(target, Entity))]
        for target in targets
        if isinstance(target, Span | Entity | File)
    ]


def queries_without_rows(testset: TestSet) -> tuple[str, ...]:
    """Ids of queries that expect something else, or nothing: they cannot be checked."""
    with_rows = {row.query_id for row in rows_of(testset)}
    return tuple(query_id for query_id in testset.query_ids if query_id not in with_rows)


def mechanical_problem(row: TargetRow, source: ParsedSource) -> str | None:
    """What of a row does not exist, or lies outside every entity that its query expects; None where nothing does."""
    if row.entity and (problem := source.entity_problem(row.entity)):
        return problem
    spans = row.target.spans if isinstance(row.target, Entity) else (row.target,)
    for span in spans:
        if not isinstance(span, Span):
            continue
        part = (span.path, span.start, span.end)
        if problem := source.range_problem(*part) or source.outside_problem(part, row.entities):
            return problem
    return None if row.file in source.files else f"{row.file}: no such file"


def decide(row: TargetRow, votes: Sequence[RowCheck], n_votes: int, source: ParsedSource) -> CheckedRow:
    """What the votes on a row come to.

    Args:
        row: as the set has it.
        votes: that came.
        n_votes: votes that were asked for.
        source: a proposed place that does not exist in it counts as no vote on the place.
    """
    given = tuple(votes)
    need = n_votes // 2 + 1
    if len(given) < need:
        return CheckedRow(row, RowState.UNANSWERED, given, f"{len(given)} of {n_votes} votes received, {need} required")
    place = _majority((_place(row, vote, source) for vote in given), need)
    grade = _majority((vote.grade for vote in given), need)
    if grade == 0:
        return CheckedRow(row, RowState.REMOVED, given)
    if place is None or grade is None:
        missing = [name for name, found in (("the lines", place), ("the grade", grade)) if found is None]
        return CheckedRow(row, RowState.NO_MAJORITY, given, f"no majority for {' and '.join(missing)}")
    if place != row.place and not isinstance(row.target, Span):
        why = f"the majority names {place[0]}:{place[1]}-{place[2]}"
        return CheckedRow(row, RowState.OTHER_PLACE, given, why)
    target = Span(*place, float(grade)) if isinstance(row.target, Span) else replace(row.target, grade=float(grade))
    is_same = (place, grade) == (row.place, row.grade)
    return CheckedRow(row, RowState.CONFIRMED if is_same else RowState.CORRECTED, given, target=target)


def _place(row: TargetRow, vote: RowCheck, source: ParsedSource) -> Place | None:
    """The place that a vote names; None where it does not exist."""
    if vote.place is None:
        return row.place
    file, start, end = vote.place.file, vote.place.start, vote.place.end
    return (file, start, end) if source.range_problem(file, start, end) is None else None


def _majority(votes: Iterable[Vote | None], need: int) -> Vote | None:
    most = Counter(vote for vote in votes if vote is not None).most_common(1)
    return most[0][0] if most and most[0][1] >= need else None


def keep_last_rows(checked: Sequence[CheckedRow]) -> list[CheckedRow]:
    """The same, but no query loses its last row: whether it is to be dropped is for a person."""
    left = Counter(each.row.query_id for each in checked if each.state is not RowState.REMOVED)
    return [
        replace(each, state=RowState.LAST_ROW, problem="its query would have no rows left")
        if each.state is RowState.REMOVED and not left[each.row.query_id]
        else each
        for each in checked
    ]


def corrected(testset: TestSet, checked: Iterable[CheckedRow]) -> TestSet:
    """The set with the corrections; a place that a query then has twice keeps its higher grade."""
    changes: dict[str, dict[Target, Target | None]] = {}
    for each in checked:
        if each.state in CHANGES:
            changes.setdefault(each.row.query_id, {})[each.row.target] = each.target
    targets = dict(testset.targets)
    for query_id, changed in changes.items():
        kept: dict[tuple[type[Target], str], Target] = {}
        for old in testset.targets[query_id]:
            target = changed.get(old, old)
            if target is not None:
                key = type(target), target.label
                before = kept.get(key)
                kept[key] = target if before is None or target.grade > before.grade else before
        targets[query_id] = tuple(kept.values())
    return replace(testset, targets=targets)


@dataclass(frozen=True)
class Checkers:
    """Who votes, and with what."""

    settings: Sequence[ModelSettings]
    """Settings of the models, which take turns."""
    n_votes: int
    """On each row."""
    kept: Kept
    tools: Toolset
    prompts: RolePrompts
    on_vote: Callable[[TargetRow, int, Transcript], None] = lambda *_: None
    """Called with each vote that came, or did not, and its number."""
    on_row: Callable[[CheckedRow], None] = lambda _: None
    """Called with each row as it is decided."""

    def __post_init__(self) -> None:
        """One agent at a time of each place of the settings."""
        object.__setattr__(self, "_free", [asyncio.Semaphore(each.concurrency) for each in self.settings])

    _free: list[asyncio.Semaphore] = field(init=False, repr=False)

    async def vote(self, row: TargetRow, number: int) -> list[Transcript]:
        """The vote of an agent, after the tries that could not be read; its seed is its number, so that votes of one model differ."""
        turn = number % len(self.settings)
        task = check_task(self.settings[turn], row, self.prompts)
        task = replace(task, sampling=replace(task.sampling, seed=(task.sampling.seed or 0) + number))
        async with self._free[turn]:
            return await run_kept(self.kept, task, self.tools)


@dataclass(frozen=True)
class CheckResult:
    """Every row, and what the votes took."""

    checked: tuple[CheckedRow, ...]
    n_votes: int
    """On each row that was put to the vote."""
    usages: tuple[Usage, ...]
    """Usage of each vote."""
    missing: Counter[str]
    """Votes that did not come, by kind of the end or the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRows(Record):
    """What the check of a set came to."""

    testset: TestSetRecord
    n_votes: int
    """On each row that was put to the vote."""
    missing: Mapping[str, int]
    """Votes that did not come, by kind of the end or the failure."""
    states: Mapping[RowState, int]
    """Every state, and its rows."""
    rows: tuple[RowRecord, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, testset: TestSet, result: CheckResult, notes: Sequence[str]) -> CheckedRows:
        """The record of a check."""
        states = Counter(each.state for each in result.checked)
        return cls(
            testset=TestSetRecord.of(testset),
            n_votes=result.n_votes,
            missing=dict(result.missing),
            states={state: states[state] for state in RowState},
            rows=tuple(each.record for each in result.checked),
            notes=tuple(notes),
        )


async def check_rows(rows: Sequence[TargetRow], source: ParsedSource, checkers: Checkers) -> CheckResult:
    """Check rows: what a program can tell first, then the votes, then the majority.

    Args:
        rows: of a set.
        source: the repository.
        checkers: who votes.
    """
    missing: Counter[str] = Counter()
    usages: list[Usage] = []

    async def check(row: TargetRow) -> CheckedRow:
        found = await judge(row)
        checkers.on_row(found)
        return found

    async def judge(row: TargetRow) -> CheckedRow:
        if problem := mechanical_problem(row, source):
            return CheckedRow(row, RowState.BROKEN, problem=problem)
        transcripts = await asyncio.gather(*(cast(row, number) for number in range(checkers.n_votes)))
        votes = [each.output for each in transcripts if isinstance(each.output, RowCheck)]
        return decide(row, votes, checkers.n_votes, source)

    async def cast(row: TargetRow, number: int) -> Transcript:
        tries = await checkers.vote(row, number)
        usages.extend(each.usage for each in tries)
        transcript = tries[-1]
        if transcript.output is None:
            failure = transcript.failure
            missing[transcript.end if failure is None else failure.kind] += 1
        checkers.on_vote(row, number, transcript)
        return transcript

    checked = await asyncio.gather(*map(check, rows))
    return CheckResult(tuple(keep_last_rows(checked)), checkers.n_votes, tuple(usages), missing)
