"""A system under test that is a program which stays: started once, it answers lines of JSON with lines of JSON.

A call is `{"id": 1, "query": "…", "k": 10, "params": {…}}`; its answer has the same `id`, or none: then it is of the
oldest call under way. When it can no longer be told whose its answers are, the program is ended and started anew.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from cranfield.config.template import fill
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.answer_schema import one_line
from cranfield.systems.calls.loop import loop
from cranfield.systems.calls.process import MAX_OUTPUT_BYTES
from cranfield.systems.calls.program import NotStartedError, Program
from cranfield.systems.calls.values import kind_of
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Reply, Step, failed
from cranfield.systems.kinds.command import files_named, found_program

_CLOSE_S = 5.0


class LinesSystem(ConfiguredSystem):
    """A program of cranfield.yaml that stays, ready to be asked."""

    def prepare(self) -> None:
        """Nothing is started yet."""
        self._numbers = itertools.count(1)
        self._life: _Life | None = None
        self._starting: asyncio.Lock | None = None
        self._ended: asyncio.Task[None] | None = None

    def attempt(self, query: str, k: int, params: Mapping[str, Scalar], interrupted: Event) -> Reply:
        """Ask once; where another call's failure took the program away in the middle, ask again."""
        while True:
            try:
                asked = self._ask(query, k, params)
                return loop().run(asked, timeout_s=self.config.timeout_s, interrupted=interrupted)
            except TimeoutError:
                return failed(f"no answer in {self.config.timeout_s:g} s", outcome=Outcome.TIMEOUT)
            except _TakenAwayError:
                continue

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The line that is written to the program."""
        return _line(1, query, k, params)

    def ready_steps(self) -> Iterator[Step]:
        """That the program is there, may be run, and starts."""
        yield f"lines {' '.join(self.config.lines or [])}", partial(self._started, self._argv()[0])

    def depends_on(self) -> Iterator[Path]:
        """Besides what is named, the program and every file that an argument names."""
        yield from super().depends_on()
        yield from files_named(self, self._argv())

    def close(self) -> None:
        """End the program; it is started again where it is asked again. At the latest when Python ends."""
        atexit.unregister(self.close)
        if self._life is not None:
            with suppress(TimeoutError):
                loop().run(self._close(), timeout_s=_CLOSE_S)

    def _argv(self) -> list[str]:
        return fill(self.config.lines or [], query="", k=0, python=sys.executable, params={})

    def _started(self, program: str) -> str:
        found = found_program(self, program)
        try:
            loop().run(self._living(), timeout_s=self.config.timeout_s)
        except NotStartedError as error:
            raise CheckFailedError("a program that starts", str(error)) from None
        except TimeoutError:
            raise CheckFailedError("a program that starts", f"not in {self.config.timeout_s:g} s") from None
        return found

    async def _ask(self, query: str, k: int, params: Mapping[str, Scalar]) -> Reply:
        try:
            life = await self._living()
        except NotStartedError as error:
            return failed(f"could not be started: {error}")
        number = next(self._numbers)
        said_before = life.program.n_stderr
        try:
            reply = await life.call(number, _line(number, query, k, params))
        except asyncio.CancelledError:
            # Out of time, or interrupted: its late answer must never be taken for another query's.
            self._ended = life.take_away(failed("cut short"), only_number=number)
            raise
        return Reply(reply.output, life.program.stderr_from(said_before), reply.answer, reply.may_retry)

    async def _living(self) -> _Life:
        """The program, started where it is not running; only one at a time."""
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._ended is not None:
                await asyncio.shield(self._ended)
                self._ended = None
            if self._life is not None and self._life.is_over:
                await self._life.program.end()
                self._life = None
            if self._life is None:
                self._life = _Life(await Program.start(self._argv(), cwd=self.cwd, env=self.environment))
                atexit.register(self.close)
            return self._life

    async def _close(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await life.take_away(failed("the system was closed"))


class _TakenAwayError(Exception):
    """The program was ended because of another call: this one has no outcome yet."""


class _Life:
    """One life of the program, and the calls that wait for its answers, the oldest first."""

    def __init__(self, program: Program) -> None:
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
            async for line in self.program.lines():
                wrong = self._take(line)
                if wrong is not None and self._waiting:
                    self.take_away(wrong)
                    return
                if wrong is not None:
                    self._unasked = wrong  # nothing that comes after it can be believed, and nobody reads it
                    return
        except ValueError:
            self.take_away(_unparsable(f"a line of over {MAX_OUTPUT_BYTES // 1024**2} MB"))
            return
        self.is_over = True
        how = await self.program.how_it_ended()
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
