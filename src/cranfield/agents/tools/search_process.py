"""Search of texts by a regular expression, in a process that holds them and that a time limit can end.

An expression that a model wrote may take exponential time, and in this process nothing would end it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError, TooMuchOutputError

_PROGRAM = """
import json, re, sys, warnings
warnings.simplefilter("ignore")
texts = {}
for line in sys.stdin:
    if line == "\\n":
        break
    path, text = json.loads(line)
    texts[path] = text
try:
    import resource
    most = int(sys.argv[1]) + 8 * sum(map(len, texts.values()))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
except (ImportError, OSError, ValueError):
    pass
for line in sys.stdin:
    query = json.loads(line)
    try:
        in_path = re.compile(query["paths"]).fullmatch
        paths = sorted(filter(in_path, texts)) if query["paths"] else sorted(texts)
        hits, n_hits, n_files = [], 0, 0
        if query["pattern"] is None:
            n_hits, hits = len(paths), [[path, 0] for path in paths[: query["limit"]]]
        else:
            in_line = re.compile(query["pattern"], re.IGNORECASE if query["ignore_case"] else 0).search
            needed = query["needed"]
            for path in paths:
                if needed is not None and needed not in texts[path]:
                    continue
                lines = texts[path].split("\\n")
                if not lines[-1]:
                    lines.pop()
                found = [number for number, text in enumerate(lines, 1) if in_line(text)]
                n_hits += len(found)
                n_files += bool(found)
                hits += [[path, number] for number in found[: query["limit"] - len(hits)]]
        answer = {"hits": hits, "n_hits": n_hits, "n_files": n_files}
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        answer = {"error": f"the pattern is no regular expression of Python: {error.msg}{where}"}
    except (OverflowError, RecursionError, MemoryError) as error:
        answer = {"error": f"the pattern is too large, or needs too much memory: {type(error).__name__}"}
    print(json.dumps(answer), flush=True)
"""
"""Reads the texts up to an empty line, then answers searches, one per line."""
_MEMORY_BYTES = 1024**3
"""On top of eight times the characters of the texts."""
_START_S = 120.0
"""To start the process and hand over the texts."""
_MAX_LINE_BYTES = 64 * 1024 * 1024


class PatternSearchError(Exception):
    """The search has no result; the message is for the author of the pattern."""


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found."""

    places: tuple[tuple[str, int], ...]
    """Path and line of the first hits, by path; line 0 where only paths were requested."""
    n_hits: int
    n_files: int


class SearchProcess:
    """One process for all searches, one after another; replaced where it was late. Used on one event loop."""

    def __init__(self, texts: Mapping[str, str], timeout_s: float) -> None:
        self._texts = texts
        self._timeout_s = timeout_s
        self._child: ChildProcess | None = None
        self._turn = asyncio.Lock()
        self.n_started = 0
        """Processes that were started."""

    async def search(
        self, pattern: str | None, *, paths: str, limit: int, ignore_case: bool = False, needed: str | None = None
    ) -> Hits:
        """The lines that a pattern is found in; without a pattern, the paths.

        Args:
            pattern: regular expression of Python, of one line.
            paths: regular expression of whole paths; empty: all.
            limit: number of hits that are returned; all are counted.
            ignore_case: of the pattern.
            needed: a text that every file with a hit contains; others are skipped.

        Raises:
            SearchError: the pattern is none, or the search is late.
        """
        request = {"pattern": pattern, "paths": paths, "limit": limit, "ignore_case": ignore_case, "needed": needed}
        answer = json.loads(await self._answer(json.dumps(request)))
        if "error" in answer:
            raise PatternSearchError(answer["error"])
        places = tuple((path, line) for path, line in answer["hits"])
        return Hits(places, answer["n_hits"], answer["n_files"])

    async def aclose(self) -> None:
        """End the process. A later search starts another one."""
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def _answer(self, request: str) -> bytes:
        async with self._turn:
            child = self._child or await self._start()
            try:
                async with asyncio.timeout(self._timeout_s):
                    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: so has its output
                        await child.write_line(request)
                    line = await child.read_line()
            except TimeoutError:
                await self.aclose()
                raise PatternSearchError(
                    f"the search took over {self._timeout_s:g} s and was ended: name the characters of each repeat more "
                    "narrowly, or search with literal"
                ) from None
            except TooMuchOutputError:
                await self.aclose()
                raise PatternSearchError("the search found too much") from None
            except BaseException:
                child.ending()
                self._child = None
                raise
            if line is None:
                await self.aclose()
                raise PatternSearchError("the process that searches has ended; a simpler pattern may succeed")
            return line

    async def _start(self) -> ChildProcess:
        try:
            child = await ChildProcess.start(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_MEMORY_BYTES)],
                cwd=Path("/"),
                env=os.environ,
                stdin=True,
                max_output_bytes=_MAX_LINE_BYTES,
            )
        except NotStartedError as error:
            raise PatternSearchError(f"the process that searches could not be started: {error}") from None
        try:
            async with asyncio.timeout(_START_S):
                for path, text in self._texts.items():
                    await child.write_line(json.dumps([path, text]))
                await child.write_line("")
        except (TimeoutError, OSError):
            await child.end()
            raise PatternSearchError("the process that searches did not take the texts") from None
        except BaseException:
            child.ending()
            raise
        self._child = child
        self.n_started += 1
        return child
