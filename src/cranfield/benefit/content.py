"""Whether a result of a tool has content: a call that ends without an error may still bring nothing.

What is judged is the shape alone: a result that shows lines of the repository has content, whatever words stand around them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cranfield.benefit.records import CellRecord, Flaw, ToolResultNote
from cranfield.systems.kinds.mcp_session import wrapped_text

MAX_OF_A_PHRASE = 300
"""Characters of a text that can be no more than `no results found for ...`, or an error without its cause."""
MAX_OF_AN_ERROR = 4_000
"""Characters of a text that begins as an error does: a stack of calls."""
MIN_TASKS = 3
"""That must have had the same result before it says anything of the tool."""
_CONTENT = (
    "content", "text", "result", "results", "matches", "hits", "items", "documents", "answer", "output", "data",
    "code", "source", "snippet", "summary", "body",
)  # fmt: skip
_COUNTS = ("found", "total", "count", "n", "total_results", "num_results", "result_count")
_FAILURES = ("error", "errors", "exception")
_FLAGS = ("query", "code", "status", "status_code", "type", "isError", "success", "ok", "message", "detail", "took_ms")
"""Besides an error, or where there is nothing, these say nothing of the code."""
_NOTHING = re.compile(
    r"\W{0,5}(?:(?:sorry|warning|info|note|search|query)\W{1,3})?(?:(?:the )?search (?:has )?(?:returned|found|gave|did not return)\s|there (?:is|are|were) |found |results?\s?:\s?|returned )?"
    r"(?:(?:no|0|zero|any)\s(?:[\w-]{1,30}\s){0,3}?(?:results?|match(?:es)?|hits?|documents?|files?|symbols?|entries|records?|answers?|context|content|data|output)\b[^:]*$"
    r"|(?:0|none|nothing)\W{0,5}$"
    r"|no\s(?:[\w-]{1,30}\s){1,4}found\b"
    r"|nothing (?:was |were )?(?:found|matched|matches|relevant)\b"
    r"|(?:could not|couldn't|did not|didn't|cannot) find\b"
    r"|not found\b|(?:index )?not (?:ready|available)\W{0,5}$|empty(?: results?)?\W{0,5}$|n/?a\W{0,5}$|null\W{0,5}$)",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\W{0,5}(?:(?:[A-Za-z_.0-9]{0,60}(?:error|exception)|fatal|failure|panic|traceback \(most recent call last\))\s{0,3}(?:\(\w{1,30}\))?\s{0,3}(?::|-|–|$)"
    r"|(?:an? )?(?:[\w-]{1,30}\s){0,3}error (?:has )?occurr?ed"
    r"|(?:failed|unable) to\b|(?:request|connection|operation|tool|server|call) (?:failed|timed out|(?:was )?refused)\b|timed out\b"
    r"|(?:http(?:/[\d.]{1,3})?|status(?: code)?):?\s[45]\d\d\b|[45]\d\d\s(?:internal server error|service unavailable|too many requests|bad gateway|gateway time-?out|unauthorized|forbidden)\W{0,5}$"
    r"|(?:internal server error|service unavailable|too many requests|rate limit(?: exceeded| reached)?|unauthori[sz]ed|permission denied|time-?out)\s{0,2}(?:$|[.:!(]))",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"(?:\[|\.\.\.|…|\()\s{0,3}(?:omitted\s)?\d[\d,.]{0,14}\s{1,3}(?:more\s)?(?:of\s\d[\d,.]{0,14}\s)?(?:lines|tokens|characters|chars|bytes|results)\b[^\n]{0,40}?(?:truncated|omitted|not shown)"
    r"|(?:\[|\.\.\.|…|\()\W{0,3}omitted \d"
    r"|(?:\[|\.\.\.|…|\()\s{0,3}(?:output|result|content|response)?\s{0,3}(?:was\s)?truncated\b[^\n]{0,120}$"
    r"|\bmore characters are not shown$",
    re.IGNORECASE,
)
"""Every repeat is bounded: what stands here is a text of a tool under test, of any length."""


def parsed(text: str) -> Any:
    """The value of a result: its JSON, without the wrapper that SDKs put around a text; or the text itself."""
    try:
        return unwrapped(json.loads(text))
    except (ValueError, RecursionError):
        return text


def unwrapped(value: Any) -> Any:
    """A value without its wrapper: a tool that returns JSON as a text is sent as `{"result": "..."}`."""
    if (text := wrapped_text(value)) is None:
        return value
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return value
    return inner if isinstance(inner, dict | list) else value


def flaws_of(text: str, *, is_cut: bool = False, is_of_repository: bool = False) -> tuple[Flaw, ...]:
    """What is wrong with a result that its server does not call an error.

    Args:
        text: as the agent received it.
        is_cut: it is known to be a part of what the server sent.
        is_of_repository: lines of it stand in the text, or a name of its files: it is neither empty nor an error.
    """
    value = parsed(text)
    found = []
    if is_cut or (_CUT.search(text.rstrip()) is not None) or (not is_of_repository and _ends_within_json(text, value)):
        found.append(Flaw.CUT)
    if is_of_repository:
        return tuple(found)
    with suppress(RecursionError):  # nested as deep as this, it holds something
        if _reads_as_error(value):
            found.append(Flaw.ERROR)
        elif _is_empty(value):
            found.append(Flaw.EMPTY)
    return tuple(found)


def same_for_different_tasks(cells: Iterable[CellRecord]) -> int:
    """How often a tool gave its most frequent result word for word, to calls that differ and of `MIN_TASKS` tasks or more.

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
            if len({arguments for arguments, _ in found}) > 1 and len({task for _, task in found}) >= MIN_TASKS
        ),
        default=0,
    )


def notes_of(cell: CellRecord) -> Sequence[ToolResultNote]:
    """What is known of the results of the tools under test in a cell."""
    return () if cell.delivery is None else cell.delivery.results or ()


def _ends_within_json(text: str, value: Any) -> bool:
    plain = text.rstrip()
    return isinstance(value, str) and plain[:2] in {'{"', "[{", '["'} and plain[-1] not in "]})"


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        plain = _without_mark(value)
        return not plain or (len(plain) <= MAX_OF_A_PHRASE and _NOTHING.match(plain) is not None)
    if isinstance(value, list):
        return all(_is_empty(each) for each in value)
    return _is_empty_object(value) if isinstance(value, dict) else value is None


def _is_empty_object(value: Mapping[str, Any]) -> bool:
    """By a text that is its content; else by its lists, where it has some; else by a count of 0."""
    contents = [value[name] for name in _CONTENT if name in value]
    if any(isinstance(each, str) and not _is_empty(each) for each in contents):
        return False
    if lists := list(_lists(value)):
        return all(_is_empty(each) for each in lists)
    if any(name in value and not value[name] for name in _COUNTS):
        return True
    others = [each for name, each in value.items() if name not in _FLAGS]
    return all(_is_empty(each) for each in contents or others)


def _without_mark(text: str) -> str:
    """A text without the mark that it was cut, which says nothing of what is left."""
    plain = text.strip()
    return plain if len(plain) > MAX_OF_A_PHRASE else _CUT.sub("", plain).strip(" \n.…[](){}")


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
        return len(plain) <= MAX_OF_AN_ERROR and bool(plain) and _FAILED.match(plain.splitlines()[0]) is not None
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) and _reads_as_error(each) for each in value)
    return isinstance(value, dict) and _is_error_object(value)


def _is_error_object(value: Mapping[str, Any]) -> bool:
    """By its error, where it has nothing besides; by a flag; or by the text of its content."""
    if any(isinstance(value.get(name), str | dict | list) and value[name] for name in _FAILURES):
        rest = [each for name, each in value.items() if name not in (*_FAILURES, *_FLAGS)]
        return all(not isinstance(each, str | list | dict) or _is_empty(each) for each in rest)
    flags = (value.get("isError") is True, value.get("success") is False, value.get("ok") is False)
    if any(flags) or str(value.get("status", "")).lower() in {"error", "failed", "failure"}:
        return True
    inner = [value[name] for name in _CONTENT if isinstance(value.get(name), str)]
    return bool(inner) and all(_reads_as_error(each) for each in inner)
