"""The drift of a test set from its repository, as a Document: what `cranfield testset verify` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cranfield.repo.drift import STATES, DriftReport, Finding
from cranfield.reporting.document import Block, Bullets, Cell, Column, Document, Paragraph, Section, Table
from cranfield.words import n_of

HEADINGS = ("place", "kind", "state", "now", "detail", "queries")
UNANCHORED = (
    "Unanchored places are there, and nothing is stored of what they said. `cranfield testset rehash` stores it."
)


def drift_document(name: str, report: DriftReport) -> Document:
    """States with their counts, then every place that is not unchanged."""
    changed = [finding for finding in report.findings if finding.state != "unchanged"]
    states = _table(
        ("state", "places"), [(state, report.counts[state]) for state in STATES], "Expected places by state"
    )
    left_out = ", ".join(f"{n} {kind}" for kind, n in sorted(report.left_out.items()))
    about = (Paragraph(f"Not looked into: {left_out}."),) if left_out else ()
    sections = [Section("states", "States", (states, *about))]
    if changed:
        rows = [_row(finding)[:-2] for finding in changed]
        blocks: list[Block] = [_table(HEADINGS[:-2], rows, "Places that are not unchanged")]
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
        tidy=lambda: _table(HEADINGS, [_row(finding) for finding in report.findings], "Expected places"),
        payload=lambda: _payload(name, report),
    )


def _table(titles: Sequence[str], rows: Sequence[tuple[Cell, ...]], caption: str) -> Table:
    columns = tuple(Column(title, "count" if title == "places" else "text") for title in titles)
    return Table(columns, rows, caption, shown=None)


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
