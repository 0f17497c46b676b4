"""What the service works with: the parts of one database, and the operator's files. It does nothing itself."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.errors import ConfigError, Problem
from cranfield.books.database.engine import Clock
from cranfield.books.store.store import Store
from cranfield.config import Config, load_config
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.results import Comparisons, Evaluations
from cranfield.workbench.service.runs import Runs
from cranfield.workbench.service.store.queries import ProductionQueries
from cranfield.workbench.service.store.variants import Variants
from cranfield.workbench.service.testsets import TestSets


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


@dataclass(eq=False)
class Context:
    """What the service works with. Use it from any thread."""

    store: Store
    """The books and accounts of the same database."""
    config_file: ConfigFile
    """cranfield.yaml."""
    workbench: Workbench
    """The operator's file; the defaults where there is none."""
    clock: Clock
    testsets: TestSets
    """Named test sets and their versions; those of the config too."""
    runs: Runs
    """Uploaded runs, and answers of systems."""
    variants: Variants
    """Named variants of systems."""
    evaluations: Evaluations
    """Results of one system on one test set."""
    comparisons: Comparisons
    """Two evaluations compared."""
    queries: ProductionQueries
    """Production queries."""

    def config(self) -> Config | None:
        """The config as its file stands, read again when it has changed; None where the server has none."""
        return self.config_file.current()

    @property
    def config_problems(self) -> tuple[Problem, ...]:
        """What is wrong with the file since it was read last; empty where nothing is."""
        self.config_file.current()
        return self.config_file.problems


def context_of(store: Store, config_file: ConfigFile, workbench: Workbench, clock: Clock) -> Context:
    """The parts of a database."""
    database = store.database
    testsets, runs = TestSets(database, clock, config_file.current), Runs(database, clock)
    evaluations = Evaluations(store, clock, testsets, runs)
    return Context(
        store,
        config_file,
        workbench,
        clock,
        testsets=testsets,
        runs=runs,
        variants=Variants(database, clock),
        evaluations=evaluations,
        comparisons=Comparisons(database, clock, evaluations),
        queries=ProductionQueries(database, clock),
    )
