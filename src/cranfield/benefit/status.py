"""Where an experiment stands: cells by arm and end, pairs, errors, what was used, and whether the tools came up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from cranfield.benefit.folder import ExperimentFolder, ExperimentManifest
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellKey, CellRecord
from cranfield.benefit.result import Estimate, StratumKind, StratumVerdict
from cranfield.benefit.runner import schedule
from cranfield.formats.io.validation import ClosedModel, Filled
from cranfield.model.results import DamagedLine, Record

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class ArmStatus:
    """State of an arm."""

    role: ArmRole
    name: str
    n_cells: int
    n_scored: int
    """Cells that ended."""
    ends: Mapping[CellEnd, int]
    """Number of cells that ended, by end."""
    errors: Mapping[str, int]
    """Name in the catalogue of errors to its number, over all runs."""
    tokens: int | None
    """Tokens of all runs; None: those of some are not known."""
    money: float | None
    offered: int
    called: int | None
    answered: int | None
    """Cells in which the tools under test were offered, were called, and gave a result without an error; None: not known of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentStatus(Record):
    """State of an experiment."""

    uncommitted: str
    """That of the manifest."""
    experiment: ExperimentManifest
    n_pairs: int
    n_whole_pairs: int
    """Pairs of which both cells ended."""
    n_interrupted: int
    """Runs that were begun and did not end."""
    arms: tuple[ArmStatus, ...]
    waiting: tuple[CellRecord, ...]
    """Last run of each cell without an end that was run."""


def status_of(folder: ExperimentFolder) -> ExperimentStatus:
    """Where an experiment stands.

    Raises:
        InputError: its folder is damaged.
    """
    plan, records = folder.plan, folder.cells()
    order = schedule(plan, folder.tasks().tasks)
    last = {record.key: record for record in records}
    ended = {key for key, record in last.items() if record.end.is_scored}
    pairs = Counter((key.task_id, key.seed) for key in ended)
    return ExperimentStatus(
        uncommitted=folder.manifest.tree.uncommitted,
        experiment=folder.manifest,
        arms=tuple(_arm(plan, role, order, records) for role in ArmRole),
        n_pairs=len(order) // 2,
        n_whole_pairs=sum(n == 2 for n in pairs.values()),
        n_interrupted=folder.n_interrupted(),
        waiting=tuple(last[key] for key in order if key in last and key not in ended),
    )


def _arm(plan: BenefitPlan, role: ArmRole, order: Sequence[CellKey], records: Sequence[CellRecord]) -> ArmStatus:
    own = [record for record in records if record.key.arm is role]
    scored = [record for record in own if record.end.is_scored]
    delivered = [record.delivery for record in scored if record.delivery is not None]
    return ArmStatus(
        role,
        plan.arms[role].name,
        sum(key.arm is role for key in order),
        len(scored),
        dict(Counter(record.end for record in scored)),
        dict(Counter(record.error for record in own if record.error)),
        _sum([record.usage.total for record in own]),
        _sum([record.usage.money for record in own]),
        sum(delivery.offered for delivery in delivered),
        _sum([None if each.called is None else each.called > 0 for each in delivered]) if delivered else 0,
        _sum([None if each.answered is None else each.answered > 0 for each in delivered]) if delivered else 0,
    )


def _sum(values: Sequence[_Number | None]) -> _Number | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known, start=type(known[0])()) if known and len(known) == len(values) else None


class PastStratum(ClosedModel):
    """A stratum of a result."""

    kind: StratumKind
    stratum: Mapping[str, str]
    n_tasks: int
    verdict: StratumVerdict
    success_lift: Estimate
    token_ratio: Estimate


class PastResult(ClosedModel):
    """The line of a result."""

    cranfield_benefit_history: Literal[1] = 1
    time: Filled
    git_commit: str | None = None
    """Commit of the repository that the folder of results is in; None outside of one."""
    dirty: bool = False
    name: str
    run: str
    version: str
    file: Filled
    plan_digest: str
    labels_digest: str = ""
    commit: str = ""
    """Commit of the repository that the tasks are about."""
    uncommitted: str = ""
    """A sentence on changes of its folder that no commit has; empty: none."""
    arms: Mapping[str, str]
    is_void: bool
    sentence: str
    strata: tuple[PastStratum, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitHistory(Record):
    """The results of a history file, and its damaged lines."""

    results: tuple[PastResult, ...] = ()
    """In the order of the file; of several lines of one run, the last."""
    damaged: tuple[DamagedLine, ...] = ()
