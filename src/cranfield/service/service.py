"""The service: test sets, runs, jobs and results of one database, and the operator's config.

REST, pages, agents, metrics and schedules all call this and nothing below it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.config import Config, load_config
from cranfield.config.workbench import Workbench
from cranfield.database.engine import Clock
from cranfield.errors import ConfigError, Problem
from cranfield.judging.store.store import Store
from cranfield.service.jobs import Jobs
from cranfield.service.results import Comparisons, Evaluations
from cranfield.service.runs import Runs
from cranfield.service.store.queries import Queries
from cranfield.service.store.variants import Variants
from cranfield.service.testsets import TestSets

if TYPE_CHECKING:
    from cranfield.service.worker import Worker


class ConfigFile:
    """The operator's config as its file stands: read again when the file has changed."""

    def __init__(self, path: Path | None) -> None:
        """Read it.

        Raises:
            ConfigError: with everything that is wrong.
        """
        self.path = path
        self.problems: tuple[Problem, ...] = ()
        """What is wrong with an edit: the config before it stays in use."""
        self._turn = threading.Lock()
        self._read_at = self._stamp()
        self._config = None if path is None else load_config(path)

    def current(self) -> Config | None:
        """The config; None where the server has none."""
        if self.path is None:
            return None
        with self._turn:
            stamp = self._stamp()
            if stamp != self._read_at:
                self._read_at = stamp
                try:
                    self._config, self.problems = load_config(self.path), ()
                except ConfigError as error:
                    self.problems = error.problems
            return self._config

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class Service:
    """The parts of the service. Use it from any thread.

    Attributes:
        store: the books and accounts of the same database.
        workbench: the operator's file; the defaults where there is none.
        config_file: cranfield.yaml.
        testsets: named test sets and their versions; those of the config too.
        runs: uploaded runs, and answers of systems.
        jobs: the queue.
        evaluations: results of one system on one test set.
        comparisons: two evaluations compared.
        variants: named variants of systems.
        queries: production queries.
    """

    def __init__(self, store: Store, config_file: ConfigFile, workbench: Workbench, clock: Clock) -> None:
        self.store = store
        self.workbench = workbench
        self.config_file = config_file
        self.clock = clock
        database = store.database
        self.testsets = TestSets(database, clock, config_file.current)
        self.runs = Runs(database, clock)
        self.variants = Variants(database, clock)
        self.evaluations = Evaluations(store, clock, self.testsets, self.runs)
        self.comparisons = Comparisons(database, clock, self.evaluations)
        self.jobs = Jobs(self)
        self.queries = Queries(database, clock)
        self.worker: Worker | None = None

    def config(self) -> Config | None:
        """The config as its file stands, read again when it has changed; None where the server has none."""
        return self.config_file.current()

    def worker_problem(self) -> str:
        """Why no jobs are worked on here; empty where the worker is alive, or this server has none."""
        return "" if self.worker is None else self.worker.problem()

    @property
    def config_problems(self) -> tuple[Problem, ...]:
        """What is wrong with the file since it was read last; empty where nothing is."""
        self.config_file.current()
        return self.config_file.problems


def open_service(
    store: Store, config_path: Path | None = None, workbench: Workbench | None = None, *, clock: Clock | None = None
) -> Service:
    """Open the service of a database.

    Args:
        store: the opened database.
        config_path: cranfield.yaml; None: only uploaded runs can be evaluated.
        workbench: the operator's file; None: the defaults.
        clock: milliseconds since 1970 (UTC); None: that of the store.

    Raises:
        ConfigError: the config, with everything that is wrong.
    """
    return Service(store, ConfigFile(config_path), workbench or Workbench(), clock or store.clock)
