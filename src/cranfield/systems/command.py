"""A system under test that is a command: one call per query, from argv to Answer.

Each way a call can end is told apart: answered, honestly empty, timed out, ended in error (or not started),
unparsable. The reason given with a failure is the same on every machine; the program's own words go to the log.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event, Lock
from types import MappingProxyType
from typing import Any

from cranfield.config.check import require_valid
from cranfield.config.load import system_config
from cranfield.config.models import Config, SystemConfig
from cranfield.config.template import fill
from cranfield.config.written import config_digest, public_config
from cranfield.errors import UnknownNameError
from cranfield.model import Answer, CallLog, Order, Outcome, Query, Scalar
from cranfield.systems.extract import Extractor
from cranfield.systems.mask import Mask
from cranfield.systems.process import MAX_OUTPUT_BYTES, End, Finished, run_process
from cranfield.systems.system import CallInterruptedError

HEAD_CHARS = 2_000
"""Kept of each stream in the log."""

_OURS_PERHAPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_INTERRUPTION_LAG_S = 0.5


class CommandSystem:
    r"""A command of cranfield.yaml, ready to be asked.

    Example:
        >>> from cranfield.config import SystemConfig
        >>> from cranfield.model import Query
        >>> echo = SystemConfig.model_validate({"command": ["echo", "doc:{query}"], "extract": {"regex": r"doc:\S+"}})
        >>> answer, log = CommandSystem("echo", echo).search(Query("q1", "grid"), k=10)
        >>> answer.outcome.value, [hit.id for hit in answer.hits]
        ('answered', ['doc:grid'])
    """

    def __init__(
        self,
        name: str,
        config: SystemConfig,
        folder: Path | str = ".",
        params: Mapping[str, Scalar] = MappingProxyType({}),
    ) -> None:
        """Prepare a command; raise `ConfigError` with all that is wrong with it.

        Args:
            name: its name in reports.
            config: what to run and how to read it.
            folder: what `cwd` is relative to: the config file's folder.
            params: given with every query, part of what is measured; a query's own go first.
        """
        require_valid(name, config)
        self.name = name
        self.config = config
        self.params = dict(params)
        self.cwd = Path(folder).absolute() / config.cwd
        self._extractor = Extractor(config)
        self._calls: set[Event] = set()
        self._lock = Lock()
        secrets = {key: value.get_secret_value() for key, value in config.env.items()}
        self.environment: Mapping[str, str] = {**os.environ, **secrets}
        self.mask = Mask(secrets)

    @classmethod
    def of(cls, name: str, *, folder: Path | str = ".", **settings: Any) -> CommandSystem:
        r"""Make a system from what would stand under its name in cranfield.yaml.

        Args:
            name: its name in reports.
            folder: what `cwd` is relative to.
            settings: `command`, `extract`, `timeout_s` and the other keys of a system.

        Raises:
            ConfigError: with everything that is wrong.

        Example:
            >>> CommandSystem.of("echo", command=["echo", "doc:{query}"], extract={"regex": r"doc:\S+"}).order
            'given'
        """
        return cls(name, system_config(name, settings), folder)

    @property
    def order(self) -> Order:
        """Whether the list stands as given or is to be sorted by score."""
        return self.config.order

    @property
    def concurrency(self) -> int:
        """Calls that may be under way at a time."""
        return self.config.concurrency

    @property
    def config_digest(self) -> str:
        """SHA-256 over the configuration as written; values of the environment and params of the set included."""
        return config_digest(self.config, self.params)

    def public_config(self) -> Mapping[str, Any]:
        """The configuration as written, with the names of the environment's variables only, and params of the set."""
        return {**public_config(self.config), **({"params": self.params} if self.params else {})}

    def search(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """Run the command once; every failure of the program is an answer with its outcome and reason."""
        params = {**self.params, **query.params}
        argv = fill(self.config.command, query=query.text, k=k, python=sys.executable, params=params)
        interrupted = Event()
        with self._lock:
            self._calls.add(interrupted)
        began = time.perf_counter()
        try:
            finished = run_process(
                argv,
                cwd=self.cwd,
                env=self.environment,
                timeout_s=self.config.timeout_s,
                interrupted=interrupted,
            )
            latency_ms = (time.perf_counter() - began) * 1000
            self._raise_if_interrupted(finished, interrupted)
        finally:
            with self._lock:
                self._calls.discard(interrupted)
        output = finished.stdout.decode("utf-8", "replace")
        log = CallLog(latency_ms, self._head(output), self._head(finished.stderr.decode("utf-8", "replace")))
        return self._answer(finished, output, k), log

    def interrupt(self) -> None:
        """Kill every call under way; later calls are not touched."""
        with self._lock:
            for call in self._calls:
                call.set()

    def _raise_if_interrupted(self, finished: Finished, interrupted: Event) -> None:
        # Whoever ends us often ends our whole tree, children first: a call that died of such a signal says nothing
        # about the system until it is clear that we go on.
        if finished.status is not None and -finished.status in _OURS_PERHAPS:
            interrupted.wait(_INTERRUPTION_LAG_S)
        if interrupted.is_set() and finished.status != 0:
            raise CallInterruptedError

    def _answer(self, finished: Finished, output: str, k: int) -> Answer:
        if finished.end is End.NOT_STARTED:
            return Answer(Outcome.NONZERO_EXIT, reason=f"could not be started: {finished.why}")
        if finished.end is End.TIMEOUT:
            return Answer(Outcome.TIMEOUT, reason=f"no answer in {self.config.timeout_s:g} s")
        if finished.end is End.TOO_MUCH_OUTPUT:
            return Answer(Outcome.UNPARSABLE, reason=f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output")
        if finished.status:
            return Answer(Outcome.NONZERO_EXIT, reason=_exit_reason(finished.status))
        return self._extractor.read(output, k)

    def _head(self, text: str) -> str:
        return self.mask.hide(text)[:HEAD_CHARS]


def systems_of(
    config: Config, names: Iterable[str] | None = None, params: Mapping[str, Scalar] = MappingProxyType({})
) -> list[CommandSystem]:
    """The systems of a config, in the order of the file; only those in `names` where given.

    Args:
        config: what was loaded.
        names: of the systems; None is all.
        params: given with every query of the test set they are asked.

    Raises:
        UnknownNameError: a name that is not in the config.
    """
    wanted = None if names is None else set(names)
    for name in sorted(wanted or ()):
        if name not in config.systems:
            raise UnknownNameError.among("system", name, config.systems)
    return [
        CommandSystem(name, system, config.folder, params)
        for name, system in config.systems.items()
        if wanted is None or name in wanted
    ]


def _exit_reason(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
