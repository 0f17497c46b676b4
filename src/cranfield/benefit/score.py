"""Blind scoring: answers are sealed under random ids, scored by what knows no arm, and joined to their cells again.

`seal` takes the arm away, `Scorer` scores what is left, `unseal` joins scores to cells. No function of scoring has a
parameter by which an arm could reach it; what a judge reads is redacted, and is the same for the same answer of any arm.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from cranfield.agents.answers.facts import DecidedBy, FactKind, FactsScore, FactVerdict
from cranfield.agents.answers.judge import Judge
from cranfield.agents.answers.rows import Answered, FactRow, Named, expected_places, fact_rows, named_places
from cranfield.agents.answers.score import AnswerScore, Redact, blind_answer, score_answer
from cranfield.benefit.codecheck.report import Checker, CheckReport, CheckState, CodeCheck, Target
from cranfield.benefit.coding import CodingTask
from cranfield.benefit.plan import Success, SuccessBy
from cranfield.benefit.reading import CellReading, cell_reading
from cranfield.benefit.records import CellEnd, CellKey, CellRecord, ScoreReason, ScoreRecord
from cranfield.benefit.tasks import TaskSet
from cranfield.model import MatchingRules
from cranfield.model.judging import Lines

Checkers = Callable[[Target], Checker]
CHECKS_AT_ONCE = 2
ENDS: Mapping[CellEnd, ScoreReason] = {
    CellEnd.TURNS: ScoreReason.TURNS,
    CellEnd.TOOL_CALLS: ScoreReason.TOOL_CALLS,
    CellEnd.TOKENS: ScoreReason.TOKENS,
    CellEnd.SECONDS: ScoreReason.SECONDS,
    CellEnd.NO_ANSWER: ScoreReason.NO_ANSWER,
}
"""Ends that are failures, whatever the answer."""
TO_SCORE_AGAIN = frozenset(
    {ScoreReason.NO_JUDGE, ScoreReason.JUDGE_FAILED, ScoreReason.CHECK_MISSING, ScoreReason.SYMBOLS_UNKNOWN}
)
"""Another time these may be decided."""


@dataclass(frozen=True, slots=True)
class SealedAnswer:
    """An answer, and the task that it is to. Nothing here says who gave it."""

    sealed_id: str
    task_id: str
    answered: Answered
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sealed:
    """Sealed answers, in the order of their ids; the map stays with the caller."""

    answers: tuple[SealedAnswer, ...]
    keys: Mapping[str, CellKey]
    """Sealed id to its cell."""


@dataclass(frozen=True, slots=True)
class SealedScore:
    """The score of a sealed answer."""

    success: bool | None
    why: ScoreReason | None = None
    facts_correct: bool | None = None
    facts_score: float | None = None
    facts: tuple[FactRow, ...] = ()
    structure_correct: bool | None = None
    structure_score: float | None = None
    checks: Mapping[CodeCheck, CheckState] = field(default_factory=dict)
    findings: tuple[Mapping[str, object], ...] = ()
    notes: tuple[str, ...] = ()
    """Why a checker could not decide everything."""
    unknown_symbols: int = 0
    """Symbols of which no check knows whether they exist."""


def seal(cells: Iterable[CellRecord], seed: int) -> Sealed:
    """Take everything away but the answer and its task. A run that reached a limit has an empty answer.

    Args:
        cells: that are scored.
        seed: of the ids, which are all that the order depends on.
    """
    found, keys = [], {}
    for cell in cells:
        sealed_id = hashlib.sha256(f"{seed}\0{cell.key}".encode("utf-8", "replace")).hexdigest()[:16]
        keys[sealed_id] = cell.key
        is_answered = cell.end is CellEnd.ANSWERED
        answered, files = (answered_of(cell), cell.files) if is_answered else (Answered(), {})
        found.append(SealedAnswer(sealed_id, cell.key.task_id, answered, files))
    return Sealed(tuple(sorted(found, key=lambda answer: answer.sealed_id)), keys)


def answered_of(cell: CellRecord) -> Answered:
    """The answer of a cell."""
    named = cell.named
    if named is None:
        return Answered(cell.answer)
    lines = tuple(Lines(each.path, each.start, each.end) for each in named.lines)
    return Answered(cell.answer, named.entities, named.files, lines)


class Scorer:
    """Scores sealed answers. On one event loop."""

    def __init__(
        self,
        tasks: TaskSet,
        success: Success,
        *,
        redact: Redact = str,
        judge: Judge | None = None,
        checkers: Checkers | None = None,
    ) -> None:
        """Prepare.

        Args:
            tasks: with their labels.
            success: how it is decided.
            redact: applied to all that a judge reads.
            judge: of facts that rules do not decide; None: these are undecided.
            checkers: target of code to its checker; None: code is undecided.
        """
        self.tasks, self._by_id, self._success = tasks, tasks.by_id, success
        self._redact, self._checkers = redact, checkers
        self._judge = judge if success.by is SuccessBy.FACTS else None
        self._checked: dict[str, asyncio.Future[CheckReport]] = {}
        self._free = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def score(self, answer: SealedAnswer) -> SealedScore:
        """Score one."""
        coding = self._by_id[answer.task_id].coding
        if coding is not None:
            return await self._code(answer, coding)
        testset = self.tasks.testset
        if testset is None:
            raise ValueError("questions require a test set")
        item = blind_answer(testset, answer.task_id, answer.answered, redact=self._redact, blind_id=answer.sealed_id)
        found = await score_answer(item, testset.matching, self._judge, with_narrative=False)
        success, why = self._decided(found)
        return SealedScore(
            success,
            why,
            found.facts_correct,
            found.facts_score,
            fact_rows(found.facts),
            found.structure_correct,
            found.structure.score if found.structure else None,
        )

    def _decided(self, found: AnswerScore) -> tuple[bool | None, ScoreReason | None]:
        if self._success.by is SuccessBy.STRUCTURE:
            complete = bool(found.structure_correct)
            return complete, None if complete else ScoreReason.STRUCTURE
        correct = found.facts_correct if found.facts is not None else False
        return correct, None if correct else _why_of_facts(found.facts)

    async def _code(self, answer: SealedAnswer, task: CodingTask) -> SealedScore:
        required = required_checks(self._success, task)
        if any(not answer.files.get(path, "").strip() for path in task.writes):
            return SealedScore(False, ScoreReason.NO_CODE)
        if self._checkers is None:
            return SealedScore(None, ScoreReason.CHECK_MISSING)
        report = await self._report(answer.files, task)
        states = {check: report.states.get(check, CheckState.MISSING) for check in task.checks}
        failed = [check for check in required if states[check] is CheckState.FAILED]
        is_run = CodeCheck.TESTS in required and states[CodeCheck.TESTS] is CheckState.PASSED
        open_states = {CheckState.MISSING} if is_run else {CheckState.MISSING, CheckState.UNKNOWN}
        undecided = {states[check] for check in required if states[check] in open_states}
        if failed:
            why: ScoreReason | None = ScoreReason(failed[0].value)
        elif undecided:
            is_missing = CheckState.MISSING in undecided
            why = ScoreReason.CHECK_MISSING if is_missing else ScoreReason.SYMBOLS_UNKNOWN
        else:
            why = None
        success = False if failed else None if undecided else True
        findings = tuple({key: str(value) if isinstance(value, CodeCheck) else value for key, value in asdict(each).items()}
                         for each in report.findings)  # fmt: skip
        notes = report.notes if success is None or report.n_unknown else ()
        return SealedScore(
            success, why, checks=states, findings=findings, notes=notes, unknown_symbols=report.n_unknown
        )

    async def _report(self, files: Mapping[str, str], task: CodingTask) -> CheckReport:
        """What the checker finds; of the same code for the same task, once."""
        given = json.dumps([task.id, sorted(files.items())])
        if (known := self._checked.get(given)) is None:
            known = self._checked[given] = asyncio.ensure_future(self._check(files, task))
        return await known

    async def _check(self, files: Mapping[str, str], task: CodingTask) -> CheckReport:
        checkers = self._checkers
        if checkers is None:
            raise ValueError("code requires a checker")
        async with self._free:
            tests = task.tests if CodeCheck.TESTS in task.checks else ""
            return await checkers(task.runs_on).check(files, task.runs_on, tests)


def required_checks(success: Success, task: CodingTask) -> tuple[CodeCheck, ...]:
    """The checks that decide: those of the plan that are criteria of the task."""
    wanted = {CodeCheck(name) for name in success.checks}
    return tuple(check for check in CodeCheck if check in wanted and check in task.checks)


def unseal(
    sealed: Sealed,
    scores: Mapping[str, SealedScore],
    cells: Mapping[CellKey, CellRecord],
    tasks: TaskSet,
    leaks: Callable[[str, str], tuple[str, ...]],
) -> list[ScoreRecord]:
    """Join scores to their cells; a run that reached a limit is a failure whatever its score.

    Args:
        sealed: with the map.
        scores: sealed id to score.
        cells: that were sealed.
        tasks: with the gold lines, which say what a cell read.
        leaks: task id and text to the names of tools and arms in it.
    """
    found = []
    for sealed_id, score in scores.items():
        cell = cells[sealed.keys[sealed_id]]
        reading = reading_of(cell, tasks)
        success, why = (False, ENDS[cell.end]) if cell.end in ENDS else (score.success, score.why)
        values = asdict(score) | {"success": success, "why": why}
        record = ScoreRecord(
            **values | {"checks": {check.value: state.value for check, state in score.checks.items()}},
            key=cell.key,
            sealed_id=sealed_id,
            gold_recall=reading.recall,
            recall_by_turn=reading.by_turn,
            gold_used=reading.used,
            redacted=leaks(cell.key.task_id, cell.answer),
        )
        found.append(record)
    return found


def reading_of(cell: CellRecord, tasks: TaskSet) -> CellReading:
    """What a cell read of the gold lines of its task."""
    task, testset = tasks.by_id[cell.key.task_id], tasks.testset
    rules = testset.matching if testset is not None else MatchingRules()
    named: Named | None = None
    if testset is not None:
        answered = answered_of(cell) if cell.end is CellEnd.ANSWERED else Answered()
        named = named_places(answered, expected_places(testset, task.id), rules)
    return cell_reading(cell.reads, task.gold, named, cell.usage.turns or 0, rules)


def _why_of_facts(facts: FactsScore | None) -> ScoreReason:
    """The first of: a wrong statement, a missing fact, a verdict that is missing."""
    if facts is None:
        return ScoreReason.FACT_MISSING
    if facts.count(FactKind.MUST_NOT, FactVerdict.SUPPORTED):
        return ScoreReason.WRONG_STATEMENT
    if any(fact.is_right is False for fact in facts.facts):
        return ScoreReason.FACT_MISSING
    why = {fact.by for fact in facts.facts if fact.verdict is None}
    if DecidedBy.FAILED in why:
        return ScoreReason.JUDGE_FAILED
    return ScoreReason.NO_JUDGE if DecidedBy.NO_JUDGE in why else ScoreReason.NO_MAJORITY


def unscored(cells: Sequence[CellRecord], scores: Iterable[ScoreRecord]) -> list[CellRecord]:
    """Cells without a score, and those whose score may be decided now."""
    last = {score.key: score for score in scores}
    return [cell for cell in cells if cell.key not in last or last[cell.key].why in TO_SCORE_AGAIN]
