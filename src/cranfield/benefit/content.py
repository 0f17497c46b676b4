"""Whether a result of a tool has content: a call that ends without an error may still bring nothing.

What is judged is the shape alone: a result that shows lines of the repository has content, whatever words stand around them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from cranfield.benefit.records import CellRecord, Flaw, ToolResultNote
from cranfield.words import printable

MOST_OF_A_PHRASE = 300
"""Characters of a text that can be no more than `no results found for ...`, or an error without its cause."""
FEWEST_TASKS = 3
"""That must have had the same result before it says anything of the tool."""
_WRAPPER = "result"
"""Key under which SDKs of MCP put a result that is no object."""
_CONTENT = ("content", "text", "result", "results", "matches", "hits", "items", "documents", "answer", "output", "data")
_COUNTS = ("total", "count", "n", "total_results", "num_results", "result_count")
_FAILURES = ("error", "errors", "exception")
_NOTHING = re.compile(
    r"\W*(?:(?:sorry|warning|info|note)\W+)?(?:there (?:is|are|were) )?"
    r"(?:(?:no|0|zero)\s+(?:[\w-]+\s+){0,3}?(?:results?|match(?:es)?|hits?|documents?|files?|symbols?|entries|records?|answers?|context|content|data)\b"
    r"|no\s+(?:[\w-]+\s+){1,4}found\b"
    r"|(?:nothing|none)(?:\s+(?:was|were))?(?:\s+(?:found|matched|matches|relevant))?\W*$"
    r"|(?:could not|couldn't|did not|didn't|cannot) find\b"
    r"|not found\b|empty(?: results?)?\W*$|n/?a\W*$|null\W*$)",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\W*(?:(?:[A-Za-z_.0-9]*(?:error|exception)|fatal|failure|panic|traceback \(most recent call last\))\s*(?:\(\w+\))?\s*(?::|-|–|$)"
    r"|(?:an? )?(?:[\w-]+\s+){0,3}error (?:has )?occurr?ed"
    r"|(?:failed|unable) to\b|(?:request|connection|operation|tool|server|call) (?:failed|timed out|(?:was )?refused)\b|(?:timed out|time-?out)\b(?!\s*=)"
    r"|(?:http(?:/[\d.]+)?\s*)?[45]\d\d\b\W+[A-Za-z]|internal server error|service unavailable|too many requests|rate limit|unauthori[sz]ed|permission denied)",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"(?:\[|\.\.\.|…|\()\s*(?:omitted\s+)?\d[\d,.]*\s+(?:more\s+)?(?:of\s+\d[\d,.]*\s+)?(?:lines|tokens|characters|chars|bytes|results)\b[^\n]{0,40}?(?:truncated|omitted|not shown)"
    r"|(?:\[|\.\.\.|…|\()\W*omitted \d"
    r"|(?:\[|\.\.\.|…|\()\s*(?:output|result|content|response)?\s*(?:was\s+)?truncated\b[^\n]{0,120}\s*$"
    r"|\bmore characters are not shown\s*$",
    re.IGNORECASE,
)


def parsed(text: str) -> Any:
    """The value of a result: its JSON, without the wrapper that SDKs put around a text; or the text itself."""
    try:
        return unwrapped(json.loads(text))
    except (ValueError, RecursionError):
        return text


def unwrapped(value: Any) -> Any:
    """A value without its wrapper: a tool that returns JSON as a text is sent as `{"result": "..."}`."""
    if not (isinstance(value, dict) and list(value) == [_WRAPPER] and isinstance(value[_WRAPPER], str)):
        return value
    try:
        inner = json.loads(value[_WRAPPER])
    except (ValueError, RecursionError):
        return value
    return inner if isinstance(inner, dict | list) else value


def flaws_of(text: str, *, is_cut: bool = False, shows_lines: bool = False) -> tuple[Flaw, ...]:
    """What is wrong with a result that its server does not call an error.

    Args:
        text: as the agent received it.
        is_cut: it is known to be a part of what the server sent.
        shows_lines: lines of the repository stand in it: it is neither empty nor an error.
    """
    value = parsed(text)
    found = []
    if is_cut or _is_cut(text, value):
        found.append(Flaw.CUT)
    elif not shows_lines:
        if _reads_as_error(value):
            found.append(Flaw.ERROR)
        elif _is_empty(value):
            found.append(Flaw.EMPTY)
    return tuple(found)


def result_note(tool: str, arguments: str, text: str, flaws: Iterable[Flaw], **shows: bool) -> ToolResultNote:
    """What is kept of a result: which call it answers, and what it is like, without its text.

    Args:
        tool: as the agent has it.
        arguments: of the call, as JSON.
        text: of the result.
        flaws: of the result.
        shows: `shows_lines` and `names_files` of the note.
    """
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    return ToolResultNote(
        tool=printable(tool) or "?",
        arguments=_digest(arguments),
        text=_digest(text.strip()),
        flaws=tuple(flaws),
        **shows,
    )


def same_for_different_tasks(cells: Iterable[CellRecord]) -> int:
    """How often a tool gave its most frequent result word for word, to calls that differ and of `FEWEST_TASKS` tasks or more.

    That a few similar questions have the same results is how searches are; that one result comes whatever is asked is not.
    Results without content are not counted again.
    """
    calls: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for cell in cells:
        for note in notes_of(cell):
            if not {Flaw.EMPTY, Flaw.ERROR} & set(note.flaws):
                calls[note.tool, note.text].append((note.arguments, cell.key.task_id))
    return max(
        (
            len(found)
            for found in calls.values()
            if len({arguments for arguments, _ in found}) > 1 and len({task for _, task in found}) >= FEWEST_TASKS
        ),
        default=0,
    )


def notes_of(cell: CellRecord) -> Sequence[ToolResultNote]:
    """What is known of the results of the tools under test in a cell."""
    return () if cell.delivery is None else cell.delivery.results or ()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _is_cut(text: str, value: Any) -> bool:
    """Whether it says that it is a part, or begins as JSON and does not end as it."""
    plain = text.strip()
    begins = plain[:2].replace(" ", "")[:2]
    is_open = isinstance(value, str) and begins in {'{"', "[{", '["', "[["} and plain[-1] not in "]}"
    return is_open or _CUT.search(plain) is not None


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        plain = value.strip()
        return not plain or (len(plain) <= MOST_OF_A_PHRASE and _NOTHING.match(plain) is not None)
    if isinstance(value, list):
        return all(_is_empty(each) for each in value)
    return _is_empty_object(value) if isinstance(value, dict) else not value


def _is_empty_object(value: Mapping[str, Any]) -> bool:
    """By its lists, where it has some; else by a count of 0, or by what is known to hold the content."""
    if lists := list(_lists(value)):
        return all(_is_empty(each) for each in lists)
    if any(name in value and not value[name] for name in _COUNTS):
        return True
    contents = [value[name] for name in _CONTENT if name in value]
    return all(_is_empty(each) for each in contents or value.values())


def _lists(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Those of an object and of the objects in it."""
    for each in value.values():
        if isinstance(each, list):
            yield each
        elif isinstance(each, dict):
            yield from _lists(each)


def _reads_as_error(value: Any) -> bool:
    if isinstance(value, str):
        plain = value.strip()
        return bool(plain) and _FAILED.match(plain.splitlines()[0]) is not None
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) and _reads_as_error(each) for each in value)
    return isinstance(value, dict) and _is_error_object(value)


def _is_error_object(value: Mapping[str, Any]) -> bool:
    """By its error, where it has nothing besides; by a flag; or by the text of its content."""
    if any(value.get(name) for name in _FAILURES):
        rest = [each for name, each in value.items() if name not in _FAILURES and isinstance(each, list | dict)]
        return all(_is_empty(each) for each in rest)
    flags = (value.get("isError") is True, value.get("success") is False, value.get("ok") is False)
    if any(flags) or str(value.get("status", "")).lower() in {"error", "failed", "failure"}:
        return True
    inner = [value[name] for name in _CONTENT if isinstance(value.get(name), str)]
    return bool(inner) and all(_reads_as_error(each) for each in inner)
