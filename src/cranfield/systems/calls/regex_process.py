"""Search the output of a system with a regular expression of the config, in a process that a time limit can end.

A search in this process would hold its only interpreter lock: no limit and no Ctrl-C would end it. Searches that can only be
short are made here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.patterns import most_steps
from cranfield.systems.calls.answer_schema import UnparsableError

_SHORT_STEPS = 2e7
"""Searches of at most so many steps are made in this process: well under a second."""
_MAX_FOUND_BYTES = 64 * 1024 * 1024
_MEMORY_BYTES = 2 * 1024**3
_PROGRAM = f"""
import json, re, sys, warnings
from itertools import islice
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES}))
except (ImportError, OSError, ValueError):
    pass
for line in sys.stdin:
    pattern, text, most = json.loads(line)
    found = [[match[0], *match.groups()] for match in islice(re.finditer(pattern, text), most)]
    print(json.dumps(found), flush=True)
"""

Found = list[list[str | None]]
"""Each match: its text, and the text of each group."""


class SearchError(UnparsableError):
    """A search that found no end, or too much; the message is the reason in reports."""


def find(where: str, pattern: re.Pattern[str], text: str, most: int, timeout_s: float) -> Found:
    """The first matches in a text. Not called on the event loop.

    Args:
        where: the key of the config, for messages: `extract.regex`.
        pattern: the expression.
        text: the output of a system.
        most: number of matches.
        timeout_s: time limit of the search.

    Raises:
        SearchError: it takes longer than the limit, or more memory than there is for it.
    """
    if most_steps(pattern.pattern, len(text), pattern.flags) <= _SHORT_STEPS:
        return [[match[0], *match.groups()] for match in islice(pattern.finditer(text), most)]
    try:
        found = event_loop().run(_search(json.dumps([pattern.pattern, text, most]), timeout_s))
    except TimeoutError:
        raise SearchError(f"{where} took over {timeout_s:g} s on this output") from None
    except TooMuchOutputError:
        raise SearchError(f"{where} found over {_MAX_FOUND_BYTES // 1024**2} MB of text") from None
    except NotStartedError as error:
        raise SearchError(f"{where}: the process that searches could not be started: {error}") from None
    if found is None:
        raise SearchError(f"{where} needs too much memory on this output")
    return found


_idle: list[ChildProcess] = []
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_idle.clear)  # they are the parent's


async def _search(request: str, timeout_s: float) -> Found | None:
    """The answer of an idle process, or of a new one; None where it ended."""
    child = _idle.pop() if _idle else await _start()
    try:
        async with asyncio.timeout(timeout_s):
            with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: so has its output
                await child.write_line(request)
            line = await child.read_line()
    except BaseException:
        child.ending()
        raise
    if line is None:
        await child.end()
        return None
    _idle.append(child)
    found: Found = json.loads(line)
    return found


async def _start() -> ChildProcess:
    return await ChildProcess.start(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        cwd=Path("/"),
        env=os.environ,
        stdin=True,
        max_output_bytes=_MAX_FOUND_BYTES,
    )
