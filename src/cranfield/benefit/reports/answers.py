"""Scored answers as a Document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cranfield.agents.answers.facts import DecidedBy
from cranfield.agents.answers.rows import AnswerRow, FactRow, VoteRow
from cranfield.agents.answers.score import AnswersReport, NoNarrative, ScoredQuery
from cranfield.base.numbers import format_count
from cranfield.base.words import count_noun, join_first
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Cell, Document, Paragraph, Section, Table, Tone, TonedCell
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec

BY: Mapping[DecidedBy, str] = {
    DecidedBy.EMPTY: "the answer is empty",
    DecidedBy.VERBATIM: "stated verbatim",
    DecidedBy.NO_WORD: "no word of its identifiers",
    DecidedBy.NOTHING_ELSE: "the answer says nothing else",
    DecidedBy.VOTES: "votes",
    DecidedBy.NO_JUDGE: "no judge was called",
    DecidedBy.NO_MAJORITY: "no majority of votes",
    DecidedBy.FAILED: "votes of the judge are missing",
}
MAX_REASONS = 50
"""Items of a list of reasons."""
_TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "open"}
Placed = tuple[str, str, FactRow]
"""Where a statement was judged, the score of the answer there, and the statement."""


def fact_blocks(columns: Columns[Placed], rows: Sequence[Placed], caption: str) -> list[Block]:
    """A table with a row a statement, and the quotes and reasons of the votes below it.

    Args:
        columns: that say where it was judged, before those of the statement.
        rows: of the table.
        caption: of the table.
    """
    of_facts: Columns[Placed] = (
        Col("verdict", lambda row: TonedCell(row[2].verdict or "open", _TONES[row[2].right])),
        Col("statement", lambda row: f"{row[2].id}: {row[2].statement}"),
        Col("decided by", lambda row: votes_text(row[2].votes) or BY[row[2].by]),
    )
    return [
        TableSpec(caption, rows, (*columns, *of_facts)).table(shown=20, wrap=True),
        *reason_blocks((place, fact.id, fact.votes) for place, _, fact in rows),
    ]


def reason_blocks(given: Iterable[tuple[str, str, Sequence[VoteRow]]]) -> list[Block]:
    """The quotes and reasons of votes; the same ones of several places once.

    Args:
        given: where was voted, on what, and the votes.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for place, name, votes in given:
        if text := " / ".join(filter(None, map(_vote_text, votes))):
            reasons.setdefault((name, text), []).append(place)
    blocks: list[Block] = []
    if reasons:
        items = [f"{join_first(places)}, {name}: {text}" for (name, text), places in reasons.items()]
        blocks.append(Paragraph("What the judge quotes, and its reasons:", "note"))
        blocks.append(Bullets(tuple(items[:MAX_REASONS])))
        if len(items) > MAX_REASONS:
            more = format_count(len(items) - MAX_REASONS)
            blocks.append(Paragraph(f"{more} more: `--format json` has the votes on all.", "note"))
    return blocks


def votes_text(votes: Iterable[VoteRow]) -> str:
    """`2 supported, 1 missing`; empty: there are no votes."""
    counted = Counter(vote.verdict or ("missing" if vote.problem else "unclear") for vote in votes)
    return ", ".join(f"{n} {_spaced(verdict)}" for verdict, n in counted.items())


def _spaced(verdict: str) -> str:
    return verdict.replace("_", " ")


def _vote_text(vote: VoteRow) -> str:
    """`supported: "takes a lock" (it says so)`; empty: the vote says no more than its verdict."""
    if vote.problem:
        replies = f" after {count_noun(vote.replies, 'replies')}" if vote.replies > 1 else ""
        return f"missing{replies}: {vote.problem}"
    quote, reason = vote.quote and f'"{vote.quote}"', vote.reason and f"({vote.reason})"
    parts = " ".join(filter(None, (quote, reason)))
    return parts and f"{_spaced(vote.verdict) or 'unclear'}: {parts}"


_YES_OR_NO = {True: "yes", False: "no", None: ""}
NO_VERDICT = (DecidedBy.NO_JUDGE, DecidedBy.NO_MAJORITY, DecidedBy.FAILED)
NO_RATING = {
    NoNarrative.STRUCTURE: "not rated, because the structure is incomplete",
    NoNarrative.NO_MAJORITY: "without a rating: no majority of votes",
    NoNarrative.FAILED: "without a rating: votes of the judge are missing",
}
"""Why a narrative has none."""
_NESTED = {"facts", "narrative_votes"}
"""Fields of a row that a table has no column for."""


def answers_document(report: AnswersReport) -> Document:
    """Means, a row a query, and what was not scored."""
    means = TableSpec(
        "CIs: Wilson for shares, Student's t for scores",
        report.means,
        (
            Col("", lambda row: row.name),
            Col("mean", lambda row: row.mean, "value"),
            Col("95 % CI", lambda row: (row.ci_low, row.ci_high), "interval"),
            Col("queries", lambda row: row.n, "count"),
            Col("without a value", lambda row: row.n_without, "count"),
        ),
    )
    sections = [
        Section("scores", "Scores", (means.table(),)),
        Section("queries", "Queries", (_queries(report),)),
    ]
    rows = [query.row for query in report.queries]
    if stated := [(row.query_id, "", fact) for row in rows for fact in row.facts]:
        blocks = fact_blocks((Col("query", lambda row: row[0]),), stated, "Statements of the labels")
        sections.append(Section("facts", "Facts", tuple(blocks)))
    if voted := [query for query in report.queries if query.row.narrative_votes]:
        narratives = TableSpec(
            "Narratives of complete answers",
            voted,
            (
                Col("query", lambda query: query.row.query_id),
                Col("rating", _narrative),
                Col("decided by", lambda query: votes_text(query.row.narrative_votes)),
            ),
        )
        reasons = reason_blocks((each.row.query_id, "narrative", each.row.narrative_votes) for each in voted)
        sections.append(Section("narratives", "Narratives", (narratives.table(), *reasons)))
    if notes := _notes(report):
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    fields = TableSpec("", rows, (Cols([name for name in AnswerRow.model_fields if name not in _NESTED], _cell),))
    return Document(
        title="Answers",
        subtitle=about_testset(report.testset),
        sections=tuple(sections),
        tidy=fields.tidy,
        payload=lambda: to_jsonable(report),
    )


def _queries(report: AnswersReport) -> Table:
    return TableSpec(
        "Structure: F1 of entities and files. Facts: number mentioned, and wrong statements",
        report.queries,
        (
            Col("query", lambda query: query.row.query_id),
            Col("complete", lambda query: _YES_OR_NO[query.row.structure_correct]),
            Col("structure", lambda query: query.row.structure_score, "value"),
            Col("facts", _facts),
            Col("narrative", _narrative),
            Col("not named", _not_named),
        ),
    ).table()


def _facts(query: ScoredQuery) -> str:
    if not query.row.facts:
        return ""
    without = sum(fact.verdict is None for fact in query.row.facts)
    parts = [f"{query.n_mentioned} of {query.n_must}"]
    parts += [f"{query.n_wrong} wrong"] if query.n_wrong else []
    parts += [f"{without} open"] if without else []
    return ", ".join(parts)


def _narrative(query: ScoredQuery) -> str:
    shown = query.why_not if query.why_not in (NoNarrative.NO_MAJORITY, NoNarrative.FAILED) else query.row.narrative
    return (shown or "").replace("_", " ")


def _not_named(query: ScoredQuery) -> str:
    found = query.structure
    return "" if found is None else ", ".join(name for part in found.deciding for name in found.parts[part].missing)


def _notes(report: AnswersReport) -> tuple[str, ...]:
    rows = [query.row for query in report.queries]
    missing = [row.query_id for row in rows if not row.answered]
    notes = []
    if report.judge is None:
        notes.append(
            "No judge: only the structure is scored, and facts that are stated verbatim or not mentioned at all."
        )
    else:
        notes.append(f"Judge {report.judge.model}: {report.judge.votes} votes; a majority decides.")
    if missing:
        notes.append(
            f"{count_noun(len(missing), 'queries')} without an answer, scored as an empty one: {join_first(missing)}"
        )
    for by in NO_VERDICT:
        if n := sum(fact.by is by for row in rows for fact in row.facts):
            option = ": `--judge-model`" if by is DecidedBy.NO_JUDGE else ""
            notes.append(f"{count_noun(n, 'facts')} without a verdict: {BY[by]}{option}")
    notes += _share_of_all([row.facts_correct for row in rows if row.facts])
    for reason, why in NO_RATING.items():
        if n := sum(query.why_not is reason for query in report.queries):
            notes.append(f"{count_noun(n, 'narratives')} {why}")
    if report.unlabelled:
        notes.append(
            f"{count_noun(len(report.unlabelled), 'queries')} without a label: {join_first(report.unlabelled)}"
        )
    if report.unknown:
        others = count_noun(len(report.unknown), "answers")
        notes.append(f"{others} to queries that the test set does not have: {join_first(report.unknown)}")
    return tuple(notes)


def _share_of_all(correct: list[bool | None]) -> list[str]:
    """What the share of answers with correct facts can be where verdicts are missing, for some answers alone."""
    n, n_right, n_open = len(correct), correct.count(True), correct.count(None)
    if n_open in (0, n):
        return []
    bounds = f"between {n_right / n:.4f} and {(n_right + n_open) / n:.4f}"
    why = "A single wrong fact decides an answer, but a missing verdict leaves it out, so the share above tends to be too low."
    return [f"Facts correct, over all {count_noun(n, 'queries')} with facts: {bounds}. {why}"]


def _cell(row: AnswerRow, name: str) -> Cell:
    value = getattr(row, name)
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None or isinstance(value, str | int | float) else str(value)
