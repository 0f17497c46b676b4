"""Differences between versions of a test set, between its parts, and from its repository, as Documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cranfield.model import TestSet
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import Block, Bullets, Cell, Column, Document, Paragraph, Section, Table, tidy_table
from cranfield.reporting.documents.testset import DIGEST_SHOWN, IDENTITY, rows_section, table, testset_document
from cranfield.testsets.diff import Change, Difference, Judged, Rewording, ScoreMove
from cranfield.testsets.judging_notes import guidelines_differ
from cranfield.testsets.split import Overfit
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.repo.drift import DriftReport, Finding

SHOWN = 20
"""Rows of a table in plain text."""


def difference_document(difference: Difference, moves: Sequence[ScoreMove] = ()) -> Document:
    """Changes between two versions, and the resulting changes of the systems' means."""
    result: list[Block] = [Paragraph(_from_to(difference)), Paragraph(_in_short(difference))]
    if guidelines := guidelines_differ(difference.old, difference.new):
        result.append(Bullets((guidelines,), "warning"))
    sections = [Section("result", "Result", tuple(result))]
    if blocks := _query_blocks(difference):
        sections.append(Section("queries", "Queries", blocks))
    judged = [(j.query_id, _how(j), j.kind, j.label, j.old, j.new) for j in difference.judged]
    sections += rows_section("judgments", "Judgments", "Of queries in both", _JUDGED, judged, SHOWN)
    changes = [(c.query_id or "the set", c.what, c.old, c.new) for c in difference.changes]
    columns = (Column("query", "query id"), Column("what"), Column("old"), Column("new"))
    sections += rows_section("changes", "Other changes", "Of queries and the set", columns, changes, SHOWN)
    if moves:
        sections.append(_moves_section(moves))
    tidy = tidy_table(("change", "query", "what", "old", "new"), _tidy_rows(difference, moves))
    return testset_document(
        "Difference", difference.new, sections, tidy, record_of(difference, FIELDS) | {"scores": plain(moves, FIELDS)}
    )


def _from_to(difference: Difference) -> str:
    ends = [
        f"{version.name} {version.version} ({version.digest[:DIGEST_SHOWN]})"
        for version in (difference.old, difference.new)
    ]
    return " ".join(f"From {ends[0]} to {ends[1]}.".split())


def _in_short(difference: Difference) -> str:
    if difference.is_same:
        return "The two have the same content."
    hows = [_how(judged) for judged in difference.judged]
    judged = ", ".join(f"{hows.count(name)} {name}" for name in ("added", "removed", "regraded"))
    return (
        f"Queries: {len(difference.added)} added, {len(difference.removed)} removed, {len(difference.reworded)} reworded, "
        f"{len(difference.common)} in both. Judgments of queries in both: {judged}. "
        f"Other changes: {len(difference.changes)}."
    )


def _query_blocks(difference: Difference) -> tuple[Block, ...]:
    texts = (Column("query", "query id"), Column("text"))
    blocks: list[Block] = []
    for caption, testset, query_ids in (
        ("Added", difference.new, difference.added),
        ("Removed", difference.old, difference.removed),
    ):
        rows: list[tuple[Cell, ...]] = [(query_id, testset.by_id[query_id].text) for query_id in query_ids]
        blocks += [table(caption, texts, rows, SHOWN)] if rows else []
    if difference.reworded:
        columns: tuple[Column, ...] = (texts[0], Column("old text"), Column("new text"))
        rows = [(reworded.query_id, reworded.old, reworded.new) for reworded in difference.reworded]
        if any(reworded.old_id for reworded in difference.reworded):
            columns = (*columns, Column("old id", "code"))
            rows = [(*row, reworded.old_id) for row, reworded in zip(rows, difference.reworded, strict=True)]
        blocks.append(table("Reworded", columns, rows, SHOWN))
    return tuple(blocks)


FIELDS: Fields = {
    Change: "query=query_id what old new",
    Difference: (
        "old queries.added=added queries.removed=removed queries.reworded=reworded queries.common=common.__len__ "
        "judgments=judged changes"
    ),
    Judged: "query=query_id kind label old new",
    Overfit: (
        "system measure evaluated.mean=contrast.a.mean evaluated.n=contrast.a.n held_out.mean=contrast.b.mean "
        "held_out.n=contrast.b.n difference=contrast.difference ci_low=contrast.ci_low ci_high=contrast.ci_high p_permutation=contrast.p_permutation overfit=is_overfit sentence"
    ),
    Rewording: "query=query_id old new old_id",
    ScoreMove: (
        "system measure old.mean=old old.n=n_old new.mean=new new.n=n_new common.old_mean=common_old "
        "common.new_mean=common_new common.n=n_common"
    ),
    TestSet: IDENTITY,
}
"""What is written of each class; see `cranfield.record`."""


_JUDGED = (
    *(Column("query", "query id"), Column("change"), Column("kind"), Column("expected", "code")),
    *(Column("old", "statistic"), Column("new", "statistic")),
)


def _how(judged: Judged) -> str:
    if judged.old is None:
        return "added"
    return "removed" if judged.new is None else "regraded"


def _tidy_rows(difference: Difference, moves: Sequence[ScoreMove]) -> list[tuple[Cell, ...]]:
    old, new = difference.old, difference.new
    return [
        *(("query added", query_id, "", None, new.by_id[query_id].text) for query_id in difference.added),
        *(("query removed", query_id, "", old.by_id[query_id].text, None) for query_id in difference.removed),
        *(("query reworded", reworded.query_id, "", reworded.old, reworded.new) for reworded in difference.reworded),
        *((f"judgment {_how(j)}", j.query_id, f"{j.kind} {j.label}", j.old, j.new) for j in difference.judged),
        *(("changed", c.query_id, c.what, c.old, c.new) for c in difference.changes),
        *(("mean", "", f"{m.system} {m.measure}", m.old, m.new) for m in moves),
        *(("mean on common queries", "", f"{m.system} {m.measure}", m.common_old, m.common_new) for m in moves),
    ]


def _moves_section(moves: Sequence[ScoreMove]) -> Section:
    rows = [
        (m.system, m.measure, m.old, m.n_old, m.new, m.n_new, m.common_old, m.common_new, m.n_common) for m in moves
    ]
    columns = (
        *(Column("system"), Column("measure")),
        *(Column("old", "value"), Column("n", "count"), Column("new", "value"), Column("n", "count")),
        *(Column("common, old", "value"), Column("common, new", "value"), Column("n", "count")),
    )
    explained = (
        "On common queries both versions judge the same results: a difference there comes from the judgments. The rest of "
        "the change comes from the queries."
    )
    return Section("scores", "Scores", (Paragraph(explained), table("Means", columns, rows)))


_OVERFIT_TIDY = (
    *("system", "measure", "evaluated", "n_evaluated", "held_out", "n_held_out"),
    *("difference", "ci_low", "ci_high", "p"),
)


def overfit_document(testset: TestSet, found: Sequence[Overfit]) -> Document:
    """The overfitting test of each measure."""
    rows = [
        (
            *(row.system, row.measure, row.contrast.a.mean, row.contrast.a.n, row.contrast.b.mean, row.contrast.b.n),
            *(row.contrast.difference, (row.contrast.ci_low, row.contrast.ci_high), row.contrast.p_permutation),
        )
        for row in found
    ]
    columns = (
        *(Column("system"), Column("measure"), Column("evaluated", "value"), Column("n", "count")),
        *(Column("held out", "value"), Column("n", "count"), Column("difference", "delta")),
        *(Column("interval", "delta interval"), Column("p", "p")),
    )
    split = testset.meta.split
    drawn = "" if split is None else f"{n_of(len(split.held_out), 'queries')} held out, seed {split.seed}."
    section = Section(
        "overfit",
        "Evaluated against held out",
        (*(Paragraph(row.sentence) for row in found[:1]), Paragraph(drawn), table("Means", columns, rows)),
    )
    flat = [
        (*cells[:7], row.contrast.ci_low, row.contrast.ci_high, row.contrast.p_permutation)
        for cells, row in zip(rows, found, strict=True)
    ]
    tidy = tidy_table(_OVERFIT_TIDY, flat)
    return testset_document("Overfitting", testset, [section], tidy, {"measures": plain(found, FIELDS)})


PLACE = ("place", "kind", "state", "now", "detail", "queries")
UNANCHORED = (
    "Unanchored places exist, but no text of them is stored. `cranfield testset rehash SET --repo DIR` stores it."
)


def drift_document(name: str, report: DriftReport) -> Document:
    """States with their counts, then every place that is not unchanged."""
    from cranfield.repo.drift import STATES

    changed = [finding for finding in report.findings if finding.state != "unchanged"]
    counts = [(state, report.counts[state]) for state in STATES]
    states = Table((Column("state"), Column("places", "count")), counts, "Expected places by state", shown=None)
    left_out = ", ".join(f"{n} {kind}" for kind, n in sorted(report.left_out.items()))
    about = (Paragraph(f"Not looked into: {left_out}."),) if left_out else ()
    sections = [Section("states", "States", (states, *about))]
    if changed:
        columns = tuple(Column(heading) for heading in PLACE[:-2])
        rows = [_place(finding)[:-2] for finding in changed]
        blocks: list[Block] = [Table(columns, rows, "Places that are not unchanged", shown=None)]
        known = [finding for finding in changed if finding.detail and finding.state != "unanchored"]
        details = tuple(f"{finding.label}: {finding.detail}." for finding in known)
        blocks += [Bullets(details)] if details else []
        blocks += [Paragraph(UNANCHORED)] if report.counts["unanchored"] else []
        sections.append(Section("places", "Places", tuple(blocks)))
    if report.unparsed:
        troubles = tuple(f"{path}: {why}." for path, why in report.unparsed.items())
        sections.append(Section("not-parsed", "Not parsed", (Bullets(troubles),)))
    return Document(
        title=f"Drift of {name}",
        subtitle=(
            *filter(None, [report.uncommitted]),
            f"{n_of(len(report.findings), 'expected places')}, {len(report.drifted)} drifted; looked at {report.where}",
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(PLACE, [_place(finding) for finding in report.findings]),
        payload=lambda: _drift_payload(name, report),
    )


def _place(finding: Finding) -> tuple[Cell, ...]:
    now = finding.now if finding.now != finding.label else ""
    return finding.label, finding.kind, finding.state, now, finding.detail, " ".join(finding.queries)


def _drift_payload(name: str, report: DriftReport) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "uncommitted": report.uncommitted,
        "testset": name,
        "commit": report.commit,
        "drifted": len(report.drifted),
        "counts": dict(report.counts),
        "places": [
            dict(zip(PLACE, _place(finding)[:-1], strict=False), queries=finding.queries) for finding in report.findings
        ],
        "queries": {query_id: dict(counted) for query_id, counted in report.by_query.items()},
        "not_parsed": dict(report.unparsed),
        "left_out": dict(report.left_out),
    }
