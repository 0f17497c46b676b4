"""The statements of labels, as a table: what answers say about each, and how the judge voted.

Statements, quotes and reasons are texts of others. A renderer escapes them; they were cut when they were written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cranfield.answers.facts import DecidedBy
from cranfield.answers.rows import FactRow, VoteRow
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import deciding_facts
from cranfield.benefit.result import BenefitResult
from cranfield.numbers import format_count
from cranfield.reporting.document import Cell, Column, Section, Table, Tone, TonedCell
from cranfield.words import n_of

BY = {
    DecidedBy.EMPTY: "the answer is empty",
    DecidedBy.VERBATIM: "stated verbatim",
    DecidedBy.NO_WORD: "no word of its identifiers",
    DecidedBy.NOTHING_ELSE: "the answer says nothing else",
    DecidedBy.VOTES: "votes",
    DecidedBy.NO_JUDGE: "no judge was called",
    DecidedBy.NO_MAJORITY: "no majority",
    DecidedBy.FAILED: "votes are missing",
}
_TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "open"}


def facts_table(columns: Sequence[Column], rows: Iterable[tuple[Sequence[Cell], FactRow]], caption: str) -> Table:
    """A row a statement.

    Args:
        columns: of what comes before the statement: the query, the arm.
        rows: these cells, and the statement.
        caption: of the table.
    """
    heads = (
        *columns,
        *(Column("verdict"), Column("id", "code"), Column("statement"), Column("decided by")),
        *(Column("votes"), Column("quotes and reasons")),
    )
    cells: list[tuple[Cell, ...]] = [
        (
            *before,
            TonedCell(fact.verdict or "open", _TONES[fact.right]),
            *(
                fact.id,
                fact.statement,
                BY[fact.by],
                _counted(fact.votes),
                " / ".join(filter(None, map(_said, fact.votes))),
            ),
        )
        for before, fact in rows
    ]
    return Table(heads, cells, caption, wrap=True)


def facts_section(result: BenefitResult) -> Iterable[Section]:
    """Of an experiment: the statements for which answers are no success, then the others that the judge voted on."""
    deciding: list[tuple[Sequence[Cell], FactRow]] = []
    others: list[tuple[Sequence[Cell], FactRow]] = []
    for task in result.tasks:
        for role in ArmRole:
            for cell in task.arms[role]:
                before = (task.task_id, role.value, cell.seed, "success" if cell.why is None else cell.why.value)
                decides = {fact.id for fact in deciding_facts(cell.why, cell.facts)}
                deciding += [(before, fact) for fact in cell.facts if fact.id in decides]
                others += [(before, fact) for fact in cell.facts if fact.id not in decides and fact.votes]
    columns = (Column("task"), Column("arm"), Column("seed", "count"), Column("score", "code"))
    captions = {
        "Statements for which an answer is no success, or not decided": deciding,
        "Other statements that the judge voted on": others,
    }
    if blocks := tuple(facts_table(columns, rows, caption) for caption, rows in captions.items() if rows):
        key_figure = f"{n_of(len(deciding), 'statements', format_count)} missing, wrong or open"
        yield Section("facts", "Which facts decided", blocks, key_figure)


def _counted(votes: Sequence[VoteRow]) -> str:
    """`2 supported, 1 missing`."""
    counted = Counter(vote.verdict or ("missing" if vote.problem else "unclear") for vote in votes)
    return ", ".join(f"{n} {verdict}" for verdict, n in counted.items())


def _said(vote: VoteRow) -> str:
    """`supported: "takes a lock" (it says so)`; empty: the vote says no more than its verdict."""
    quote, reason = vote.quote and f'"{vote.quote}"', vote.reason and f"({vote.reason})"
    if vote.problem:
        tries = f"{vote.replies} replies: " if vote.replies > 1 else ""
        return f"missing: {tries}{vote.problem}"
    parts = " ".join(filter(None, (quote, reason)))
    return parts and f"{vote.verdict or 'unclear'}: {parts}"
