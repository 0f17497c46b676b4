"""A system under test that is a program which stays: started once, it answers lines of JSON with lines of JSON.

A call is `{"id": 1, "query": "…", "k": 10, "params": {…}}`; its answer has the same `id`, or none: then it is of the
oldest call under way. When it can no longer be told whose its answers are, the program is ended and started anew.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.concurrency.child_process import MAX_OUTPUT_BYTES, ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.concurrency.loop import event_loop
from cranfield.config.systems import LinesConfig
from cranfield.config.template import fill
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.answer_schema import one_line
from cranfield.systems.calls.values import kind_of
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Received, Reply, Step, failed
from cranfield.systems.kinds.command import files_named, found_program


class LinesSystem(ConfiguredSystem):
    """A program of cranfield.yaml that stays, ready to be asked."""

    config: LinesConfig

    def prepare(self) -> None:
        """Nothing is started yet."""
        self._numbers = itertools.count(1)
        self._life: _Life | None = None
        self._starting = asyncio.Lock()

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Ask once; again where the program was ended because of another call."""
        while True:
            with suppress(_TakenAwayError):
                return await self._call(query, k, params)

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The line that is written to the program."""
        return _line(1, query, k, params)

    def ready_steps(self) -> Iterator[Step]:
        """That the program is there, may be run, and starts."""
        yield f"lines {' '.join(self.config.lines)}", partial(self._started, self._argv()[0])

    def depends_on(self) -> Iterator[Path]:
        """Besides what is named, the program and every file that an argument names."""
        yield from super().depends_on()
        yield from files_named(self, self._argv())

    def close(self) -> None:
        """End the program; it is started again by the next call."""
        if self._life is not None:
            event_loop().run(self._close())

    def _argv(self) -> list[str]:
        return fill(self.config.lines, query="", k=0, python=sys.executable, params={})

    def _started(self, program: str) -> str:
        found = found_program(self, program)
        try:
            event_loop().run(asyncio.wait_for(self._living(), self.config.timeout_s))
        except NotStartedError as error:
            raise CheckFailedError("a program that starts", str(error)) from None
        except TimeoutError:
            raise CheckFailedError("a program that starts", f"not in {self.config.timeout_s:g} s") from None
        return found

    async def _call(self, query: str, k: int, params: Mapping[str, Scalar]) -> Reply:
        try:
            life = await self._living()
        except NotStartedError as error:
            return failed(f"could not be started: {error}")
        number = next(self._numbers)
        stderr_start = life.program.n_stderr
        try:
            reply = await life.call(number, _line(number, query, k, params))
        except asyncio.CancelledError:
            # Timeout or interruption: its late answer must never be taken for another query's.
            life.take_away(failed("cancelled"), only_number=number)
            raise
        return Reply(reply.output, life.program.stderr_from(stderr_start), reply.answer, reply.may_retry)

    async def _living(self) -> _Life:
        """The program, started where it is not running."""
        async with self._starting:
            if self._life is not None and self._life.is_over:
                await self._life.program.end()
                self._life = None
            if self._life is None:
                program = await ChildProcess.start(self._argv(), cwd=self.cwd, env=self.environment, stdin=True)
                self._life = _Life(program)
            return self._life

    async def _close(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await life.take_away(failed("the system was closed"))


class _TakenAwayError(Exception):
    """The program was ended because of another call: this one has no outcome yet."""


class _Life:
    """One life of the program, and the calls that wait for its answers, the oldest first."""

    def __init__(self, program: ChildProcess) -> None:
        self.program = program
        self.is_over = False
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._unasked: Reply | None = None
        """Why the next call fails: the program said something when no call was under way."""
        self._reading = asyncio.create_task(self._read())

    async def call(self, number: int, line: str) -> Reply:
        """Write a line, and wait for its answer."""
        if self._unasked is not None:
            self.take_away(self._unasked)
            return self._unasked
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        with suppress(OSError):  # it reads no more: that its output ends too says how it ended
            await self.program.write_line(line)
        return await answer

    def take_away(self, reply: Reply, *, only_number: int | None = None) -> asyncio.Task[None]:
        """End the program: one call (the oldest, where none is named) gets the reply, the others are asked again."""
        self.is_over = True
        self._reading.cancel()
        guilty = only_number if only_number is not None else next(iter(self._waiting), None)
        for number, answer in self._waiting.items():
            if answer.done():
                continue
            if number == guilty:
                answer.set_result(reply)
            else:
                answer.set_exception(_TakenAwayError())
        self._waiting.clear()
        return self.program.ending()

    async def _read(self) -> None:
        try:
            while (line := await self.program.read_line()) is not None:
                wrong = self._take(line)
                if wrong is not None and self._waiting:
                    self.take_away(wrong)
                    return
                if wrong is not None:
                    self._unasked = wrong  # nothing that comes after it can be believed, and nobody reads it
                    return
        except TooMuchOutputError:
            self.take_away(_unparsable(f"a line of over {MAX_OUTPUT_BYTES // 1024**2} MB"))
            return
        self.is_over = True
        how = await self.program.describe_end()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(failed(how, may_retry=True))
        self._waiting.clear()

    def _take(self, line: bytes) -> Reply | None:
        """Give a line to the call that it answers; what is wrong with it, where it answers none."""
        text = line.decode("utf-8", "replace")
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return _unparsable("a line that is not JSON", text)
        if not isinstance(record, dict):
            return _unparsable(f"a line that is {kind_of(record)}, not an object", text)
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
    words = one_line(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))
    return failed(words or "an error without words", output=output)


def _unparsable(what: str, output: str = "") -> Reply:
    return failed(f"the program wrote {what}", outcome=Outcome.UNPARSABLE, output=output)


def _line(number: int, query: str, k: int, params: Mapping[str, Scalar]) -> str:
    """A call as a line. Everything beyond ASCII is escaped, so that no reader takes a character of a query for a line end."""
    return json.dumps({"id": number, "query": query, "k": k, "params": dict(params)})
