"""Models as raters of a book, as a Document: what `cranfield book models` prints."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.base.numbers import format_p, format_value
from cranfield.base.words import count_noun
from cranfield.judging.models.compare import Corrected, ModelAgreement, ModelReport, SystemOrder
from cranfield.judging.quality import MIN_PAIRS
from cranfield.judging.reports.agreement import confusion_section
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Document, KeyValues, Paragraph, Section, Table
from cranfield.reporting.table_spec import Col, Columns, TableSpec, by_place, interval
from cranfield.stats.agreement import Coefficient
from cranfield.stats.coefficients import COEFFICIENTS

SHOWN = ("agreement", "cohen", "cohen-quadratic", "alpha-ordinal")
"""Coefficients of two raters; JSON has them all."""
FEW_SYSTEMS = 5


def model_document(report: ModelReport) -> Document:
    """Agreement of each model with people, the order of systems, corrected means."""
    models = report.models
    sections = [_section(model) for model in models]
    sections += [confusion_section(tuple(model.confusion for model in models if model.confusion is not None))]
    if report.orders:
        sections.append(_orders(report.orders))
    if models:
        sections.append(_corrected(report))
    return Document(
        title="Models as raters",
        subtitle=(f"book {report.book}: {count_noun(len(models), 'models')}, {report.n_people} documents by people",),
        sections=tuple(section for section in sections if section.blocks),
        tidy=lambda: _tidy(report),
        payload=lambda: to_jsonable(report),
    )


def _section(model: ModelAgreement) -> Section:
    facts = (
        ("model", model.model),
        ("prompt", model.prompt),
        ("temperature", model.temperature),
        ("documents by the model", str(model.n_model)),
        ("documents by people", str(model.n_people)),
        ("by both", str(model.n_pairs)),
    )
    return Section(f"model-{model.rater}", model.rater, (KeyValues(facts), *_agreement(model)))


def _agreement(model: ModelAgreement) -> Iterator[Block]:
    if model.agreement is None:
        sentence = (
            f"Agreement: insufficient data ({count_noun(model.n_pairs, 'pairs')}; at least {MIN_PAIRS} are needed)."
        )
        yield Paragraph(sentence, "note")
        return
    found = [(COEFFICIENTS[name].title, model.agreement.coefficients[name]) for name in SHOWN]
    rows = [
        *((title, each.value, (each.ci_low, each.ci_high)) for title, each in found if each.value is not None),
        ("grade of the model minus that of people", model.bias, model.bias_interval),
    ]
    notes = [*(f"{title}: {each.note}" for title, each in found if each.value is None), *_constant(model)]
    yield TableSpec(
        f"Agreement with people on {count_noun(model.n_pairs, 'documents')}",
        rows,
        by_place({"measure": "text", "value": "value", "95 % CI": "interval"}),
    ).table()
    if notes:
        yield Bullets(tuple(notes))


def _constant(model: ModelAgreement) -> Iterator[str]:
    """Who gave one grade only: kappa is then 0 however good the other rater is."""
    if model.confusion is None:
        return
    counts = model.confusion.counts
    for who, by_grade in (("people", counts), (model.rater, zip(*counts, strict=True))):
        given = [grade for grade, n in zip(model.confusion.grades, map(sum, by_grade), strict=True) if n]
        if len(given) == 1:
            yield f"{who} gave every document the grade {given[0]:g}, so agreement cannot be measured"


def _orders(orders: tuple[SystemOrder, ...]) -> Section:
    blocks: list[Block] = []
    for order in orders:
        table = TableSpec(
            f"{order.rater}: mean {order.measure} of {count_noun(order.n_queries, 'queries')}, on the documents by both",
            [*zip(order.systems, order.by_people, order.by_model, strict=True)],
            by_place({"system": "text", "by people": "value", "by the model": "value"}),
        )
        blocks.append(table.table())
        tau = "undefined" if order.tau is None else format_value(order.tau)
        few = (
            f"; with {len(order.systems)} systems it can take only a few values"
            if len(order.systems) < FEW_SYSTEMS
            else ""
        )
        blocks.append(Paragraph(f"Kendall's tau of the two orders: {tau}{few}."))
    return Section("orders", "Order of systems", tuple(blocks))


def _corrected(report: ModelReport) -> Section:
    if not report.sample:
        sentence = "Means are not corrected, because it is unknown whether people judged a random sample. If they did, use --people-sample queries (whole queries) or --people-sample items (single documents)."
        return Section("corrected", "Corrected means", (Paragraph(sentence, "note"),))
    blocks: list[Block] = [_means(model.rater, report) for model in report.models]
    of = "the documents" if report.sample == "items" else "the population of the queries"
    about = f"Prediction-powered inference (PPI++): the mean over {of} according to people, estimated from their judgments of a random sample and the judgments of the model for all. lambda is the weight of the model's grades: 0 uses people only."
    warnings = tuple(_doubts(report.corrected))
    blocks += [Paragraph(about), *([Bullets(warnings, "warning")] if warnings else [])]
    return Section("corrected", "Corrected means", tuple(blocks))


def _means(rater: str, report: ModelReport) -> Table:
    unit = "documents" if report.sample == "items" else "queries"
    return TableSpec(
        f"{rater}: {unit} judged by people, and all rated by the model",
        [row for row in report.corrected if row.rater == rater],
        (
            Col("mean", lambda row: row.quantity),
            Col("corrected", lambda row: row.mean.estimate, "value"),
            Col("95 % CI", lambda row: interval(row.mean), "interval"),
            Col("people", lambda row: row.mean.label_mean, "value"),
            Col("model", lambda row: row.mean.prediction_mean, "value"),
            Col("lambda", lambda row: row.mean.power, "value"),
            Col("judged", lambda row: row.mean.n, "count"),
            Col("all", lambda row: row.mean.n_all, "count"),
        ),
    ).table()


def _doubts(rows: tuple[Corrected, ...]) -> Iterator[str]:
    for row in rows:
        where = f"{row.rater}, {row.quantity}"
        if not row.is_valid:
            yield (
                f"{where}: not valid. The documents that people judged are not a random sample: the model "
                "grades them differently from the rest "
                f"(p {format_p(row.mean.sample_p)})."
            )
        elif row.mean.note:
            yield f"{where}: {row.mean.note}"


def _tidy(report: ModelReport) -> Table:
    rows: list[tuple[str, Coefficient]] = []
    for model in report.models:
        if model.agreement is not None:
            rows += [(model.rater, found) for found in model.agreement.coefficients.values()]
    for order in report.orders:
        rows.append((order.rater, Coefficient(f"tau {order.measure}", order.tau, None, None, len(order.systems))))
    for row in report.corrected:
        mean, note = row.mean, row.mean.note if row.is_valid else "not a random sample"
        rows.append((row.rater, Coefficient(row.quantity, mean.estimate, mean.ci_low, mean.ci_high, mean.n, note)))
    columns: Columns[tuple[str, Coefficient]] = (
        Col("rater", lambda row: row[0]),
        Col("measure", lambda row: row[1].name),
        Col("value", lambda row: row[1].value),
        Col("ci_low", lambda row: row[1].ci_low),
        Col("ci_high", lambda row: row[1].ci_high),
        Col("n", lambda row: row[1].n),
        Col("note", lambda row: row[1].note),
    )
    return TableSpec("", rows, columns).tidy()
