"""An agent: requests to a model that calls tools in turn, until it gives its answer or reaches a limit.

The transcript is everything that happened, as data: every message, every call of a tool with what it read, the usage of
every request. Reaching a limit is an end of its own kind, not an error.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from cranfield.agents.protocol import (
    UNREADABLE,
    Backend,
    Failure,
    Message,
    ModelAnswer,
    OutputMode,
    Request,
    Sampling,
    Tool,
    ToolCall,
    Usage,
)
from cranfield.base.errors import InternalError
from cranfield.base.numbers import total
from cranfield.base.words import UNPRINTABLE

if TYPE_CHECKING:
    from jinja2 import Template


RESULT_CHARS = 40_000
"""Most characters of the text that a tool gives back to the model."""


class End(StrEnum):
    """How an agent ended."""

    ANSWERED = "answered"
    FAILED = "failed"
    """A request has no answer; its failure says why."""
    TURNS = "turns"
    """The limit of requests was reached."""
    TOOL_CALLS = "tool_calls"
    TOKENS = "tokens"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Limits of one agent; None: no limit."""

    turns: int = 40
    """Requests to the model, corrections included."""
    tool_calls: int = 120
    tokens: int | None = None
    """In and out, of all requests."""
    seconds: float | None = None
    """Before another request is sent."""
    corrections: int = 2
    """How often in a row an answer that does not fit the schema is sent back."""


@dataclass(frozen=True, slots=True)
class Read:
    """Lines of a file that a tool showed to the model, counted from 1, both ends included."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back."""

    text: str
    reads: tuple[Read, ...] = ()
    is_error: bool = False
    """The call was wrong, or the tool failed; the model receives the reason, and may go on."""
    is_cut: bool = False
    """The text is a part of what the tool gave."""
    is_unsent: bool = False
    """The call was no call of the tool, such as arguments that are no JSON: the fault of the model, which the tool never saw."""


class Toolset(Protocol):
    """Tools that an agent may call."""

    @property
    def tools(self) -> Sequence[Tool]:
        """As the model receives them."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call. What goes wrong is an error in the result, not an exception."""
        ...


class NoTools:
    """Empty set of tools, for roles that only judge."""

    tools: Sequence[Tool] = ()

    async def call(self, call: ToolCall) -> ToolResult:
        """There are none."""
        return _unknown_tool(call, self.tools)


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent is given."""

    model: str
    """`provider:name`."""
    system: str
    prompt: str
    output: type[BaseModel]
    sampling: Sampling = field(default_factory=Sampling)
    output_mode: OutputMode = "tool"
    timeout_s: float = 120.0
    """Timeout of one request, in seconds."""
    limits: AgentLimits = field(default_factory=AgentLimits)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool, and its result."""

    step: int
    """1, 2, ...: place among all calls."""
    turn: int
    call: ToolCall
    result: ToolResult
    wall_s: float


@dataclass
class Transcript:
    """What an agent did."""

    task: AgentTask
    tools: tuple[Tool, ...] = ()
    messages: list[Message] = field(default_factory=list)
    uses: list[ToolUse] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    """Usage of each request."""
    n_sent: int = 0
    """Requests whose answer was not kept from an earlier call."""
    models: list[str] = field(default_factory=list)
    """Names by which the provider reports the model, each once."""
    end: End = End.FAILED
    failure: Failure | None = None
    output: BaseModel | None = None
    wall_s: float = 0.0
    model_s: float = 0.0
    """Part of `wall_s` that was spent in requests."""

    @property
    def turns(self) -> int:
        """Requests, without their retries."""
        return len(self.usages)

    @property
    def usage(self) -> Usage:
        """Usage of all requests; a part that one did not report is not known."""
        return total_usage(self.usages)

    @property
    def reads(self) -> tuple[tuple[int, Read], ...]:
        """Lines that the tools showed, each with the step of its call."""
        return tuple((use.step, read) for use in self.uses for read in use.result.reads)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.task.model,
            "models": self.models,
            "system": self.task.system,
            "tools": [tool.name for tool in self.tools],
            "sampling": asdict(self.task.sampling),
            "messages": [_message(message) for message in self.messages],
            "uses": [_use(use) for use in self.uses],
            "usage": asdict(self.usage),
            "end": self.end,
            "failure": None if self.failure is None else asdict(self.failure),
            "turns": self.turns,
            "wall_s": round(self.wall_s, 3),
            "model_s": round(self.model_s, 3),
        }


async def run_agent(backend: Backend, task: AgentTask, toolset: Toolset) -> Transcript:
    """Ask, run the tools that are called, and ask again, until there is an answer or a limit is reached."""
    transcript = Transcript(task, tuple(toolset.tools), [Message("user", task.prompt)])
    started, corrections = time.monotonic(), 0
    while True:
        if (limit := _reached(transcript, time.monotonic() - started)) is not None:
            transcript.end = limit
            break
        answer = await backend.ask(_request(transcript))
        transcript.usages.append(answer.usage)
        transcript.n_sent += not answer.is_kept
        transcript.model_s += answer.wall_s
        if answer.model and answer.model not in transcript.models:
            transcript.models.append(answer.model)
        failure = answer.failure
        if failure is not None and failure.kind in UNREADABLE and corrections < task.limits.corrections:
            corrections += 1
            transcript.messages += [Message("assistant", answer.text), Message("user", correction(failure))]
            continue
        corrections = 0
        if failure is not None:
            transcript.end, transcript.failure = End.FAILED, failure
            if failure.kind in UNREADABLE:
                transcript.messages.append(Message("assistant", answer.text))
            break
        if not answer.tool_calls:
            transcript.end, transcript.output = End.ANSWERED, answer.output
            transcript.messages.append(Message("assistant", answer.text))
            break
        if not await _run_tools(transcript, toolset, answer):
            transcript.end = End.TOOL_CALLS
            break
    transcript.wall_s = time.monotonic() - started
    return transcript


def total_usage(usages: Sequence[Usage]) -> Usage:
    """The sum; a part that one request did not report is None."""
    parts = ("input", "cache_read", "cache_write", "output", "reasoning")
    sums = {part: total([getattr(usage, part) for usage in usages]) for part in parts}
    requests, unmeasured = sum(usage.requests for usage in usages), sum(usage.unmeasured for usage in usages)
    return Usage(requests=requests, unmeasured=unmeasured, **sums)


def _request(transcript: Transcript) -> Request:
    task = transcript.task
    return Request(
        task.model,
        task.system,
        tuple(transcript.messages),
        task.output,
        transcript.tools,
        task.sampling,
        task.output_mode,
        task.timeout_s,
    )


def _reached(transcript: Transcript, seconds: float) -> End | None:
    limits = transcript.task.limits
    if transcript.turns >= limits.turns:
        return End.TURNS
    if limits.tokens is not None and sum(usage.total or 0 for usage in transcript.usages) >= limits.tokens:
        return End.TOKENS
    return End.SECONDS if limits.seconds is not None and seconds >= limits.seconds else None


async def _run_tools(transcript: Transcript, toolset: Toolset, answer: ModelAnswer) -> bool:
    """Run the calls of a turn, as far as the limit allows. False where it allows none: an earlier result reported that.

    Every call gets a result, because a provider refuses a call without one.
    """
    transcript.messages.append(Message("assistant", answer.text, answer.tool_calls))
    known = {tool.name for tool in transcript.tools}
    n_before = len(transcript.uses)
    for call in answer.tool_calls:
        started = time.monotonic()
        if len(transcript.uses) >= transcript.task.limits.tool_calls:
            text = "error: no more calls of tools are allowed; give your answer"
        else:
            result = _cut(await toolset.call(call)) if call.name in known else _unknown_tool(call, transcript.tools)
            wall_s = time.monotonic() - started
            transcript.uses.append(ToolUse(len(transcript.uses) + 1, transcript.turns, call, result, wall_s))
            text = result.text
        transcript.messages.append(Message("tool", text, tool_call_id=call.id, tool_name=call.name))
    return len(transcript.uses) > n_before


def _cut(result: ToolResult) -> ToolResult:
    """A text that is too long, cut: it is no proof then of which lines were shown."""
    if len(result.text) <= RESULT_CHARS:
        return result
    left = len(result.text) - RESULT_CHARS
    return replace(
        result, text=f"{result.text[:RESULT_CHARS]}\n... {left:,} more characters are not shown", reads=(), is_cut=True
    )


def _unknown_tool(call: ToolCall, tools: Sequence[Tool]) -> ToolResult:
    names = ", ".join(tool.name for tool in tools) or "none"
    return ToolResult(f"error: there is no tool {call.name!r}; there are: {names}", is_error=True)


def correction(failure: Failure) -> str:
    """The message to a model about a reply that cannot be used."""
    return f"That cannot be used: {failure.message}. Give the whole answer again, corrected."


def _message(message: Message) -> dict[str, Any]:
    record: dict[str, Any] = {"role": message.role, "text": message.text}
    if message.tool_calls:
        record["tool_calls"] = [asdict(call) for call in message.tool_calls]
    if message.tool_call_id:
        record |= {"tool_call_id": message.tool_call_id, "tool_name": message.tool_name}
    return record


def _use(use: ToolUse) -> Mapping[str, Any]:
    return {
        "step": use.step,
        "turn": use.turn,
        "tool": use.call.name,
        "arguments": use.call.arguments,
        "is_error": use.result.is_error,
        "reads": [asdict(read) for read in use.result.reads],
        "wall_s": round(use.wall_s, 3),
    }


NONCE_CHARS = 24


class Prompt(BaseModel):
    """Templates of the system prompt and of the user's message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    version: Annotated[int, Field(ge=1)]
    system: str
    user: str

    @property
    def label(self) -> str:
        """`relevance-1`."""
        return f"{self.name}-{self.version}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of both templates."""
        return "sha256:" + hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()

    def fill(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """System prompt and user's message. What is filled in is no template.

        Raises:
            jinja2.TemplateError: a template has an error, or names a value that is not there.
        """
        system, user = (_template(text).render(values).strip() for text in (self.system, self.user))
        return system, user


def clean(text: str) -> str:
    """The text without characters that a program along the way would interpret."""
    return UNPRINTABLE.sub(" ", text)


def nonce(prompt: Prompt, parts: Sequence[str]) -> str:
    """The name of the delimiters: a hash of everything that stands between them.

    It is as hard to guess as a random one, because a document that contains it would have to contain its own hash. It is not
    random, so that the same request is the same bytes: for the cache, and for a recording.

    Args:
        prompt: that is filled.
        parts: the texts between the delimiters.
    """
    parts = [prompt.digest, *parts]
    for salt in range(1_000):
        text = "\0".join([str(salt), *(str(len(part)) + part for part in parts)])
        found = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:NONCE_CHARS]
        if not any(found in part for part in parts):
            return found
    raise InternalError("a text that contains 1,000 hashes of itself")


@cache
def _template(text: str) -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)
