"""A long-running program that answers lines of JSON with lines of JSON: started when it is needed, restarted after a failure.

Programs of `lines`, and the processes of Python functions, are a `LineProgram`. Used on the event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES, ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.base.concurrency.loop import event_loop
from cranfield.config.strict import fill
from cranfield.config.systems import LinesConfig
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.answer_schema import UnparsableError, first_line, json_type
from cranfield.systems.calls.extract import DuplicateKeyError, with_unique_keys
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import ConfiguredSystem, Received, Reply, failed
from cranfield.systems.kinds.command import argument_files, check_command


class LineProgram(ABC):
    """A program that is started by the first call, answers calls, and is restarted when its answers are not reliable."""

    answers_have_ids = False
    """Every answer has the id of its call. After a timeout the program still answers the other calls under way before it
    is ended; otherwise it is ended at once, and they are repeated."""
    max_line_bytes = MAX_OUTPUT_BYTES

    def __init__(self) -> None:
        """Initialise; nothing is started yet."""
        self._numbers = itertools.count(1)
        self._run: ProgramRun | None = None
        self._starting = asyncio.Lock()

    @abstractmethod
    async def start(self) -> ChildProcess:
        """Start the program.

        Raises:
            NotStartedError: it could not be started.
        """

    @abstractmethod
    def read(self, record: dict[str, Any]) -> Reply:
        """The reply of an answer, which has its `id` no more."""

    def ended(self, how: str) -> Reply:
        """The reply to calls under way when it ended by itself: `ended with exit status 3`."""
        return replace(failed(how, may_retry=True), died=True)

    def invalid(self, what: str, output: str) -> Reply:
        """The reply to the oldest call when it wrote a line that is no answer: `a line that is not JSON`."""
        return failed(f"the program wrote {what}", outcome=Outcome.UNPARSABLE, output=output)

    async def call(self, request: Mapping[str, Any]) -> Reply:
        """Make one call; repeat it if the program was ended because of another call."""
        while True:
            with suppress(_AbortedError):
                return await self._call(request)

    async def running(self) -> ProgramRun:
        """The running program, started if necessary.

        Raises:
            NotStartedError: it could not be started.
        """
        async with self._starting:
            if self._run is not None and self._run.is_over:
                await self._run.end()
                self._run = None
            if self._run is None:
                self._run = ProgramRun(self, await self.start())
            return self._run

    @property
    def is_started(self) -> bool:
        """Whether there is something to end."""
        return self._run is not None

    async def end(self) -> None:
        """End the program; it is started again by the next call."""
        run, self._run = self._run, None
        if run is not None:
            await run.abort(failed("the system was closed"))

    async def _call(self, request: Mapping[str, Any]) -> Reply:
        try:
            run = await self.running()
        except NotStartedError as error:
            return replace(failed(f"could not be started: {error}"), died=True)
        number = next(self._numbers)
        stderr_start = run.program.n_stderr
        try:
            reply = await run.call(number, json_request(number, request))
        except asyncio.CancelledError:
            run.abandon(number)  # timeout or interruption
            raise
        return replace(reply, stderr=reply.stderr + run.program.stderr_from(stderr_start))


def json_request(number: int, request: Mapping[str, Any]) -> str:
    """A request as a line, in ASCII: no character of a query can be read as a line end."""
    return json.dumps({"id": number, **request})


class _AbortedError(Exception):
    """The program was ended because of another call: this call is repeated."""


class ProgramRun:
    """One run of a program, and the calls that wait for its answers, the oldest first."""

    def __init__(self, owner: LineProgram, program: ChildProcess) -> None:
        self.program = program
        self.is_over = False
        """It gets no more calls; those under way may still be answered."""
        self._owner = owner
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._abandoned: set[int] = set()
        self._all_answered = asyncio.Event()
        """After `is_over`: no call is under way any more."""
        self._unsolicited: Reply | None = None
        """Failure of the next call: the program wrote a line while no call was under way."""
        self._reading = asyncio.create_task(self._read())

    async def call(self, number: int, line: str) -> Reply:
        """Write a request, and wait for its answer."""
        if self.is_over:
            raise _AbortedError
        if self._unsolicited is not None:
            self.abort(self._unsolicited)
            return self._unsolicited
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        with suppress(OSError):  # stdin is closed; the end of its output fails the call
            await self.program.write_line(line)
        return await answer

    def abandon(self, number: int) -> None:
        """Give up a call. A late answer is not assigned to another call, and what still works on it is ended."""
        if self._owner.answers_have_ids and self._waiting.keys() - {number}:
            self.is_over = True
            self._waiting.pop(number, None)
            self._abandoned.add(number)
        else:
            self.abort(failed("cancelled"), only_number=number)

    def abort(self, reply: Reply, *, only_number: int | None = None) -> asyncio.Task[None]:
        """End the program: one call (by default the oldest) gets the reply, the others are repeated."""
        self._reading.cancel()
        failing = only_number if only_number is not None else next(iter(self._waiting), None)
        for number, answer in self._waiting.items():
            if answer.done():
                continue
            if number == failing:
                answer.set_result(reply)
            else:
                answer.set_exception(_AbortedError())
        self._finish()
        return self.program.ending()

    async def end(self) -> None:
        """After `is_over`: wait until the last call is answered, and end the program."""
        await self._all_answered.wait()
        await self.program.end()

    def _finish(self) -> None:
        self.is_over = True
        self._waiting.clear()
        self._all_answered.set()

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
                if self.is_over and not self._waiting:
                    self._finish()
                    self.program.ending()
                    return
        except TooMuchOutputError:
            self.abort(self._owner.invalid(f"a line of over {self._owner.max_line_bytes // 1024**2} MB", ""))
            return
        self.is_over = True
        how = await self.program.describe_end()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(self._owner.ended(how))
        self._finish()

    def _take(self, line: bytes) -> Reply | None:
        """Assign a line to the call that it answers; returns a failure if it is not a valid answer."""
        invalid = self._owner.invalid
        text = line.decode("utf-8", "replace")
        try:
            record = _json_of(line)
        except UnparsableError as error:
            return invalid(str(error), text)
        if not isinstance(record, dict):
            return invalid(f"a line that is {json_type(record)}, not an object", text)
        number = record.pop("id", None)
        if number is None and self._waiting and not self._owner.answers_have_ids:
            number = next(iter(self._waiting))
        if isinstance(number, int) and number in self._abandoned:
            return None
        if isinstance(number, bool) or not isinstance(number, int) or number not in self._waiting:
            return invalid("an answer to a call that is not pending", text)
        answer = self._waiting.pop(number)
        if not answer.done():
            answer.set_result(self._owner.read(record))
        return None


def _json_of(line: bytes) -> object:
    try:
        return json.loads(line.decode(), object_pairs_hook=with_unique_keys)
    except UnicodeDecodeError:
        raise UnparsableError("a line that is not UTF-8") from None
    except DuplicateKeyError as error:
        raise UnparsableError(f"a line with {error}") from None
    except (ValueError, RecursionError):
        raise UnparsableError("a line that is not JSON") from None


class LinesSystem(ConfiguredSystem):
    """A long-running program of cranfield.yaml."""

    kind = "lines"
    starts_program = True
    config: LinesConfig

    def prepare(self) -> None:
        """Initialise; nothing is started yet."""
        self._program = _ConfiguredProgram(self)

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Make one call; repeat it if the program was ended because of another call."""
        return await self._program.call(_request(query, k, params))

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The line written to the program."""
        return json_request(1, _request(query, k, params))

    def ready_steps(self) -> Iterator[Step]:
        """Check that the program exists, is executable, and starts."""
        yield f"lines {' '.join(self.config.lines)}", self._started

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the program and every file named by an argument."""
        yield from super().depends_on()
        yield from argument_files(self, self.argv())

    def close(self) -> None:
        """End the program; it is started again by the next call."""
        if self._program.is_started:
            event_loop().run(self._program.end())
        super().close()

    def argv(self) -> list[str]:
        """Program and arguments."""
        return fill(self.config.lines, query="", k=0, python=sys.executable, params={})

    def _started(self) -> str:
        found = check_command(self, self.config.lines)
        try:
            event_loop().run(asyncio.wait_for(self._program.running(), self.config.timeout_s))
        except NotStartedError as error:
            raise CheckFailedError("a program that starts", str(error)) from None
        except TimeoutError:
            raise CheckFailedError("a program that starts", f"not in {self.config.timeout_s:g} s") from None
        return found


class _ConfiguredProgram(LineProgram):
    """The program of a system."""

    def __init__(self, system: LinesSystem) -> None:
        super().__init__()
        self._system = system

    async def start(self) -> ChildProcess:
        """Start it in the folder and the environment of the config."""
        system = self._system
        return await ChildProcess.start(system.argv(), cwd=system.cwd, env=system.environment, stdin=True)

    def read(self, record: dict[str, Any]) -> Reply:
        """Output for `extract`, or an error."""
        output = json.dumps(record, ensure_ascii=False)
        error = record.get("error")
        if error is None:
            return Reply(output)
        words = first_line(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))
        return failed(words or "an error without a message", output=output)


def _request(query: str, k: int, params: Mapping[str, Scalar]) -> dict[str, Any]:
    return {"query": query, "k": k, "params": dict(params)}
