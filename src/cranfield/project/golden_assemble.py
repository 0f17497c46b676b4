"""The job behind `cranfield golden assemble`: a run folder and what was measured become a version of a golden set."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from cranfield.agents.tree_record import left_out_of, require_same_tree
from cranfield.calibration.answers import ids_digest
from cranfield.errors import CranfieldError, InputError, TestSetError
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import read_bytes, shown, write_text
from cranfield.formats.io.versions import FileVersion, file_versions
from cranfield.formats.testsets.golden_facts import REVIEWED, facts_path
from cranfield.formats.testsets.golden_json import read_golden_json, write_golden_json
from cranfield.gate.baseline import read_baseline
from cranfield.golden.assemble import (
    AssemblyResult,
    Checked,
    Criterion,
    Result,
    check_counts,
    check_review,
    check_similar,
    checked,
    merge_records,
    next_version,
)
from cranfield.golden.batch_drift import batch_drift
from cranfield.golden.review import ONE_PERSON, ReviewOutcome
from cranfield.measures import Measure
from cranfield.model import TestSet
from cranfield.options.limits import Limits
from cranfield.options.scoring import ScoringOptions
from cranfield.project.drift import rehash
from cranfield.project.golden_batch import Batch, Content, assembly_of, read_batch
from cranfield.project.golden_next import after_breach
from cranfield.project.read_ahead import evaluate_files
from cranfield.repo.drift import verify
from cranfield.repo.git import GitError, git
from cranfield.repo.snapshot import Snapshot, take
from cranfield.repo.tree import read_tree
from cranfield.results.testset import TestSetRecord
from cranfield.testsets.validate import validate
from cranfield.words import command_word, first_of, n_of

MEASURED = frozenset({Criterion.HARNESS, Criterion.BASELINE, Criterion.CALIBRATION})
"""Criteria of what is measured with the set."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured with the set."""

    runs: tuple[Path, ...] = ()
    """Runs of systems, which must be possible to evaluate."""
    baseline: Path | None = None
    calibration: Path | None = None
    """JSON of `cranfield calibrate`."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return (*self.runs, *(each for each in (self.baseline, self.calibration) if each is not None))


@dataclass(frozen=True)
class Assembly:
    """A version, its criteria, and what was written."""

    testset: TestSet
    version: FileVersion
    checked: tuple[Checked, ...]
    written: tuple[Path, ...] = ()

    @property
    def is_golden(self) -> bool:
        """Whether no criterion is unmet."""
        return all(each.result is not Result.NOT_MET for each in self.checked)

    def result(self, *, draft: bool) -> AssemblyResult:
        """Its record; with `draft`, the set is written where it is not golden."""
        return AssemblyResult(
            testset=TestSetRecord.of(self.testset),
            is_golden=self.is_golden,
            is_draft=draft and not self.is_golden,
            criteria=self.checked,
            written=self.written,
        )


def assemble(
    run: Path,
    repo: Path,
    out: Path,
    evidence: Evidence,
    *,
    draft: bool = False,
    today: date | None = None,
) -> Assembly:
    """Check every criterion, and write the version where all are met; or a draft, where that is wanted.

    Of a repository with commits only that of the run is read. Where its folder had uncommitted changes when the records were
    made, the metadata of the set say so first.

    Args:
        run: a run folder.
        repo: folder of the repository; places are looked for at the commit of the run.
        out: folder of the versions; the newest one there is the version before.
        evidence: what was measured with the set.
        draft: write the set also where it is not golden, under another name of the file.
        today: date of the version; None is today.

    Raises:
        UsageError: no record enters, nothing has changed, or the version is there already; or the folder of the repository,
            which has no commits, is not as when the run began.
        InputError: the run folder or the version before is damaged.
        TestSetError: places that the set expects are not in the repository.
    """
    batch = read_batch(run)
    recorded = batch.index.folder.manifest.tree
    if recorded.digest and batch.commit is None:
        now = read_tree(repo, without=(run, out, *left_out_of(run, repo), *evidence.files))
        require_same_tree(run, recorded, now, allow_dirty=True)
    snapshot = take(repo, batch.commit)
    content = _merged(batch, out, snapshot)
    testset = rehash(content.testset, repo, at=batch.commit, today=today, allow_drift=True)
    before = "" if content.before is None else content.before.meta.uncommitted
    made = f"When the records were made: {recorded.uncommitted}." if recorded.uncommitted else ""
    uncommitted = " ".join(dict.fromkeys(filter(None, [before, made])))
    testset = replace(testset, meta=replace(testset.meta, uncommitted=uncommitted))
    set_path = out / content.version.file_name("draft")  # what is measured with where nothing is golden yet
    places = f"{command_word(run)} --repo {command_word(repo)}"
    why_missing = f"`cranfield golden status {command_word(run)}` shows why records are missing"
    found = [
        *check_counts(batch.planned, batch.kept, why_missing),
        *check_review(batch.report, batch.profile, _review_step(run, repo, batch)),
        _harness(testset, evidence.runs, snapshot, today, set_path),
        _baseline(testset, evidence.baseline),
        _calibration(testset, evidence.calibration),
    ]
    if content.before is not None:
        found.append(check_similar(batch_drift(content.before, content.batch), after_breach(run, batch.source, repo)))
    first = next((each for each in found if each.criterion in MEASURED and each.step), None)
    if first is not None and not draft:
        make = f"`cranfield golden assemble {places} --out {command_word(out)} --draft` writes a draft to measure with"
        found[found.index(first)] = replace(first, step=f"{make}; then {first.step}")
    assembly = Assembly(testset, content.version, tuple(found))
    is_golden = assembly.is_golden
    assembly = replace(assembly, testset=_named(testset, batch, content, is_golden=is_golden))
    if not is_golden and not draft:
        return assembly
    path = out / (content.version.file_name("golden" if is_golden else "draft"))
    out.mkdir(parents=True, exist_ok=True)
    write_golden_json(assembly.testset, path)
    return replace(assembly, written=(path, facts_path(path)))


def _review_step(run: Path, repo: Path, batch: Batch) -> str:
    """What the review of a batch lacks."""
    if batch.report is None:
        return f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}`"
    if batch.report.outcome is ReviewOutcome.BREACHED:
        return after_breach(run, batch.source, repo)
    return f"`cranfield golden reviewed {command_word(run)}` says what is next"


def _merged(batch: Batch, out: Path, snapshot: Snapshot) -> Content:
    """The records of the version before, and those of a batch."""
    versions = file_versions(out, "golden")
    previous = next(reversed(versions), None)
    before = None if previous is None else read_golden_json(versions[previous])
    old = [] if previous is None else _raw(versions[previous])
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        merged = merge_records(old, _as_written(batch.as_records, Path(folder) / "batch.json"))
    version = next_version(previous, merged)
    if previous is not None and before is not None:
        _refuse_drift(before, versions[previous], snapshot)
    new = {*merged.added, *merged.changed}
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        testset = _content(merged.records, Path(folder) / version.file_name("golden"))
        of_batch = _content([each for each in merged.records if each["query_id"] in new], Path(folder) / "batch.json")
    if before is not None:
        testset = replace(testset, meta=replace(before.meta, source_files={}, anchors={}))
    return Content(testset, merged, version, before, of_batch)


def _refuse_drift(before: TestSet, path: Path, snapshot: Snapshot) -> None:
    """Refuse a version before that is not true of the commit of the run."""
    report = verify(before, snapshot)
    if changed := [each.label for each in (*report.moved, *report.drifted)]:
        raise TestSetError(
            f"places of the version before are not as they were in {report.where}: {first_of(changed)}",
            path=shown(path),
            hint="correct them: `cranfield testset verify SET --repo DIR --out FILE` writes moved lines, "
            "`cranfield testset rehash SET --repo DIR` the anchors",
        )


def _raw(path: Path) -> list[Mapping[str, Any]]:
    """The records of a version as its file has them."""
    found = json.loads(read_bytes(path, InputError))
    return list(found["queries"] if isinstance(found, dict) else found)


def _as_written(records: Sequence[Mapping[str, Any]], path: Path) -> list[Mapping[str, Any]]:
    """Records as the file of a version has them, so that those that are there already are the same."""
    write_golden_json(_content(records, path), path)
    return _raw(path)


def _content(records: Sequence[Mapping[str, Any]], path: Path) -> TestSet:
    """Records as a test set: written and read, so that it is what a reader of the file gets."""
    write_text(path, [json.dumps(list(records), ensure_ascii=False)])
    return read_golden_json(path)


def _harness(testset: TestSet, runs: Sequence[Path], snapshot: Snapshot, today: date | None, path: Path) -> Checked:
    """Places, validity, and the evaluation of runs; that the file can be read was needed to get here."""
    if drifted := [each.label for each in verify(testset, snapshot).drifted]:
        found = f"not in the repository: {first_of(drifted)}"
        command = f"`cranfield testset verify {command_word(path)} --repo {command_word(snapshot.root)}`"
        step = f"correct the places: {command} lists them"
        return Checked(Criterion.HARNESS, Result.NOT_MET, found, step)
    errors = [each.message for each in validate(testset, today=today or _today()).findings if each.level == "error"]
    if errors:
        step = f"correct the set: `cranfield testset validate {command_word(path)}` lists what is wrong"
        return Checked(Criterion.HARNESS, Result.NOT_MET, f"{n_of(len(errors), 'errors')}: {first_of(errors)}", step)
    step = "name a run of a system on it with --run RUN"
    if not runs:
        return Checked(Criterion.HARNESS, Result.NOT_MET, "the set is valid, and no run of a system is named", step)
    try:
        evaluations = evaluate_files(testset, runs, None, ScoringOptions())
    except CranfieldError as error:
        return Checked(Criterion.HARNESS, Result.NOT_MET, error.problems[0].sentence(), step)
    found = "; ".join(f"{each.name}: {each.measures[0]} {_mean(each)}" for each in evaluations)
    void = [each for each in inspect_systems(evaluations, evaluations[0].measures[0], Limits()) if each.is_void]
    if void:
        return Checked(Criterion.HARNESS, Result.NOT_MET, f"{found}; its scores do not count: {void[0].sentence}", step)
    is_scored = all(each.mean(each.measures[0]) is not None for each in evaluations)
    return checked(Criterion.HARNESS, found, step, is_met=is_scored)


def _mean(evaluation: Evaluation) -> str:
    mean = evaluation.mean(evaluation.measures[0])
    return "not scored" if mean is None else f"{mean:.4f}"


def _baseline(testset: TestSet, path: Path | None) -> Checked:
    """A baseline of this content that git has."""
    accept = "`cranfield baseline accept CONFIG`, commit the file, and name it with --baseline FILE"
    if path is None:
        return Checked(Criterion.BASELINE, Result.NOT_MET, "no baseline is named", accept)
    try:
        baseline = read_baseline(path)
    except CranfieldError as error:
        return Checked(Criterion.BASELINE, Result.NOT_MET, error.problems[0].sentence(), accept)
    if baseline.testset_digest != testset.digest:
        found = f"{shown(path)} is of another test set ({baseline.testset} {baseline.testset_version})"
        return Checked(Criterion.BASELINE, Result.NOT_MET, found, accept)
    why_not = _not_committed(path)
    found = why_not or f"{shown(path)}, of {baseline.system}"
    return checked(Criterion.BASELINE, found, f"commit {shown(path)} as it stands", is_met=not why_not)


def _not_committed(path: Path) -> str:
    """Why git does not have a file as it stands; empty where it has."""
    try:
        tracked = git(path.parent, "ls-files", "--", path.name)
        changed = git(path.parent, "status", "--porcelain", "--", path.name)
    except GitError as error:
        return f"{shown(path)} is in no git repository: {error}"
    if not tracked:
        return f"{shown(path)} is not in git"
    return f"{shown(path)} has changes that are not committed" if changed.strip() else ""


def _calibration(testset: TestSet, path: Path | None) -> Checked:
    """The JSON of a calibration over these queries that git has."""
    measure = "`cranfield calibrate DRAFT RUN --format json`, commit what it prints, and name the file with --calibration FILE"

    def not_met(found: str, step: str = measure) -> Checked:
        return Checked(Criterion.CALIBRATION, Result.NOT_MET, found, step)

    if path is None:
        return not_met("no calibration is named")
    try:
        found = json.loads(read_bytes(path, InputError))
        diagnosis, source, n = found["diagnosis"], found["source"], len(found["calibrations"])
        n_queries, digest = source["n_queries"], source["queries_digest"]
    except CranfieldError as error:
        return not_met(error.problems[0].sentence())
    except (ValueError, KeyError, TypeError):
        return not_met(f"{shown(path)} is no JSON of a calibration")
    if digest != ids_digest(testset.query_ids):
        return not_met(f"{shown(path)} is of other queries: {n_queries}, and the set has {len(testset.queries)}")
    if not n:
        return not_met(f"{shown(path)}: no answer could be judged")
    why_not = _not_committed(path)
    text = why_not or f"{shown(path)}: {diagnosis}"
    return checked(Criterion.CALIBRATION, text, f"commit {shown(path)} as it stands", is_met=not why_not)


def _today() -> date:
    return datetime.now(UTC).date()


def _named(testset: TestSet, batch: Batch, content: Content, *, is_golden: bool) -> TestSet:
    """The set with its version, and how it was assembled."""
    version, merged, before = content.version, content.merged, content.before
    review = "not reviewed by people" if batch.report is None else batch.report.state
    assembly = assembly_of(batch, content)
    alone = [str(each["version"]) for each in assembly["runs"] if each["people"] == 1]
    if set(alone) - {str(version)}:
        review += f"; reviewed by one person: version {', '.join(alone)}"
    parts = (("added", merged.added), ("changed", merged.changed), ("renamed", merged.renamed))
    done = ", ".join(f"{len(ids)} {what}" for what, ids in parts if ids)
    meta = replace(
        testset.meta,
        review=f"golden {version}: {review}" if is_golden else f"draft {version}, not golden: {review}",
        made=testset.meta.history[-1][: len("2026-11-21")],
        counts={**testset.meta.counts, REVIEWED: _n_reviewed(testset)},
        previous="" if before is None else before.digest,
        history=(*testset.meta.history, f"Version {version}: {n_of(len(testset.queries), 'records')}; {done}."),
        assembly=assembly,
    )
    return replace(testset, name=f"golden-{ONE_PERSON}" if alone else "golden", version=str(version), meta=meta)


def _n_reviewed(testset: TestSet) -> int:
    return sum(label.provenance.get("human_reviewed") is True for label in testset.labels.values())


def batch_scores(
    blessed: TestSet, batch: TestSet, runs: Sequence[Path], measures: Sequence[str] | None
) -> dict[str, tuple[dict[str, float], dict[str, float]]]:
    """Measure of a system to its values by query id, of the blessed and of the new queries, for `batch_drift`."""
    if not runs:
        return {}
    of_blessed, of_batch = (evaluate_files(each, runs, measures, ScoringOptions()) for each in (blessed, batch))
    return {
        f"{measure} of {old.name}": (_values(old, measure), _values(new, measure))
        for old, new in zip(of_blessed, of_batch, strict=True)
        for measure in old.measures
    }


def _values(evaluation: Evaluation, measure: Measure) -> dict[str, float]:
    values = ((query_id, evaluation.value(measure, query_id)) for query_id in evaluation.query_ids)
    return {query_id: value for query_id, value in values if value is not None}
