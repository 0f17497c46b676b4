"""Lines of a run folder that no model wrote: what a step decided of a record, and the manifest of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cranfield.agents.protocol import UNREADABLE, Failure, Usage
from cranfield.agents.recording import TreeRecord
from cranfield.golden.agreement import LabelOutcome, QueueReason
from cranfield.golden.records import SCHEMA_VERSION, Cost, Difficulty, Filled, GoldenModel, NarrativeJudgment, TaskType
from cranfield.golden.states import State


class RecordFinding(GoldenModel):
    """What is wrong with a record: its kind, as the step that found it names it, and a sentence."""

    kind: Filled
    message: str


def is_unreadable(reasons: Sequence[RecordFinding]) -> bool:
    """Whether a record ended because no reply of a role could be read: a later call may ask again."""
    return bool(reasons) and all(each.kind in UNREADABLE for each in reasons)


class Decided(GoldenModel):
    """A line about one attempt at a record."""

    query_id: Filled
    attempt: Annotated[int, Field(ge=1)] = 1
    at: str
    schema_version: str = SCHEMA_VERSION


class GateFailure(Decided):
    """An answer that failed the mechanical gate: every check that failed, and every check that could not run."""

    failures: Annotated[tuple[RecordFinding, ...], Field(min_length=1)]
    """`kind` is the check."""
    missing: tuple[RecordFinding, ...] = ()


class AgreementRecord(Decided):
    """What the adversary's report and the judge of the narrative come to."""

    outcome: LabelOutcome
    reasons: tuple[RecordFinding, ...] = ()
    """`kind` is a `QueueReason`."""
    jaccard_entities: Annotated[float, Field(ge=0, le=1)]
    jaccard_files: Annotated[float, Field(ge=0, le=1)]
    missing_entities: tuple[Filled, ...] = ()
    """That the adversary adds to those of the answer: they lower `jaccard_entities`."""
    missing_files: tuple[Filled, ...] = ()
    ratings: tuple[NarrativeJudgment, ...] = ()
    """Votes of the judge, in their order."""
    judge: str = ""
    """Model of the judge."""
    spot_check: bool = False
    """A person checks the judge on this record."""
    cost: Cost | None = None

    @property
    def kinds(self) -> tuple[QueueReason, ...]:
        """Kinds of the reasons, each once."""
        return tuple(dict.fromkeys(QueueReason(each.kind) for each in self.reasons))


class QueueEntry(Decided):
    """A record that a person decides on."""

    outcome: LabelOutcome
    reasons: Annotated[tuple[RecordFinding, ...], Field(min_length=1)]


class Rejection(Decided):
    """A record that is not part of the set, and why."""

    state: State
    """One of `states.REJECTIONS`."""
    reasons: tuple[RecordFinding, ...] = ()
    task_type: TaskType | None = None
    """Task type of a draft that never became a candidate."""
    difficulty: Difficulty | None = None


class TranscriptLine(BaseModel):
    """What an agent did for a record: `Transcript.record()` with the record and the role before it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    query_id: Filled
    role: Filled
    attempt: Annotated[int, Field(ge=1)] = 1
    vote: Annotated[int, Field(ge=1)] = 1
    """Number of the vote, of roles that are asked several times."""
    at: str
    schema_version: str = SCHEMA_VERSION
    failure: Failure | None = None
    """Why there is no answer."""
    usage: Usage | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether it is a try whose replies could not be read."""
        return self.failure is not None and self.failure.kind in UNREADABLE


class RunManifest(GoldenModel):
    """What a run is of. Everything but the times is the same when it is resumed."""

    name: Filled
    created_at: str
    cranfield_version: str
    plan_digest: str = ""
    commit: str = ""
    snapshot_digest: str
    """Digest of the paths and contents of all files."""
    tree: TreeRecord = TreeRecord()
    """State of the folder of the repository; not looked at where only the commit was read, which the call named."""
    source: Filled = "plan"
    """`plan`, or the name of the existing set whose records entered."""
    models: Mapping[str, str] = {}
    """Role to `provider:name`."""
    prompts: Mapping[str, str] = {}
    """Label to digest."""
    tool_versions: Mapping[str, str] = {}
    withheld: Mapping[str, str] = {}
    """Files that no tool shows, and why."""
    notes: tuple[str, ...] = ()
    """What was allowed that is refused by default, such as the same model for oracle and adversary."""
    seed: int = 0
    more: Mapping[str, Any] = {}
    schema_version: str = SCHEMA_VERSION
