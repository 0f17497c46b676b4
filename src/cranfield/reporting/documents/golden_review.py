"""What the review of a batch by people came to, as a Document."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.golden.review import CEILINGS, Ceiling, ReviewOutcome, ReviewReport, Tally
from cranfield.numbers import format_percent
from cranfield.record import plain
from cranfield.reporting.document import Bullets, Column, Document, KeyValues, Paragraph, Section, Table, tidy_table
from cranfield.words import capitalised, n_of

OUTCOMES = {
    ReviewOutcome.PASSED: "The review is passed: every record is decided and confirmed, and no ceiling is reached.",
    ReviewOutcome.BREACHED: "The review has failed: a ceiling is reached, which no missing decision can change.",
    ReviewOutcome.INCOMPLETE: "The review is not finished.",
}


def review_document(run: str, report: ReviewReport, steps: Sequence[str] = ()) -> Document:
    """Ceilings, what the sample can show, failure modes, and what to do next."""
    sections = [
        Section("ceilings", "Ceilings", (_ceilings(report), *(Paragraph(note, "note") for note in report.notes))),
        Section("evidence", "What the sample shows", _evidence(report)),
        Section("decisions", "Decisions", (KeyValues(_decisions(report)),)),
    ]
    if report.feedback:
        lines = tuple(
            f"{each.query_id}: {each.failure_mode.value.replace('_', ' ')}: {each.reason}" for each in report.feedback
        )
        sections.append(Section("failures", "Failures", (Bullets(lines),)))
    if steps:
        sections.append(Section("next", "Next steps", (Bullets(tuple(steps)),)))
    return Document(
        title="Review by people",
        subtitle=(
            f"{run}: {report.outcome.value}, profile {report.profile.name}",
            f"{OUTCOMES[report.outcome]} {capitalised(report.who)}.",
        ),
        sections=tuple(sections),
        payload=lambda: {"run": run, **_payload(report), "next": list(steps)},
        tidy=lambda: tidy_table(
            ("ceiling", "count", "n", "breached"),
            [(each.value, report.tally.count(each), report.tally.n, each in report.breached) for each in Ceiling],
        ),
    )


def _ceilings(report: ReviewReport) -> Table:
    profile, tally = report.profile, report.tally
    bounds = {
        Ceiling.SERIOUS: f"under {format_percent(float(profile.serious))}",
        Ceiling.MINOR: f"under {format_percent(float(profile.minor))}",
        Ceiling.WRONG_ON_EASY: "none",
    }
    rows = [
        (
            CEILINGS[each],
            f"{tally.count(each)} of {tally.n}",
            bounds[each],
            _result(each, report),
        )
        for each in Ceiling
    ]
    return Table(tuple(map(Column, ("Ceiling", "Found", "Allowed", "Result"))), rows, "Ceilings of the sample")


def _result(ceiling: Ceiling, report: ReviewReport) -> str:
    if ceiling in report.breached:
        return "breached"
    if not report.tally.n:
        return "no sample"
    if not report.tally.n_open:
        return "holds"
    return f"open: {report.tally.n_open} of {report.tally.n} {report.profile.lacking}"


def _evidence(report: ReviewReport) -> tuple[KeyValues | Table, ...]:
    if not report.tally.n:
        return (KeyValues((("sample", "none: a person sees every record"),)),)
    bounds = [("serious defects, 95 % upper bound", _bound(report.tally, report.profile.lacking))]
    if report.cumulative.n > report.tally.n:
        counts = f"{report.cumulative.serious} of {report.cumulative.n}"
        bounds.append(
            ("with the earlier batches", f"{counts}, upper bound {_bound(report.cumulative, report.profile.lacking)}")
        )
    rows = [(format_percent(rate), format_percent(passes)) for rate, passes in report.characteristic]
    columns = (Column("True rate of serious defects"), Column("Probability to pass"))
    return KeyValues(tuple(bounds)), Table(columns, rows, "Operating characteristic of the ceiling of serious defects")


def _bound(tally: Tally, lacking: str) -> str:
    if tally.n_open:
        return f"not known: {n_of(tally.n_open, 'records')} of the sample {lacking}"
    return "none" if tally.upper is None else format_percent(tally.upper)


def _decisions(report: ReviewReport) -> tuple[tuple[str, str], ...]:
    rows = [
        (verdict.value.replace("_", " "), f"{n} in the sample, {report.verdicts_must_see[verdict]} besides")
        for verdict, n in report.verdicts.items()
    ]
    rows += [(name.value.replace("_", " "), str(n)) for name, n in report.dispositions.items()]
    rows.append(("edited", str(report.n_edited)))
    if report.n_spot_checked:
        rows.append(("narratives spot-checked", f"{report.n_spot_checked}, {report.n_spot_failed} not in order"))
    rows.append(("agreement", report.agreement))
    if report.missing:
        rows.append(("missing", report.missing))
    return tuple(rows)


def _payload(report: ReviewReport) -> dict[str, object]:
    tally, total = report.tally, report.cumulative
    return {
        "outcome": report.outcome.value,
        "profile": report.profile.name,
        "sample": {
            "n": tally.n,
            "undecided": tally.n_open,
            "serious": tally.serious,
            "minor": tally.minor,
            "wrong_on_easy": tally.wrong_on_easy,
        },
        "upper_bound": tally.upper,
        "cumulative": {"n": total.n, "serious": total.serious, "upper_bound": total.upper},
        "breached": [each.value for each in report.breached],
        "verdicts": {verdict.value: n for verdict, n in report.verdicts.items()},
        "verdicts_must_see": {verdict.value: n for verdict, n in report.verdicts_must_see.items()},
        "dispositions": {name.value: n for name, n in report.dispositions.items()},
        "edited": report.n_edited,
        "spot_check": {"n": report.n_spot_checked, "failed": report.n_spot_failed},
        "unreviewed": list(report.unreviewed),
        "unconfirmed": dict(report.unconfirmed),
        "people": report.profile.people,
        "reviewed_by": report.who,
        "same_verdict": {"records": report.n_same, "of": report.n_twice},
        "agreement": report.agreement,
        "operating_characteristic": [{"rate": rate, "passes": passes} for rate, passes in report.characteristic],
        "feedback": [plain(each.model_dump(mode="json")) for each in report.feedback],
        "notes": list(report.notes),
    }
