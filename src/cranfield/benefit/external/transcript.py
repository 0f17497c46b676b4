"""The transcript of an external agent, in the form of one of the reference agent: the same page shows both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cranfield.agents.loop import Read
from cranfield.benefit.errors import CellError
from cranfield.benefit.external.events import Events
from cranfield.benefit.records import CellEnd, CellUsage


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
