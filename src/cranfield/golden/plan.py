"""The plan of a golden set: which queries are wanted, and which models play the roles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from hashlib import sha256
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from math import ceil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cranfield.agents.settings import BudgetSettings, ModelSettings
from cranfield.base.errors import ConfigError, UnknownNameError
from cranfield.formats.io.validation import ClosedModel, Filled, load_model
from cranfield.golden.records import Difficulty, TaskType
from cranfield.golden.rules import Bounds

TargetKind = Literal["entities", "files", "spans", "headings"]
"""What queries aim at: symbols of code, whole files, 1 to 3 graded ranges of lines, or sections of Markdown."""
_Count = Annotated[int, Field(ge=1)]


class RoleModels(ClosedModel):
    """The model of each role."""

    author: ModelSettings
    oracle: ModelSettings
    adversary: ModelSettings
    judge: ModelSettings
    """Model that judges narratives."""
    checker: ModelSettings | None = None
    """Model that checks the rows of an existing set; a plan of new queries needs none."""


class Cell(ClosedModel):
    """How many queries of a task type and difficulty are wanted, and where from."""

    task_type: TaskType
    difficulty: Difficulty
    n: _Count
    scope: tuple[Filled, ...] = ()
    """Folders and files that the author may write from; empty: those of the plan."""
    focus: tuple[Filled, ...] = ()
    """Folders or files, in turn, that the author is to look at first."""
    targets: TargetKind | None = None
    """None: that of the plan."""

    @property
    def key(self) -> tuple[TaskType, Difficulty]:
        """Task type and difficulty."""
        return (self.task_type, self.difficulty)


class Quota(ClosedModel):
    """How many queries may, and should, have a target in a folder or a file."""

    path: Filled
    least: Annotated[int, Field(ge=0)] = 0
    most: Annotated[int, Field(ge=0)] | None = None


class SecretSettings(ClosedModel):
    """What is not sent besides what looks like a secret, and what is sent nevertheless."""

    patterns: tuple[Filled, ...] = ()
    exempt: tuple[Filled, ...] = ()


class Plan(ClosedModel):
    """What a golden set is to hold, and how it is made."""

    cranfield_plan: Literal[1]
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,59}$")]
    total: _Count
    """The cells must sum to it."""
    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]
    models: RoleModels
    judge_votes: Annotated[int, Field(ge=1, le=9)] = 1
    """On each narrative; every one must be `equivalent`."""
    spot_check: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the judged narratives on which a person checks the judge."""
    allow_same_model: bool = False
    """Let one model be oracle and adversary."""
    headroom: Annotated[float, Field(ge=1, le=10)] = 1.5
    """Candidates that are written for each that is wanted, because some are rejected."""
    profile: Literal["bootstrap", "scale", "bootstrap-one-person", "scale-one-person"] = "bootstrap"
    """Profile of the review by people: by two; or by one, who looks at each record again a day later."""
    scope: tuple[Filled, ...] = ()
    """Folders and files; empty: the whole repository."""
    targets: TargetKind = "entities"
    quotas: tuple[Quota, ...] = ()
    budget: BudgetSettings = BudgetSettings()
    bounds: Bounds = Bounds()
    secrets: SecretSettings = SecretSettings()
    seed: int = 0

    @property
    def roles(self) -> dict[str, ModelSettings]:
        """The roles that a new query needs, with their settings."""
        models = self.models
        return {"author": models.author, "oracle": models.oracle, "adversary": models.adversary, "judge": models.judge}

    def scope_of(self, cell: Cell) -> Sequence[str]:
        """Folders and files that a cell is written from; empty: the whole repository."""
        return cell.scope or self.scope

    def targets_of(self, cell: Cell) -> TargetKind:
        """What its queries aim at."""
        return cell.targets or self.targets

    def emitted(self, cell: Cell) -> int:
        """Candidates that are written for a cell: `n` x headroom, rounded up."""
        return ceil(cell.n * Fraction(str(self.headroom)))

    @property
    def n_drafts(self) -> int:
        """Candidates that are written for all cells."""
        return sum(map(self.emitted, self.cells))

    def cell(self, task_type: str, difficulty: str) -> Cell | None:
        """The cell of a candidate; None where the plan has none."""
        return next((cell for cell in self.cells if cell.key == (task_type, difficulty)), None)

    @property
    def digest(self) -> str:
        """SHA-256 of what it says, however it is written."""
        return "sha256:" + sha256(self.model_dump_json().encode()).hexdigest()


def load_plan(path: Path) -> Plan:
    """Read a plan, YAML or JSON.

    Raises:
        ConfigError: with everything that does not fit, each at its line.
    """
    return load_model(path, Plan, ConfigError)


def shipped_plan(name: str = "phase1") -> Plan:
    """A plan of the package.

    Raises:
        UnknownNameError: there is no such plan.
    """
    with as_file(_shipped(name)) as path:
        return load_plan(path)


def shipped_text(name: str) -> str:
    """Its text, with the errors of `shipped_plan`."""
    return _shipped(name).read_text(encoding="utf-8")


def _shipped(name: str) -> Traversable:
    folder = files(__package__) / "plans"
    known = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    if name not in known:
        raise UnknownNameError.among("plan", name, known)
    return folder / f"{name}.yaml"
