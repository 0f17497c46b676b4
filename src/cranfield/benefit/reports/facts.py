"""The statements of labels: what answers say about each, how that was decided, and what the judge gave as its reasons.

Statements, quotes and reasons are texts of others. A renderer escapes them; they were cut when they were written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cranfield.agents.answers.facts import DecidedBy
from cranfield.agents.answers.rows import FactRow, VoteRow
from cranfield.base.numbers import format_count
from cranfield.base.words import first_of, n_of
from cranfield.reporting.document import Block, Bullets, Paragraph, Tone, TonedCell
from cranfield.reporting.table_spec import Col, TableSpec

BY: Mapping[DecidedBy, str] = {
    DecidedBy.EMPTY: "the answer is empty",
    DecidedBy.VERBATIM: "stated verbatim",
    DecidedBy.NO_WORD: "no word of its identifiers",
    DecidedBy.NOTHING_ELSE: "the answer says nothing else",
    DecidedBy.VOTES: "votes",
    DecidedBy.NO_JUDGE: "no judge was called",
    DecidedBy.NO_MAJORITY: "no more than half of the votes agree",
    DecidedBy.FAILED: "votes of the judge are missing",
}
MOST_REASONS = 50
"""Items of a list of reasons."""
_TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "open"}
Placed = tuple[str, str, FactRow]
"""Where a statement was judged, the score of the answer there, and the statement."""


def fact_blocks(columns: tuple[Col[Placed], ...], rows: Sequence[Placed], caption: str) -> list[Block]:
    """A table with a row a statement, and the quotes and reasons of the votes below it.

    Args:
        columns: that say where it was judged, before those of the statement.
        rows: of the table.
        caption: of the table.
    """
    of_facts: tuple[Col[Placed], ...] = (
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
        items = [f"{first_of(places)}, {name}: {text}" for (name, text), places in reasons.items()]
        blocks.append(Paragraph("What the judge quotes, and its reasons:", "note"))
        blocks.append(Bullets(tuple(items[:MOST_REASONS])))
        if len(items) > MOST_REASONS:
            more = format_count(len(items) - MOST_REASONS)
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
        replies = f" after {n_of(vote.replies, 'replies')}" if vote.replies > 1 else ""
        return f"missing{replies}: {vote.problem}"
    quote, reason = vote.quote and f'"{vote.quote}"', vote.reason and f"({vote.reason})"
    parts = " ".join(filter(None, (quote, reason)))
    return parts and f"{_spaced(vote.verdict) or 'unclear'}: {parts}"
