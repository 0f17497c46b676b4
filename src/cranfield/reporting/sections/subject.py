"""What a report is about: labelled systems on one test set, and their comparison where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from cranfield.evaluation.latency import LatencyImpact, latency_impact
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.strata import StrataContrast
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import Measure

Systems = Sequence[tuple[str, Evaluation]]
"""Label and evaluation of each system, in order."""
Preflight = Sequence[tuple[str, str, str]]
"""(system, check, found), for every check that passed before the first query."""


@dataclass(frozen=True)
class Subject:
    """The input of every section. A section that does not apply to a subject returns None."""

    systems: Systems
    result: Comparison | ManyComparison | None = None
    """None where systems stand side by side without a verdict."""
    contrasts: Sequence[StrataContrast] = ()
    sensitivity: Sensitivity | None = None
    preflight: Preflight = ()
    today: date | None = None
    by_query: bool = False
    """Add a row for every query."""
    measure: Measure | None = None
    """The primary measure, where there is no comparison; None is the first."""

    sort: str = "mean"
    """Order of the leaderboard of many systems."""
    show_pairs: bool = False
    """Show all pairs of many systems, however many."""

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The evaluations, in order."""
        return tuple(evaluation for _, evaluation in self.systems)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Every measure of any system."""
        return tuple(dict.fromkeys(measure for each in self.evaluations for measure in each.measures))

    @property
    def labels(self) -> tuple[str, ...]:
        """What the systems are called in this report, in order."""
        return tuple(label for label, _ in self.systems)

    @property
    def pair(self) -> Comparison | None:
        """The comparison of two systems."""
        return self.result if isinstance(self.result, Comparison) else None

    @property
    def many(self) -> ManyComparison | None:
        """The comparison of three systems or more."""
        return self.result if isinstance(self.result, ManyComparison) else None

    @property
    def primary(self) -> Measure | None:
        """The measure that decides; without a comparison the first; None where no measure has a value."""
        if self.result is not None:
            return self.result.primary
        return self.measure or next(iter(self.evaluations[0].measures), None)

    @cached_property
    def latency_impacts(self) -> Mapping[str, LatencyImpact]:
        """The latency of the candidate against the baseline, or of each of many systems against theirs, where calls were timed."""
        if self.pair is not None:
            baseline, others = self.pair.baseline, [self.pair.candidate]
            alpha, seed = self.pair.alpha, self.pair.seed
        elif self.many is not None and self.many.baseline is not None:
            sides = {each.name: each for each in self.many.evaluations}
            baseline, others = sides.pop(self.many.baseline), list(sides.values())
            alpha, seed = self.many.options.alpha, self.many.options.seed
        else:
            return {}
        found = {each.name: latency_impact(baseline, each, alpha=alpha, seed=seed) for each in others}
        return {name: impact for name, impact in found.items() if impact is not None}

    @property
    def pilot(self) -> bool:
        """True when any system is not for the record."""
        return any(evaluation.pilot for evaluation in self.evaluations)

    @property
    def is_void(self) -> bool:
        """True when scores of a system do not count."""
        sources = self.evaluations if self.result is None else (self.result,)
        return any(finding.is_void for source in sources for finding in source.evidence)
