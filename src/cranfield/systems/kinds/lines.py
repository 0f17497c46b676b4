"""A system under test that is a long-running program: it answers lines of JSON with lines of JSON.

A request is `{"id": 1, "query": "…", "k": 10, "params": {…}}`; its answer has the same `id`, or none: then it belongs to
the oldest call under way. When answers cannot be assigned to calls any more, the program is restarted.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cranfield.concurrency.child_process import MAX_OUTPUT_BYTES, ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.concurrency.loop import event_loop
from cranfield.config.systems import LinesConfig
from cranfield.config.template import fill
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.answer_schema import first_line, json_type
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Received, Reply, Step, failed
from cranfield.systems.kinds.command import argument_files, check_command


class LinesSystem(ConfiguredSystem):
    """A long-running program of cranfield.yaml."""

    kind = "lines"
    config: LinesConfig

    def prepare(self) -> None:
        """Initialise; nothing is started yet."""
        self._numbers = itertools.count(1)
        self._run: _ProgramRun | None = None
        self._starting = asyncio.Lock()

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Make one call; repeat it if the program was ended because of another call."""
        while True:
            with suppress(_AbortedError):
                return await self._call(query, k, params)

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The line written to the program."""
        return _line(1, query, k, params)

    def ready_steps(self) -> Iterator[Step]:
        """Check that the program exists, is executable, and starts."""
        yield f"lines {' '.join(self.config.lines)}", self._started

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the program and every file named by an argument."""
        yield from super().depends_on()
        yield from argument_files(self, self._argv())

    def close(self) -> None:
        """End the program; it is started again by the next call."""
        if self._run is not None:
            event_loop().run(self._close())

    def _argv(self) -> list[str]:
        return fill(self.config.lines, query="", k=0, python=sys.executable, params={})

    def _started(self) -> str:
        found = check_command(self, self.config.lines)
        try:
            event_loop().run(asyncio.wait_for(self._running(), self.config.timeout_s))
        except NotStartedError as error:
            raise CheckFailedError("a program that starts", str(error)) from None
        except TimeoutError:
            raise CheckFailedError("a program that starts", f"not in {self.config.timeout_s:g} s") from None
        return found

    async def _call(self, query: str, k: int, params: Mapping[str, Scalar]) -> Reply:
        try:
            run = await self._running()
        except NotStartedError as error:
            return failed(f"could not be started: {error}")
        number = next(self._numbers)
        stderr_start = run.program.n_stderr
        try:
            reply = await run.call(number, _line(number, query, k, params))
        except asyncio.CancelledError:
            # Timeout or interruption: a late answer must not be assigned to another query.
            run.abort(failed("cancelled"), only_number=number)
            raise
        return Reply(reply.output, run.program.stderr_from(stderr_start), reply.answer, reply.may_retry)

    async def _running(self) -> _ProgramRun:
        """The running program, started if necessary."""
        async with self._starting:
            if self._run is not None and self._run.is_over:
                await self._run.program.end()
                self._run = None
            if self._run is None:
                program = await ChildProcess.start(self._argv(), cwd=self.cwd, env=self.environment, stdin=True)
                self._run = _ProgramRun(program)
            return self._run

    async def _close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            await run.abort(failed("the system was closed"))


class _AbortedError(Exception):
    """The program was ended because of another call: this call is repeated."""


class _ProgramRun:
    """One run of the program, and the calls that wait for its answers, the oldest first."""

    def __init__(self, program: ChildProcess) -> None:
        self.program = program
        self.is_over = False
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._unsolicited: Reply | None = None
        """Failure of the next call: the program wrote a line while no call was under way."""
        self._reading = asyncio.create_task(self._read())

    async def call(self, number: int, line: str) -> Reply:
        """Write a request, and wait for its answer."""
        if self._unsolicited is not None:
            self.abort(self._unsolicited)
            return self._unsolicited
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        with suppress(OSError):  # stdin is closed; the end of its output fails the call
            await self.program.write_line(line)
        return await answer

    def abort(self, reply: Reply, *, only_number: int | None = None) -> asyncio.Task[None]:
        """End the program: one call (by default the oldest) gets the reply, the others are repeated."""
        self.is_over = True
        self._reading.cancel()
        failing = only_number if only_number is not None else next(iter(self._waiting), None)
        for number, answer in self._waiting.items():
            if answer.done():
                continue
            if number == failing:
                answer.set_result(reply)
            else:
                answer.set_exception(_AbortedError())
        self._waiting.clear()
        return self.program.ending()

    async def _read(self) -> None:
        try:
            while (line := await self.program.read_line()) is not None:
                wrong = self._take(line)
                if wrong is not None and self._waiting:
                    self.abort(wrong)
                    return
                if wrong is not None:
                    self._unsolicited = wrong  # later lines are not reliable, and not read
                    return
        except TooMuchOutputError:
            self.abort(_unparsable(f"a line of over {MAX_OUTPUT_BYTES // 1024**2} MB"))
            return
        self.is_over = True
        how = await self.program.describe_end()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(failed(how, may_retry=True))
        self._waiting.clear()

    def _take(self, line: bytes) -> Reply | None:
        """Assign a line to the call that it answers; returns a failure if it is not a valid answer."""
        text = line.decode("utf-8", "replace")
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return _unparsable("a line that is not JSON", text)
        if not isinstance(record, dict):
            return _unparsable(f"a line that is {json_type(record)}, not an object", text)
        number = record.pop("id", None)
        if number is None and self._waiting:
            number = next(iter(self._waiting))
        if isinstance(number, bool) or not isinstance(number, int) or number not in self._waiting:
            return _unparsable("an answer to a call that is not under way", text)
        answer = self._waiting.pop(number)
        if not answer.done():
            answer.set_result(_reply(record))
        return None


def _reply(record: dict[str, Any]) -> Reply:
    output = json.dumps(record, ensure_ascii=False)
    error = record.get("error")
    if error is None:
        return Reply(output)
    words = first_line(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))
    return failed(words or "an error without words", output=output)


def _unparsable(what: str, output: str = "") -> Reply:
    return failed(f"the program wrote {what}", outcome=Outcome.UNPARSABLE, output=output)


def _line(number: int, query: str, k: int, params: Mapping[str, Scalar]) -> str:
    """A request as a line, in ASCII: no character of a query can be read as a line end."""
    return json.dumps({"id": number, "query": query, "k": k, "params": dict(params)})
