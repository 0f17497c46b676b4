"""What the analysis reads, a planned cell with its score, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd, CellKey, CellUsage, Delivery
from cranfield.benefit.result import Loss, StratumResult, VarianceAdvice


@dataclass(frozen=True, slots=True)
class CellObservation:
    """A planned cell, whether it was run or not. What is unknown is None, which is not 0."""

    key: CellKey
    strata: Mapping[str, str]
    """Strata of the task: name to value."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test can plausibly do the task; None: not known."""
    end: CellEnd | None = None
    """End of its last run; None: it has none. A cell without a scored run is counted, and in no mean."""
    success: bool | None = None
    """None: not decided."""
    usage: CellUsage | None = None
    delivery: Delivery | None = None
    """None: its arm has no tool under test."""
    transcript: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether it counts in its arm."""
        return self.end is not None and self.end.is_scored


@dataclass(frozen=True, slots=True)
class Analysis:
    """The parts of a result that are computed from observations alone."""

    strata: tuple[StratumResult, ...]
    """Cells of the matrix first, then margins, then by `baseline_answerable`, all tasks last."""
    variance: tuple[VarianceAdvice, ...]
    losses: tuple[Loss, ...]
    """Worst first."""


Arms = Mapping[ArmRole, tuple[CellObservation, ...]]
"""The cells of a task, by seed."""
