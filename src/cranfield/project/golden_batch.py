"""A batch of records as a version of a golden set takes it, and what the version keeps of how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cranfield.agents.record_folder import PLAN
from cranfield.errors import UsageError
from cranfield.formats.io.files import shown
from cranfield.formats.io.versions import FileVersion
from cranfield.golden.assemble import (
    Merged,
    Record,
    golden_record,
)
from cranfield.golden.batch_review import planned_profile, read_sample, review_of
from cranfield.golden.existing import CARRIED
from cranfield.golden.folder import RunFolder
from cranfield.golden.index import RunIndex
from cranfield.golden.model_records import kept_records, model_records, read_kept
from cranfield.golden.plan import load_plan
from cranfield.golden.records import Stamp
from cranfield.golden.retirement import Decision, SequentialTest, model_histories
from cranfield.golden.review import PROFILES, Cell, ReviewProfile, ReviewReport, apply_edits
from cranfield.golden.states import State
from cranfield.model import TestSet
from cranfield.model.review import Disposition
from cranfield.words import command_word

ENTERS = frozenset({State.PASSED, State.KEPT})
"""States with which a record enters the set."""


@dataclass(frozen=True)
class Batch:
    """What a run folder gives a set."""

    index: RunIndex
    records: tuple[Record, ...]
    planned: Mapping[Cell, int]
    report: ReviewReport | None
    """None: no record was given to people."""

    @property
    def kept(self) -> Mapping[Cell, int]:
        """Records that enter the set, by cell."""
        return Counter(record.cell for record in self.records)

    @property
    def commit(self) -> str | None:
        """Of the run; None where it read a folder without git."""
        return self.index.folder.manifest.commit or None

    @property
    def source(self) -> str:
        """`plan`, or the name of the existing set whose records entered."""
        return self.index.folder.manifest.source

    @property
    def profile(self) -> ReviewProfile:
        """Of the review: of the sample that was drawn, or else of the plan."""
        return PROFILES[planned_profile(self.index.folder.path)] if self.report is None else self.report.rules

    @property
    def name(self) -> str:
        """Of its folder."""
        return self.index.folder.path.resolve().name

    @property
    def as_records(self) -> list[dict[str, Any]]:
        """As the file of the set has them."""
        carried = self.index.folder.manifest.more.get(CARRIED, {})
        return [golden_record(each, self.name, carried.get(each.candidate.query_id)) for each in self.records]


@dataclass(frozen=True)
class Content:
    """The records of a version."""

    testset: TestSet
    merged: Merged
    version: FileVersion
    before: TestSet | None
    batch: TestSet
    """The records that were added or changed."""


def read_batch(run: Path) -> Batch:
    """The records of a run that enter a set.

    Raises:
        UsageError: there is no run in this folder, or no record of it enters.
        InputError: a file of it is damaged.
    """
    folder = RunFolder.open(run)
    index = RunIndex(folder)
    records = []
    for status in index.statuses():
        answer = index.answers.get(status.query_id, status.attempt)
        if status.state not in ENTERS or answer is None:
            continue
        reviews = index.reviews.get(status.query_id, [])
        review = reviews[-1] if reviews and reviews[-1].disposition is Disposition.KEEP else None
        records.append(
            Record(
                index.candidates[status.query_id],
                answer if review is None else apply_edits(answer, review),
                index.reports.get(status.query_id, status.attempt),
                review,
            )
        )
    if not records:
        hint = f"`cranfield golden status {command_word(run)}` shows why"
        raise UsageError("no record of this run enters a set", path=shown(run), hint=hint)
    report = review_of(folder) if read_sample(folder) is not None else None
    return Batch(index, tuple(records), _planned(run, index), report)


def _planned(run: Path, index: RunIndex) -> Mapping[Cell, int]:
    """Of the plan; of an existing set, its own records."""
    if index.folder.manifest.source == "plan":
        return Counter({cell.key: cell.n for cell in load_plan(run / PLAN).cells})
    return Counter((each.task_type, each.difficulty) for each in index.candidates.values())


def assembly_of(batch: Batch, content: Content) -> dict[str, Any]:
    """The runs of all versions, who reviewed them, the error rates, and the models that failed or were exchanged."""
    earlier = content.before.meta.assembly if content.before is not None else {}
    runs = [*earlier.get("runs", ()), _run(batch, content.merged, content.version)]
    reviewers = {name for run in runs for name in run.get("reviewers", ())}
    records = [record for run in runs for record in read_kept(run.get("outcomes", ()))]
    retired = [
        {"role": each.role, "model": each.model, "records": each.n, "rejected": each.n_rejected}
        for each in model_histories(records, SequentialTest())
        if each.decision is Decision.RETIRE
    ]
    return {
        "runs": runs,
        "reviewers": sorted(reviewers),
        "retired_models": retired,
        "exchanged_models": _exchanged(runs),
    }


def _run(batch: Batch, merged: Merged, version: FileVersion) -> dict[str, Any]:
    """A run, as a version keeps it."""
    manifest, report = batch.index.folder.manifest, batch.report
    found: dict[str, Any] = {
        "version": str(version),
        "run": batch.name,
        "source": manifest.source,
        "commit": manifest.commit,
        "snapshot_digest": manifest.snapshot_digest,
        "tree_digest": manifest.tree.digest,
        "plan_digest": manifest.plan_digest,
        "cranfield_version": manifest.cranfield_version,
        **_makers(batch.index),
        "tool_versions": dict(manifest.tool_versions),
        "notes": list(manifest.notes),
        "states": {state.value: n for state, n in Counter(each.state for each in batch.index.statuses()).items()},
        "renamed": dict(merged.renamed),
        "outcomes": kept_records(model_records(batch.index)),
        "profile": batch.profile.name,
        "people": batch.profile.people,
    }
    if report is not None:
        tally = report.tally
        found |= {
            "reviewed": report.state,
            "reviewers": list(report.reviewers),
            "same_verdict": {"records": report.n_same, "of": report.n_twice},
            "error_rates": {
                "sampled": tally.n,
                "serious": tally.serious,
                "minor": tally.minor,
                "wrong_on_easy": tally.wrong_on_easy,
                "serious_rate_upper_95": tally.upper,
                "edited": report.n_edited,
            },
        }
    return found


def _makers(index: RunIndex) -> dict[str, dict[str, str]]:
    """Models and prompts of the roles that made something: a run of an existing set has others too, which it never asked."""
    made: dict[str, Sequence[Stamp]] = {
        "author": tuple(index.candidates.values()),
        "oracle": tuple(index.answers),
        "adversary": tuple(index.reports),
    }
    manifest = index.folder.manifest
    roles = {role for role, stamps in made.items() if any(stamp.model for stamp in stamps)}
    labels = {stamp.prompt.label for stamps in made.values() for stamp in stamps if stamp.prompt is not None}
    if any(agreement.ratings for agreement in index.agreements):
        roles.add("judge")
        labels |= {label for label in manifest.prompts if label.startswith("narrative-")}
    return {
        "models": {role: model for role, model in manifest.models.items() if role in roles},
        "prompts": {label: digest for label, digest in manifest.prompts.items() if label in labels},
    }


def _exchanged(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Where a role has another model than in the run before."""
    found = []
    for old, new in pairwise(runs):
        for role, model in new["models"].items():
            before = old["models"].get(role)
            if before and before != model:
                found.append({"role": role, "from": before, "to": model, "version": new["version"]})
    return found
