"""A system under test that is a long-running program: it answers lines of JSON with lines of JSON.

A request is `{"id": 1, "query": "…", "k": 10, "params": {…}}`; its answer has the same `id`, or none: then it belongs to
the oldest call under way. When answers cannot be assigned to calls any more, the program is restarted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError
from cranfield.base.concurrency.loop import event_loop
from cranfield.config.strict import fill
from cranfield.config.systems import LinesConfig
from cranfield.model import Scalar
from cranfield.systems.calls.answer_schema import first_line
from cranfield.systems.configured import CheckFailedError, ConfiguredSystem, Received, Reply, Step, failed
from cranfield.systems.kinds.command import argument_files, check_command
from cranfield.systems.kinds.line_program import LineProgram, json_request


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
