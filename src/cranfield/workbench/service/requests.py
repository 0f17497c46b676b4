"""What a job is asked to do, as REST, pages, agents and schedules send it and as the job table keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cranfield.evaluation.options.blocks import CompareOptions, DifferenceOptions, ScoringOptions
from cranfield.evaluation.options.keys import ShortText, at, key_of, model_with, open_kind
from cranfield.model import Scalar, TestSet

if TYPE_CHECKING:
    from cranfield.app.experiment import Experiment


MAX_NAMES = 50
"""Systems, runs, measures or tags of one request."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Id = Annotated[int, Field(ge=1, lt=2**63)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class RequestBody(BaseModel):
    """A request; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EvaluateRequest(RequestBody):
    """Evaluate systems of the operator's config, or stored runs, on one test set; one evaluation each."""

    testset: Name
    """Name of a test set, of the config or uploaded: its latest version. `NAME@ID` selects one version."""
    systems: Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)] = ()
    """Names in the config. Without systems and runs: the candidate of the config, else its only system."""
    runs: Annotated[tuple[Id, ...], Field(max_length=MAX_NAMES)] = ()
    """Ids of stored runs: nothing is asked again."""
    variant: Annotated[str, Field(max_length=200)] = ""
    """Name of a stored variant; its system stands in `systems` or is the only one."""
    components: Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)] = ()
    """Evaluate each system with these components alone."""
    k: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Results requested for each query; default: that of the config, else as deep as the measures look, 10 or more."""
    measures: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_NAMES)] | None = None
    """Spellings; default: those of the config."""
    primary: Annotated[str, Field(max_length=200)] | None = None
    """Default: that of the config, else the first measure."""
    convention: Annotated[ShortText | None, key_of(ScoringOptions, "convention", otherwise="that of the config")] = None
    seed: Seed = 0
    """Seed of everything random."""
    book: Annotated[str, Field(max_length=200)] = ""
    """Name of a book: the results down to k are put into it, to be judged, and the measures follow its grades. The test set
    then needs no judgments."""
    pilot: bool = False
    """Mark the evaluation as not for the record."""
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)] = ()
    note: Annotated[str, Field(max_length=10_000)] = ""
    params: Annotated[dict[str, Scalar], Field(max_length=MAX_NAMES)] = Field(default_factory=dict)
    """Values of parameters that the operator's workbench file opens (`tunable:`), as a variant has them."""

    @field_validator("systems", "components", "measures", "tags")
    @classmethod
    def _once(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """A name that repeats counts once."""
        return names and tuple(dict.fromkeys(names))


class ComparisonOptions(RequestBody):
    """How two evaluations are compared. What is left out is as the evaluation of the baseline was declared."""

    measure: Annotated[
        ShortText | None, Field(description="Primary measure, such as nDCG@10; default: that of the baseline.")
    ] = None
    seed: Seed = 0


if not TYPE_CHECKING:
    _OPTIONS = at("request", CompareOptions)
    ComparisonOptions = model_with(
        ComparisonOptions, "ComparisonOptions", _OPTIONS, open_kind, otherwise="that of the baseline"
    )


class CompareRequest(ComparisonOptions):
    """Compare two stored evaluations of the same queries."""

    baseline: Id
    candidate: Id


class CompareResultsRequest(ComparisonOptions):
    """Compare the two evaluations that jobs make, once these have ended: the first one is the baseline. Pages ask for it."""

    jobs: Annotated[tuple[Id, ...], Field(min_length=1, max_length=2)]


class DiffOptions(RequestBody):
    """How two lists of results are compared without judgments, and bounds."""


if not TYPE_CHECKING:
    DiffOptions = model_with(DiffOptions, "DiffOptions", at("request", DifferenceOptions), open_kind)


class DiffRequest(DiffOptions):
    """Two stored evaluations, or runs, beside each other, without judgments. It is computed when it is requested, and not stored."""

    baseline: Id
    candidate: Id
    of: Literal["evaluations", "runs"] = "evaluations"
    """What the ids are of."""


class BenefitRequest(RequestBody):
    """Run the experiment of a schedule, score it, and write its result. Nothing but the schedule asks for one."""

    schedule: Name
    """Name in the operator's file, which has the plan."""


JobRequest = EvaluateRequest | CompareRequest | CompareResultsRequest | BenefitRequest


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
