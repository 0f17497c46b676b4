"""Golden sets as Documents: rows that were checked, a new batch, models, and the criteria of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cranfield.base.words import count_noun
from cranfield.golden.assemble import AssemblyResult, CheckedCriterion, CriterionResult
from cranfield.golden.batch import BatchDrift, BatchVerdict, MetricDrift
from cranfield.golden.retirement import Decision, ModelHistory, ModelTests
from cranfield.golden.rows import FOR_PEOPLE, CheckedRows, RowRecord, RowState
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Document, Paragraph, Section, Tone, TonedCell
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.table_spec import Col, TableSpec

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
"""True shares of rejected records, of the operating characteristic."""
WITHIN = 60
"""Records within which a model is retired with these chances."""
_VERDICTS: Mapping[BatchVerdict, str] = {
    BatchVerdict.SIMILAR: "No metric differs significantly. This does not prove that none differs.",
    BatchVerdict.REQUEUE: "The batch differs from the previous version: send it back to its authors.",
    BatchVerdict.UNTESTED: "Too few records: no metric was tested.",
}


def rows_document(found: CheckedRows) -> Document:
    """Rows by their states, and those that change or go to a person."""
    states: TableSpec[RowState] = TableSpec(
        "Rows by state",
        list(found.states),
        (
            Col("state", lambda state: state),
            Col("rows", lambda state: found.states[state], "count"),
            Col("decided by", lambda state: "a person" if state in FOR_PEOPLE else ""),
        ),
    )
    votes = count_noun(found.n_votes, "votes")
    blocks: list[Block] = [
        Paragraph(f"{votes} per row; a majority decides. Rows without a majority are reviewed by a person."),
        states.table(),
    ]
    if found.missing:
        kinds = ", ".join(f"{n} {kind}" for kind, n in found.missing.items())
        blocks.append(Paragraph(f"Missing votes: {kinds}.", "warning"))
    blocks += [Bullets(found.notes)] if found.notes else []
    sections = [Section("result", "Result", tuple(blocks))]
    if shown := [row for row in found.rows if row.state is not RowState.CONFIRMED]:
        table = _rows("Rows that are not confirmed", shown).table(shown=20, wrap=True)
        sections.append(Section("rows", "Rows", (table,)))
    return Document(
        title="Rows of a test set",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=_rows("", found.rows).tidy,
        payload=lambda: to_jsonable(found),
    )


def _rows(caption: str, rows: Sequence[RowRecord]) -> TableSpec[RowRecord]:
    return TableSpec(
        caption,
        rows,
        (
            Col("query", lambda row: row.query, "query id"),
            Col("row", lambda row: row.row, "code"),
            Col("grade", lambda row: row.grade, "statistic"),
            Col("state", lambda row: row.state.value),
            Col("becomes", lambda row: row.becomes, "code"),
            Col("votes", lambda row: row.votes),
            Col("why", lambda row: row.why),
        ),
    )


def batch_document(drift: BatchDrift) -> Document:
    """A new batch against the blessed records, metric by metric."""
    metrics: TableSpec[MetricDrift] = TableSpec(
        "Metrics",
        drift.metrics,
        (
            Col("metric", lambda each: each.name),
            Col("kind", lambda each: each.kind),
            Col("n blessed", lambda each: each.n_blessed, "count"),
            Col("n batch", lambda each: each.n_batch, "count"),
            Col("mean blessed", lambda each: each.blessed_mean, "statistic"),
            Col("mean batch", lambda each: each.batch_mean, "statistic"),
            Col("D", lambda each: each.result.statistic, "statistic"),
            Col("p", lambda each: each.result.p_two_sided, "p"),
            Col("p adjusted", lambda each: each.result.p_adjusted, "p"),
        ),
    )
    blocks: list[Block] = [
        Paragraph(_VERDICTS[drift.verdict], "warning" if drift.verdict is BatchVerdict.REQUEUE else ""),
        metrics.table(),
        Paragraph(
            "D: largest distance of the distribution functions, within cells of task type and difficulty. p: "
            f"permutation test within cells, Holm-adjusted over the metrics; level {drift.alpha:g}."
        ),
    ]
    notes = [f"{each.name}: {each.result.note}" for each in drift.metrics if each.result.note]
    notes += [f"cell {cell}: only one side has records ({n}); not compared" for cell, n in drift.uncompared.items()]
    blocks += [Bullets(tuple(notes))] if notes else []
    return Document(
        title="Batch",
        subtitle=about_testset(drift.testset),
        sections=(Section("result", "Result", tuple(blocks)),),
        tidy=metrics.tidy,
        payload=lambda: to_jsonable(drift),
    )


def models_document(found: ModelTests) -> Document:
    """The models of each role, and which of them is to be retired."""
    test = found.test
    models: TableSpec[ModelHistory] = TableSpec(
        "Models",
        found.models,
        (
            Col("role", lambda each: each.role),
            Col("model", lambda each: each.model, "code"),
            Col("records", lambda each: each.n, "count"),
            Col("rejected", lambda each: each.n_rejected, "count"),
            Col("decision", lambda each: TonedCell(each.decision, "bad" if each.decision is Decision.RETIRE else "")),
        ),
    )
    chances: TableSpec[float] = TableSpec(
        f"Probability that one test retires a model within {WITHIN} records",
        SHARES,
        (
            Col("true share", lambda share: share, "statistic"),
            Col("retired", lambda share: test.retired_within(share, WITHIN), "percent"),
        ),
    )
    text = (
        f"Wald's sequential test of a share of rejected records of {test.acceptable:g} against {test.unacceptable:g}, "
        f"with error rates of at most about {test.alpha:g} and {test.beta:g}. After `keep`, the next record "
        "starts a new test."
    )
    return Document(
        title="Models",
        subtitle=(),
        sections=(Section("models", "Models", (models.table(), Paragraph(text), chances.table())),),
        tidy=models.tidy,
        payload=lambda: to_jsonable(found),
    )


def assembly_document(found: AssemblyResult) -> Document:
    """The criteria of a version, one by one: what each demands, what was found, and what to do where it is not met."""
    tones: Mapping[CriterionResult, Tone] = {
        CriterionResult.MET: "good",
        CriterionResult.NOT_MET: "bad",
        CriterionResult.NOT_TESTED: "",
    }
    criteria: TableSpec[CheckedCriterion] = TableSpec(
        "Criteria",
        found.criteria,
        (
            Col("criterion", _spaced, only="report"),
            Col("criterion", lambda each: each.criterion, only="tidy"),
            Col("demands", lambda each: each.demands, only="report"),
            Col("result", lambda each: TonedCell(each.result, tones[each.result])),
            Col("found", lambda each: each.found),
            Col("step", lambda each: each.step, only="tidy"),
        ),
    )
    of = {result: [each for each in found.criteria if each.result is result] for result in CriterionResult}
    names = {result: ", ".join(map(_spaced, of[result])) for result in CriterionResult}
    text = f"The set is golden: {len(of[CriterionResult.MET])} of {count_noun(len(found.criteria), 'criteria')} are met"
    text += f", and not tested: {names[CriterionResult.NOT_TESTED]}." if of[CriterionResult.NOT_TESTED] else "."
    if not found.is_golden:
        written = "Written as a draft." if found.is_draft else "Nothing was written."
        text = f"Not golden: {names[CriterionResult.NOT_MET]}. {written}"
    blocks = (Paragraph(text, "" if found.is_golden else "warning"), criteria.table(wrap=True))
    sections = [Section("criteria", "Criteria", blocks)]
    helped: dict[str, list[str]] = {}
    for each in of[CriterionResult.NOT_MET]:
        helped.setdefault(each.step, []).append(_spaced(each))
    if helped:
        lines = tuple(f"{', '.join(names)}: {step}" for step, names in helped.items())
        sections.append(Section("next", "Next steps", (Bullets(lines),)))
    return Document(
        title="Golden set",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=criteria.tidy,
        payload=lambda: to_jsonable(found),
    )


def _spaced(each: CheckedCriterion) -> str:
    return each.criterion.replace("_", " ")
