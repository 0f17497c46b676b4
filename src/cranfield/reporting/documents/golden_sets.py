"""Golden sets as Documents: rows that were checked, a new batch, models, and the criteria of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cranfield.golden.assemble import Checked, Result
from cranfield.golden.batch_drift import BatchDrift, BatchVerdict
from cranfield.golden.retirement import Decision, ModelHistory, SequentialTest
from cranfield.golden.row_votes import CheckResult
from cranfield.golden.rows import FOR_PEOPLE, CheckedRow, counts
from cranfield.model import TestSet
from cranfield.numbers import Kind
from cranfield.record import plain
from cranfield.reporting.document import (
    Block,
    Bullets,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    tidy_table,
)
from cranfield.reporting.documents.testset import testset_document
from cranfield.words import n_of

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
"""True shares of rejected records, of the operating characteristic."""
WITHIN = 60
"""Records within which a model is retired with these chances."""
_VERDICTS: Mapping[BatchVerdict, str] = {
    BatchVerdict.SIMILAR: "No metric differs significantly. That is no proof that none differs.",
    BatchVerdict.REQUEUE: "The batch differs from the version before: it goes back to its authors.",
    BatchVerdict.UNTESTED: "Too few records: no metric was tested.",
}


def rows_document(testset: TestSet, result: CheckResult, notes: Sequence[str] = ()) -> Document:
    """Rows by their states, and those that change or go to a person."""
    by_state = [(state, n, "a person" if state in FOR_PEOPLE else "") for state, n in counts(result.checked).items()]
    votes = n_of(result.n_votes, "votes")
    blocks: list[Block] = [
        Paragraph(f"{votes} on each row; more than half of them decide. What has no majority goes to a person."),
        Table((Column("state"), Column("rows", "count"), Column("decided by")), by_state, "Rows by state", shown=None),
    ]
    if result.missing:
        kinds = ", ".join(f"{n} {kind}" for kind, n in result.missing.items())
        blocks.append(Paragraph(f"Votes that are missing: {kinds}.", "warning"))
    blocks += [Bullets(tuple(notes))] if notes else []
    records = [row_record(each) for each in result.checked]
    headings = tuple(records[0])
    rows = [tuple(record.values()) for record in records]
    columns = (
        *(Column("query", "query id"), Column("row", "code"), Column("grade", "statistic"), Column("state")),
        *(Column("becomes", "code"), Column("votes"), Column("why")),
    )
    shown = [row for row in rows if row[3] != "confirmed"]
    sections = [Section("result", "Result", tuple(blocks))]
    if shown:
        sections.append(Section("rows", "Rows", (Table(columns, shown, "Rows that are not confirmed", wrap=True),)))
    return testset_document("Rows of a test set", testset, sections, tidy_table(headings, rows), {"rows": records})


def row_record(each: CheckedRow) -> dict[str, str | float]:
    """A row, what it came to, and its votes."""
    votes = ", ".join(
        f"{vote.place.file}:{vote.place.start}-{vote.place.end} {vote.grade}" if vote.place else f"{vote.grade}"
        for vote in each.votes
    )
    target = each.target
    becomes = f"{target.label}:{target.grade:g}" if target is not None and each.state == "corrected" else ""
    row = each.row
    return {
        "query": row.query_id,
        "row": row.target.label,
        "grade": row.grade,
        "state": each.state.value,
        "becomes": becomes,
        "votes": votes,
        "why": each.problem,
    }


def batch_document(batch: TestSet, drift: BatchDrift) -> Document:
    """A new batch against the blessed records, metric by metric."""
    rows = [
        (
            each.name,
            each.kind,
            each.n_blessed,
            each.n_batch,
            each.blessed_mean,
            each.batch_mean,
            each.result.statistic,
            each.result.p_two_sided,
            each.result.p_adjusted,
        )
        for each in drift.metrics
    ]
    headings = ("metric", "kind", "n blessed", "n batch", "mean blessed", "mean batch", "D", "p", "p adjusted")
    kinds: tuple[Kind, ...] = ("text", "text", "count", "count", "statistic", "statistic", "statistic", "p", "p")
    columns = tuple(Column(title, kind) for title, kind in zip(headings, kinds, strict=True))
    blocks: list[Block] = [
        Paragraph(_VERDICTS[drift.verdict], "warning" if drift.verdict is BatchVerdict.REQUEUE else ""),
        Table(columns, rows, "Metrics", shown=None),
        Paragraph(
            "D: largest distance of the distribution functions, within cells of task type and difficulty. p: permutation "
            f"within cells; adjusted by Holm over the metrics; level {drift.alpha:g}."
        ),
    ]
    notes = [f"{each.name}: {each.result.note}" for each in drift.metrics if each.result.note]
    notes += [
        f"cell {cell}: only one of the two has records ({n}); not compared" for cell, n in drift.uncompared.items()
    ]
    blocks += [Bullets(tuple(notes))] if notes else []
    payload = {"verdict": drift.verdict.value, "alpha": drift.alpha, "metrics": plain(drift.metrics)}
    sections = [Section("result", "Result", tuple(blocks))]
    return testset_document("Batch", batch, sections, tidy_table(headings, rows), payload)


def models_document(histories: Sequence[ModelHistory], test: SequentialTest) -> Document:
    """The models of each role, and which of them is to be retired."""
    rows = [
        (
            each.role,
            each.model,
            each.n,
            each.n_rejected,
            TonedCell(each.decision, "bad" if each.decision is Decision.RETIRE else ""),
        )
        for each in histories
    ]
    columns = (
        *(Column("role"), Column("model", "code"), Column("records", "count"), Column("rejected", "count")),
        Column("decision"),
    )
    chances = [(share, test.retired_within(share, WITHIN)) for share in SHARES]
    blocks: tuple[Block, ...] = (
        Table(columns, rows, "Models", shown=None),
        Paragraph(
            f"Wald's sequential test of a share of rejected records of {test.acceptable:g} against {test.unacceptable:g}, "
            f"with errors of about {test.alpha:g} and {test.beta:g} at most. After `keep` the next record begins another test."
        ),
        Table(
            (Column("true share", "statistic"), Column("retired", "percent")),
            chances,
            f"Chance that one test retires a model within {WITHIN} records",
            shown=None,
        ),
    )
    headings = ("role", "model", "records", "rejected", "decision")
    plain_rows = [(each.role, each.model, each.n, each.n_rejected, each.decision) for each in histories]
    return Document(
        title="Models",
        subtitle=(),
        sections=(Section("models", "Models", blocks),),
        tidy=lambda: tidy_table(headings, plain_rows),
        payload=lambda: {"schema_version": 1, "models": plain(tuple(histories)), "test": plain(test)},
    )


def assembly_document(testset: TestSet, found: Sequence[Checked], *, draft: bool) -> Document:
    """The criteria of a version, one by one: what each demands, what was found, and what to do where it is not met."""
    tones: Mapping[Result, Tone] = {Result.MET: "good", Result.NOT_MET: "bad", Result.NOT_TESTED: ""}
    rows = [
        (
            each.criterion.replace("_", " "),
            each.demands,
            TonedCell(each.result, tones[each.result]),
            each.found,
        )
        for each in found
    ]
    columns = (Column("criterion"), Column("demands"), Column("result"), Column("found"))
    of = {result: [each for each in found if each.result is result] for result in Result}
    names = {result: ", ".join(each.criterion.replace("_", " ") for each in of[result]) for result in Result}
    text = f"The set is golden: {len(of[Result.MET])} of {n_of(len(found), 'criteria')} are met"
    text += f", and not tested: {names[Result.NOT_TESTED]}." if of[Result.NOT_TESTED] else "."
    missing = of[Result.NOT_MET]
    if missing:
        text = f"Not golden: {names[Result.NOT_MET]}. " + ("Written as a draft." if draft else "Nothing was written.")
    blocks = (Paragraph(text, "warning" if missing else ""), Table(columns, rows, "Criteria", shown=None, wrap=True))
    headings = ("criterion", "result", "found", "next")
    values = [(each.criterion, each.result, each.found, each.step) for each in found]
    payload = {
        "golden": not missing,
        "criteria": [
            dict(zip(headings, row, strict=True)) | {"demands": each.demands}
            for row, each in zip(values, found, strict=True)
        ],
    }
    sections = [Section("criteria", "Criteria", blocks)]
    if missing:
        helped: dict[str, list[str]] = {}
        for each in missing:
            helped.setdefault(each.step, []).append(each.criterion.replace("_", " "))
        lines = tuple(f"{', '.join(criteria)}: {step}" for step, criteria in helped.items())
        sections.append(Section("next", "Next steps", (Bullets(lines),)))
    return testset_document("Golden set", testset, sections, tidy_table(headings, values), payload)
