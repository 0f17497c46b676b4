"""A system under test that is a Python function, plain or async."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from cranfield.base.concurrency.loop import event_loop
from cranfield.config.reading import JsonLinesExtract
from cranfield.config.strict import fill_value, request_values
from cranfield.config.systems import PluginConfig, PythonConfig
from cranfield.model import Order, Scalar
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import HEAD_CHARS, ConfiguredSystem, Received, Reply, failed
from cranfield.systems.kinds.function import Form, FunctionSource, LocalFunction, ResultReading
from cranfield.systems.kinds.function_process import FunctionProcess, NotLoadedError
from cranfield.systems.kinds.modules import module_files
from cranfield.systems.kinds.sources import ModuleSource, PluginSource, source_record


class FunctionSystem(ConfiguredSystem):
    """A system that is a function: in this process, or, after `isolate`, in a process of its own."""

    starts_program = True
    sends_explain = False  # a function takes the parameters that it has

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
        called, arguments = self.source().called, getattr(self.config, "arguments", None)
        if arguments is not None:
            filled = fill_value(arguments, request_values(query=query, k=k, params=params, environment={}))
            return f"{called}({', '.join(f'{name}={value!r}' for name, value in filled.items())})"
        named = "".join(f", {name}={value!r}" for name, value in params.items())
        return f"{called}({query!r}, {k}{named})"

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


class PythonSystem(FunctionSystem):
    """A function `module:name`, called as `name(query, k, **params)`; with `with`, a factory of that function.

    Example:
        >>> from cranfield.model import Query
        >>> def search(query, k):
        ...     return [(f"doc-{word}", 1.0) for word in query.split()][:k]
        >>> answer, log = PythonSystem.calling("words", search).search(Query("q1", "grid layout"), k=1)
        >>> answer.hits[0].id
        'doc-grid'
    """

    kind = "python"
    config: PythonConfig

    _given: Callable[..., Any] | None = None

    @classmethod
    def calling(
        cls,
        name: str,
        function: Callable[..., Any],
        *,
        order: Order = "given",
        concurrency: int = 1,
        timeout_s: float = 30.0,
    ) -> Self:
        """Make a system from a function object.

        Args:
            name: its name in reports.
            function: called as `function(query, k, **params)`, plain or async; or an object with such a method `search`.
            order: whether the order of its list counts, or it is sorted by score.
            concurrency: calls at a time.
            timeout_s: time limit of a call.

        Raises:
            ConfigError: a setting is invalid.
        """
        kind = function if hasattr(function, "__qualname__") else type(function)
        reference = re.sub(r"[^\w.]", "_", f"{getattr(kind, '__module__', None) or 'builtins'}.{kind.__qualname__}")
        module, _, last = reference.rpartition(".")
        system = cls.of(
            name,
            python=f"{module or 'function'}:{last}",
            order=order,
            concurrency=concurrency,
            timeout_s=timeout_s,
        )
        system._given = function  # noqa: SLF001 - its own class
        return system

    def prepare(self) -> None:
        """Initialise; nothing is imported yet."""
        super().prepare()
        self._folders = tuple(dict.fromkeys((self.cwd.resolve(), self.folder.resolve())))
        self._module, _, self._attribute = self.config.python.partition(":")

    def source(self) -> FunctionSource:
        """The function object, or its module."""
        if self._given is not None:
            return _GivenSource(self._given, self._attribute)
        folders = tuple(map(str, self._folders))
        env = {name: value.get_secret_value() for name, value in self.config.env.items()}
        return ModuleSource(
            self._module, self._attribute, folders, self.config.with_, str(self.folder), env, self.config.arguments
        )

    def ready_steps(self) -> Iterator[Step]:
        """Check that the function exists, is callable, and accepts its arguments."""
        yield f"python {self.config.python}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the file of the module, and of modules that it imports from `cwd` and the config's folder."""
        yield from super().depends_on()
        if self._given is None:
            yield from module_files(self._module, self._folders)

    @property
    def config_digest(self) -> str:
        """SHA-256 over the configuration as written, and over the source of a function object."""
        digest = super().config_digest
        if self._given is None:
            return digest
        source = ""
        with suppress(OSError, TypeError):
            given = self._given if hasattr(self._given, "__qualname__") else type(self._given)
            source = inspect.getsource(given)
        return "sha256:" + sha256(f"{digest}\n{source}".encode("utf-8", "surrogatepass")).hexdigest()

    def _check(self) -> str:
        return event_loop().run(self.function.check([*self.config.params, *self.set_params]))


@dataclass(frozen=True, slots=True)
class _GivenSource:
    """A function object."""

    function: Callable[..., Any]
    called: str

    def load(self) -> tuple[object, object]:
        """The function itself."""
        return self.function, None


class PluginSystem(FunctionSystem):
    """A system provided by an installed package."""

    kind = "plugin"
    config: PluginConfig

    def source(self) -> PluginSource:
        """The plug-in."""
        params = {**self.config.params, **self.set_params}
        return PluginSource(self.config.plugin, self.name, self.config.with_ or {}, str(self.folder), params)

    def ready_steps(self) -> Iterator[Step]:
        """Check that a package provides the plugin, and creates the system."""
        yield f"plugin {self.config.plugin}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the module of the plugin and the list of its package's files with their digests."""
        yield from super().depends_on()
        with suppress(CheckFailedError):
            point = self.source().entry().point
            yield from module_files(point.module, ())
            for file in (point.dist.files or ()) if point.dist is not None else ():
                if file.name in {"METADATA", "RECORD"}:
                    yield Path(str(file.locate()))

    def _check(self) -> str:
        event_loop().run(self.function.load())
        return f"made{self.source().entry().package}"
