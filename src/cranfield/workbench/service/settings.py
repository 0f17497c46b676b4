"""The settings of an evaluation, as the database keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.evaluation.options.blocks import CompareOptions, ScoringOptions
from cranfield.model import TestSet

if TYPE_CHECKING:
    from cranfield.app.experiment import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What scores a run again as an experiment did: an evaluation keeps it as JSON."""

    name: str = ""
    pilot: bool = False
    measures: tuple[str, ...] | None = None
    k: int
    scoring: ScoringOptions
    compare: CompareOptions
    """Its primary measure is there."""
    book: str | None = None
    newest_item: int | None = None

    @classmethod
    def of(cls, experiment: Experiment, *, name: str = "", pilot: bool = False) -> Settings:
        """The settings of an experiment."""
        measures = None if experiment.measures is None else tuple(experiment.measures)
        scoring, compare = experiment.scoring, experiment.options
        return cls(name=name, pilot=pilot, measures=measures, k=experiment.k, scoring=scoring, compare=compare)

    def experiment(self, testset: TestSet) -> Experiment:
        """The experiment on a test set, without systems."""
        from cranfield.app.experiment import Experiment

        return Experiment(testset, (), k=self.k, measures=self.measures, scoring=self.scoring, declared=self.compare)

    @property
    def primary(self) -> str:
        """Spelling of the primary measure."""
        return self.compare.primary or ""
