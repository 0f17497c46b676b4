"""Agreement of the raters of a test set, as a Document: what `cranfield agreement` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cranfield.numbers import format_level, format_p, format_percent, format_plain
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.reporting.documents.testset import table, testset_document
from cranfield.reporting.sections.raters import FIELDS as RATER_FIELDS
from cranfield.reporting.sections.raters import (
    confusion_payload,
    confusion_section,
    misfit_section,
    misfit_sentence,
    thresholds_section,
)
from cranfield.stats.agreement import Agreement, Coefficient, RaterPair
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.consensus import CONSENSUS
from cranfield.stats.misfit import Misfit
from cranfield.testsets.raters import Disagreement, RaterReport

TIDY = ("stratum", "value", "first rater", "second rater", "measure", "estimate", "ci_low", "ci_high", "pairs", "note")

SHOWN_BY = ("agreement", "alpha-nominal", "alpha-ordinal")
"""Measures shown by stratum; CSV and JSON have them all."""


def agreement_document(report: RaterReport) -> Document:
    """Coverage, agreement with its intervals, two raters at a time, the largest disagreements, and the consensus."""
    found = report.agreement
    sections = [_coverage(report), coefficients_section(found)]
    if found.pairs:
        sections.append(_pairs(found))
    if report.confusion:
        sections.append(confusion_section(report.confusion))
    if report.misfit is not None:
        sections.append(misfit_section(report.misfit))
    if report.thresholds:
        sections.append(thresholds_section(report.thresholds, found.alpha))
    if report.by:
        sections.append(_by(report))
    if report.disagreements:
        sections.append(_disagreements(report))
    sections.append(_consensus(report))
    if report.notes:
        sections.append(Section("notes", "Notes", (Bullets(report.notes),)))
    tidy = tidy_table(TIDY, list(_tidy(report)))
    return testset_document("Agreement of raters", report.testset, sections, tidy, _payload(report))


def _coverage(report: RaterReport) -> Section:
    found, ties = report.agreement, report.tie_rate
    rate = ties.note if ties.share is None else f"{_of(ties.n_ties, ties.n_rated)} on the binary scale"
    facts = (
        ("pairs of query and document", str(found.n_items)),
        ("rated", _of(found.n_rated, found.n_items)),
        ("rated by two or more", _of(found.n_twice, found.n_items)),
        ("slots filled", _of(found.n_filled, found.n_slots)),
        ("scale", report.scale or "unknown"),
        ("tied votes", rate or "nothing is rated"),
    )
    raters = [(rater, n, n / found.n_items if found.n_items else None) for rater, n in found.by_rater.items()]
    columns = (Column("rater"), Column("pairs rated", "count"), Column("share", "percent"))
    return Section("coverage", "Coverage", (KeyValues(facts), table("Raters", columns, raters)))


def _of(n: int, total: int) -> str:
    return f"{n} of {total} ({format_percent(n / total)})" if total else "0 of 0"


def coefficients_section(found: Agreement) -> Section:
    """Every coefficient with its interval."""
    valued = [(name, coefficient) for name, coefficient in found.coefficients.items() if coefficient.value is not None]
    rows: list[tuple[Cell, ...]] = [
        (COEFFICIENTS[name].title, coefficient.value, _interval(coefficient), coefficient.n)
        for name, coefficient in valued
    ]
    columns = (Column("measure"), Column("value", "value"), Column(_level(found), "interval"), Column("pairs", "count"))
    titles: dict[str, list[str]] = {}
    for name, coefficient in found.coefficients.items():
        if coefficient.note:
            titles.setdefault(coefficient.note, []).append(COEFFICIENTS[name].title)
    # Where it is the same of all of them, their names say nothing.
    notes = [note if len(of) == len(COEFFICIENTS) else f"{'; '.join(of)}: {note}" for note, of in titles.items()]
    about = (
        f"1 is perfect agreement, 0 agreement by chance (except raw agreement). CIs: {found.n_draws} resamples "
        f"of the pairs, percentiles, seed {found.seed}."
    )
    blocks: list[Block] = [table("Agreement", columns, rows), Paragraph(about)] if rows else []
    return Section("agreement", "Agreement", (*blocks, *([Bullets(tuple(notes))] if notes else [])))


def _pairs(found: Agreement) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for pair in found.pairs:
        _, cohen, _, quadratic = pair.coefficients
        both = (cohen.value, _interval(cohen), quadratic.value, _interval(quadratic))
        rows.append((f"{pair.first}, {pair.second}", pair.n, *both))
    level = _level(found)
    columns = (
        *(Column("raters"), Column("pairs", "count"), Column("Cohen's kappa", "value"), Column(level, "interval")),
        *(Column("quadratic weights", "value"), Column(level, "interval")),
    )
    return Section("two-by-two", "Pairs of raters", (table("On the pairs that both rated", columns, rows),))


def _by(report: RaterReport) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for value, found in report.by.items():
        raw, nominal, ordinal = (found.coefficients[name] for name in SHOWN_BY)
        row = (value or "none", raw.n, raw.value, nominal.value, _interval(nominal), ordinal.value, _interval(ordinal))
        rows.append(row)
    level = _level(report.agreement)
    columns = (
        *(Column(report.by_key), Column("pairs", "count"), Column("raw agreement", "value")),
        *(Column("alpha, nominal", "value"), Column(level, "interval")),
        *(Column("alpha, ordinal", "value"), Column(level, "interval")),
    )
    return Section("strata", f"By {report.by_key}", (table("On the pairs rated twice or more", columns, rows),))


def _disagreements(report: RaterReport) -> Section:
    rows = [
        (
            disagreement.query_id,
            disagreement.doc_id,
            ", ".join(f"{rater} {format_plain(grade)}" for rater, grade in disagreement.ratings.items()),
        )
        for disagreement in report.disagreements
    ]
    caption = f"The {len(rows)} widest of {report.n_disagreements} pairs on which raters differ"
    columns = (Column("query", "query id"), Column("document", "code"), Column("ratings"))
    return Section("disagreements", "Largest disagreements", (table(caption, columns, rows),))


def _consensus(report: RaterReport) -> Section:
    outcome = report.outcome
    rows: list[tuple[Cell, ...]] = [
        *((format_plain(grade), n) for grade, n in outcome.grades.items()),
        *([("none: tied votes", outcome.n_ties)] if outcome.n_ties else []),
        *([("none: not rated", outcome.n_unfilled)] if outcome.n_unfilled else []),
    ]
    blocks: tuple[Block, ...] = (
        Paragraph(f"{outcome.rule}: {CONSENSUS[outcome.rule].sentence}"),
        table("Consensus grades", (Column("grade"), Column("pairs", "count")), rows),
    )
    return Section("consensus", f"Consensus: {outcome.rule}", blocks)


def _interval(coefficient: Coefficient) -> tuple[float | None, float | None]:
    return coefficient.ci_low, coefficient.ci_high


def _level(found: Agreement) -> str:
    return f"{format_level(found.alpha)} CI"


def _tidy(report: RaterReport) -> Iterator[tuple[Cell, ...]]:
    yield from _all_rows(report.agreement)
    for value, found in report.by.items():
        yield from _all_rows(found, report.by_key, value)
    yield from _pair_rows(report.agreement)
    for at, found in report.thresholds.items():
        yield from _all_rows(found, "relevant from", format_plain(at))
    if report.misfit is not None:
        yield from _misfit_rows(report.misfit)


def agreement_table(found: Agreement) -> Table:
    """The tidy rows of an agreement: of all raters, then of each pair of them."""
    return tidy_table(TIDY, [*_all_rows(found), *_pair_rows(found)])


def _all_rows(found: Agreement, key: str = "", value: str = "") -> Iterator[tuple[Cell, ...]]:
    for coefficient in found.coefficients.values():
        yield (key, value, "", "", *_cells(coefficient))


def _pair_rows(found: Agreement) -> Iterator[tuple[Cell, ...]]:
    for pair in found.pairs:
        for coefficient in pair.coefficients:
            yield ("", "", pair.first, pair.second, *_cells(coefficient))


def _misfit_rows(found: Misfit) -> Iterator[tuple[Cell, ...]]:
    for rater in found.raters:
        yield ("", "", rater.rater, "", "alpha-ordinal without", rater.alpha_without, None, None, rater.n, found.note)
        change = ("alpha-ordinal change", rater.change, rater.ci_low, rater.ci_high, rater.n)
        yield ("", "", rater.rater, "", *change, "" if rater.p_value is None else f"p {format_p(rater.p_value)}")


def _cells(coefficient: Coefficient) -> tuple[Cell, ...]:
    return (
        coefficient.name,
        coefficient.value,
        coefficient.ci_low,
        coefficient.ci_high,
        coefficient.n,
        coefficient.note,
    )


FIELDS: Fields = {
    Agreement: "n_pairs=n_items n_rated n_rated_twice=n_twice n_slots n_filled measures=coefficients",
    Coefficient: "value ci_low ci_high n note",
    Disagreement: "query=query_id document=doc_id ratings",
    RaterPair: "first second n_pairs=n",
}
"""What is written of each class; see `cranfield.record`."""


def _misfit_payload(found: Misfit) -> dict[str, Any]:
    names = [rater.rater for rater in found.misfits]
    return {**record_of(found, RATER_FIELDS), "misfits": names, "sentence": misfit_sentence(found)}


def _payload(report: RaterReport) -> dict[str, Any]:
    found, ties, outcome = report.agreement, report.tie_rate, report.outcome
    return {
        "scale": report.scale or None,
        "alpha": found.alpha,
        "seed": found.seed,
        "n_draws": found.n_draws,
        **record_of(found, FIELDS),
        "raters": dict(found.by_rater),
        "ties": record_of(ties) | {"note": ties.note or None},
        "rater_pairs": [
            record_of(pair, FIELDS)
            | {"measures": {coefficient.name: record_of(coefficient, FIELDS) for coefficient in pair.coefficients}}
            for pair in found.pairs
        ],
        "levels": list(report.levels),
        "confusion": [confusion_payload(matrix) for matrix in report.confusion],
        "without_each_rater": None if report.misfit is None else _misfit_payload(report.misfit),
        "thresholds": [{"binary_at": at, **record_of(on, FIELDS)} for at, on in report.thresholds.items()],
        "by": {"stratum": report.by_key or None, "values": plain(report.by, FIELDS)},
        "disagreements": plain(report.disagreements, FIELDS),
        "n_disagreements": report.n_disagreements,
        "consensus": {
            "rule": outcome.rule,
            "grades": [{"grade": grade, "pairs": n} for grade, n in outcome.grades.items()],
            "n_ties": outcome.n_ties,
            "n_unfilled": outcome.n_unfilled,
        },
        "notes": list(report.notes),
    }
