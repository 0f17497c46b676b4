"""What the runner needs of an agent in an arm, and the agents of a plan.

An agent runs one cell at a time for each call; the runner decides which, when, and how often.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellUsage, Delivery, NamedPlaces, PreflightRecord, ReadLines
from cranfield.benefit.tasks import Task

if TYPE_CHECKING:
    from cranfield.agents.protocol import Backend
    from cranfield.repo.snapshot import Snapshot


@dataclass(frozen=True)
class CellRun:
    """What came of a run of a cell, as its agent knows it."""

    end: CellEnd
    usage: CellUsage
    transcript: Mapping[str, Any]
    """As JSON."""
    error: str = ""
    """Name in the catalogue of errors; of an end that is no answer."""
    message: str = ""
    answer: str = ""
    named: NamedPlaces | None = None
    """Places in fields of the answer; None: it has none, and they are read from its text."""
    files: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery | None = None
    reads: tuple[ReadLines, ...] | None = ()
    models: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class ArmAgent(Protocol):
    """An agent with the tools of an arm. Several runs may be under way on one event loop."""

    async def preflight(self) -> tuple[PreflightRecord, ...]:
        """Ask every tool under test what it serves; a record for each. What goes wrong is a record that is not ok."""
        ...

    async def run(self, task: Task, seed: int, attempt: int) -> CellRun:
        """Run a cell. What goes wrong with the agent, a server or a tool is its end, not an exception.

        Args:
            task: its prompt is what the agent is given.
            seed: 0, 1, ... of the plan.
            attempt: 1, 2, ...; the same number again where an earlier process was killed in it.
        """
        ...

    async def aclose(self) -> None:
        """End what runs for it."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """What agents are made of."""

    plan: BenefitPlan
    folder: Path
    """Folder of the experiment: answers of models are kept in it."""
    snapshot: Snapshot | None = None
    """Snapshot of the repository; None: the tasks need none."""
    source: Backend | None = None
    """Answers in the place of the model, for tests."""

    def withheld(self) -> frozenset[str]:
        """Files of the repository that agents do not have: those that look like secrets, and the tasks with their labels."""
        from cranfield.benefit.folder import TASKS
        from cranfield.benefit.source import labels_in
        from cranfield.repo.secret_files import find_withheld

        if self.snapshot is None:
            return frozenset()
        tasks = {each.read_bytes() for each in (self.folder / TASKS).glob("*") if each.is_file()}
        return frozenset(find_withheld(self.snapshot).names) | labels_in(self.snapshot, tasks)


OpenAgents = Callable[[AgentSetup], AbstractAsyncContextManager[Mapping[ArmRole, ArmAgent]]]
_REFERENCE, _EXTERNAL = "cranfield.benefit.reference:open_reference", "cranfield.benefit.external:open_external"
OPENERS: Mapping[str, str] = {
    "reference": _REFERENCE,
    "command": _EXTERNAL,
    "codex": _EXTERNAL,
    "claude-code": _EXTERNAL,
}
"""Kind of agent to `module:function`, an `OpenAgents`, imported where it is used."""


def open_agents(setup: AgentSetup) -> AbstractAsyncContextManager[Mapping[ArmRole, ArmAgent]]:
    """The agents of both arms; they are closed at the end.

    Raises:
        CranfieldError: the plan or the machine does not allow it, with every problem.
    """
    module, _, name = OPENERS[setup.plan.agent.kind].partition(":")
    opener: OpenAgents = getattr(importlib.import_module(module), name)
    return opener(setup)
