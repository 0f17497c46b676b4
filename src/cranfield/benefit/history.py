"""What is remembered of the results of experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cranfield.benefit.result import Estimate, StratumKind, StratumVerdict
from cranfield.formats.io.validation import ClosedModel, Filled
from cranfield.model.results import DamagedLine, Record


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
    """Of the repository that the folder of results is in; None outside of one."""
    dirty: bool = False
    name: str
    run: str
    version: str
    file: Filled
    plan_digest: str
    labels_digest: str = ""
    commit: str = ""
    """Of the repository that the tasks are about."""
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
