"""What all steps share: the plan, the records so far, the source, the models; and how a role is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from cranfield.agents.budget import Spent
from cranfield.agents.loop import AgentTask, End, Read, Transcript, run_agent
from cranfield.agents.protocol import Failure, ModelAnswer, Usage
from cranfield.agents.recording import Kept, is_lasting, now
from cranfield.agents.retrying import answers_of_try, is_unreadable
from cranfield.agents.settings import ModelSettings
from cranfield.agents.tools.source import SourceTools
from cranfield.base.concurrency.loop import FunctionError, event_loop, run_all
from cranfield.base.numbers import total
from cranfield.base.words import count_noun
from cranfield.golden.agreement import (
    LabelAgreement,
    LabelOutcome,
    ReviewedSource,
    agree,
    compare_structure,
    is_spot_checked,
    needs_judge,
)
from cranfield.golden.gate import GateCheck, RecordGateReport, Screener, ScreenReason, gate
from cranfield.golden.index import RecordStatus, RunIndex, Step
from cranfield.golden.models import role_settings
from cranfield.golden.outcomes import AgreementRecord, GateFailure, QueueEntry, RecordFinding, Rejection, TranscriptLine
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.plan import Cell, Plan
from cranfield.golden.records import (
    AdversaryReport,
    Cost,
    Difficulty,
    NarrativeJudgment,
    OracleAnswer,
    QueryCandidate,
    ReviewFeedback,
    TaskType,
)
from cranfield.golden.roles import (
    CellBrief,
    GoldenRole,
    RolePrompts,
    adversary_task,
    author_task,
    judge_task,
    oracle_task,
    prompt_name,
    toolset_of,
)
from cranfield.golden.states import PLANNED, STATES, State

StepReads = tuple[tuple[int, Read], ...]


class WaitingError(Exception):
    """A role has no answer now, and may have one later: the budget, a server, a key."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(waiting.message)
        self.waiting = waiting


class NoOutputError(Exception):
    """A role has no answer, and asked again would have none."""

    def __init__(self, finding: RecordFinding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record that a resumed run goes on with, and what it waits for."""

    query_id: str
    role: GoldenRole
    kind: str
    """Kind of the failure."""
    message: str


@dataclass(frozen=True, slots=True)
class RoleJob:
    """The work of a role on an attempt at a record."""

    query_id: str
    role: GoldenRole
    attempt: int = 1
    vote: int = 1

    @property
    def key(self) -> tuple[str, str, int, int]:
        """As a transcript is found."""
        return self.query_id, self.role, self.attempt, self.vote


@dataclass
class StepContext:
    """State of one call of the pipeline."""

    plan: Plan
    index: RunIndex
    source: ParsedSource
    prompts: RolePrompts
    kept: Kept
    tools: SourceTools
    feedback: Sequence[ReviewFeedback] = ()
    on_status: Callable[[RecordStatus], None] = lambda _: None
    """Called where a record has a new state."""
    waiting: list[Waiting] = field(default_factory=list)

    def __post_init__(self) -> None:
        folder = self.index.folder
        lines = folder.read(Step.TRANSCRIPTS, TranscriptLine)
        self._reads = {_key(line): _reads(line) for line in lines if not line.is_unreadable}
        self._tries: dict[tuple[str, str, int, int], list[Usage]] = {}
        for line in lines:
            if line.is_unreadable:
                self._tries.setdefault(_key(line), []).append(line.usage or Usage())
        self._parsing = asyncio.Lock()
        self._turns = {role: asyncio.Semaphore(each.concurrency) for role, each in role_settings(self.plan).items()}

    async def parse(self) -> None:
        """Parse all files, which takes seconds, in a thread, so that answers under way are not late."""
        async with self._parsing:
            try:
                await event_loop().threads.call(lambda: self.source.named)
            except FunctionError as raised:
                raise raised.error from None

    def settings(self, role: GoldenRole) -> ModelSettings:
        """Settings of the model of a role."""
        return role_settings(self.plan)[role]

    def reads(self, job: RoleJob) -> StepReads | None:
        """What the tools showed in a job, with the step of each call; None where there is no transcript of it."""
        return self._reads.get(job.key)

    def feedback_of(self, task_type: TaskType, difficulty: Difficulty, query_id: str = "") -> tuple[str, ...]:
        """What people found in an earlier batch: in a cell, or in a record of it."""
        return tuple(
            f"{each.failure_mode.replace('_', ' ')}: {each.reason}"
            for each in self.feedback
            if (each.task_type, each.difficulty) == (task_type, difficulty) and query_id in {"", each.query_id}
        )

    async def ask(self, job: RoleJob, task: AgentTask, task_type: TaskType) -> Transcript:
        """Run an agent with the tools of its role, and write its transcript.

        Raises:
            WaitingError: a later run may get an answer.
            NoOutputError: it gave none, or none that can be read.
        """
        toolset = toolset_of(job.role, task_type, self.tools)
        tries = self._tries.setdefault(job.key, [])
        async with self._turns[job.role]:
            transcript = await run_agent(answers_of_try(self.kept, len(tries)), task, toolset)
        failure = transcript.failure
        if failure is not None and not is_lasting(ModelAnswer(failure=failure)):
            raise WaitingError(Waiting(job.query_id, job.role, failure.kind, failure.detail))
        if job.key not in self._reads:
            line = {"query_id": job.query_id, "role": job.role, "attempt": job.attempt, "vote": job.vote, "at": now()}
            self.index.folder.append(Step.TRANSCRIPTS, TranscriptLine.model_validate({**line, **transcript.record()}))
        if failure is not None and is_unreadable(transcript):
            tries.append(transcript.usage)
            raise NoOutputError(self._unreadable(job, transcript, failure))
        self._reads.setdefault(job.key, transcript.reads)
        if transcript.output is None:
            raise NoOutputError(_no_output(transcript))
        return transcript

    def _unreadable(self, job: RoleJob, transcript: Transcript, failure: Failure) -> RecordFinding:
        """How often a role was asked, what that took, and what came last."""
        tries = self._tries[job.key]
        took, prices = Spent(), self.plan.budget.prices
        for usage in tries:
            took.add(Spent.of(prices, transcript.task.model, usage))
        spent = f"{count_noun(took.requests, 'requests')}, {took.text(prices.currency)}"
        row = count_noun(transcript.task.limits.corrections + 1, "replies")
        message = f"{job.role}: {row} in a row are unreadable, {count_noun(len(tries), 'tries')} so far ({spent}); the last: {failure.detail}"
        return RecordFinding(kind=failure.kind, message=message)

    def made(self, job: RoleJob, transcript: Transcript, task_type: TaskType) -> dict[str, Any]:
        """What a role wrote, with identity and provenance, as the fields of a record."""
        draft = {} if transcript.output is None else transcript.output.model_dump()
        return {
            **draft,
            "query_id": job.query_id,
            "attempt": job.attempt,
            "model": transcript.task.model,
            "prompt": self.prompts.used(prompt_name(job.role, task_type)),
            "tool_versions": dict(self.index.folder.manifest.tool_versions) if transcript.tools else {},
            "commit": self.index.folder.manifest.commit,
            "cost": self.cost([transcript]),
        }

    def cost(self, transcripts: Sequence[Transcript]) -> Cost:
        """What agents took."""
        usages = [each.usage for each in transcripts]
        tokens = [usage.total for usage in usages]
        prices = self.plan.budget.prices
        money = [prices.cost(each.task.model, each.usage) for each in transcripts]
        return Cost(
            total_tokens=total(tokens),
            requests=sum(usage.requests for usage in usages),
            tool_calls=sum(len(each.uses) for each in transcripts),
            turns=sum(each.turns for each in transcripts),
            wall_clock_s=round(sum(each.wall_s for each in transcripts), 3),
            money=total(money),
        )

    def reject(self, query_id: str, state: State, reasons: Sequence[RecordFinding], **fields: Any) -> None:
        """Write why a record is not part of the set."""
        attempt = self.index.attempt(query_id)
        rejection = Rejection(
            query_id=query_id, attempt=attempt, at=now(), state=state, reasons=tuple(reasons), **fields
        )
        self.index.add(Step.REJECTED, rejection)
        self.report(query_id)

    def report(self, query_id: str) -> None:
        """Pass on the state of a record."""
        self.on_status(self.index.status(query_id))


def _no_output(transcript: Transcript) -> RecordFinding:
    if transcript.failure is not None:
        return RecordFinding(kind=transcript.failure.kind, message=transcript.failure.message)
    message = "it ended without an answer"
    if transcript.end is not End.ANSWERED:
        limits = transcript.task.limits
        bounds: Mapping[End, Any] = {
            End.TURNS: limits.turns,
            End.TOOL_CALLS: limits.tool_calls,
            End.TOKENS: limits.tokens,
            End.SECONDS: limits.seconds,
        }
        message = f"the limit of {transcript.end.replace('_', ' ')} was reached: {bounds.get(transcript.end)}"
    return RecordFinding(kind=transcript.end, message=message)


def _key(line: TranscriptLine) -> tuple[str, str, int, int]:
    return line.query_id, line.role, line.attempt, line.vote


def _reads(line: TranscriptLine) -> StepReads:
    uses = (line.model_extra or {}).get("uses", ())
    return tuple((use["step"], Read(**read)) for use in uses for read in use["reads"])


async def answer(context: StepContext, query_id: str) -> None:
    """Ask the oracle, and write its answer, or why there is none.

    Raises:
        WaitingError: a later run may get an answer.
    """
    candidate = context.index.candidates[query_id]
    job = RoleJob(query_id, GoldenRole.ORACLE, context.index.attempt(query_id))
    feedback = context.feedback_of(candidate.task_type, candidate.difficulty, query_id)
    hint = context.index.hint(query_id)
    task = oracle_task(context.settings(GoldenRole.ORACLE), candidate, context.prompts, feedback=feedback, hint=hint)
    try:
        transcript = await context.ask(job, task, candidate.task_type)
        found = OracleAnswer(
            **context.made(job, transcript, candidate.task_type),
            task_type=candidate.task_type,
            difficulty=candidate.difficulty,
            authored_by=f"agent:oracle:{task.model}",
            created_at=now(),
        )
    except NoOutputError as error:
        context.reject(query_id, State.NO_ANSWER, [error.finding])
    except ValidationError as error:
        reasons = [RecordFinding(kind="invalid_answer", message=each["msg"]) for each in error.errors()]
        context.reject(query_id, State.NO_ANSWER, reasons)
    else:
        context.index.add(Step.ANSWERS, found)
        context.report(query_id)


def check_answer(context: StepContext, query_id: str) -> bool:
    """Run the gate; a failure is written with every check that failed."""
    report = gate_report(context, query_id)
    if report.passed:
        return True
    failure = GateFailure(
        query_id=query_id,
        attempt=context.index.attempt(query_id),
        at=now(),
        failures=_findings(report, report.failed),
        missing=_findings(report, report.missing),
    )
    context.index.add(Step.GATE_FAILURES, failure)
    context.report(query_id)
    return False


def gate_report(context: StepContext, query_id: str) -> RecordGateReport:
    """What the gate finds of the answer to a candidate."""
    attempt = context.index.attempt(query_id)
    found = context.index.answers[query_id, attempt]
    reads = None if found.imported_from else context.reads(RoleJob(query_id, GoldenRole.ORACLE, attempt)) or ()
    shown = None if reads is None else [read for _, read in reads]
    return gate(context.index.candidates[query_id], found, shown, context.source, context.plan.bounds)


def _findings(report: RecordGateReport, checks: Sequence[GateCheck]) -> tuple[RecordFinding, ...]:
    return tuple(
        RecordFinding(kind=check, message=problem) for check in checks for problem in report.checks[check].problems
    )


NO_ROOM = frozenset({ScreenReason.CELL_FULL, ScreenReason.QUOTA_FULL})
"""Reasons that end where another candidate fails: until then it is a reserve."""


def _drafts_of(plan: Plan, cell: Cell) -> list[str]:
    """Ids of all drafts of a cell, written or not: the same in every run of the plan."""
    name = f"{plan.name}-{cell.task_type}-{cell.difficulty}"
    return [f"{name}-{number:02d}" for number in range(1, plan.emitted(cell) + 1)]


async def author_all(context: StepContext) -> None:
    """Write the candidates of all cells: cells at the same time, the drafts of a cell in turn."""
    await run_all(_author_cell(context, cell) for cell in context.plan.cells)


async def _author_cell(context: StepContext, cell: Cell) -> None:
    others: list[str] = []
    for number, query_id in enumerate(_drafts_of(context.plan, cell), start=1):
        known = context.index.candidates.get(query_id)
        if known is None and context.index.rejections.get(query_id, 1) is None:
            try:
                known = await _draft(context, cell, RoleJob(query_id, GoldenRole.AUTHOR), number, others)
            except WaitingError as error:  # later drafts are to know this one
                context.waiting.append(error.waiting)
                return
        if known is not None:
            others.append(known.query_text)


async def _draft(
    context: StepContext, cell: Cell, job: RoleJob, number: int, others: Sequence[str]
) -> QueryCandidate | None:
    """The candidate; None where the author gave none that can be used, which is written down."""
    focus = cell.focus[(number - 1) % len(cell.focus)] if cell.focus else ""
    scope = context.plan.scope_of(cell)
    brief = CellBrief(
        task_type=cell.task_type,
        difficulty=cell.difficulty,
        target_kind=context.plan.targets_of(cell),
        scope=tuple(scope),
        focus_area=focus,
        others=tuple(others),
        feedback=context.feedback_of(cell.task_type, cell.difficulty),
    )
    task = author_task(context.settings(GoldenRole.AUTHOR), brief, context.prompts)
    # Where a draft failed, the next one has the same prompt: it is another request by its seed.
    task = replace(task, sampling=replace(task.sampling, seed=(task.sampling.seed or context.plan.seed) + number))
    try:
        transcript = await context.ask(job, task, cell.task_type)
        candidate = QueryCandidate(
            **context.made(job, transcript, cell.task_type),
            task_type=cell.task_type,
            difficulty=cell.difficulty,
            scope=", ".join(scope),
            focus_area=focus,
            authored_by=f"agent:author:{task.model}",
            created_at=now(),
        )
    except NoOutputError as error:
        reasons = [error.finding]
    except ValidationError as error:
        reasons = [RecordFinding(kind="invalid_candidate", message=each["msg"]) for each in error.errors()]
    else:
        context.index.add(Step.CANDIDATES, candidate)
        context.report(job.query_id)
        return candidate
    context.reject(job.query_id, State.NOT_AUTHORED, reasons, task_type=cell.task_type, difficulty=cell.difficulty)
    return None


def reopen(context: StepContext) -> None:
    """Once every record has an end, let those go on again of which no reply could be read, where their cells have room.

    A draft without a candidate is written again by `author_all`. A run that was interrupted goes on first, as if it had not been;
    nothing is opened again under a review by people.
    """
    index, folder = context.index, context.index.folder
    statuses = {each.query_id: each for each in index.statuses()}
    is_planned = folder.manifest.source == PLANNED
    lacks_drafts = is_planned and len(statuses) < context.plan.n_drafts
    has_ended = not lacks_drafts and all(STATES[each.state].is_end for each in statuses.values())
    if not has_ended or (folder.path / Step.REVIEW_SAMPLES).is_file():
        return
    unreadable = [name for name, each in statuses.items() if each.is_unreadable]
    if not is_planned:
        for name in unreadable:
            index.reopen(name)
        return
    filling = [each for each in in_order(context) if STATES[statuses[each.query_id].state].fills_cell]
    screener = Screener(context.plan, context.source)
    for candidate in in_order(context):
        if candidate.query_id in unreadable and not screener.judge(candidate, filling):
            index.reopen(candidate.query_id)
            filling.append(candidate)
    for cell in context.plan.cells:
        missing = cell.n - sum((each.task_type, each.difficulty) == cell.key for each in filling)
        unwritten = [
            name for name in _drafts_of(context.plan, cell) if name in unreadable and name not in index.candidates
        ]
        for name in unwritten[: max(0, missing)]:
            index.reopen(name)


def in_order(context: StepContext) -> list[QueryCandidate]:
    """Candidates in the order of the plan, whenever they were written."""
    candidates = context.index.candidates
    names = (name for cell in context.plan.cells for name in _drafts_of(context.plan, cell))
    return [candidates[name] for name in names if name in candidates]


def screen(context: StepContext, accepted: Sequence[QueryCandidate], judged: set[str]) -> list[QueryCandidate]:
    """Candidates that go on now: those that were not judged yet, and the reserves for which there is room.

    Args:
        context: with all candidates.
        accepted: earlier, and not failed since.
        judged: ids of candidates that went on earlier; those that go on now are added.
    """
    screener = Screener(context.plan, context.source)
    chosen: list[QueryCandidate] = []
    for candidate in in_order(context):
        query_id = candidate.query_id
        rejection = context.index.rejections.get(query_id, 1)
        if query_id in judged or (rejection is not None and rejection.state is State.SCREENED_OUT):
            continue
        problems = screener.judge(candidate, [*accepted, *chosen])
        if not problems:
            chosen.append(candidate)
            judged.add(query_id)
        elif not {each.reason for each in problems} <= NO_ROOM:
            reasons = [RecordFinding(kind=each.reason, message=each.message) for each in problems]
            context.reject(query_id, State.SCREENED_OUT, reasons)
    return chosen


def reserve_rest(context: StepContext, judged: set[str]) -> None:
    """Write that the candidates that never went on are not needed."""
    for candidate in in_order(context):
        if candidate.query_id not in judged and context.index.rejections.get(candidate.query_id, 1) is None:
            context.reject(candidate.query_id, State.RESERVE, [])


async def review(context: StepContext, query_id: str) -> None:
    """Ask the adversary, and write its report, or why there is none.

    Raises:
        WaitingError: a later run may get a report.
    """
    candidate, answer = context.index.candidates[query_id], _answer(context, query_id)
    job = RoleJob(query_id, GoldenRole.ADVERSARY, answer.attempt)
    task = adversary_task(context.settings(GoldenRole.ADVERSARY), candidate, answer, context.prompts)
    try:
        transcript = await context.ask(job, task, candidate.task_type)
    except NoOutputError as error:
        context.reject(query_id, State.NO_REPORT, [error.finding])
        return
    report = AdversaryReport(
        **context.made(job, transcript, candidate.task_type),
        reviewed_by=f"agent:adversary:{task.model}",
        reviewed_at=now(),
    )
    context.index.add(Step.REPORTS, report)
    context.report(query_id)


async def conclude(context: StepContext, query_id: str) -> None:
    """Compare answer and report, with the votes of the judge where they can decide; queue what does not pass.

    Raises:
        WaitingError: a later run may get the votes.
    """
    answer, report = _answer(context, query_id), _report(context, query_id)
    read = context.reads(RoleJob(query_id, GoldenRole.ADVERSARY, answer.attempt))
    source = ReviewedSource(
        lambda path: None if (lines := context.source.lines(path)) is None else len(lines),
        None if read is None else [each for _, each in read],
    )
    transcripts: list[Transcript] = []
    if needs_judge(answer, compare_structure(answer, report, source)):
        try:
            transcripts = await _votes(context, answer, report)
        except NoOutputError as error:
            context.reject(query_id, State.NO_RATING, [error.finding])
            return
    ratings = [each.output for each in transcripts if isinstance(each.output, NarrativeJudgment)]
    record = _record(context, answer, agree(answer, report, ratings, source), transcripts)
    context.index.add(Step.AGREEMENTS, record)
    queue(context, record)
    context.report(query_id)


def queue(context: StepContext, record: AgreementRecord) -> None:
    """Write a record that did not pass to the queue of people, unless it is there."""
    if record.outcome is not LabelOutcome.PASSED and context.index.queue.get(record.query_id, record.attempt) is None:
        entry = QueueEntry(
            query_id=record.query_id, attempt=record.attempt, at=now(), outcome=record.outcome, reasons=record.reasons
        )
        context.index.add(Step.REVIEW_QUEUE, entry)


async def _votes(context: StepContext, answer: OracleAnswer, report: AdversaryReport) -> list[Transcript]:
    candidate = context.index.candidates[answer.query_id]
    task = judge_task(context.settings(GoldenRole.JUDGE), candidate, answer, report, context.prompts)

    async def vote(number: int) -> Transcript:
        job = RoleJob(answer.query_id, GoldenRole.JUDGE, answer.attempt, number)
        seed = task.sampling.seed if number == 1 else (task.sampling.seed or context.plan.seed) + number
        return await context.ask(job, replace(task, sampling=replace(task.sampling, seed=seed)), answer.task_type)

    votes = (vote(number) for number in range(1, context.plan.judge_votes + 1))
    found = await asyncio.gather(*votes, return_exceptions=True)  # a vote that is under way is not given up
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if isinstance(each, Transcript)]


def _record(
    context: StepContext, answer: OracleAnswer, agreement: LabelAgreement, transcripts: list[Transcript]
) -> AgreementRecord:
    seed, share = context.plan.seed, Fraction(str(context.plan.spot_check))
    return AgreementRecord(
        query_id=answer.query_id,
        attempt=answer.attempt,
        at=now(),
        outcome=agreement.outcome,
        reasons=tuple(RecordFinding(kind=each.kind, message=each.message) for each in agreement.disagreements),
        jaccard_entities=float(agreement.entities.jaccard),
        jaccard_files=float(agreement.files.jaccard),
        missing_entities=agreement.entities.missing,
        missing_files=agreement.files.missing,
        ratings=tuple(each.output for each in transcripts if isinstance(each.output, NarrativeJudgment)),
        judge=transcripts[0].task.model if transcripts else "",
        spot_check=bool(transcripts) and is_spot_checked(answer.query_id, seed, share),
        cost=context.cost(transcripts) if transcripts else None,
    )


def _answer(context: StepContext, query_id: str) -> OracleAnswer:
    return context.index.answers[query_id, context.index.attempt(query_id)]


def _report(context: StepContext, query_id: str) -> AdversaryReport:
    return context.index.reports[query_id, context.index.attempt(query_id)]
