"""Assemble golden sets: rows, batches and whole sets."""

from __future__ import annotations

import difflib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from cranfield.agents.budget import Budget
from cranfield.agents.loop import Transcript
from cranfield.agents.protocol import Backend
from cranfield.agents.recording import PLAN, Kept, charge, left_out_of, now, require_same_tree
from cranfield.agents.settings import Connection, ModelSettings, connected
from cranfield.agents.tools.source import SourceTools
from cranfield.app.drift import rehash
from cranfield.app.loading import read_stored
from cranfield.app.read_ahead import evaluate_files
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import CranfieldError, InputError, TestSetError, UsageError
from cranfield.base.words import command_word, count_noun, join_first
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.options.blocks import Limits, ScoringOptions
from cranfield.evaluation.testset.edit import recorded
from cranfield.evaluation.testset.validate import validate
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.delimited import FileVersion, file_versions
from cranfield.formats.io.files import read_bytes, shown, write_text
from cranfield.formats.testsets.golden_json import REVIEWED, facts_path, read_golden_json, write_golden_json
from cranfield.formats.testsets.storage import lock_testset, save
from cranfield.golden.assemble import (
    AssembledRecord,
    AssemblyResult,
    CheckedCriterion,
    Criterion,
    CriterionResult,
    Merged,
    check_counts,
    check_review,
    check_similar,
    checked,
    golden_record,
    merge_records,
    next_version,
)
from cranfield.golden.batch import batch_drift, planned_profile, read_sample, review_of
from cranfield.golden.existing import CARRIED
from cranfield.golden.index import RunFolder, RunIndex, Step
from cranfield.golden.models import ByModel, kept_records, model_records, read_kept
from cranfield.golden.outcomes import TranscriptLine
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.plan import load_plan
from cranfield.golden.records import Stamp
from cranfield.golden.reports.sets import rows_document
from cranfield.golden.retirement import Decision, SequentialTest, model_histories
from cranfield.golden.review import ONE_PERSON, PROFILES, Cell, ReviewOutcome, ReviewProfile, ReviewReport, apply_edits
from cranfield.golden.roles import GoldenRole, RolePrompts
from cranfield.golden.rows import (
    CHANGES,
    FOR_PEOPLE,
    CheckedRow,
    CheckedRows,
    Checkers,
    CheckResult,
    RowState,
    TargetRow,
    check_rows,
    corrected,
    queries_without_rows,
    rows_of,
)
from cranfield.golden.states import State
from cranfield.golden.use_cases.review import after_breach
from cranfield.measures import Measure
from cranfield.model import TestSet
from cranfield.model.judging import Disposition
from cranfield.model.query_ids import ids_digest
from cranfield.model.results import TestSetRecord, to_jsonable
from cranfield.plugins import required
from cranfield.repo.drift import verify
from cranfield.repo.git import GitError, git
from cranfield.repo.secret_files import find_withheld
from cranfield.repo.snapshot import Snapshot, take
from cranfield.repo.tree import read_tree, source_snapshot
from cranfield.reporting import Document

CALLS, RESULTS, QUEUE, CORRECTIONS = "calls.jsonl", "rows.jsonl", "for_people.jsonl", "corrections.diff"
NO_NEWLINE = "\\ No newline at end of file"
"""As `diff` and `patch` have it."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Who votes, and how often."""

    models: tuple[str, ...]
    """`provider:name`; they take turns."""
    votes: int = 3
    base_url: str = ""
    api_key_env: str = ""
    tokens: int | None = None
    """That all votes may use together."""
    concurrency: int = 4
    allow_dirty: bool = False
    """Accept a repository with uncommitted changes."""
    replay: Path | None = None
    source: Backend | None = None
    """Answers in the place of every model, for tests."""
    on_row: Callable[[CheckedRow], None] = lambda _: None
    """Called with each row as it is decided."""


@dataclass(frozen=True)
class RowReport:
    """What the check of a set came to."""

    result: CheckResult
    document: Document
    diff: str
    """Diff of the file of the set; empty where nothing is corrected."""
    written: tuple[Path, ...]

    @property
    def is_confirmed(self) -> bool:
        """Whether every row is."""
        return all(each.state is RowState.CONFIRMED for each in self.result.checked)


def check_set(
    path: Path,
    repo: Path,
    out: Path,
    options: CheckOptions,
    *,
    at: str | None = None,
    today: date | None = None,
    testset_format: str | None = None,
    apply: bool = False,
) -> RowReport:
    """Check every row of a set, and correct the set by the majorities.

    Args:
        path: of the set.
        repo: folder of the repository that it is about.
        out: folder of answers and results; answers that are there are not asked for again.
        options: of the votes.
        at: commit; None is HEAD.
        testset_format: of the set, where its content does not tell.
        apply: write the corrections into the file of the set.
        today: date of the corrections; None: the present day.

    Raises:
        TestSetError: the set cannot be read, has no rows, or cannot be written in its format.
        UsageError: there is no such repository or commit, or a connection cannot be used.
    """
    with lock_testset(path):
        testset = read_stored(path, testset_format)
        rows = rows_of(testset)
        if not rows:
            raise TestSetError(
                "no row to check", path=str(path), expected="queries with expected spans, entities or files"
            )
        without = (path, out, options.replay)
        source = ParsedSource(source_snapshot(repo, at, allow_dirty=options.allow_dirty, without=without))
        out.mkdir(parents=True, exist_ok=True)
        result = event_loop().run(_votes(rows, source, out, options))
        fixed = corrected(testset, result.checked)
        diff = "" if fixed.targets == testset.targets else _diff(path, fixed, testset_format)
        snapshot = source.snapshot
        written = _write_results(out, result, diff)
        changes = snapshot.uncommitted
        notes = [*filter(None, [changes]), *_notes(testset, source), *snapshot.notes]
        if apply and diff:
            n = sum(each.state in CHANGES for each in result.checked)
            done = ". ".join(filter(None, [changes, _sentence(n, options)]))
            checked = f"When rows were checked: {changes}." if changes else ""
            uncommitted = " ".join(dict.fromkeys(filter(None, [fixed.meta.uncommitted, checked])))
            fixed = replace(fixed, meta=replace(fixed.meta, uncommitted=uncommitted))
            saved = save(
                recorded(fixed, done, today or datetime.now().astimezone().date()), path, format=testset_format
            )
            written += saved.files
            notes += saved.notes
        elif diff:
            notes.append("the corrections are not written; use --apply to write them")
        return RowReport(result, rows_document(CheckedRows.of(testset, result, notes)), diff, written)


async def _votes(rows: Sequence[TargetRow], source: ParsedSource, out: Path, options: CheckOptions) -> CheckResult:
    """Put the rows to the vote, and keep every answer; those that are there are taken, and count in the budget."""
    settings = [ModelSettings(model=model, concurrency=options.concurrency) for model in dict.fromkeys(options.models)]
    tools = SourceTools(source.snapshot, withheld=find_withheld(source.snapshot).names)
    prompts, lines = RolePrompts.load(), list[str]()

    def keep(row: TargetRow, number: int, transcript: Transcript) -> None:
        place = {
            "query_id": f"{row.query_id} {row.target.label}",
            "role": GoldenRole.CHECKER,
            "vote": number + 1,
            "at": now(),
        }
        lines.append(json.dumps(TranscriptLine.model_validate(place | transcript.record()).model_dump()) + "\n")

    async with AsyncExitStack() as stack:
        stack.push_async_callback(tools.aclose)
        stack.callback(lambda: write_text(out / Step.TRANSCRIPTS, lines))
        if options.replay is not None:
            checkers = Checkers(settings, options.votes, Kept(options.replay), tools, prompts, keep, options.on_row)
            return await check_rows(rows, source, checkers)
        backends: dict[str, Backend] = {}
        kept = Kept(out / CALLS, ByModel(backends))
        stack.callback(kept.close)
        budget = Budget(options.tokens)
        charge(budget, kept.usages())
        for each in settings:
            connection = Connection(each.model, options.base_url, options.api_key_env)
            backends[each.model] = await stack.enter_async_context(connected(connection, budget, options.source))
        checkers = Checkers(settings, options.votes, kept, tools, prompts, keep, options.on_row)
        return await check_rows(rows, source, checkers)


def _write_results(out: Path, result: CheckResult, diff: str) -> tuple[Path, ...]:
    """A line for each row, those that a person decides on in a file of their own, and the corrections."""
    files = {RESULTS: result.checked, QUEUE: [each for each in result.checked if each.state in FOR_PEOPLE]}
    for name, rows in files.items():
        write_text(out / name, (json.dumps(to_jsonable(each.record), ensure_ascii=False) + "\n" for each in rows))
    write_text(out / CORRECTIONS, [diff])
    return tuple(out / name for name in (*files, CORRECTIONS))


def _notes(testset: TestSet, source: ParsedSource) -> Iterator[str]:
    where = f"commit {source.snapshot.commit[:12]}" if source.snapshot.commit else "the folder"
    yield f"checked against {where}"
    if others := queries_without_rows(testset):
        yield (
            f"not checked, because they have no expected place: {count_noun(len(others), 'queries')} "
            f"({join_first(others)})"
        )


def _sentence(n: int, options: CheckOptions) -> str:
    return f"{count_noun(n, 'rows')} corrected by {options.votes} votes of {', '.join(options.models)}"


def _diff(path: Path, fixed: TestSet, testset_format: str | None) -> str:
    """What the corrections change in the file, as a unified diff."""
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        target = Path(folder) / path.name
        save(fixed, path, target, format=testset_format)
        old, new = (read_bytes(each, TestSetError).decode().splitlines(keepends=True) for each in (path, target))
    lines = difflib.unified_diff(old, new, str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


ENTERS = frozenset({State.PASSED, State.KEPT})
"""States with which a record enters the set."""


@dataclass(frozen=True)
class AssembledBatch:
    """What a run folder gives a set."""

    index: RunIndex
    records: tuple[AssembledRecord, ...]
    planned: Mapping[Cell, int]
    report: ReviewReport | None
    """None: no record was given to reviewers."""

    @property
    def kept(self) -> Mapping[Cell, int]:
        """Records that enter the set, by cell."""
        return Counter(record.cell for record in self.records)

    @property
    def commit(self) -> str | None:
        """Commit of the run; None where it read a folder without git."""
        return self.index.folder.manifest.commit or None

    @property
    def source(self) -> str:
        """`plan`, or the name of the existing set whose records entered."""
        return self.index.folder.manifest.source

    @property
    def profile(self) -> ReviewProfile:
        """Profile of the review: of the sample that was drawn, or else of the plan."""
        return PROFILES[planned_profile(self.index.folder.path)] if self.report is None else self.report.rules

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.index.folder.path.resolve().name

    @property
    def as_records(self) -> list[dict[str, Any]]:
        """As the file of the set has them."""
        carried = self.index.folder.manifest.more.get(CARRIED, {})
        return [golden_record(each, self.name, carried.get(each.candidate.query_id)) for each in self.records]


@dataclass(frozen=True)
class VersionContent:
    """The records of a version."""

    testset: TestSet
    merged: Merged
    version: FileVersion
    before: TestSet | None
    batch: TestSet
    """The records that were added or changed."""


def read_batch(run: Path) -> AssembledBatch:
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
            AssembledRecord(
                index.candidates[status.query_id],
                answer if review is None else apply_edits(answer, review),
                index.reports.get(status.query_id, status.attempt),
                review,
            )
        )
    if not records:
        hint = f"`cranfield golden status {command_word(run)}` shows why"
        raise UsageError("no record of this run can be added to a set", path=shown(run), hint=hint)
    report = review_of(folder) if read_sample(folder) is not None else None
    return AssembledBatch(index, tuple(records), _planned(run, index), report)


def _planned(run: Path, index: RunIndex) -> Mapping[Cell, int]:
    """Number of records planned for each cell; of an existing set, its own records."""
    if index.folder.manifest.source == "plan":
        return Counter({cell.key: cell.n for cell in load_plan(run / PLAN).cells})
    return Counter((each.task_type, each.difficulty) for each in index.candidates.values())


def assembly_of(batch: AssembledBatch, content: VersionContent) -> dict[str, Any]:
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
    # Where a role has another model than in the run before.
    found = []
    for old, new in pairwise(runs):
        for role, model in new["models"].items():
            before = old["models"].get(role)
            if before and before != model:
                found.append({"role": role, "from": before, "to": model, "version": new["version"]})
    return {
        "runs": runs,
        "reviewers": sorted(reviewers),
        "retired_models": retired,
        "exchanged_models": found,
    }


def _run(batch: AssembledBatch, merged: Merged, version: FileVersion) -> dict[str, Any]:
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


MEASURED = frozenset({Criterion.HARNESS, Criterion.BASELINE, Criterion.CALIBRATION})
"""Criteria of what is measured with the set."""


@dataclass(frozen=True, slots=True)
class SetEvidence:
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
    checked: tuple[CheckedCriterion, ...]
    written: tuple[Path, ...] = ()

    @property
    def is_golden(self) -> bool:
        """Whether no criterion is unmet."""
        return all(each.result is not CriterionResult.NOT_MET for each in self.checked)

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
    evidence: SetEvidence,
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


def _review_step(run: Path, repo: Path, batch: AssembledBatch) -> str:
    """What the review of a batch lacks."""
    if batch.report is None:
        return f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}`"
    if batch.report.outcome is ReviewOutcome.BREACHED:
        return after_breach(run, batch.source, repo)
    return f"`cranfield golden reviewed {command_word(run)}` prints the next step"


def _merged(batch: AssembledBatch, out: Path, snapshot: Snapshot) -> VersionContent:
    """The records of the version before, and those of a batch."""
    versions = file_versions(out, "golden")
    previous = next(reversed(versions), None)
    before = None if previous is None else read_golden_json(versions[previous])
    old = [] if previous is None else _raw(versions[previous])
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        # Records as the file of a version has them, so that those that are there already are the same.
        path = Path(folder) / "batch.json"
        write_golden_json(_content(batch.as_records, path), path)
        merged = merge_records(old, _raw(path))
    version = next_version(previous, merged)
    if previous is not None and before is not None:
        _refuse_drift(before, versions[previous], snapshot)
    new = {*merged.added, *merged.changed}
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        testset = _content(merged.records, Path(folder) / version.file_name("golden"))
        of_batch = _content([each for each in merged.records if each["query_id"] in new], Path(folder) / "batch.json")
    if before is not None:
        testset = replace(testset, meta=replace(before.meta, source_files={}, anchors={}))
    return VersionContent(testset, merged, version, before, of_batch)


def _refuse_drift(before: TestSet, path: Path, snapshot: Snapshot) -> None:
    """Refuse a version before that is not true of the commit of the run."""
    report = verify(before, snapshot)
    if changed := [each.label for each in (*report.moved, *report.drifted)]:
        raise TestSetError(
            f"places of the previous version have changed in {report.where}: {join_first(changed)}",
            path=shown(path),
            hint="correct them: `cranfield testset verify SET --repo DIR --out FILE` writes moved lines, "
            "`cranfield testset rehash SET --repo DIR` the anchors",
        )


def _raw(path: Path) -> list[Mapping[str, Any]]:
    """The records of a version as its file has them."""
    found = json.loads(read_bytes(path, InputError))
    return list(found["queries"] if isinstance(found, dict) else found)


def _content(records: Sequence[Mapping[str, Any]], path: Path) -> TestSet:
    """Records as a test set: written and read, so that it is what a reader of the file gets."""
    write_text(path, [json.dumps(list(records), ensure_ascii=False)])
    return read_golden_json(path)


def _harness(
    testset: TestSet, runs: Sequence[Path], snapshot: Snapshot, today: date | None, path: Path
) -> CheckedCriterion:
    """Places, validity, and the evaluation of runs; that the file can be read was needed to get here."""
    if drifted := [each.label for each in verify(testset, snapshot).drifted]:
        found = f"not in the repository: {join_first(drifted)}"
        command = f"`cranfield testset verify {command_word(path)} --repo {command_word(snapshot.root)}`"
        step = f"correct the places: {command} lists them"
        return CheckedCriterion(Criterion.HARNESS, CriterionResult.NOT_MET, found, step)
    errors = [
        each.message
        for each in validate(testset, today=today or datetime.now(UTC).date()).findings
        if each.level == "error"
    ]
    if errors:
        step = f"correct the set: `cranfield testset validate {command_word(path)}` lists the problems"
        return CheckedCriterion(
            Criterion.HARNESS,
            CriterionResult.NOT_MET,
            f"{count_noun(len(errors), 'errors')}: {join_first(errors)}",
            step,
        )
    step = "give a run of a system on it with --run RUN"
    if not runs:
        return CheckedCriterion(
            Criterion.HARNESS, CriterionResult.NOT_MET, "the set is valid, but no run of a system is given", step
        )
    try:
        evaluations = evaluate_files(testset, runs, None, ScoringOptions())
    except CranfieldError as error:
        return CheckedCriterion(Criterion.HARNESS, CriterionResult.NOT_MET, error.problems[0].sentence(), step)
    found = "; ".join(f"{each.name}: {each.measures[0]} {_mean(each)}" for each in evaluations)
    void = [each for each in inspect_systems(evaluations, evaluations[0].measures[0], Limits()) if each.is_void]
    if void:
        return CheckedCriterion(
            Criterion.HARNESS, CriterionResult.NOT_MET, f"{found}; its scores are invalid: {void[0].sentence}", step
        )
    is_scored = all(each.mean(each.measures[0]) is not None for each in evaluations)
    return checked(Criterion.HARNESS, found, step, is_met=is_scored)


def _mean(evaluation: Evaluation) -> str:
    mean = evaluation.mean(evaluation.measures[0])
    return "not scored" if mean is None else f"{mean:.4f}"


def _baseline(testset: TestSet, path: Path | None) -> CheckedCriterion:
    """A baseline of this content that git has."""
    accept = "`cranfield baseline accept CONFIG`, commit the file, and give it with --baseline FILE"
    if path is None:
        return CheckedCriterion(Criterion.BASELINE, CriterionResult.NOT_MET, "no baseline given", accept)
    try:
        baseline = required("baseline").read_baseline(path)
    except CranfieldError as error:
        return CheckedCriterion(Criterion.BASELINE, CriterionResult.NOT_MET, error.problems[0].sentence(), accept)
    if baseline.testset_digest != testset.digest:
        found = f"{shown(path)} belongs to another test set ({baseline.testset} {baseline.testset_version})"
        return CheckedCriterion(Criterion.BASELINE, CriterionResult.NOT_MET, found, accept)
    why_not = _not_committed(path)
    found = why_not or f"{shown(path)}, of {baseline.system}"
    return checked(Criterion.BASELINE, found, f"commit the current {shown(path)}", is_met=not why_not)


def _not_committed(path: Path) -> str:
    """Why git does not have a file as it stands; empty where it has."""
    try:
        tracked = git(path.parent, "ls-files", "--", path.name)
        changed = git(path.parent, "status", "--porcelain", "--", path.name)
    except GitError as error:
        return f"{shown(path)} is not in a git repository: {error}"
    if not tracked:
        return f"{shown(path)} is not in git"
    return f"{shown(path)} has uncommitted changes" if changed.strip() else ""


def _calibration(testset: TestSet, path: Path | None) -> CheckedCriterion:
    """The JSON of a calibration over these queries that git has."""
    measure = (
        "`cranfield calibrate DRAFT RUN --format json`, commit its output, and give the file with --calibration FILE"
    )

    def not_met(found: str, step: str = measure) -> CheckedCriterion:
        return CheckedCriterion(Criterion.CALIBRATION, CriterionResult.NOT_MET, found, step)

    if path is None:
        return not_met("no calibration given")
    try:
        found = json.loads(read_bytes(path, InputError))
        diagnosis, source, n = found["diagnosis"], found["source"], len(found["calibrations"])
        n_queries, digest = source["n_queries"], source["queries_digest"]
    except CranfieldError as error:
        return not_met(error.problems[0].sentence())
    except (ValueError, KeyError, TypeError):
        return not_met(f"{shown(path)} is not a calibration in JSON")
    if digest != ids_digest(testset.query_ids):
        return not_met(f"{shown(path)} has other queries: {n_queries} instead of {len(testset.queries)}")
    if not n:
        return not_met(f"{shown(path)}: no answer could be judged")
    why_not = _not_committed(path)
    text = why_not or f"{shown(path)}: {diagnosis}"
    return checked(Criterion.CALIBRATION, text, f"commit the current {shown(path)}", is_met=not why_not)


def _named(testset: TestSet, batch: AssembledBatch, content: VersionContent, *, is_golden: bool) -> TestSet:
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
        history=(*testset.meta.history, f"Version {version}: {count_noun(len(testset.queries), 'records')}; {done}."),
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
