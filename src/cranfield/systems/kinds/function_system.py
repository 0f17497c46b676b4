"""Base class of systems that are a function: in this process, or in one of its own."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from cranfield.base.concurrency.loop import event_loop
from cranfield.config.reading import JsonLinesExtract
from cranfield.model import Scalar
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.configured import HEAD_CHARS, ConfiguredSystem, Received, Reply, failed
from cranfield.systems.kinds.function import Form, FunctionSource, LocalFunction, ResultReading
from cranfield.systems.kinds.function_process import FunctionProcess, NotLoadedError
from cranfield.systems.kinds.sources import source_record


class FunctionSystem(ConfiguredSystem):
    """A system that is a function: in this process, or, after `isolate`, in a process of its own."""

    starts_program = True

    def prepare(self) -> None:
        """Initialise; nothing is loaded yet."""
        self._function: LocalFunction | FunctionProcess | None = None

    @abstractmethod
    def source(self) -> FunctionSource:
        """Where the function comes from."""

    def isolate(self, processes: dict[str, FunctionProcess]) -> None:
        """Have the function called in a process of its own, which cannot end or change this one.

        Args:
            processes: those of other systems, by what they load: systems of the same function share one.
        """
        source = self.source()
        key = json.dumps(source_record(source), sort_keys=True)
        self._function = processes.setdefault(key, FunctionProcess(source))

    @property
    def function(self) -> LocalFunction | FunctionProcess:
        """The function."""
        self._function = self._function or LocalFunction(self.source())
        return self._function

    async def make_ready(self) -> Reply | None:
        """Load the function."""
        try:
            await self.function.load()
        except CheckFailedError as problem:
            reply = failed(f"{problem.expected}: {problem.found}")
            return replace(reply, died=isinstance(problem, NotLoadedError))
        return None

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Call the function once."""
        extract = self.config.extract
        form: Form = "hits" if extract is None else "jsonl" if isinstance(extract, JsonLinesExtract) else "json"
        reply = await self.function.ask(query, k, params, ResultReading(self.order, form))
        return replace(reply, stderr=self.redactor.redact(reply.stderr)[-HEAD_CHARS:])

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The call as Python writes it."""
        named = "".join(f", {name}={value!r}" for name, value in params.items())
        return f"{self.source().called}({query!r}, {k}{named})"

    async def sent(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The call, and below it what the function sends, where its object has a method `shown_request`."""
        call = self.request(query, k, params)
        try:
            async with asyncio.timeout(self.config.timeout_s):
                text = await self.function.shown_request(query, k, params)
        except (CheckFailedError, TimeoutError):
            return call
        return f"{call}\n{text}" if text else call

    def close(self) -> None:
        """Close what was loaded; it is loaded again by the next call."""
        event_loop().run(self.function.close(self.config.timeout_s))
        super().close()
