"""Votes on rows: each by an agent of its own, which reads the source and knows of no other vote."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cranfield.agents.kept import Kept
from cranfield.agents.loop import Toolset, Transcript
from cranfield.agents.protocol import Usage
from cranfield.agents.settings import ModelSettings
from cranfield.agents.tries import run_kept
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import RowCheck
from cranfield.golden.role_prompts import RolePrompts
from cranfield.golden.roles import check_task
from cranfield.golden.rows import CheckedRow, RowRecord, RowState, TargetRow, decide, keep_last_rows, mechanical_problem
from cranfield.model import TestSet
from cranfield.model.results import Record, TestSetRecord


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
