"""Scored answers as a Document."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.answers.facts import DecidedBy, FactKind, FactsScore, FactVerdict
from cranfield.answers.rows import AnswerCost, AnswerRow, VoteRow
from cranfield.answers.score import AnswerScore, Mean, NoNarrative, ScoredAnswers
from cranfield.model import TestSet
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Bullets, Cell, Column, Document, Section, Table, tidy_table
from cranfield.reporting.documents.facts import BY, fact_blocks, reason_blocks, votes_text
from cranfield.reporting.documents.testset import table, testset_document
from cranfield.reporting.table_spec import Col
from cranfield.words import first_of, n_of

_YES_OR_NO = {True: "yes", False: "no", None: ""}
FIELDS: Fields = {Mean: "name mean ci_low=low ci_high=high n n_without"}
NO_VERDICT = (DecidedBy.NO_JUDGE, DecidedBy.NO_MAJORITY, DecidedBy.FAILED)
NO_RATING = {
    NoNarrative.STRUCTURE: "not rated, as the structure is not complete",
    NoNarrative.NO_MAJORITY: "without a rating: no more than half of the votes agree",
    NoNarrative.FAILED: "without a rating: votes of the judge are missing",
}
"""Why a narrative has none."""
_NESTED = {"facts", "narrative_votes"}
"""Fields of a row that a table has no column for."""


def answers_document(testset: TestSet, scored: ScoredAnswers) -> Document:
    """Means, a row a query, and what was not scored."""
    rows: list[tuple[Cell, ...]] = [
        (mean.name, mean.mean, None if mean.low is None or mean.high is None else (mean.low, mean.high), mean.n,
         mean.n_without)
        for mean in scored.means
    ]  # fmt: skip
    columns = (
        *(Column(""), Column("mean", "value"), Column("95 % CI", "interval"), Column("queries", "count")),
        Column("without a value", "count"),
    )
    caption = "Shares have Wilson's interval, scores Student's t"
    sections = [
        Section("scores", "Scores", (table(caption, columns, rows),)),
        Section("queries", "Queries", (_queries(scored),)),
    ]
    answers = list(zip(scored.scores, scored.rows(), strict=True))
    if stated := [(row.query_id, "", fact) for _, row in answers for fact in row.facts]:
        blocks = fact_blocks((Col("query", lambda row: row[0]),), stated, "Statements of the labels")
        sections.append(Section("facts", "Facts", tuple(blocks)))
    if voted := [(score, row.narrative_votes) for score, row in answers if row.narrative_votes]:
        sections.append(
            Section(
                "narratives",
                "Narratives",
                (_narratives(voted), *reason_blocks((score.query_id, "narrative", votes) for score, votes in voted)),
            )
        )
    if notes := _notes(scored):
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    names = [name for name in AnswerRow.model_fields if name not in _NESTED]
    tidy = tidy_table(names, [tuple(_cell(getattr(row, name)) for name in names) for _, row in answers])
    payload = {
        "schema_version": 1,
        "labels_digest": testset.labels_digest,
        "means": [record_of(mean, FIELDS) for mean in scored.means],
        "judge": None if scored.judge is None else record_of(scored.judge.settings),
        "queries": [_record(score, row) for score, row in answers],
        "unlabelled": list(scored.unlabelled),
        "unknown": list(scored.unknown),
    }
    return testset_document("Answers", testset, sections, tidy, payload)


def _queries(scored: ScoredAnswers) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            score.query_id,
            _YES_OR_NO[score.structure_correct],
            score.structure.score if score.structure is not None else None,
            "" if score.facts is None else _facts(score.facts),
            _narrative(score),
            ""
            if score.structure is None
            else ", ".join(n for part in score.structure.deciding for n in score.structure.parts[part].missing),
        )
        for score in scored.scores
    ]
    columns = (
        *(Column("query"), Column("complete"), Column("structure", "value"), Column("facts"), Column("narrative")),
        Column("not named"),
    )
    return table("Structure: F1 of entities and files. Facts: mentioned of all, and wrong statements", columns, rows)


def _narratives(voted: Sequence[tuple[AnswerScore, Sequence[VoteRow]]]) -> Table:
    rows: list[tuple[Cell, ...]] = [(score.query_id, _narrative(score), votes_text(votes)) for score, votes in voted]
    return table("Narratives of complete answers", (Column("query"), Column("rating"), Column("decided by")), rows)


def _facts(facts: FactsScore) -> str:
    n_must = sum(fact.kind is FactKind.MUST for fact in facts.facts)
    wrong, without = facts.count(FactKind.MUST_NOT, FactVerdict.SUPPORTED), sum(f.verdict is None for f in facts.facts)
    parts = [f"{facts.count(FactKind.MUST, FactVerdict.SUPPORTED)} of {n_must}"]
    parts += [f"{wrong} wrong"] if wrong else []
    parts += [f"{without} open"] if without else []
    return ", ".join(parts)


def _narrative(score: AnswerScore) -> str:
    shown = score.no_rating if score.no_rating in (NoNarrative.NO_MAJORITY, NoNarrative.FAILED) else score.rating
    return (shown or "").replace("_", " ")


def _notes(scored: ScoredAnswers) -> tuple[str, ...]:
    missing = [score.query_id for score in scored.scores if not score.is_answered]
    facts = [fact for score in scored.scores if score.facts is not None for fact in score.facts.facts]
    notes = []
    if scored.judge is None:
        notes.append(
            "No judge: only the structure is scored, and facts that are stated verbatim or not touched at all."
        )
    else:
        settings = scored.judge.settings
        notes.append(f"Judge {settings.model}: {settings.votes} votes; more than half of them decide.")
    if missing:
        notes.append(f"{n_of(len(missing), 'queries')} without an answer, scored as an empty one: {first_of(missing)}")
    for by in NO_VERDICT:
        if n := sum(fact.by is by for fact in facts):
            option = ": `--judge-model`" if by is DecidedBy.NO_JUDGE else ""
            notes.append(f"{n_of(n, 'facts')} without a verdict: {BY[by]}{option}")
    notes += _share_of_all(scored)
    for reason, why in NO_RATING.items():
        if n := sum(score.no_rating is reason for score in scored.scores):
            notes.append(f"{n_of(n, 'narratives')} {why}")
    if scored.unlabelled:
        notes.append(f"{n_of(len(scored.unlabelled), 'queries')} without a label: {first_of(scored.unlabelled)}")
    if scored.unknown:
        others = n_of(len(scored.unknown), "answers")
        notes.append(f"{others} to queries that the test set does not have: {first_of(scored.unknown)}")
    return tuple(notes)


def _share_of_all(scored: ScoredAnswers) -> list[str]:
    """What the share of answers with correct facts can be where verdicts are missing, for some answers alone."""
    correct = [score.facts_correct for score in scored.scores if score.facts is not None]
    n, n_right, n_open = len(correct), correct.count(True), correct.count(None)
    if n_open in (0, n):
        return []
    bounds = f"between {n_right / n:.4f} and {(n_right + n_open) / n:.4f}"
    why = "One wrong fact decides an answer, and a missing verdict leaves it out: the share above tends to be too low."
    return [f"Facts correct, over all {n_of(n, 'queries')} with facts: {bounds}. {why}"]


def _record(score: AnswerScore, row: AnswerRow) -> dict[str, object]:
    return {
        "query_id": score.query_id,
        "blind_id": score.blind_id,
        "answered": score.is_answered,
        "structure": None
        if score.structure is None
        else {
            "complete": score.structure.complete,
            "score": score.structure.score,
            "parts": {part.value: record_of(found) for part, found in score.structure.parts.items()},
        },
        "facts": None
        if score.facts is None
        else {
            "correct": score.facts_correct,
            "score": score.facts_score,
            "facts": [fact.model_dump(mode="json") for fact in row.facts],
        },
        "narrative": {
            "rating": score.rating,
            "why_not": score.no_rating,
            "votes": [vote.model_dump(mode="json") for vote in row.narrative_votes],
        },
        "cost": {name: getattr(row, name) for name in AnswerCost.model_fields},
    }


def _cell(value: object) -> Cell:
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None or isinstance(value, str | int | float) else str(value)
