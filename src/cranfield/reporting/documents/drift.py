"""The drift of a test set from its repository, as a Document: what `cranfield testset verify` prints."""

from __future__ import annotations

from typing import Any

from cranfield.repo.drift import STATES, DriftReport, Finding
from cranfield.reporting.document import Block, Bullets, Cell, Column, Document, Paragraph, Section, Table, tidy_table
from cranfield.words import n_of

HEADINGS = ("place", "kind", "state", "now", "detail", "queries")
UNANCHORED = (
    "Unanchored places are there, and nothing is stored of what they said. `cranfield testset rehash` stores it."
)


def drift_document(name: str, report: DriftReport) -> Document:
    """States with their counts, then every place that is not unchanged."""
    changed = [finding for finding in report.findings if finding.state != "unchanged"]
    counts = [(state, report.counts[state]) for state in STATES]
    states = Table((Column("state"), Column("places", "count")), counts, "Expected places by state", shown=None)
    left_out = ", ".join(f"{n} {kind}" for kind, n in sorted(report.left_out.items()))
    about = (Paragraph(f"Not looked into: {left_out}."),) if left_out else ()
    sections = [Section("states", "States", (states, *about))]
    if changed:
        columns = tuple(Column(heading) for heading in HEADINGS[:-2])
        rows = [_row(finding)[:-2] for finding in changed]
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
            f"{n_of(len(report.findings), 'expected places')}, {len(report.drifted)} drifted; looked at {report.where}",
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(HEADINGS, [_row(finding) for finding in report.findings]),
        payload=lambda: _payload(name, report),
    )


def _row(finding: Finding) -> tuple[Cell, ...]:
    now = finding.now if finding.now != finding.label else ""
    return finding.label, finding.kind, finding.state, now, finding.detail, " ".join(finding.queries)


def _payload(name: str, report: DriftReport) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "testset": name,
        "commit": report.commit,
        "drifted": len(report.drifted),
        "counts": dict(report.counts),
        "places": [
            dict(zip(HEADINGS, _row(finding)[:-1], strict=False), queries=finding.queries)
            for finding in report.findings
        ],
        "queries": {query_id: dict(counted) for query_id, counted in report.by_query.items()},
        "not_parsed": dict(report.unparsed),
        "left_out": dict(report.left_out),
    }
