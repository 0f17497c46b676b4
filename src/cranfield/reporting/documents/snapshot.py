"""Snapshots as a Document: what `cranfield snapshot` prints."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.base.numbers import format_count
from cranfield.base.words import and_list, count_noun
from cranfield.evaluation.snapshot import QuerySnapshot, ShownResult, SnapshotResult, SnapshotSet, SnapshotStatus
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Code, Document, Paragraph, Section, Tone, VerdictBlock
from cranfield.reporting.table_spec import Col, TableSpec

MAX_LOST = 10
"""Lost and forbidden results that are named before the diff, which has them all."""
TONES: dict[SnapshotStatus, Tone] = {
    SnapshotStatus.DIFFERENT: "open",
    SnapshotStatus.WRITTEN: "even",
    SnapshotStatus.ACCEPTED: "even",
    SnapshotStatus.SAME: "even",
}
"""The first that a snapshot has is the status of all."""


def snapshot_document(found: SnapshotSet) -> Document:
    """What changed in each snapshot, and the lines that differ."""
    status = next(status for status in TONES if any(each.status is status for each in found.snapshots))
    single = found.snapshots[0] if len(found.snapshots) == 1 else None
    sections = [
        Section(
            f"snapshot-{number}",
            f"{each.testset}, {each.system}: {each.path}",
            tuple(_blocks(each, with_sentence=single is None)),
        )
        for number, each in enumerate(found.snapshots, start=1)
    ]
    counts = {state: sum(each.status is state for each in found.snapshots) for state in TONES}
    listed = and_list([f"{n} {state.value}" for state, n in counts.items() if n])
    reasons = [
        f"{each.n_failed} of {count_noun(len(each.queries), 'queries', format_count)} failed on {each.system}; the snapshot "
        "has them as failures."
        for each in found.snapshots
        if each.n_failed
    ]
    if found.differs:
        reasons.append("`--accept` replaces the file by these results.")
    return Document(
        title="Snapshot" if single is None else f"Snapshot of {single.system} on {single.testset}",
        subtitle=(single.path,) if single is not None else (),
        sections=tuple(section for section in sections if section.blocks),
        tidy=_results(found).tidy,
        payload=lambda: to_jsonable(found),
        verdict=VerdictBlock(
            status.value,
            f"{count_noun(len(found.snapshots), 'snapshots')}: {listed}." if single is None else sentence_of(single),
            TONES[status],
            reasons=tuple(reasons),
        ),
    )


def sentence_of(each: SnapshotResult) -> str:
    """The result of a snapshot, in one sentence or two."""
    n = count_noun(len(each.queries), "queries", format_count)
    if each.changes is None:
        return f"The first {each.k} results of {n} were written."
    if each.changes.is_same:
        return f"The first {each.k} results of {n} are those of the file."
    changes = each.changes
    if changes.reordered and not changes.changed:
        return f"The first {each.k} results of {n} are those of the file, whose queries are in another order."
    parts = [f"{len(changes.changed)} of {n} changed"]
    parts += [f"{count_noun(len(changes.added), 'queries')} are new"] if changes.added else []
    parts += [f"{count_noun(len(changes.removed), 'queries')} are gone"] if changes.removed else []
    return f"{', '.join(parts)}. Expected results among the first {each.k}: {len(changes.lost)} lost, {len(changes.won)} won."


def _blocks(each: SnapshotResult, *, with_sentence: bool) -> Iterator[Block]:
    if with_sentence:
        yield Paragraph(sentence_of(each))
    if each.changes is None:
        return
    lost = [f"must not be found in {query}: {doc}" for query, doc in each.changes.forbidden]
    lost += [f"lost in {query}: {doc}" for query, doc in each.changes.lost]
    if lost:
        more = [f"and {len(lost) - MAX_LOST} more"] if len(lost) > MAX_LOST else []
        yield Bullets((*lost[:MAX_LOST], *more))
    if each.changes.diff:
        yield Code(each.changes.diff, in_text=True)


def _results(found: SnapshotSet) -> TableSpec[tuple[SnapshotResult, QuerySnapshot, ShownResult]]:
    rows = [(each, query, result) for each in found.snapshots for query in each.queries for result in query.results]
    return TableSpec(
        "First results",
        rows,
        (
            Col("test set", lambda row: row[0].testset, key="testset"),
            Col("system", lambda row: row[0].system),
            Col("query", lambda row: row[1].query, "query id"),
            Col("rank", lambda row: row[2].rank, "count"),
            Col("result", lambda row: row[2].doc, "code", "doc"),
            Col("title", lambda row: row[2].title),
            Col("score", lambda row: row[2].score, "value"),
            Col("expected", lambda row: row[2].expected),
            Col("forbidden", lambda row: row[2].forbidden),
        ),
    )
