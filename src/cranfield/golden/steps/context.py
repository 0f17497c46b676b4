"""What all steps share: the plan, the records so far, the source, the models; and how a role is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cranfield.agents.budget import Spent
from cranfield.agents.loop import AgentTask, End, Read, Transcript, run_agent
from cranfield.agents.protocol import Failure, ModelAnswer, Usage
from cranfield.agents.recording import Kept, is_lasting, now
from cranfield.agents.retrying import answers_of_try, is_unreadable
from cranfield.agents.settings import ModelSettings
from cranfield.agents.tools.source import SourceTools
from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.base.numbers import total
from cranfield.base.words import count_noun
from cranfield.golden.folder import Step
from cranfield.golden.index import RecordStatus, RunIndex
from cranfield.golden.models import role_settings
from cranfield.golden.outcomes import RecordFinding, Rejection, TranscriptLine
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.plan import Plan
from cranfield.golden.records import Cost, Difficulty, ReviewFeedback, TaskType
from cranfield.golden.role_prompts import RolePrompts
from cranfield.golden.roles import GoldenRole, prompt_name, toolset_of
from cranfield.golden.states import State

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
