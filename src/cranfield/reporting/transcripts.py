"""Transcripts of agents as one page: what each was sent, what it called, read and answered; with an index by record.

Everything is text of a model or of a repository: it is escaped, and the page has no script and requests nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import InputError, Problem
from cranfield.base.numbers import format_count
from cranfield.base.version import __version__
from cranfield.base.words import capitalised, count_noun, join_first, printable, printable_lines
from cranfield.reporting.renderers.html import static_page

if TYPE_CHECKING:
    from markupsafe import Markup

ANSWERED = "answered"
_LONG_WORD = re.compile(r"\S{1000}")
_PIECE = 100
"""Characters of a long word without a place where the line may break: a browser takes minutes to lay out some words."""
_LABELS = {"user": "sent", "assistant": "the model"}


def transcripts_page(records: Iterable[Mapping[str, Any]], title: str = "Transcripts") -> str:
    """The whole page.

    Args:
        records: lines of `transcripts.jsonl`: the record of a transcript, with `query_id` and `role`.
        title: of the page.

    Raises:
        InputError: with every line that is no transcript.
    """
    by_id: dict[str, list[_Agent]] = {}
    problems = []
    n = 0
    for n, record in enumerate(records, start=1):
        try:
            by_id.setdefault(str(record["query_id"]), []).append(_agent(record, f"agent-{n}"))
        except (KeyError, TypeError, ValueError, AttributeError):
            problems.append(Problem("not a transcript of an agent", line=n))
    if problems:
        raise InputError(problems)
    rows = [
        _Row(query_id, f"record-{place}", agents) for place, (query_id, agents) in enumerate(by_id.items(), start=1)
    ]
    agents = [agent for row in rows for agent in row.agents]
    failed = sum(not agent.answered for agent in agents)
    subtitle = [
        f"{count_noun(len(rows), 'records', format_count)}, {count_noun(len(agents), 'agents', format_count)}",
        f"{_requests(_sum([row.n_requests for row in rows]))}, {count_noun(sum(row.n_calls for row in rows), 'calls', format_count)} of tools",
        f"{format_count(failed)} without an answer",
    ]
    return static_page("transcripts", title=title, subtitle=subtitle, records=rows, made_by=f"Cranfield {__version__}")


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: Markup
    result: Markup | None
    result_title: str
    note: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class _Turn:
    kind: str
    label: str
    text: Markup
    calls: Sequence[_Call] = ()


@dataclass(frozen=True, slots=True)
class _Agent:
    name: str
    anchor: str
    end: str
    answered: bool
    summary: str
    about: Sequence[tuple[str, str]]
    system: Markup
    turns: Sequence[_Turn]
    failure: str
    n_requests: int | None
    n_calls: int
    n_tokens: int | None


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    anchor: str
    agents: Sequence[_Agent]

    @property
    def n_requests(self) -> int | None:
        return _sum([agent.n_requests for agent in self.agents])

    @property
    def n_calls(self) -> int:
        return sum(agent.n_calls for agent in self.agents)

    @property
    def requests(self) -> str:
        return _count(self.n_requests)

    @property
    def calls(self) -> str:
        return format_count(self.n_calls)

    @property
    def tokens(self) -> str:
        return _count(_sum([agent.n_tokens for agent in self.agents]))


def _agent(record: Mapping[str, Any], anchor: str) -> _Agent:
    usage, end, failure = record["usage"], str(record["end"]), record["failure"]
    n_requests, n_calls = record["turns"], len(record["uses"])
    tokens = None if usage["input"] is None or usage["output"] is None else usage["input"] + usage["output"]
    times = [f"{key} {record[key]}" for key in ("attempt", "vote") if record.get(key, 1) != 1]
    about = [
        ("model", printable(str(record["model"]))),
        ("reported as", printable(join_first(record["models"])) or "not reported"),
        ("tools", printable(", ".join(record["tools"])) or "none"),
        ("tokens in", _count(usage["input"])),
        ("from the cache", _count(usage["cache_read"])),
        ("tokens out", _count(usage["output"])),
        ("time", f"{_seconds(record['wall_s'], 1)}, of which {_seconds(record['model_s'], 1)} in requests"),
    ]
    return _Agent(
        name=printable(", ".join([str(record["role"]), *times])),
        anchor=anchor,
        end=end,
        answered=end == ANSWERED,
        summary=f"{end}, {_requests(n_requests)}, {count_noun(n_calls, 'calls')} of tools, {_count(tokens)} tokens",
        about=about,
        system=_text(str(record["system"])),
        turns=_turns(record["messages"], record["uses"], "message" if "agent" in record else "request"),
        failure="" if failure is None else f"{capitalised(str(failure['kind']))}: {printable(str(failure['message']))}",
        n_requests=n_requests,
        n_calls=n_calls,
        n_tokens=tokens,
    )


def _turns(messages: Sequence[Mapping[str, Any]], uses: Sequence[Mapping[str, Any]], step: str) -> list[_Turn]:
    """Messages in order, each call with its result and what it read; `step` is what a message of the model is called."""
    turns: list[_Turn] = []
    left, number = list(uses), 0
    for place, message in enumerate(messages):
        role, text = str(message["role"]), _text(_json(str(message["text"])))
        if role == "tool":  # shown with the call
            continue
        number += role == "assistant"
        calls = []
        for at, call in enumerate(message.get("tool_calls", ()), start=place + 1):
            result = messages[at]["text"] if at < len(messages) and messages[at]["role"] == "tool" else None
            use = left.pop(0) if left and left[0]["turn"] == number and result is not None else None
            calls.append(_call(call, result, use))
        label = f"{_LABELS[role]}, {step} {number}" if role == "assistant" else _LABELS[role]
        turns.append(_Turn(role, label, text, calls))
    return turns


def _call(call: Mapping[str, Any], result: str | None, use: Mapping[str, Any] | None) -> _Call:
    note, is_error = "", False
    if use is not None:
        is_error = bool(use["is_error"])
        places = [f"{each['path']}:{each['start']}-{each['end']}" for each in use["reads"]]
        read = f"read {join_first(places, 8)}" if places else "showed no lines"
        note = f"step {int(use['step'])}, {'' if use['wall_s'] is None else _seconds(use['wall_s'], 2) + ', '}{'error' if is_error else read}"
    elif result is not None:
        note = "not run: no more calls were allowed"
    shown = None if result is None else str(result)
    title = "" if shown is None else f"Result, {count_noun(len(shown), 'characters', format_count)}"
    arguments = _text(_json(str(call["arguments"])))
    return _Call(
        printable(str(call["name"])),
        arguments,
        None if shown is None else _text(shown),
        title,
        printable(note),
        is_error,
    )


def _json(text: str) -> str:
    """JSON with indentation; other text as it is."""
    if not text.startswith("{"):
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _text(text: str) -> Markup:
    """Escaped, with places where the line may break in words without end."""
    from markupsafe import Markup, escape

    plain = printable_lines(text)
    if not _LONG_WORD.search(plain):
        return escape(plain)
    return Markup("<wbr>").join(plain[at : at + _PIECE] for at in range(0, len(plain), _PIECE))


def _count(number: int | None) -> str:
    return "unknown" if number is None else format_count(number)


def _requests(number: int | None) -> str:
    return "an unknown number of requests" if number is None else count_noun(number, "requests", format_count)


def _seconds(number: float | None, digits: int) -> str:
    return "unknown" if number is None else f"{float(number):.{digits}f} s"


def _sum(numbers: Sequence[int | None]) -> int | None:
    """None: one of them is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
