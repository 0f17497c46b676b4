"""Drift: whether each expected place of a test set is unchanged, moved, edited, renamed or gone.

A place is identified by its anchor (`model.Anchor`), not by its line numbers. An entity is a name in a file and the
text under it; lines are a symbol and the text of the lines; a file is asked for one thing only, to be there. Where a
place is when it is not where it was is looked for in `search`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from cranfield.model import Anchor, Entity, Lines, Span, Target, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.matching.place import ENTITY_MARK, plain_entity
from cranfield.repo.anchor import ExpectedPlace, Outlines, anchor_of, entity_anchor, places
from cranfield.repo.hashes import is_hash_of, recorded_hashes
from cranfield.repo.search import TextMatch, best, elsewhere, names_of, windows
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.symbols import Outline, Symbol

State = Literal["unchanged", "moved", "edited", "renamed", "gone", "unanchored"]
STATES: tuple[State, ...] = get_args(State)
DRIFTED: frozenset[State] = frozenset({"edited", "renamed", "gone"})
"""States that have to be resolved by a person; a moved place is updated."""
_ID_WITH_LINES = re.compile(r"(.+?[:#])(L?)(\d{1,9})(-(L?)\d{1,9})?")


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """State of an expected place."""

    label: str
    """As the test set has it."""
    kind: str
    """`entity`, `span` or `file`."""
    state: State
    now: str = ""
    """Where it is now, in the same form; empty where it was, or where that is not known."""
    detail: str = ""
    """Details, without a full stop."""
    queries: tuple[str, ...] = ()
    """Ids of the queries that expect it."""
    anchor: Anchor | None = None
    """Its current anchor, if it moved."""
    lines: tuple[int, int] = (0, 0)
    """Its current lines, if it moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport(Record):
    """The state of every expected place of a test set."""

    uncommitted: str
    """A sentence on the changes of the folder that no commit has; empty: none."""
    testset: TestSetRecord
    findings: tuple[DriftFinding, ...]
    counts: Mapping[State, int]
    """Places in each state; every state is named."""
    by_query: Mapping[str, Mapping[State, int]]
    """Query to its places in each state that occurs."""
    commit: str
    """Commit that was read; empty without git, and where a tracked file of the folder is not as in its commit."""
    where: str
    """What was read: `commit 1f2e3d4c5b6a`, `the folder on commit 1f2e3d4c5b6a`, `the folder`."""
    unparsed: Mapping[str, str]
    """File of an expected place to its parse error."""
    left_out: Mapping[str, int]
    """Number of skipped files, by kind."""

    @property
    def drifted(self) -> tuple[DriftFinding, ...]:
        """Edited, renamed and gone places."""
        return tuple(finding for finding in self.findings if finding.state in DRIFTED)

    @property
    def moved(self) -> tuple[DriftFinding, ...]:
        """Places whose text is on other lines."""
        return tuple(finding for finding in self.findings if finding.state == "moved")


def verify(testset: TestSet, snapshot: Snapshot) -> DriftReport:
    """Look for every expected place of a test set.

    A file whose hash is the one stored is not parsed; files that nothing is expected in are looked into only when a
    place is not where it was. In a file without any anchor, a recorded hash that is not that of the file counts: for each of
    its places, and for the file itself where nothing is expected in it.

    Raises:
        TestSetError: a recorded hash is none.
        MissingExtraError: a place in a changed file needs the symbols of a language whose library is not installed.
    """
    expected = places(testset, snapshot)
    outlines = Outlines(snapshot)
    meta = testset.meta
    recorded = recorded_hashes(meta.source_files, testset.matching)
    holds = {path: is_hash_of(written, path, snapshot) for path, written in recorded.items()}
    anchored = {anchor.symbol.partition(ENTITY_MARK)[0] for anchor in meta.anchors.values()}
    findings: dict[str, DriftFinding] = {}
    lost: dict[str, Anchor] = {}
    for label, place in expected.items():
        anchor = meta.anchors.get(label)
        same = holds.get(place.path)
        if anchor is None:
            is_checked = same or place.path not in anchored
            found: DriftFinding | None = _unanchored(place, outlines, same=same if is_checked else None)
        else:
            found = _here(place, anchor, outlines, same=bool(same))
        if found is not None:
            findings[label] = found
        if found is None or (anchor is None and found.state == "gone"):
            lost[label] = anchor or Anchor("", "", 0, 0)
    if lost:
        searched = elsewhere({label: (expected[label], anchor) for label, anchor in lost.items()}, meta, snapshot)
        for label, anchor in lost.items():
            was = findings.get(label, DriftFinding(label, expected[label].kind, "gone"))
            findings[label] = _renamed(was, expected[label], best(searched.get(label, ()), expected[label], anchor))
    others = holds.keys() - anchored - {place.path for place in expected.values()}
    changed = [path for path, same in holds.items() if not same and path in others]
    every = (
        *(replace(findings[label], queries=tuple(place.queries)) for label, place in expected.items()),
        *(_changed_file(path, snapshot) for path in changed),
    )
    counted = Counter(finding.state for finding in every)
    by_query: dict[str, Counter[State]] = {}
    for finding in every:
        for query_id in finding.queries:
            by_query.setdefault(query_id, Counter())[finding.state] += 1
    return DriftReport(
        testset=TestSetRecord.of(testset),
        findings=every,
        counts={state: counted[state] for state in STATES},
        by_query=by_query,
        commit="" if snapshot.uncommitted else snapshot.commit,
        where=_where(snapshot),
        uncommitted=snapshot.uncommitted,
        unparsed=_unparsed(expected.values(), outlines),
        left_out=dict(snapshot.left_out),
    )


def _where(snapshot: Snapshot) -> str:
    on = f"commit {snapshot.commit[:12]}" if snapshot.commit else ""
    return on if snapshot.is_commit else f"the folder on {on}" if on else "the folder"


def _changed_file(path: str, snapshot: Snapshot) -> DriftFinding:
    """A file that no query expects anything in, and whose recorded hash does not hold."""
    detail = "a recorded file, in which no query expects a place"
    if path not in snapshot:
        return DriftFinding(path, "file", "gone", detail=detail)
    return DriftFinding(path, "file", "edited", detail=f"its hash is not the recorded one; {detail}")


def _unanchored(place: ExpectedPlace, outlines: Outlines, *, same: bool | None) -> DriftFinding:
    """A place without an anchor: whether it is there at all, and whether its file has the recorded hash, where there is one."""
    here = anchor_of(place, outlines)
    if isinstance(here, str):
        return DriftFinding(place.label, place.kind, "gone", detail=f"{here}; no anchor was stored")
    if same:
        return DriftFinding(place.label, place.kind, "unchanged", detail="its file is unchanged")
    if same is False:
        why = f"the hash of {place.path} is not the recorded one; no anchor was stored"
        return DriftFinding(place.label, place.kind, "edited", detail=why)
    return DriftFinding(place.label, place.kind, "unanchored", detail="it exists; no anchor was stored")


def _here(place: ExpectedPlace, anchor: Anchor, outlines: Outlines, *, same: bool) -> DriftFinding | None:
    """A place in its own file; None where it has to be looked for elsewhere."""
    if same:
        return DriftFinding(place.label, place.kind, "unchanged")
    if place.path not in outlines.snapshot:
        return None
    if place.kind == "file":
        return DriftFinding(place.label, "file", "unchanged")
    outline = outlines.of(place.path)
    if outline is None:
        return DriftFinding(
            place.label, place.kind, "edited", detail="the file cannot be read now: it is not text, or it is too large"
        )
    return _entity_here(place, anchor, outline) if place.kind == "entity" else _span_here(place, anchor, outline)


def _entity_here(place: ExpectedPlace, anchor: Anchor, outline: Outline) -> DriftFinding | None:
    if ENTITY_MARK not in anchor.symbol or not outline.language:
        if outline.body(1, len(outline.lines)) == anchor.body:
            return DriftFinding(place.label, "entity", "unchanged")
        why = "no parser for its language: the whole file is compared"
        return DriftFinding(place.label, "entity", "edited", detail=why)
    symbols = outline.entities.get(plain_entity(anchor.symbol).partition(ENTITY_MARK)[2])
    if symbols is None:
        if outline.trouble and outline.language == "python":
            return DriftFinding(place.label, "entity", "edited", detail=f"the file does not parse ({outline.trouble})")
        return None
    if entity_anchor(outline, symbols).body == anchor.body:
        return DriftFinding(place.label, "entity", "unchanged")
    where = ", ".join(f"{symbol.start}-{symbol.end}" for symbol in symbols)
    return DriftFinding(place.label, "entity", "edited", detail=f"its text differs; now on lines {where}")


def _span_here(place: ExpectedPlace, anchor: Anchor, outline: Outline) -> DriftFinding | None:
    """Lines in their own file: in their symbol, or, where that is gone, anywhere."""
    holders = _holders(anchor, outline)
    firsts = ((holder.start + anchor.offset, holder.names) for holder in holders)
    starts = [n for n, names in firsts if outline.body(n, n + anchor.lines - 1, names) == anchor.body]
    if not starts:
        inside = [(holder.start, holder.end) for holder in holders] or [(1, len(outline.lines))]
        names = holders[0].names if holders else names_of(anchor)
        starts = [start for first, last in inside for start in windows(outline, anchor, names, first, last)]
    if starts:
        return _moved(place, anchor, outline, starts)
    if not holders:
        return None
    holder = holders[0]
    where = f"; {holder.id} is on lines {holder.start}-{holder.end}" if holder.names else ""
    elsewhere_in_file = list(windows(outline, anchor, holder.names, 1, len(outline.lines))) if holder.names else []
    also = f"; the same text begins on line {_some(elsewhere_in_file)}" if elsewhere_in_file else ""
    return DriftFinding(place.label, "span", "edited", detail=f"its text differs{where}{also}")


def _moved(place: ExpectedPlace, anchor: Anchor, outline: Outline, starts: Iterable[int]) -> DriftFinding:
    """The lines are in the file: where they were, or elsewhere; of several places, at the nearest."""
    first, *others = sorted(set(starts), key=lambda start: (abs(start - place.lines[0]), start))
    if first == place.lines[0]:
        return DriftFinding(place.label, "span", "unchanged")
    last = first + anchor.lines - 1
    holder = outline.innermost(first, last)
    now = Anchor(holder.id, outline.body(first, last, holder.names), first - holder.start, anchor.lines)
    details = (
        [f"moved from {anchor.symbol}, which no longer exists, to {holder.id}"] if not _holders(anchor, outline) else []
    )
    details += [f"ambiguous: the same text also begins on line {_some(others)}"] if others else []
    detail = "; ".join(details)
    return DriftFinding(place.label, "span", "moved", f"{place.path}:{first}-{last}", detail, (), now, (first, last))


def _some(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:3])) + (", …" if len(lines) > 3 else "")


def _holders(anchor: Anchor, outline: Outline) -> list[Symbol]:
    """The symbol that lines hang on, and those of the same name; nothing where it is gone."""
    _, mark, name = anchor.symbol.partition(ENTITY_MARK)
    if not mark:
        return [outline.symbols[0]]
    symbol_id = f"{outline.path}{mark}{name}"
    names = next((symbol.names for symbol in outline.symbols if symbol.id == symbol_id), names_of(anchor))
    same_name = [symbol for symbol in outline.symbols if symbol.names == names]
    return sorted(same_name, key=lambda symbol: symbol.id != symbol_id)


def _renamed(was: DriftFinding, place: ExpectedPlace, found: list[TextMatch]) -> DriftFinding:
    if not found:
        return replace(was, detail=was.detail or "its text was not found")
    first = found[0]
    now = first.id if place.kind != "span" else f"{first.path}:{first.lines[0]}-{first.lines[1]}"
    same = [other.id for other in found[1:] if other.rank == first.rank]
    detail = f"ambiguous: the same text is also {', '.join(same[:3])}" if same else ""
    if place.kind == "span" and first.id != first.path:
        detail = "; ".join(filter(None, (f"in {first.id}", detail)))
    return replace(was, state="renamed", now="" if now == place.label else now, detail=detail)


def _unparsed(expected: Iterable[ExpectedPlace], outlines: Outlines) -> dict[str, str]:
    made = [outlines.made(place.path) for place in expected]
    return {outline.path: outline.trouble for outline in made if outline is not None and outline.trouble}


def reanchored(testset: TestSet, report: DriftReport) -> TestSet:
    """The test set with every moved span, line range and citation, and every graded id that holds lines which moved, at its new lines.

    An id keeps its form (`a.py#L3-L9`) and the rules' line base. Where two ids become one, the higher grade stays.
    Edited, renamed and gone places stay as they are: a tool cannot know whether they still answer the query. What was
    stored of a file in which something moved, and the commit, are true of the old lines: they are left out.
    """
    if not report.moved:
        return testset
    lines = {finding.label: finding.lines for finding in report.moved}
    expected = [target for targets in testset.targets.values() for target in targets]
    spans = {t.label for t in expected if isinstance(t, Span)}
    spans |= {span.label for t in expected if isinstance(t, Entity) for span in t.spans}
    spans |= {str(place) for label in testset.labels.values() for place in label.places}
    base = testset.matching.line_base
    touched = {
        finding.anchor.symbol.partition(ENTITY_MARK)[0] for finding in report.moved if finding.anchor is not None
    }
    ids = {label: _id_at(label, *place, 1 if label in spans else base) for label, place in lines.items()}

    return replace(
        testset,
        labels={query_id: label.moved(partial(_lines_at, lines=lines)) for query_id, label in testset.labels.items()},
        grades={query_id: _with_new_ids(judged, ids) for query_id, judged in testset.grades.items()},
        targets={
            query_id: tuple(_target_at(target, lines) for target in targets)
            for query_id, targets in testset.targets.items()
        },
        groups={
            query_id: tuple(replace(item, doc_id=ids.get(item.doc_id, item.doc_id)) for item in judged)
            for query_id, judged in testset.groups.items()
        },
        ratings={
            query_id: tuple(replace(item, doc_id=ids.get(item.doc_id, item.doc_id)) for item in rated)
            for query_id, rated in testset.ratings.items()
        },
        meta=replace(
            testset.meta,
            commit="",
            uncommitted=report.uncommitted,
            anchors=_anchors(testset, report, ids),
            source_files={path: digest for path, digest in testset.meta.source_files.items() if path not in touched},
        ),
    )


def _target_at(target: Target, lines: Mapping[str, tuple[int, int]]) -> Target:
    """A target with the new lines of what moved."""
    if isinstance(target, Entity):
        return replace(target, lines=tuple(lines.get(s.label, (s.start, s.end)) for s in target.spans))
    if not isinstance(target, Span) or target.label not in lines:
        return target
    start, end = lines[target.label]
    return replace(target, start=start, end=end)


def _lines_at(place: Lines, lines: Mapping[str, tuple[int, int]]) -> Lines:
    return Lines(place.file, *lines.get(str(place), (place.start, place.end)))


def _anchors(testset: TestSet, report: DriftReport, ids: Mapping[str, str]) -> dict[str, Anchor]:
    """Anchors under the labels that their places have now."""
    found = {finding.label: finding.anchor for finding in report.moved if finding.anchor is not None}
    return {ids.get(label, label): found.get(label, anchor) for label, anchor in testset.meta.anchors.items()}


def _with_new_ids(judged: Mapping[str, float], ids: Mapping[str, str]) -> dict[str, float]:
    renamed: dict[str, float] = {}
    for doc_id, grade in judged.items():
        now = ids.get(doc_id, doc_id)
        renamed[now] = max(grade, renamed.get(now, grade))
    return renamed


def _id_at(doc_id: str, start: int, end: int, base: int) -> str:
    """An id with other lines, in its own form."""
    found = _ID_WITH_LINES.fullmatch(doc_id)
    if found is None:
        return doc_id
    first, last = start + base - 1, end + base - 1
    return f"{found[1]}{found[2]}{first}" + (f"-{found[5]}{last}" if found[4] else "")
