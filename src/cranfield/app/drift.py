"""Test sets and the repositories they are true of: refuse what has drifted, heal what has moved, write anew what holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from cranfield.base.errors import Problem, TestSetError
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.testset.edit import counts_of
from cranfield.evaluation.testset.split import only
from cranfield.model import Note, NoteKind, TestSet
from cranfield.model.note import info
from cranfield.ranking.matching.place import path_of
from cranfield.repo.anchor import Outlines, anchor_of, places
from cranfield.repo.drift import DRIFTED, STATES, DriftFinding, DriftReport, reanchored, verify
from cranfield.repo.hashes import kept_hash
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree import tracked_snapshot

REVIEW = "check each place and correct the test set"


def check_repository(
    testset: TestSet,
    repo: Path,
    *,
    allow_drift: bool = False,
    at: str | None = None,
    intact: bool = False,
    allow_dirty: bool = False,
    own: Path | None = None,
) -> TestSet:
    """The test set as it is true of a repository: moved places at their new lines, and notes that say so.

    Args:
        testset: what is expected.
        repo: folder of the repository; paths of the test set are counted from it.
        allow_drift: go on with places that were edited, renamed or are gone.
        at: a commit; None is the folder as it stands.
        intact: keep the queries whose expected places are all unchanged or moved, and no others.
        allow_dirty: go on where tracked files are not as in the commit; the first note says so.
        own: file of the test set, whose own changes do not count.

    Raises:
        TestSetError: something drifted, and that is not allowed; names the places, and counts them all. Or no query is intact.
        UsageError: there is no such folder or commit; or it has uncommitted changes, and that is not allowed.
    """
    snapshot = tracked_snapshot(repo, at, allow_dirty=allow_dirty, without=(own,))
    if snapshot.tree is not None and snapshot.tree.changes:
        note = Note(NoteKind.UNCOMMITTED, f"{snapshot.uncommitted}.", total=len(snapshot.tree.changes))
        testset = replace(testset, notes=(note, *testset.notes))
    report = verify(testset, snapshot)
    if report.drifted and not allow_drift and not intact:
        hint = (
            f"{REVIEW}, then rehash it (`cranfield testset rehash SET --repo DIR`); {{allow_drift}} continues with the drifted places, "
            "{intact} with the queries whose places are all unchanged"
        )
        raise TestSetError(_refusal(testset, report.drifted, len(report.findings), report, hint))
    healed = reanchored(testset, report)
    if intact:
        left_out = {query_id for finding in report.drifted for query_id in finding.queries}
        return _intact(healed, left_out, report)
    return replace(healed, notes=(*testset.notes, *info(*_notes(report)), *_allowed(testset, report)))


def _intact(testset: TestSet, left_out: set[str], report: DriftReport) -> TestSet:
    """The test set without some queries, and a note that says so."""
    n = len(testset.queries)
    if len(left_out) == n:
        raise TestSetError(
            f"test set {testset.name!r}: each of {count_noun(n, 'queries')} expects a place that changed in {report.where}",
            hint=f"{REVIEW}, then rehash it (`cranfield testset rehash SET --repo DIR`)",
        )
    notes = _notes(report)
    if not left_out:
        return replace(testset, notes=(*testset.notes, *info(*notes)))
    states = Counter(finding.state for finding in report.drifted if finding.queries)
    counted = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    gone = tuple(query_id for query_id in testset.query_ids if query_id in left_out)
    text = (
        f"Only intact queries are evaluated: {n - len(gone)} of {n}. Left out, because places that they expect "
        f"changed in {report.where} ({counted}): {join_first(gone)}."
    )
    smaller = only(testset, set(testset.query_ids) - left_out)
    split = testset.meta.split
    if split is not None:
        split = replace(split, held_out=tuple(query_id for query_id in split.held_out if query_id not in left_out))
    return replace(
        smaller,
        meta=replace(smaller.meta, split=split),
        notes=(*testset.notes, *info(*notes), Note(NoteKind.INTACT, text, gone, n)),
    )


def rehash(
    testset: TestSet,
    repo: Path,
    *,
    at: str | None = None,
    today: date | None = None,
    allow_drift: bool = False,
    allow_dirty: bool = False,
    own: Path | None = None,
) -> TestSet:
    """The test set with what ties it to a repository written anew: commit, hashes, anchors, counts, a line of history.

    Queries and judgments stay as they are.

    Args:
        testset: what is expected.
        repo: folder of the repository.
        at: a commit; None is the folder as it stands.
        today: date of the line of history; None is today.
        allow_drift: take moved and drifted places as they stand now. One that is not there gets no anchor.
        allow_dirty: go on where tracked files are not as in the commit; the set says so, and names no commit.
        own: file of the test set, whose own changes do not count.

    Raises:
        TestSetError: a place is not there, or is not what it was anchored to, and that is not allowed; or nothing that
            is expected is there at all.
        UsageError: there is no such folder or commit; or tracked files of the folder have uncommitted changes.
    """
    snapshot = tracked_snapshot(repo, at, allow_dirty=allow_dirty, without=(own,))
    report = verify(testset, snapshot)
    changed = [finding for finding in report.findings if finding.state in DRIFTED | {"moved"}]
    if changed and not allow_drift:
        hint = (
            "`cranfield testset verify SET --repo DIR --out FILE` can write the set with moved lines corrected"
            if report.moved
            else REVIEW
        )
        hint += "; {allow_drift} accepts every place in its current state"
        raise TestSetError(_refusal(testset, changed, len(report.findings), report, hint))
    outlines = Outlines(snapshot)
    expected = places(testset, snapshot)
    here = {label: anchor_of(place, outlines) for label, place in expected.items()}
    anchors = {label: anchor for label, anchor in here.items() if not isinstance(anchor, str)}
    if expected and not anchors and not report.unparsed:
        raise TestSetError(
            f"test set {testset.name!r}: none of {count_noun(len(expected), 'expected places')} is in {report.where}",
            hint="{repo} is the folder that the paths of the set are relative to",
            parameters=("repo",),
        )
    missing = [f"{label} ({why})" for label, why in here.items() if isinstance(why, str)]
    source_files = _hashes(testset, {place.path for place in expected.values()}, snapshot)
    at_commit = f" at commit {report.commit[:12]}" if report.commit else ""
    done = f"{_day(today)}: rehashed{at_commit}: {count_noun(len(anchors), 'places')} in {count_noun(len(source_files), 'files')}."
    notes = [f"Not found, and not anchored: {_some(missing)}."] if missing else []
    if report.uncommitted:
        done += f" {report.uncommitted}."
        notes = [f"No commit is named. {report.uncommitted}.", *notes]
    meta = replace(
        testset.meta,
        uncommitted=report.uncommitted,
        commit=report.commit,
        source_files=source_files,
        anchors=anchors,
        counts=counts_of(testset),
        history=(*testset.meta.history, done),
    )
    return replace(testset, meta=meta, notes=(*testset.notes, *info(*notes)))


def _hashes(testset: TestSet, paths: set[str], snapshot: Snapshot) -> dict[str, str]:
    """Path to hash of each file of a place and of each recorded one; what is recorded and holds stays as it is written."""
    recorded = testset.meta.source_files
    written = {path_of(path, testset.matching): path for path in recorded}
    hashes = {
        written.get(path, path): kept_hash(recorded.get(written.get(path, path)), path, snapshot)
        for path in sorted({*paths, *written})
    }
    return {path: digest for path, digest in hashes.items() if digest is not None}


def _refusal(
    testset: TestSet, changed: Sequence[DriftFinding], among: int, report: DriftReport, hint: str
) -> list[Problem]:
    """The count first, then each place."""
    states = Counter(finding.state for finding in changed)
    counted = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    head = f"test set {testset.name!r}: {len(changed)} of {count_noun(among, 'expected places')} changed in {report.where}: {counted}"
    return [
        Problem(head, hint=hint, parameters=("allow_drift", "intact")),
        *(Problem(state_text(finding), path=finding.label) for finding in changed),
    ]


def state_text(finding: DriftFinding) -> str:
    """What became of a place, in a line: `renamed, now src/b.py::f (ambiguous: …)`."""
    now = f", now {finding.now}" if finding.now else ""
    return f"{finding.state}{now}" + (f" ({finding.detail})" if finding.detail else "")


def _allowed(testset: TestSet, report: DriftReport) -> tuple[Note, ...]:
    """A note on places that were accepted although they drifted; none where none did."""
    if not report.drifted:
        return ()
    queries = {query_id for finding in report.drifted for query_id in finding.queries}
    drifted = [f"{finding.label} {state_text(finding)}" for finding in report.drifted]
    of = count_noun(len(report.findings), "expected places")
    text = f"Drift was allowed: {len(drifted)} of {of} changed: {_some(drifted)}."
    named = tuple(query_id for query_id in testset.query_ids if query_id in queries)
    return (Note(NoteKind.DRIFT, text, named, len(testset.queries)),)


def _notes(report: DriftReport) -> list[str]:
    notes = []
    if not report.findings:
        notes.append("No expected place is in a file: this test set cannot be checked against the repository.")
    if report.moved:
        pairs = [f"{finding.label} to {finding.now}" for finding in report.moved]
        notes.append(f"{count_noun(len(pairs), 'places')} moved, with the text, to new lines: {_some(pairs)}.")
    if unanchored := report.counts["unanchored"]:
        count = count_noun(unanchored, "expected places")
        notes.append(
            f"{count} without an anchor: edits there are not detected until `cranfield testset rehash SET --repo DIR`."
        )
    if report.unparsed:
        notes.append(f"Not parsed: {_some([f'{path} ({why})' for path, why in report.unparsed.items()])}.")
    return notes


def _some(things: Iterable[str]) -> str:
    return join_first(things, separator="; ")


def _day(today: date | None) -> str:
    return (today or datetime.now(UTC).astimezone().date()).isoformat()
