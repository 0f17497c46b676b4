"""The protocol: one request to a model, and its answer or a failure with a kind.

A backend sends one request. Programs that call tools in turn are loops over a backend, so that every call of a model has
its own usage, its own record and its own place in the budget. Everything here is data: a request has a digest, an answer
is written to a file and read from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ValidationError

from cranfield.base.errors import shorten
from cranfield.base.words import printable

Role = Literal["user", "assistant", "tool"]
OutputMode = Literal["native", "tool", "prompted"]
"""How a typed output is requested: by the schema of the response, as the argument of a tool, or in words."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that the model requests."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it; it may be invalid."""


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of the conversation."""

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Tool calls of a message of the assistant."""
    tool_call_id: str = ""
    """Id of the call that the result of a tool answers."""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call; the caller runs it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of a call; None: the default of the provider."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """Most tokens of the answer, with those of its reasoning."""


@dataclass(frozen=True)
class Request:
    """One request to a model."""

    model: str
    """`provider:name`."""
    system: str
    messages: tuple[Message, ...]
    output: type[BaseModel] | None = None
    """Schema of the answer; None: text."""
    tools: tuple[Tool, ...] = ()
    sampling: Sampling = Sampling()
    output_mode: OutputMode = "native"
    timeout_s: float = 120.0
    """Timeout of one attempt, in seconds. Not part of the record."""

    def record(self) -> dict[str, Any]:
        """Everything that decides the answer, as JSON."""
        return {
            "model": self.model,
            "system": self.system,
            "messages": [_message_record(message) for message in self.messages],
            "output": None if self.output is None else _schema(self.output),
            "output_mode": self.output_mode,
            "tools": [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in self.tools
            ],
            "sampling": asdict(self.sampling),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the record."""
        text = json.dumps(self.record(), sort_keys=True, ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=64)
def _schema(output: type[BaseModel]) -> Mapping[str, Any]:
    """JSON Schema of an answer, made once: it takes longer than the rest of a record."""
    return output.model_json_schema()


def _message_record(message: Message) -> dict[str, Any]:
    calls = [asdict(call) for call in message.tool_calls]
    given = {"tool_calls": calls, "tool_call_id": message.tool_call_id, "tool_name": message.tool_name}
    return {"role": message.role, "text": message.text, **{name: value for name, value in given.items() if value}}


class FailureKind(StrEnum):
    """Why there is no answer."""

    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    """The server failed (5xx)."""
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    REJECTED = "rejected"
    """The request is invalid, or not allowed: 4xx."""
    FILTERED = "filtered"
    """The provider or the model refused to answer."""
    TRUNCATED = "truncated"
    """The answer reached its maximum length."""
    BAD_OUTPUT = "bad_output"
    """The answer does not fit the schema."""
    PROTOCOL = "protocol"
    """The response is not an answer of a model: another kind of server, or a faulty one."""
    BUDGET = "budget"
    """Not sent: it could exceed the budget."""
    NOT_RECORDED = "not_recorded"
    """Not in the recording that is replayed."""


TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.UNAVAILABLE,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.PROTOCOL,
    }
)
"""The same request may succeed later."""
UNREADABLE = frozenset({FailureKind.BAD_OUTPUT, FailureKind.TRUNCATED})
"""The model replied, and the reply cannot be used: another one may be."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without an answer."""

    kind: FailureKind
    message: str
    status: int | None = None
    """Status of the HTTP response."""
    retry_after_s: float | None = None
    got: str = ""
    """What came, quoted and shortened; empty: nothing, or it is not known."""

    @property
    def detail(self) -> str:
        """The message, and what came, on one line and safe to print."""
        return printable(f"{self.message}; got {self.got}" if self.got else self.message)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more requests. None: not reported, which is not 0."""

    requests: int = 1
    input: int | None = None
    """All tokens of the input, those of a cache included."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Those of the reasoning included."""
    reasoning: int | None = None
    unmeasured: int = 0
    """Requests that may have used tokens and did not report them."""

    @property
    def total(self) -> int | None:
        """Tokens in and out."""
        return None if self.input is None or self.output is None else self.input + self.output


@dataclass(frozen=True)
class ModelAnswer:
    """What came back: a value, tool calls or text; or a failure."""

    output: BaseModel | None = None
    text: str = ""
    """As the model wrote it, also where it does not fit the schema."""
    tool_calls: tuple[ToolCall, ...] = ()
    failure: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """The model's name, as the provider reports it."""
    wall_s: float = 0.0
    is_kept: bool = False
    """It was taken from a file: nothing was sent. Not part of the record."""

    def record(self) -> dict[str, Any]:
        """As JSON, without the validated value, which follows from the text."""
        return {
            "text": self.text,
            "tool_calls": [asdict(call) for call in self.tool_calls],
            "failure": None if self.failure is None else asdict(self.failure),
            "usage": asdict(self.usage),
            "model": self.model,
            "wall_s": round(self.wall_s, 3),
        }


def read_answer(record: Mapping[str, Any], request: Request) -> ModelAnswer:
    """The answer of a record, its output validated again.

    Raises:
        KeyError, TypeError, ValueError: it is no such record.
    """
    answer = ModelAnswer(
        text=str(record["text"]),
        tool_calls=tuple(ToolCall(**call) for call in record["tool_calls"]),
        failure=read_failure(record["failure"]),
        usage=Usage(**record["usage"]),
        model=record["model"],
        wall_s=float(record["wall_s"]),
    )
    return answer if answer.failure or answer.tool_calls else with_output(answer, request)


def read_failure(record: Mapping[str, Any] | None) -> Failure | None:
    """The failure of a record.

    Raises:
        KeyError, TypeError, ValueError: it is no such record.
    """
    return None if record is None else Failure(**{**record, "kind": FailureKind(record["kind"])})


def with_output(answer: ModelAnswer, request: Request) -> ModelAnswer:
    """The answer with its text validated by the schema of the request; a failure where it does not fit."""
    if request.output is None:
        return answer
    try:
        return replace(answer, output=request.output.model_validate_json(unfenced(answer.text)))
    except ValidationError as error:
        problems = "; ".join(
            printable(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}")
            for each in error.errors(include_url=False)[:5]
        )
        message = f"the answer does not fit the schema: {problems}"
        return replace(answer, failure=Failure(FailureKind.BAD_OUTPUT, message, got=shorten(answer.text)))


def unfenced(text: str) -> str:
    """The text without the Markdown fence that some models write around JSON, where the fence is all there is besides."""
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped):
        return text
    return stripped[stripped.index("\n") + 1 : -3]


class Backend(Protocol):
    """Answers requests. Used on one event loop; several requests may be under way."""

    async def ask(self, request: Request) -> ModelAnswer:
        """Send the request. What goes wrong is a failure in the answer, not an exception."""
        ...
