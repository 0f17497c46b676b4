"""`cranfield testset verify`: whether a test set is still true of a repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cranfield.cli.shared import EXIT_VERDICT, Format, FormatOption, deliver
from cranfield.cli.testset.common import (
    ForceOption,
    SetArgument,
    SetFormatOption,
    note,
    refuse_existing,
    save_set,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.model import TestSet
    from cranfield.repo.drift import DriftReport, Finding
    from cranfield.reporting.document import Block, Cell, Document, Table

RepoOption = Annotated[Path, typer.Option("--repo", metavar="DIR", help="Folder of the repository.")]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="COMMIT", help="Commit of the repository; default: the files on disk.")
]
HEADINGS = ("place", "kind", "state", "now", "detail", "queries")
UNANCHORED = (
    "Unanchored places are there, and nothing is stored of what they said. `cranfield testset rehash` stores it."
)


def verify_command(
    testset: SetArgument,
    *,
    repo: RepoOption,
    at: AtOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also write the test set with the current lines of moved places."),
    ] = None,
    force: ForceOption = False,
    output: FormatOption = Format.TEXT,
    testset_format: SetFormatOption = None,
) -> None:
    """Check the expected places of a test set against a repository: unchanged, moved, edited, renamed or gone.

    Exits with 1 if any place was edited, renamed or is gone.
    """
    from cranfield.repo.drift import verify
    from cranfield.repo.reanchor import reanchored
    from cranfield.repo.snapshot import take
    from cranfield.testsets.storage import read_stored

    judged = read_stored(testset, testset_format)
    report = verify(judged, take(repo, at))
    if out is not None:
        refuse_existing(out, force=force)
        write_anew(reanchored(judged, report), testset, out, testset_format)
    deliver(drift_document(judged.name, report), output, None)
    if report.drifted:
        raise typer.Exit(EXIT_VERDICT)


def write_anew(changed: TestSet, source: Path, out: Path | None, named: str | None) -> None:
    """Write a changed set in the format it was read in, with a file beside it where that has no room for all of it."""
    for path in save_set(changed, source, out, format=named):
        note(f"wrote {path}")


def drift_document(name: str, report: DriftReport) -> Document:
    """States with their counts, then every place that is not unchanged."""
    from cranfield.repo.drift import STATES
    from cranfield.reporting.document import Bullets, Document, Paragraph, Section
    from cranfield.words import n_of

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
    from cranfield.reporting.document import Column, Table

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
