"""What an external agent reports of a run, whichever it is; its output is read line by line while it runs."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cranfield.agents.loop import Read
from cranfield.agents.protocol import Usage
from cranfield.base.words import printable
from cranfield.benefit.errors import CellError
from cranfield.benefit.records import CellEnd, CellUsage, ToolCount

_NAME_CHARS = 100
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")
MCP = "mcp__"
"""Prefix of the tools of MCP servers in command-line agents."""


def tool_name(server: str, tool: str) -> str:
    """`knowcode__search`, as in the reference agent."""
    return f"{server}__{tool}"


def plain_name(name: str) -> str:
    """The name of a tool in one spelling: agents differ in the prefix, and in what they replace."""
    return _NOT_IN_A_NAME.sub("_", name.removeprefix(MCP))


@dataclass
class ToolEvent:
    """A call of a tool."""

    name: str
    arguments: str = ""
    """As JSON, or as the agent reports them."""
    is_error: bool | None = None
    """None: no result was reported."""
    text: str = ""
    """Text of the result."""
    turn: int = 1
    """Where the agent reports no turns, each call is one."""


@dataclass
class Events:
    """Everything an agent reported so far. None: it reports no such thing."""

    answer: str = ""
    is_finished: bool = False
    """It reported the end of its work."""
    error: str = ""
    """The last that it reported."""
    calls: dict[str, ToolEvent] = field(default_factory=dict)
    """Id of a call to it."""
    has_calls: bool = True
    """It reports its calls; False: `calls` is empty, and they are not known."""
    has_results: bool = True
    """It reports the texts of their results."""
    usage: Usage | None = None
    """Usage of all requests."""
    turns: int | None = None
    money: float | None = None
    model_s: float | None = None
    offered: frozenset[str] | None = None
    """Plain names of the tools that the agent reports to have."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """MCP server to its state, as the agent reports it."""
    models: list[str] = field(default_factory=list)
    version: str = ""
    n_unread: int = 0
    """Lines that are not of the format."""
    limit: CellEnd | None = None
    """Limit of its own that the agent reached."""
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    """As in a transcript of the reference agent."""

    def say(self, text: str) -> None:
        """Note a text of the model."""
        self.messages.append({"role": "assistant", "text": text})

    def call(self, id_: str, name: str, arguments: object) -> None:
        """Note a call, unless it is noted already."""
        if id_ in self.calls:
            return
        spelled = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        turn = self.turns or len(self.calls) + 1
        event = self.calls[id_] = ToolEvent(printable(name)[:_NAME_CHARS], spelled, turn=turn)
        call = {"id": id_, "name": event.name, "arguments": spelled}
        self.messages.append({"role": "assistant", "text": "", "tool_calls": [call]})

    def result(self, id_: str, text: str, *, is_error: bool) -> None:
        """Note the result of a call."""
        if (call := self.calls.get(id_)) is None:
            return
        call.is_error, call.text = is_error, text
        self.messages.append({"role": "tool", "text": text, "tool_call_id": id_, "tool_name": call.name})

    @property
    def tool_counts(self) -> Mapping[str, ToolCount] | None:
        """Calls by tool; one without a result failed. None: not known."""
        if not self.has_calls:
            return None
        counts = {name: ToolCount() for name in sorted({call.name for call in self.calls.values()})}
        for call in self.calls.values():
            of = counts[call.name]
            is_ok = call.is_error is False
            counts[call.name] = ToolCount(ok=of.ok + is_ok, error=of.error + (not is_ok))
        return counts

    def note_model(self, name: object) -> None:
        """A name by which the model was reported."""
        if isinstance(name, str) and name and name not in self.models:
            self.models.append(name)


class RunOutputReader:
    """Reads the output of one run; its lines are kept."""

    def __init__(self) -> None:
        self.events = Events()
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        """Take a line."""
        self.lines.append(text)

    def end(self) -> None:
        """Take the end of the output."""


class EventReader(RunOutputReader, ABC):
    """Reads an agent that prints one event per line, as JSON."""

    def line(self, text: str) -> None:
        """Take an event."""
        super().line(text)
        if (event := json_object(text)) is not None:
            self.take(event)
        else:
            self.events.n_unread += bool(text.strip())

    @abstractmethod
    def take(self, event: Mapping[str, Any]) -> None:
        """Note what an event says."""


def json_object(text: str | bytes) -> Mapping[str, Any] | None:
    """The JSON object that a text is; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def count_of(value: object) -> int | None:
    """A number of tokens; None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def mapping_of(value: object) -> Mapping[str, Any]:
    """A JSON object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    """The text of a content: a text, or blocks that have one."""
    return content if isinstance(content, str) else "\n".join(str(each.get("text", "")) for each in dicts_of(content))


def transcript_fields(
    events: Events,
    prompt: str,
    usage: CellUsage,
    reads: Mapping[str, Sequence[Read]],
    end: CellEnd,
    failure: tuple[CellError | None, str],
) -> dict[str, Any]:
    """Messages, calls, usage and end of a run.

    Args:
        events: what the agent reported.
        prompt: that it was given.
        usage: of the cell.
        reads: id of a call to the lines that its result shows.
        end: of the cell.
        failure: its error, and its message; empty where nothing failed.
    """
    error, message = failure
    messages = [{"role": "user", "text": prompt}, *_in_order(events)]
    return {
        "messages": messages,
        "uses": list(_uses(events, messages, reads)),
        "tools": sorted(events.offered or ()),
        "usage": {
            "input": None if usage.total is None or usage.output is None else usage.total - usage.output,
            "cache_read": usage.cache_read,
            "output": usage.output,
        },
        "turns": usage.turns,
        "wall_s": round(usage.wall_s, 3),
        "model_s": None if usage.model_s is None else round(usage.model_s, 3),
        "end": end.value,
        "failure": {"kind": error or end, "message": message} if message else None,
    }


def _in_order(events: Events) -> Iterator[Mapping[str, Any]]:
    """Messages, each result after its call: calls at the same time end in any order. The answer is last."""
    results = {message["tool_call_id"]: message for message in events.messages if message["role"] == "tool"}
    last = ""
    for message in events.messages:
        if message["role"] == "tool":
            continue
        yield message
        last = message["text"] or last
        for call in message.get("tool_calls", ()):
            if call["id"] in results:
                yield results[call["id"]]
    if events.answer.strip() and events.answer.strip() != last.strip():
        yield {"role": "assistant", "text": events.answer}


def _uses(
    events: Events, messages: Sequence[Mapping[str, Any]], reads: Mapping[str, Sequence[Read]]
) -> Iterator[Mapping[str, Any]]:
    """Calls with a result, each at the place of its message among those of the model."""
    place = step = 0
    for message in messages:
        place += message["role"] == "assistant"
        for call in message.get("tool_calls", ()):
            event = events.calls[call["id"]]
            step += 1
            if event.is_error is not None:
                yield {
                    "step": step,
                    "turn": place,
                    "tool": event.name,
                    "arguments": call["arguments"],
                    "is_error": event.is_error,
                    "reads": [asdict(read) for read in reads.get(call["id"], ())],
                    "wall_s": None,
                }
