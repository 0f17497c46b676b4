"""Models as raters of a book, as a Document: what `cranfield book models` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cranfield.judging.quality import FEWEST_PAIRS
from cranfield.numbers import format_p, format_value
from cranfield.record import record_of
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
from cranfield.reporting.sections.raters import confusion_section
from cranfield.results import to_jsonable
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.judging.models.compare import Corrected, ModelAgreement, ModelReport, SystemOrder

SHOWN = ("agreement", "cohen", "cohen-quadratic", "alpha-ordinal")
"""Coefficients of two raters; JSON has them all."""
FEW_SYSTEMS = 5
TIDY = ("rater", "measure", "value", "ci_low", "ci_high", "n", "note")


def model_document(report: ModelReport) -> Document:
    """Agreement of each model with people, the order of systems, corrected means."""
    models = report.models.models
    sections = [_section(model) for model in models]
    sections += [confusion_section(tuple(model.confusion for model in models if model.confusion is not None))]
    if report.orders:
        sections.append(_orders(report.orders))
    if models:
        sections.append(_corrected(report))
    n = n_of(len(models), "models")
    return Document(
        title="Models as raters",
        subtitle=(
            f"book {report.models.book}: {n}, {sum(map(len, report.models.people.values()))} documents by people",
        ),
        sections=tuple(section for section in sections if section.blocks),
        tidy=lambda: tidy_table(TIDY, list(_tidy(report))),
        payload=lambda: _payload(report),
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
        sentence = f"Agreement: too few to say ({n_of(model.n_pairs, 'pairs')}; {FEWEST_PAIRS} are needed)."
        yield Paragraph(sentence, "note")
        return
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for name in SHOWN:
        found = model.agreement.coefficients[name]
        title = COEFFICIENTS[name].title
        if found.value is None:
            notes.append(f"{title}: {found.note}")
        else:
            rows.append((title, found.value, (found.ci_low, found.ci_high)))
    rows.append(("grade of the model minus that of people", model.bias, model.bias_interval))
    notes += _constant(model)
    columns = (Column("measure"), Column("value", "value"), Column("95 % CI", "interval"))
    yield Table(columns, rows, f"Agreement with people on {n_of(model.n_pairs, 'documents')}", shown=None)
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
            yield f"{who} gave every document the grade {given[0]:g}: such grades cannot show whether a model agrees"


def _orders(orders: tuple[SystemOrder, ...]) -> Section:
    blocks: list[Block] = []
    for order in orders:
        rows = list(zip(order.systems, order.by_people, order.by_model, strict=True))
        columns = (Column("system"), Column("by people", "value"), Column("by the model", "value"))
        caption = f"{order.rater}: mean {order.measure} of {n_of(order.n_queries, 'queries')}, on the documents by both"
        blocks.append(Table(columns, rows, caption, shown=None))
        tau = "undefined" if order.tau is None else format_value(order.tau)
        few = f"; with {len(order.systems)} systems it takes few values" if len(order.systems) < FEW_SYSTEMS else ""
        blocks.append(Paragraph(f"Kendall's tau of the two orders: {tau}{few}."))
    return Section("orders", "Order of systems", tuple(blocks))


def _corrected(report: ModelReport) -> Section:
    if not report.sample:
        sentence = (
            "Means are not corrected: whether people judged a random sample is not known. If they did, say of what: "
            "--people-sample queries (whole queries) or --people-sample items (single documents)."
        )
        return Section("corrected", "Corrected means", (Paragraph(sentence, "note"),))
    blocks: list[Block] = [_means(model.rater, report) for model in report.models.models]
    of = "the documents" if report.sample == "items" else "the population of the queries"
    about = (
        f"Prediction-powered inference (PPI++): the mean over {of} that people would find, from their judgments of a random "
        "sample and the model's of all. lambda is the weight of the model's grades: 0 uses people only."
    )
    warnings = tuple(_doubts(report.corrected))
    blocks += [Paragraph(about), *([Bullets(warnings, "warning")] if warnings else [])]
    return Section("corrected", "Corrected means", tuple(blocks))


def _means(rater: str, report: ModelReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for quantity, mean in ((row.quantity, row.mean) for row in report.corrected if row.rater == rater):
        interval = (mean.ci_low, mean.ci_high)
        rows.append((quantity, mean.estimate, interval, mean.label_mean, mean.prediction_mean, mean.power))
        rows[-1] += (mean.n, mean.n_all)
    unit = "documents" if report.sample == "items" else "queries"
    columns = (
        *(Column("mean"), Column("corrected", "value"), Column("95 % CI", "interval"), Column("people", "value")),
        *(Column("model", "value"), Column("lambda", "value"), Column("judged", "count"), Column("all", "count")),
    )
    return Table(columns, rows, f"{rater}: {unit} judged by people, and all that the model rated", shown=None)


def _doubts(rows: tuple[Corrected, ...]) -> Iterator[str]:
    for row in rows:
        where = f"{row.rater}, {row.quantity}"
        if not row.mean.looks_random:
            yield (
                f"{where}: not valid. What people judged is no random sample: the model grades it differently from the rest "
                f"(p {format_p(row.mean.sample_p)})."
            )
        elif row.mean.note:
            yield f"{where}: {row.mean.note}"


def _tidy(report: ModelReport) -> Iterator[tuple[Cell, ...]]:
    for model in report.models.models:
        if model.agreement is not None:
            for name, found in model.agreement.coefficients.items():
                yield (model.rater, name, found.value, found.ci_low, found.ci_high, found.n, found.note)
    for order in report.orders:
        yield (order.rater, f"tau {order.measure}", order.tau, None, None, len(order.systems), None)
    for row in report.corrected:
        mean = row.mean
        note = mean.note or None if mean.looks_random else "not a random sample"
        yield (row.rater, row.quantity, mean.estimate, mean.ci_low, mean.ci_high, mean.n, note)


def _payload(report: ModelReport) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "book": report.models.book,
        "levels": list(report.models.levels),
        "seed": report.models.seed,
        "people_sample": report.sample or None,
        "models": [_model(model) for model in report.models.models],
        "orders": [record_of(order) for order in report.orders],
        "corrected": [
            {"rater": row.rater, "quantity": row.quantity, "unit": row.unit, "is_valid": row.mean.looks_random}
            | record_of(row.mean)
            for row in report.corrected
        ],
    }


def _model(model: ModelAgreement) -> dict[str, Any]:
    found = model.agreement
    return {
        "rater": model.rater,
        "model": model.model,
        "prompt": model.prompt,
        "temperature": model.temperature,
        "n_model": model.n_model,
        "n_people": model.n_people,
        "n_pairs": model.n_pairs,
        "too_few": found is None,
        "measures": None if found is None else {name: record_of(each) for name, each in found.coefficients.items()},
        "bias": model.bias,
        "bias_interval": model.bias_interval,
        "confusion": None if model.confusion is None else to_jsonable(model.confusion),
    }
