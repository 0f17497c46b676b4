"""The service: test sets, runs, jobs and results of one database, and the operator's config.

REST, pages, agents, metrics and schedules all call this and nothing below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cranfield.books.database.engine import Clock
from cranfield.books.store.store import Store
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.context import ConfigFile, Context, context_of
from cranfield.workbench.service.intake.traces import TraceReceiver
from cranfield.workbench.service.jobs import Jobs


def no_worker() -> str:
    """Without a worker of this process, jobs are worked on elsewhere."""
    return ""


@dataclass(eq=False)
class Service(Context):
    """The context, and the queue of jobs."""

    jobs: Jobs
    worker_problem: Callable[[], str] = no_worker
    """Why no jobs are worked on here; gives an empty text where the worker is alive, or this server has none."""

    @cached_property
    def traces(self) -> TraceReceiver:
        """Takes in the spans of applications."""
        return TraceReceiver(self)


def open_service(
    store: Store,
    config: Path | ConfigFile | None = None,
    workbench: Workbench | None = None,
    *,
    clock: Clock | None = None,
) -> Service:
    """Open the service of a database.

    Args:
        store: the opened database.
        config: cranfield.yaml; None: only uploaded runs can be evaluated.
        workbench: the operator's file; None: the defaults.
        clock: milliseconds since 1970 (UTC); None: that of the store.

    Raises:
        ConfigError: the config, with everything that is wrong.
    """
    config_file = config if isinstance(config, ConfigFile) else ConfigFile(config)
    context = context_of(store, config_file, workbench or Workbench(), clock or store.clock)
    return Service(**vars(context), jobs=Jobs(context))
