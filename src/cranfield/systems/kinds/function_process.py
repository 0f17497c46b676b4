"""A function in a process of its own, which cannot end or change this one. The other end is `function_worker`.

The process is started by the first call, and anew after it has ended. What is loaded, and every call, is sent on its stdin;
its answers come on a pipe that is its stdout only until the function is loaded. Its stderr is ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError
from cranfield.base.errors import RunFormatError
from cranfield.model import Scalar
from cranfield.systems.calls.answer_schema import to_answer
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.configured import Reply, failed
from cranfield.systems.kinds.function import FunctionSource, ResultReading, current_folder
from cranfield.systems.kinds.function_record import FailedCheck, reply_from_record
from cranfield.systems.kinds.line_program import LineProgram, ProgramRun
from cranfield.systems.kinds.sources import source_record

WORKER = "cranfield.systems.kinds.function_worker"
MAX_ANSWER_BYTES = 64 * 1024 * 1024
LOAD_S = 600.0
"""Time limit of the import of a module and the call of a factory, in seconds: a model may be large."""


class NotLoadedError(CheckFailedError):
    """The process could not be started, ended while it loaded the function, or loads it without end."""


class FunctionProcess(LineProgram):
    """A function in a process of its own; used as a `LocalFunction`."""

    answers_have_ids = True
    max_line_bytes = MAX_ANSWER_BYTES

    def __init__(self, source: FunctionSource) -> None:
        """Initialise; nothing is started yet."""
        super().__init__()
        self._source = source
        self._loading = asyncio.Lock()
        self._loaded_in: ProgramRun | None = None

    async def start(self) -> ChildProcess:
        """Start the process, in the folder and the environment of this one."""
        argv = [sys.executable, "-P", "-m", WORKER]
        folder = current_folder() or Path("/")
        limit = self.max_line_bytes
        process = await ChildProcess.start(
            argv, cwd=folder, env=os.environ, stdin=True, max_output_bytes=limit, has_own_stderr=False
        )
        with suppress(OSError):  # it has ended: the first call fails
            await process.write_line(json.dumps({"path": [*map(str, sys.path)], "source": source_record(self._source)}))
        return process

    def read(self, record: dict[str, Any]) -> Reply:
        """The reply of its record. The function can write to the pipe too."""
        try:
            return reply_from_record(record)
        except (RunFormatError, ValueError):
            return self.invalid("an answer of another form", "")

    def ended(self, how: str) -> Reply:
        """The process ended by itself, with whatever status."""
        return replace(failed(f"the process {how} before it answered", may_retry=True), died=True)

    def invalid(self, what: str, output: str) -> Reply:  # noqa: ARG002 - it is of no use
        """The function wrote to the pipe of the answers, or its answer is too long."""
        return failed(f"the process wrote {what}")

    async def load(self) -> None:
        """Load the function, in a new process if the last one has ended.

        Raises:
            CheckFailedError: it cannot be loaded.
        """
        async with self._loading:
            try:
                run = await self.running()
            except NotStartedError as error:
                raise CheckFailedError(
                    f"a process for {self._source.called}", f"could not be started: {error}"
                ) from None
            if run is self._loaded_in:
                return
            try:
                async with asyncio.timeout(LOAD_S):
                    await self._request({"do": "load"})
            except TimeoutError:
                raise NotLoadedError(f"{self._source.called} to be loaded", f"not in {LOAD_S:g} s") from None
            self._loaded_in = run

    async def check(self, params: Collection[str]) -> str:
        """As `LocalFunction.check`.

        Raises:
            CheckFailedError: it cannot be loaded, or not be called.
        """
        await self.load()
        return (await self._request({"do": "check", "params": list(params)})).output

    async def ask(self, query: str, k: int, params: Mapping[str, Scalar], reading: ResultReading) -> Reply:
        """Call the function once."""
        reply = await self.call(
            {"do": "ask", "query": query, "k": k, "params": dict(params), "order": reading.order, "form": reading.form}
        )
        return reply if reply.answer is None else replace(reply, answer=to_answer(reply.answer, k, reading.order))

    async def shown_request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """As `LocalFunction.shown_request`."""
        return (await self._request({"do": "show", "query": query, "k": k, "params": dict(params)})).output

    async def close(self, timeout_s: float) -> None:
        """Call the method `close` of a made object, and let the process end by itself."""
        run = self._run
        if run is not None and not run.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self.call({"do": "close"})
                    await run.program.run()
        await self.end()

    async def _request(self, request: Mapping[str, Any]) -> Reply:
        reply = await self.call(request)
        if isinstance(reply, FailedCheck):
            raise reply.error
        if reply.answer is not None:
            raise NotLoadedError(f"{self._source.called} to be loaded", reply.answer.reason or "a failure")
        return reply
