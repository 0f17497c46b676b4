"""Agreement of the raters of a test set, as a Document: what `cranfield agreement` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cranfield.base.numbers import format_count, format_level, format_p, format_percent, format_plain, format_value
from cranfield.base.words import count_noun
from cranfield.judging.raters.raters import RaterReport
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Document, KeyValues, Paragraph, Section, Table
from cranfield.reporting.notebook import CardShape, plain_card
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, interval
from cranfield.stats.agreement import Agreement, Coefficient, Misfit
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.confusion import ConfusionMatrix
from cranfield.stats.consensus import CONSENSUS

SHOWN_MATRICES = 6
"""So many are printed, those of four raters; JSON has them all."""
SHOWN_GRADES = 12
"""Matrices of more grades are in JSON only."""
AT_THRESHOLDS = ("agreement", "cohen", "fleiss", "alpha-nominal")
"""Coefficients of binary ratings."""
UNITS = {
    "query": "queries are resampled, and the raters are permuted within each query",
    "pair": "pairs of query and document are resampled, and the raters are permuted within each pair",
}


def confusion_section(matrices: Sequence[ConfusionMatrix]) -> Section:
    """A matrix for each pair of raters."""
    shown = [matrix for matrix in matrices if len(matrix.grades) <= SHOWN_GRADES][:SHOWN_MATRICES]
    blocks: list[Block] = [_matrix(matrix) for matrix in shown]
    if len(shown) < len(matrices):
        blocks.append(Paragraph(f"{len(matrices) - len(shown)} more in the JSON output."))
    return Section("confusion", "Confusion matrices", tuple(blocks))


def _matrix(matrix: ConfusionMatrix) -> Table:
    titles = [*map(format_plain, matrix.grades)]
    columns: Columns[int] = (
        Col(matrix.first, titles.__getitem__),
        Cols(range(len(titles)), lambda row, column: matrix.counts[row][column], "count", titles.__getitem__),
    )
    caption = f"{matrix.first} (rows) and {matrix.second} (columns), {count_noun(matrix.n, 'pairs')}"
    return TableSpec(caption, range(len(titles)), columns).table()


def misfit_section(found: Misfit, sentence: str) -> Section:
    """Agreement without each rater, and the one who does not fit."""
    table = TableSpec(
        "Agreement of the others",
        found.raters,
        (
            Col("without", lambda row: row.rater),
            Col("alpha, ordinal", lambda row: row.alpha_without, "value"),
            Col("change", lambda row: row.change, "delta"),
            Col(f"{format_level(found.level)} CI", lambda row: (row.ci_low, row.ci_high), "delta interval"),
            Col("p", lambda row: row.p_value, "p"),
            Col("grade minus others", lambda row: row.bias, "delta"),
            Col("pairs", lambda row: row.n, "count"),
        ),
    )
    about = (
        f"Alpha of all raters: {format_value(found.alpha_all)}. CIs and p-values: {found.n_draws} draws, seed {found.seed}; "
        f"{UNITS[found.unit]} ({found.n_units}). p: probability of a maximum change at least as large if the "
        f"raters were interchangeable; adjusted for {len(found.raters)} raters."
    )
    blocks: tuple[Block, ...] = (table.table(), Paragraph(about)) if found.raters else ()
    return Section("without-each-rater", "Agreement without each rater", (Paragraph(sentence), *blocks))


def thresholds_section(thresholds: Mapping[float, Agreement], level: float) -> Section:
    """Agreement on relevance, by the grade from which a document counts as relevant."""
    table = TableSpec(
        "Each rating as relevant or not",
        [
            (at, found.coefficients[name])
            for at, found in thresholds.items()
            for name in AT_THRESHOLDS
            if found.coefficients[name].value is not None
        ],
        (
            Col("relevant from", lambda row: format_plain(row[0])),
            Col("measure", lambda row: COEFFICIENTS[row[1].name].title),
            Col("value", lambda row: row[1].value, "value"),
            Col(f"{format_level(level)} CI", lambda row: interval(row[1]), "interval"),
            Col("pairs", lambda row: row[1].n, "count"),
        ),
    )
    return Section("thresholds", "Agreement at thresholds", (table.table(),))


def agreement_document(report: RaterReport) -> Document:
    """Coverage, agreement with its intervals, two raters at a time, the largest disagreements, and the consensus."""
    found = report.agreement
    sections = [_coverage(report), coefficients_section(found)]
    if found.pairs:
        sections.append(_pairs(found))
    if report.confusion:
        sections.append(confusion_section(report.confusion))
    sections.append(misfit_section(report.misfit, report.misfit_sentence))
    if report.thresholds:
        sections.append(thresholds_section(report.thresholds, found.alpha))
    if report.by:
        sections.append(_by(report))
    if report.disagreements:
        sections.append(_disagreements(report))
    sections.append(_consensus(report))
    if report.notes:
        sections.append(Section("notes", "Notes", (Bullets(report.notes),)))
    return Document(
        title="Agreement of raters",
        subtitle=about_testset(report.testset),
        sections=tuple(sections),
        tidy=_spec([*_lines(report)]).tidy,
        payload=lambda: to_jsonable(report),
    )


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
    raters = TableSpec(
        "Raters",
        [*found.by_rater.items()],
        (
            Col("rater", lambda row: row[0]),
            Col("pairs rated", lambda row: row[1], "count"),
            Col("share", lambda row: row[1] / found.n_items if found.n_items else None, "percent"),
        ),
    )
    return Section("coverage", "Coverage", (KeyValues(facts), raters.table()))


def _of(n: int, total: int) -> str:
    return f"{n} of {total} ({format_percent(n / total)})" if total else "0 of 0"


def coefficients_section(found: Agreement) -> Section:
    """Every coefficient with its interval."""
    table = TableSpec(
        "Agreement",
        [each for each in found.coefficients.values() if each.value is not None],
        (
            Col("measure", lambda row: COEFFICIENTS[row.name].title),
            Col("value", lambda row: row.value, "value"),
            Col(_level(found), lambda row: (row.ci_low, row.ci_high), "interval"),
            Col("pairs", lambda row: row.n, "count"),
        ),
    )
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
    blocks: list[Block] = [table.table(), Paragraph(about)] if table.rows else []
    return Section("agreement", "Agreement", (*blocks, *([Bullets(tuple(notes))] if notes else [])))


def _pairs(found: Agreement) -> Section:
    table = TableSpec(
        "On the pairs that both rated",
        found.pairs,
        (
            Col("raters", lambda row: f"{row.first}, {row.second}"),
            Col("pairs", lambda row: row.n, "count"),
            Col("Cohen's kappa", lambda row: row.coefficients[1].value, "value"),
            Col(_level(found), lambda row: interval(row.coefficients[1]), "interval"),
            Col("quadratic weights", lambda row: row.coefficients[3].value, "value"),
            Col(_level(found), lambda row: interval(row.coefficients[3]), "interval"),
        ),
    )
    return Section("two-by-two", "Pairs of raters", (table.table(),))


def _by(report: RaterReport) -> Section:
    raw, nominal, ordinal = "agreement", "alpha-nominal", "alpha-ordinal"  # CSV and JSON have them all
    level = _level(report.agreement)
    table = TableSpec(
        "On the pairs rated twice or more",
        [(value or "none", found.coefficients) for value, found in report.by.items()],
        (
            Col(report.by_key, lambda row: row[0]),
            Col("pairs", lambda row: row[1][raw].n, "count"),
            Col("raw agreement", lambda row: row[1][raw].value, "value"),
            Col("alpha, nominal", lambda row: row[1][nominal].value, "value"),
            Col(level, lambda row: interval(row[1][nominal]), "interval"),
            Col("alpha, ordinal", lambda row: row[1][ordinal].value, "value"),
            Col(level, lambda row: interval(row[1][ordinal]), "interval"),
        ),
    )
    return Section("strata", f"By {report.by_key}", (table.table(),))


def _disagreements(report: RaterReport) -> Section:
    table = TableSpec(
        f"The {len(report.disagreements)} widest of {report.n_disagreements} pairs on which raters disagree",
        report.disagreements,
        (
            Col("query", lambda row: row.query_id, "query id"),
            Col("document", lambda row: row.doc_id, "code"),
            Col("ratings", lambda row: ", ".join(f"{who} {format_plain(grade)}" for who, grade in row.ratings.items())),
        ),
    )
    return Section("disagreements", "Largest disagreements", (table.table(),))


def _consensus(report: RaterReport) -> Section:
    outcome = report.outcome
    rows = [
        *((format_plain(grade), n) for grade, n in outcome.grades.items()),
        *([("none: tied votes", outcome.n_ties)] if outcome.n_ties else []),
        *([("none: not rated", outcome.n_unfilled)] if outcome.n_unfilled else []),
    ]
    table = TableSpec(
        "Consensus grades", rows, (Col("grade", lambda row: row[0]), Col("pairs", lambda row: row[1], "count"))
    )
    sentence = Paragraph(f"{outcome.rule}: {CONSENSUS[outcome.rule].sentence}")
    return Section("consensus", f"Consensus: {outcome.rule}", (sentence, table.table()))


def _level(found: Agreement) -> str:
    return f"{format_level(found.alpha)} CI"


class _Line(NamedTuple):
    """A row of CSV."""

    found: Coefficient
    stratum: str = ""
    value: str = ""
    first: str = ""
    second: str = ""


def _spec(lines: list[_Line]) -> TableSpec[_Line]:
    columns: Columns[_Line] = (
        Col("stratum", lambda row: row.stratum),
        Col("value", lambda row: row.value),
        Col("first rater", lambda row: row.first),
        Col("second rater", lambda row: row.second),
        Col("measure", lambda row: row.found.name),
        Col("estimate", lambda row: row.found.value),
        Col("ci_low", lambda row: row.found.ci_low),
        Col("ci_high", lambda row: row.found.ci_high),
        Col("pairs", lambda row: row.found.n),
        Col("note", lambda row: row.found.note),
    )
    return TableSpec("", lines, columns)


def _lines(report: RaterReport) -> Iterator[_Line]:
    yield from map(_Line, report.agreement.coefficients.values())
    for value, found in report.by.items():
        yield from (_Line(each, report.by_key, value) for each in found.coefficients.values())
    yield from _pair_lines(report.agreement)
    for at, found in report.thresholds.items():
        yield from (_Line(each, "relevant from", format_plain(at)) for each in found.coefficients.values())
    yield from _misfit_lines(report.misfit)


def _pair_lines(found: Agreement) -> Iterator[_Line]:
    for pair in found.pairs:
        yield from (_Line(each, first=pair.first, second=pair.second) for each in pair.coefficients)


def _misfit_lines(found: Misfit) -> Iterator[_Line]:
    for rater in found.raters:
        without = Coefficient("alpha-ordinal without", rater.alpha_without, None, None, rater.n, found.note)
        p = "" if rater.p_value is None else f"p {format_p(rater.p_value)}"
        change = Coefficient("alpha-ordinal change", rater.change, rater.ci_low, rater.ci_high, rater.n, p)
        yield from (_Line(each, first=rater.rater) for each in (without, change))


def agreement_card(found: Agreement) -> Document:
    """Every coefficient with its interval."""
    about = f"{count_noun(len(found.by_rater), 'raters')}, {count_noun(found.n_items, 'items', format_count)}"
    return plain_card("Agreement of raters", (about,), [coefficients_section(found)])


CARD = CardShape(
    agreement_card, lambda found: _spec([*map(_Line, found.coefficients.values()), *_pair_lines(found)]).tidy()
)
"""An agreement in a notebook: CSV has the coefficients of all raters, then those of each pair of them."""
