"""Differences between versions of a test set, between its parts, and from its repository, as Documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cranfield.base.words import count_noun
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Cell, Document, Paragraph, Section
from cranfield.reporting.sections.subject import DIGEST_SHOWN, about_testset
from cranfield.reporting.table_spec import Col, TableSpec, by_place, interval
from cranfield.testsets.diff import Overfitting, SetChanges
from cranfield.testsets.reports.testset import table_section

if TYPE_CHECKING:
    from cranfield.repo.drift import DriftFinding, DriftReport

SHOWN = 20
"""Rows of a table in plain text."""


def difference_document(found: SetChanges) -> Document:
    """Changes between two versions, and the resulting changes of the systems' means."""
    ends = [f"{each.name} {each.version} ({each.digest[:DIGEST_SHOWN]})" for each in (found.old, found.testset)]
    result: list[Block] = [
        Paragraph(" ".join(f"From {ends[0]} to {ends[1]}.".split())),
        Paragraph(_in_short(found)),
        *([Bullets((found.guidelines,), "warning")] if found.guidelines else []),
    ]
    blocks = _query_blocks(found)
    judged = TableSpec(
        "Of queries in both",
        found.judged,
        (
            Col("query", lambda judged: judged.query_id, "query id"),
            Col("change", lambda judged: judged.how),
            Col("kind", lambda judged: judged.kind),
            Col("expected", lambda judged: judged.label, "code"),
            Col("old", lambda judged: judged.old, "statistic"),
            Col("new", lambda judged: judged.new, "statistic"),
        ),
    )
    changes = TableSpec(
        "Of queries and the set",
        found.changes,
        (
            Col("query", lambda change: change.query_id or "the set", "query id"),
            Col("what", lambda change: change.what),
            Col("old", lambda change: change.old),
            Col("new", lambda change: change.new),
        ),
    )
    sections = (
        Section("result", "Result", tuple(result)),
        *((Section("queries", "Queries", blocks),) if blocks else ()),
        *table_section("judgments", "Judgments", judged, SHOWN),
        *table_section("changes", "Other changes", changes, SHOWN),
        *((_scores_section(found),) if found.scores else ()),
    )
    return Document(
        title="Difference",
        subtitle=about_testset(found.testset),
        sections=sections,
        tidy=_tidy(found).tidy,
        payload=lambda: to_jsonable(found),
    )


def _in_short(found: SetChanges) -> str:
    if found.is_same:
        return "The two have the same content."
    hows = [judged.how for judged in found.judged]
    judged = ", ".join(f"{hows.count(name)} {name}" for name in ("added", "removed", "regraded"))
    return (
        f"Queries: {len(found.added)} added, {len(found.removed)} removed, {len(found.reworded)} reworded, "
        f"{found.n_common} in both. Judgments of queries in both: {judged}. Other changes: {len(found.changes)}."
    )


def _query_blocks(found: SetChanges) -> tuple[Block, ...]:
    blocks: list[Block] = [
        TableSpec(
            caption,
            queries,
            (Col("query", lambda query: query.query_id, "query id"), Col("text", lambda query: query.text)),
        ).table(shown=SHOWN)
        for caption, queries in (("Added", found.added), ("Removed", found.removed))
        if queries
    ]
    if found.reworded:
        renamed = any(reworded.old_id for reworded in found.reworded)
        reworded = TableSpec(
            "Reworded",
            found.reworded,
            (
                Col("query", lambda query: query.query_id, "query id"),
                Col("old text", lambda query: query.old),
                Col("new text", lambda query: query.new),
                Col("old id", lambda query: query.old_id, "code", only="" if renamed else "tidy"),
            ),
        )
        blocks.append(reworded.table(shown=SHOWN))
    return tuple(blocks)


def _tidy(found: SetChanges) -> TableSpec[Sequence[Cell]]:
    """Changes of every kind, one a row."""
    rows: list[Sequence[Cell]] = [
        *(("query added", query.query_id, "", None, query.text) for query in found.added),
        *(("query removed", query.query_id, "", query.text, None) for query in found.removed),
        *(("query reworded", query.query_id, "", query.old, query.new) for query in found.reworded),
        *((f"judgment {j.how}", j.query_id, f"{j.kind} {j.label}", j.old, j.new) for j in found.judged),
        *(("changed", change.query_id, change.what, change.old, change.new) for change in found.changes),
        *(("mean", "", f"{m.system} {m.measure}", m.old, m.new) for m in found.scores),
        *(("mean on common queries", "", f"{m.system} {m.measure}", m.common_old, m.common_new) for m in found.scores),
    ]
    return TableSpec("", rows, by_place(dict.fromkeys(("change", "query", "what", "old", "new"), "text")))


def _scores_section(found: SetChanges) -> Section:
    means = TableSpec(
        "Means",
        found.scores,
        (
            Col("system", lambda move: move.system),
            Col("measure", lambda move: move.measure),
            Col("old", lambda move: move.old, "value"),
            Col("n", lambda move: move.n_old, "count"),
            Col("new", lambda move: move.new, "value"),
            Col("n", lambda move: move.n_new, "count"),
            Col("common, old", lambda move: move.common_old, "value"),
            Col("common, new", lambda move: move.common_new, "value"),
            Col("n", lambda move: move.n_common, "count"),
        ),
    )
    explained = "On common queries, both versions judge the same results, so a difference comes from the judgments. The rest of the change comes from the queries."
    return Section("scores", "Scores", (Paragraph(explained), means.table()))


def overfit_document(found: Overfitting) -> Document:
    """The overfitting test of each measure."""
    means = TableSpec(
        "Means",
        found.measures,
        (
            Col("system", lambda row: row.system),
            Col("measure", lambda row: row.measure),
            Col("evaluated", lambda row: row.contrast.a.mean, "value"),
            Col("n", lambda row: row.contrast.a.n, "count", "n_evaluated"),
            Col("held out", lambda row: row.contrast.b.mean, "value", "held_out"),
            Col("n", lambda row: row.contrast.b.n, "count", "n_held_out"),
            Col("difference", lambda row: row.contrast.difference, "delta"),
            Col("interval", lambda row: interval(row.contrast), "delta interval", only="report"),
            Col("ci_low", lambda row: row.contrast.ci_low, "delta", only="tidy"),
            Col("ci_high", lambda row: row.contrast.ci_high, "delta", only="tidy"),
            Col("p", lambda row: row.contrast.p_permutation, "p"),
        ),
    )
    split = found.split
    drawn = "" if split is None else f"{count_noun(len(split.held_out), 'queries')} held out, seed {split.seed}."
    sentences = (Paragraph(row.sentence) for row in found.measures[:1])
    section = Section("overfit", "Evaluated against held out", (*sentences, Paragraph(drawn), means.table()))
    return Document(
        title="Overfitting",
        subtitle=about_testset(found.testset),
        sections=(section,),
        tidy=means.tidy,
        payload=lambda: to_jsonable(found),
    )


UNANCHORED = (
    "Unanchored places exist, but their text is not stored. `cranfield testset rehash SET --repo DIR` stores it."
)


def drift_document(report: DriftReport) -> Document:
    """States with their counts, then every place that is not unchanged."""
    changed = [finding for finding in report.findings if finding.state != "unchanged"]
    states = TableSpec(
        "Expected places by state",
        list(report.counts.items()),
        (Col("state", lambda row: row[0]), Col("places", lambda row: row[1], "count")),
    )
    left_out = ", ".join(f"{n} {kind}" for kind, n in sorted(report.left_out.items()))
    about = (Paragraph(f"Not checked: {left_out}."),) if left_out else ()
    sections = [Section("states", "States", (states.table(), *about))]
    if changed:
        known = [finding for finding in changed if finding.detail and finding.state != "unanchored"]
        details = tuple(f"{finding.label}: {finding.detail}." for finding in known)
        blocks: list[Block] = [_places("Places that are not unchanged", changed).table()]
        blocks += [Bullets(details)] if details else []
        blocks += [Paragraph(UNANCHORED)] if report.counts["unanchored"] else []
        sections.append(Section("places", "Places", tuple(blocks)))
    if report.unparsed:
        troubles = tuple(f"{path}: {why}." for path, why in report.unparsed.items())
        sections.append(Section("not-parsed", "Not parsed", (Bullets(troubles),)))
    return Document(
        title=f"Drift of {report.testset.name}",
        subtitle=(
            *filter(None, [report.uncommitted]),
            (
                f"{count_noun(len(report.findings), 'expected places')}, {len(report.drifted)} drifted; checked "
                f"at {report.where}"
            ),
        ),
        sections=tuple(sections),
        tidy=_places("", report.findings).tidy,
        payload=lambda: to_jsonable(report),
    )


def _places(caption: str, findings: Sequence[DriftFinding]) -> TableSpec[DriftFinding]:
    return TableSpec(
        caption,
        findings,
        (
            Col("place", lambda finding: finding.label),
            Col("kind", lambda finding: finding.kind),
            Col("state", lambda finding: finding.state),
            Col("now", lambda finding: finding.now),
            Col("detail", lambda finding: finding.detail, only="tidy"),
            Col("queries", lambda finding: " ".join(finding.queries), only="tidy"),
        ),
    )
