"""Base class of every system of cranfield.yaml: settings, attempts, time limit, retries, reading, interruption.

A subclass makes one attempt, checks what it needs, and shows what it sends; the rest is here.
"""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.base.errors import SystemUnderTestError, UsageError
from cranfield.model import Answer, CallLog, Hit, Order, Outcome, Query, Scalar
from cranfield.systems.calls.answer_schema import REASON_CHARS, truncate
from cranfield.systems.calls.deaths import CircuitBreaker
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.calls.stages import CheckFailedError, Step, in_stages

if TYPE_CHECKING:
    from cranfield.config.systems import SystemConfig
    from cranfield.systems.calls.extract import Extractor
    from cranfield.systems.set_up import SetUp

READING_S = 1.0
"""An output is read within the time limit of a call and this, in seconds."""
HEAD_CHARS = 2_000
"""Kept of each stream in the log."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Result of one attempt: output to be read, or an answer."""

    output: str = ""
    stderr: str = ""
    answer: Answer | None = None
    """The answer or failure; None: `output` is read by `extract`."""
    may_retry: bool = False
    """A transient failure: too many requests, an error of the service, a broken connection."""
    retry_after_s: float | None = None
    """Wait that the service requests."""
    died: bool = False
    """The program ended or could not be started, or the service could not be reached."""


def failed(reason: str, *, outcome: Outcome = Outcome.ERROR, output: str = "", may_retry: bool = False) -> Reply:
    """A failed attempt; `reason` is the same on every machine: no path, no time, no secret."""
    return Reply(output, answer=Answer(outcome, reason=reason), may_retry=may_retry)


@dataclass(slots=True)
class Received:
    """What an attempt has received so far."""

    output: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call in full, for display; without secrets."""

    request: str
    output: str
    """The raw answer of the last attempt."""
    stderr: str
    answer: Answer
    log: CallLog


class ConfiguredSystem(ABC):
    """A system of cranfield.yaml; one subclass per kind."""

    kind: ClassVar[str]
    """Key of its settings in cranfield.yaml: `command`, `http`, …"""
    retries = 0
    """Retries where the config does not say."""
    sends_explain: ClassVar[bool] = True
    """Whether the parameter `explain` goes with every query where scores are to be explained."""
    starts_program = False
    """Whether a program is started that answers many calls: one that ends on every call is not started again for a while."""

    def __init__(
        self,
        name: str,
        config: SystemConfig,
        folder: Path | str = ".",
        params: Mapping[str, Scalar] = MappingProxyType({}),
    ) -> None:
        """Initialise a system; nothing is started.

        Args:
            name: its name in reports.
            config: its configuration.
            folder: folder of the config file; `cwd` and other paths are relative to it.
            params: passed with every query; those of a query take precedence.

        Raises:
            UsageError: the settings are of another kind of system.
        """
        from cranfield.config.systems import expand_preset  # slow, and the process of a function needs none of it

        self.name = name
        self.declared = config
        self.config: SystemConfig = expand_preset(config)
        if self.config.kind != self.kind:
            message = f"system {name}: these are the settings of another kind of system"
            raise UsageError(message, expected=f"{self.kind}=, and its settings", got=f"{self.config.kind}=")
        self.set_params = dict(params)
        self.folder = Path(folder).absolute()
        self.cwd = self.folder / self.config.cwd
        self.set_up: SetUp | None = None
        """Its `before`, `serve` and `after`; None where it has none of them."""
        self.parts: Mapping[str, ConfiguredSystem] = {}
        """Component systems of a fusion."""
        self._calls: set[asyncio.Task[Any]] = set()
        secrets = {key: value.get_secret_value() for key, value in self.config.env.items()}
        self.environment: Mapping[str, str] = {**os.environ, **secrets}
        if self.config.before or self.config.serve or self.config.after:
            self._make_set_up()
        self.prepare()
        self._deaths = CircuitBreaker(self.config.concurrency, is_program=self.starts_program)
        self.redactor = Redactor(self.secrets())

    @classmethod
    def of(cls, name: str, *, folder: Path | str = ".", **settings: Any) -> Self:
        r"""Make a system from keyword settings, as under its name in cranfield.yaml.

        Args:
            name: its name in reports.
            folder: `cwd` is relative to it.
            settings: the keys of a system; `with_` for `with`.

        Raises:
            ConfigError: with all problems.

        Example:
            >>> from cranfield.systems import CommandSystem
            >>> CommandSystem.of("echo", command=["echo", "doc:{query}"], extract={"regex": r"doc:\S+"}).order
            'given'
        """
        from cranfield.config.load import system_config

        written = {key.removesuffix("_"): value for key, value in settings.items()}
        return cls(name, system_config(name, written), folder)

    def prepare(self) -> None:  # noqa: B027 - most kinds need nothing
        """Initialise the subclass; nothing is started yet."""

    def variables_of_settings(self) -> list[str]:
        """Names of environment variables in settings: `dsn_env: DATABASE_URL`."""
        settings = getattr(self.config, "with_", None) or {}
        return [value for key, value in settings.items() if key.endswith("_env") and isinstance(value, str)]

    def secrets(self) -> dict[str, str]:
        """Values to redact: those of `env`, and of the environment variables in settings."""
        names = [*self.config.env, *self.variables_of_settings()]
        return {name: self.environment[name] for name in names if name in self.environment}

    async def make_ready(self) -> Reply | None:
        """Prepare for an attempt, outside its time limit and latency; a returned reply is the failure of the attempt."""
        return None

    @abstractmethod
    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:
        """Make one call. Every failure of the system is a reply. Cancelled by the time limit or an interruption.

        Args:
            query: its text.
            k: number of results requested.
            params: of the system, the test set and the query.
            received: set to what was received so far, for the log of a timeout.
        """

    @abstractmethod
    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """Text of the request for display; the caller redacts secrets."""

    async def sent(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """As `request`, with what only the running system knows: the statement that a function sends to its database."""
        return self.request(query, k, params)

    def ready_steps(self) -> Iterator[Step]:
        """Preflight checks of this kind: the program, the tool, an environment variable."""
        return iter(())

    def set_up_steps(self) -> Iterator[Step]:
        """The commands of `before`, and the start of the program of `serve`; each is made once, the next after the one before."""
        if self.set_up is not None:
            yield from in_stages(*([step] for step in self.set_up.steps(id(self))))

    def close(self) -> None:
        """End what was started; the next call starts it again."""
        if self.set_up is not None:
            event_loop().run(self.set_up.close(id(self)))

    @property
    def order(self) -> Order:
        """Whether the order of the list counts, or it is to be sorted by score."""
        return self.config.order

    @property
    def list_order(self) -> Order:
        """The order of a list as it is returned, which a fusion takes it in."""
        return self.order

    @property
    def concurrency(self) -> int:
        """Calls that may be under way at a time."""
        return self.config.concurrency

    @property
    def rate_per_s(self) -> float | None:
        """Maximum number of calls started per second."""
        return self.config.rate_per_s

    @property
    def config_digest(self) -> str:
        """SHA-256 over the configuration as written; values of `env` and params of the set included."""
        from cranfield.config.systems import config_digest

        return config_digest(self.declared, self.set_params)

    def public_config(self) -> Mapping[str, Any]:
        """The configuration as written, without the values of environment variables wherever they stand, and params of the set."""
        from cranfield.config.systems import public_config

        written = public_config(self.declared)
        params = {**written.get("params", {}), **self.set_params}
        shown: Mapping[str, Any] = self.redactor.redact_value({**written, **({"params": params} if params else {})})
        return shown

    def _make_set_up(self) -> None:
        """Share the set-up with other systems that have the same, and fill its port in."""
        from cranfield.config.strict import with_port
        from cranfield.systems.set_up import set_up_of

        self.set_up = set_up_of(self.config, self.cwd, self.environment)
        if self.set_up is not None and self.set_up.port is not None:
            self.config = with_port(self.config, self.set_up.port)

    async def _require_set_up(self, reply: Reply | None = None) -> None:
        """Open the set-up before a call; after one that failed, check that its program still runs.

        Raises:
            SystemUnderTestError: it cannot be opened, or the program has ended: no further query would be answered.
        """
        if self.set_up is None:
            return
        try:
            if reply is None:
                await self.set_up.open(id(self))
            elif reply.answer is not None and reply.answer.outcome.is_failure:
                await self.set_up.check(broke=reply.died or reply.may_retry)
        except CheckFailedError as failure:
            shown = failure.redacted(self.redactor.redact)
            label = self.redactor.redact(self.set_up.label)
            place = f"system {self.name}"
            raise SystemUnderTestError(
                label, path=place, expected=shown.expected, got=shown.found, hint=shown.hint
            ) from None

    def depends_on(self) -> Iterator[Path]:
        """Files and folders that the answers depend on."""
        return (self.cwd / path for path in self.config.depends if isinstance(path, str))

    @property
    def declares_dependencies(self) -> bool:
        """Whether `depends` says what its answers depend on; of a fusion, for every part."""
        if self.parts:
            return all(part.declares_dependencies for part in self.parts.values())
        return bool(self.config.depends)

    @property
    def is_pilot(self) -> bool:
        """True if it, or any component, is a pilot."""
        return any(part.is_pilot for part in self.parts.values())

    def extra_queries(self, known: Container[str]) -> tuple[str, ...]:
        """The first ids of run files that no query has: its own, and those of its parts."""
        return tuple(dict.fromkeys(each for part in self.parts.values() for each in part.extra_queries(known)))

    def params_of(self, query: Query) -> dict[str, Scalar]:
        """Parameters of a query: those of the query override those of the set, which override those of the system."""
        named = self.config.components or []
        switches: dict[str, Scalar] = {"components": ",".join(named)} if named else {}
        switches |= dict.fromkeys(named, True)
        switches |= {"explain": True} if self.sends_explain and self.config.explain else {}
        return {**switches, **self.config.params, **self.set_params, **query.params}

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """Call the system, with retries; every failure of the system is an answer with its reason."""
        return event_loop().run(self.search_async(query, k))

    async def search_async(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """As `search`, on the event loop."""
        exchange = await self.ask_async(query, k)
        return exchange.answer, exchange.log

    def ask(self, query: Query, k: int, *, is_shown: bool = False) -> Exchange:
        """One call in full.

        Args:
            query: the query.
            k: number of results requested.
            is_shown: include the request and the whole output, for display.
        """
        return event_loop().run(self.ask_async(query, k, is_shown=is_shown))

    async def ask_async(self, query: Query, k: int, *, is_shown: bool = False) -> Exchange:
        """As `ask`, on the event loop."""
        params = self.params_of(query)
        with self._interruptible():
            await self._require_set_up()
            reply, latency_ms, attempts = await self._attempts(query.text, k, params)
            await self._require_set_up(reply)
        tried = f" (tried {attempts} times)" if attempts > 1 else ""
        answer, output, stderr = await self._read_in_time(reply, k, tried)
        redact = self.redactor.redact
        log = CallLog(latency_ms, output[:HEAD_CHARS], stderr[-HEAD_CHARS:], attempts)
        if not is_shown:
            return Exchange("", "", "", answer, log)
        return Exchange(redact(await self.sent(query.text, k, params)), output, stderr, answer, log)

    async def _read_in_time(self, reply: Reply, k: int, tried: str) -> tuple[Answer, str, str]:
        """As `_read`, in a thread: a long output must not delay other calls, nor an interruption."""
        limit_s = self.config.timeout_s + READING_S
        try:
            async with asyncio.timeout(limit_s):
                return await event_loop().threads.call(lambda: self._read(reply, k, tried))
        except TimeoutError:  # the thread is abandoned
            late = failed(f"reading the output took over {limit_s:g} s", outcome=Outcome.UNPARSABLE)
            return self._read(late, k, tried)
        except FunctionError as raised:
            raise raised.error from None

    def _read(self, reply: Reply, k: int, tried: str) -> tuple[Answer, str, str]:
        """The answer, output and stderr of a reply, without secrets."""
        answer = self._extractor.read(reply.output, k) if reply.answer is None else reply.answer
        return self._redacted(answer, tried), self.redactor.redact(reply.output), self.redactor.redact(reply.stderr)

    def _redacted(self, answer: Answer, tried: str) -> Answer:
        """An answer without secrets: a service may send back what it was sent.

        Ids and spans are compared with the test set: they get a second form, for people to see.
        """
        reason = None if answer.reason is None else truncate(self.redactor.redact(answer.reason), REASON_CHARS) + tried
        hits = tuple(self._explained(self.redactor.redact_hit(hit)) for hit in answer.hits)
        return replace(answer, hits=hits, reason=reason, fields=self.redactor.redact_value(answer.fields))

    def _explained(self, hit: Hit) -> Hit:
        """A result with its explanation only where it is wanted."""
        if hit.explanation is None:
            return hit
        return replace(hit, explanation=hit.explanation.shortened() if self.config.explain else None)

    def interrupt(self) -> None:
        """Interrupt every call under way; later calls are not affected."""
        event_loop().post(self._cancel_calls)

    def _cancel_calls(self) -> None:
        for call in self._calls:
            call.cancel()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let `interrupt` cancel the current task."""
        task = asyncio.current_task()
        if task is None or task in self._calls:
            yield
            return
        self._calls.add(task)
        try:
            yield
        finally:
            self._calls.discard(task)

    @cached_property
    def _extractor(self) -> Extractor:
        from cranfield.systems.calls.extract import Extractor

        return Extractor(self.config)

    async def _attempts(self, query: str, k: int, params: Mapping[str, Scalar]) -> tuple[Reply, float, int]:
        """The last reply, its latency in ms without what `make_ready` took, and the number of attempts."""
        taken: list[float] = []

        async def attempt() -> Reply:
            reply, began = await self.make_ready(), time.perf_counter()
            reply = reply or await self._attempt_in_time(query, k, params)
            taken.append((time.perf_counter() - began) * 1000)
            return reply

        allowed = 1 + (self.retries if self.config.retries is None else self.config.retries)
        is_pausing = self._deaths.is_pausing
        if is_pausing and self.starts_program:
            return failed(self._deaths.reason_unsent()), 0.0, 0
        once = allowed == 1 or is_pausing
        reply = await (attempt() if once else _retried(attempt, allowed, self.config.backoff_s))
        if reply.died and once and allowed > 1 and reply.answer is not None:
            reply = replace(reply, answer=self._deaths.without_retry(reply.answer))
        self._deaths.count(reply.answer, died=reply.died)
        return reply, taken[-1], len(taken)

    async def _attempt_in_time(self, query: str, k: int, params: Mapping[str, Scalar]) -> Reply:
        """One attempt within its time limit."""
        timeout_s, received = self.config.timeout_s, Received()
        try:
            async with asyncio.timeout(timeout_s):
                return await self.attempt(query, k, params, received)
        except TimeoutError:
            answer = Answer(Outcome.TIMEOUT, reason=f"no answer in {timeout_s:g} s")
            return Reply(received.output, received.stderr, answer)


async def _retried(attempt: Callable[[], Awaitable[Reply]], allowed: int, backoff_s: float) -> Reply:
    from tenacity import AsyncRetrying

    from cranfield.base.concurrency.retry import retry_policy

    policy = retry_policy(
        allowed,
        backoff_s,
        may_retry=lambda reply: reply.may_retry,
        requested_wait_s=lambda reply: reply.retry_after_s,
    )
    reply: Reply = await AsyncRetrying(**policy)(attempt)
    return reply
