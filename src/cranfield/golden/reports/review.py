"""What the review of a batch by people came to, as a Document."""

from __future__ import annotations

from cranfield.base.numbers import format_percent
from cranfield.base.words import capitalised, count_noun
from cranfield.golden.review import CEILINGS, Ceiling, ReviewOutcome, ReviewReport, ReviewTally
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Bullets, Document, KeyValues, Paragraph, Section, Table
from cranfield.reporting.table_spec import Col, TableSpec

OUTCOMES = {
    ReviewOutcome.PASSED: "Review passed: every record is decided and confirmed, and no ceiling is reached.",
    ReviewOutcome.BREACHED: "Review failed: a ceiling is reached, and missing decisions cannot change this.",
    ReviewOutcome.INCOMPLETE: "Review not finished.",
}


def review_document(report: ReviewReport) -> Document:
    """Ceilings, what the sample can show, failure modes, and what to do next."""
    ceilings = _ceilings(report)
    rows = [
        (verdict.value.replace("_", " "), f"{n} in the sample, {report.verdicts_must_see[verdict]} besides")
        for verdict, n in report.verdicts.items()
    ]
    rows += [(name.value.replace("_", " "), str(n)) for name, n in report.dispositions.items()]
    rows.append(("edited", str(report.n_edited)))
    if report.n_spot_checked:
        rows.append(("narratives spot-checked", f"{report.n_spot_checked}, {report.n_spot_failed} incorrect"))
    rows.append(("agreement", report.agreement))
    if report.missing:
        rows.append(("missing", report.missing))
    sections = [
        Section("ceilings", "Ceilings", (ceilings.table(), *(Paragraph(note, "note") for note in report.notes))),
        Section("evidence", "Results of the sample", _evidence(report)),
        Section("decisions", "Decisions", (KeyValues(tuple(rows)),)),
    ]
    if report.feedback:
        lines = tuple(
            f"{each.query_id}: {each.failure_mode.value.replace('_', ' ')}: {each.reason}" for each in report.feedback
        )
        sections.append(Section("failures", "Failures", (Bullets(lines),)))
    if report.next_steps:
        sections.append(Section("next", "Next steps", (Bullets(report.next_steps),)))
    return Document(
        title="Review by people",
        subtitle=(
            f"{report.run}: {report.outcome.value}, profile {report.profile}",
            f"{OUTCOMES[report.outcome]} {capitalised(report.reviewed_by)}.",
        ),
        sections=tuple(sections),
        payload=lambda: to_jsonable(report),
        tidy=ceilings.tidy,
    )


def _ceilings(report: ReviewReport) -> TableSpec[Ceiling]:
    rules, tally = report.rules, report.tally
    bounds = {
        Ceiling.SERIOUS: f"under {format_percent(float(rules.serious))}",
        Ceiling.MINOR: f"under {format_percent(float(rules.minor))}",
        Ceiling.WRONG_ON_EASY: "none",
    }
    return TableSpec(
        "Ceilings of the sample",
        list(Ceiling),
        (
            Col("Ceiling", lambda each: CEILINGS[each], only="report"),
            Col("ceiling", lambda each: each.value, only="tidy"),
            Col("Found", lambda each: f"{tally.count(each)} of {tally.n}", only="report"),
            Col("count", tally.count, only="tidy"),
            Col("n", lambda _: tally.n, only="tidy"),
            Col("Allowed", lambda each: bounds[each], only="report"),
            Col("Result", lambda each: _result(each, report), only="report"),
            Col("breached", lambda each: each in report.breached, only="tidy"),
        ),
    )


def _result(ceiling: Ceiling, report: ReviewReport) -> str:
    if ceiling in report.breached:
        return "breached"
    if not report.tally.n:
        return "no sample"
    if not report.tally.n_open:
        return "holds"
    return f"open: {report.tally.n_open} of {report.tally.n} {report.rules.lacking}"


def _evidence(report: ReviewReport) -> tuple[KeyValues | Table, ...]:
    if not report.tally.n:
        return (KeyValues((("sample", "none: every record is reviewed"),)),)
    bounds = [("serious defects, 95 % upper bound", _bound(report.tally, report.rules.lacking))]
    if report.cumulative.n > report.tally.n:
        counts = f"{report.cumulative.serious} of {report.cumulative.n}"
        bounds.append(
            ("with the earlier batches", f"{counts}, upper bound {_bound(report.cumulative, report.rules.lacking)}")
        )
    chances = TableSpec(
        "Operating characteristic of the ceiling of serious defects",
        report.characteristic,
        (
            Col("True rate of serious defects", lambda each: format_percent(each.rate)),
            Col("Probability to pass", lambda each: format_percent(each.passes)),
        ),
    )
    return KeyValues(tuple(bounds)), chances.table()


def _bound(tally: ReviewTally, lacking: str) -> str:
    if tally.n_open:
        return f"not known: {count_noun(tally.n_open, 'records')} of the sample {lacking}"
    return "none" if tally.upper is None else format_percent(tally.upper)
