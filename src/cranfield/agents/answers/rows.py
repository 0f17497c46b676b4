"""A row of scores: an answer to a query, what decided it, and what it cost. Scores of one system and of the arms of an
experiment share it.

Quotes and reasons are texts of a model about texts of another: they are cut, and without characters that a program along the
way would interpret. What a judge may not read was removed before it wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cranfield.agents.answers.facts import DecidedBy, FactsScore, FactVerdict
from cranfield.agents.answers.judge import Ballot
from cranfield.agents.answers.places import Answered
from cranfield.base.errors import InputError, ProblemList, shorten
from cranfield.base.words import printable, shorten_to
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import decode, read_bytes, shown
from cranfield.model.label import Lines

VOTE_COLUMNS = 300
"""Most columns of a quote, a reason or a problem."""
_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Score = Annotated[float, Field(ge=0, le=1)]


class AnswerCost(BaseModel):
    """What an answer cost. None: not known, which is not 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    total_tokens: _Count | None = None
    """In and out, those of tools included."""
    tool_calls: _Count | None = None
    turns: _Count | None = None
    wall_clock_s: _Amount | None = None
    money: _Amount | None = None
    """In the currency of the price list."""


class VoteRow(BaseModel):
    """A vote of the judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: str = ""
    """Empty: the judge could not decide, or there is no vote."""
    quote: str = ""
    reason: str = ""
    problem: str = ""
    """Why there is no vote, and what came; empty: there is one."""
    replies: Annotated[int, Field(ge=0)] = 1
    """To the vote, those of earlier calls that were kept included."""


class FactRow(BaseModel):
    """A statement of the label, and what the answer says about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """`must_mention.2`, `must_not_mention.1`: its place in the label."""
    statement: str
    """As it was judged: without the names that no judge reads."""
    verdict: FactVerdict | None
    by: DecidedBy
    """The rule, or the votes, that decided it; or why there is no verdict."""
    right: bool | None
    """Whether the answer does as it must; null: no verdict."""
    votes: tuple[VoteRow, ...] = ()
    """Empty: a rule decided, or there is no judge."""


def vote_rows(ballot: Ballot | None) -> tuple[VoteRow, ...]:
    """The votes of a ballot as rows."""
    return tuple(
        VoteRow(
            verdict=vote.verdict or "",
            quote=_text(vote.quote),
            reason=_text(vote.reason),
            problem="" if vote.failure is None else _text(f"{vote.failure.kind}: {vote.failure.detail}"),
            replies=vote.n_replies,
        )
        for vote in (() if ballot is None else ballot.cast)
    )


def fact_rows(facts: FactsScore | None) -> tuple[FactRow, ...]:
    """The statements of a label as rows."""
    return tuple(
        FactRow(
            id=fact.id,
            statement=printable(fact.fact),
            verdict=fact.verdict,
            by=fact.by,
            right=fact.is_right,
            votes=vote_rows(fact.ballot),
        )
        for fact in (() if facts is None else facts.facts)
    )


def _text(text: str) -> str:
    return shorten_to(printable(text), VOTE_COLUMNS)


class AnswerScores(BaseModel):
    """The scores of an answer; None where there is no value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_id: str
    answered: bool
    structure_correct: bool | None = None
    structure_score: _Score | None = None
    facts_correct: bool | None = None
    facts_score: _Score | None = None
    narrative: str | None = None
    facts: tuple[FactRow, ...] = ()
    narrative_votes: tuple[VoteRow, ...] = ()


class AnswerRow(AnswerCost, AnswerScores):
    """Scores and cost of an answer."""


EXPECTED = '{"query_id": "q1", "text": "...", "entities": ["src/a.py::A.b"], "files": ["src/a.py"]}'
_Filled = Annotated[str, Field(min_length=1)]
_Line = Annotated[int, Field(ge=1, le=999_999_999)]


class _Record(BaseModel):
    """Other keys (a system, an arm) are left out: scores are blind to them."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Span(_Record):
    file: _Filled
    start: _Line
    end: _Line


class _Answer(AnswerCost, _Record):
    model_config = ConfigDict(frozen=True, extra="ignore")

    query_id: _Filled
    text: str = ""
    entities: list[_Filled] | None = None
    files: list[_Filled] | None = None
    spans: list[_Span] | None = None

    def answered(self) -> Answered:
        spans = None if self.spans is None else tuple(Lines(span.file, span.start, span.end) for span in self.spans)
        entities = None if self.entities is None else tuple(self.entities)
        return Answered(self.text, entities, None if self.files is None else tuple(self.files), spans)

    def cost(self) -> AnswerCost:
        return AnswerCost(**{name: getattr(self, name) for name in AnswerCost.model_fields})


def read_answers(path: Path) -> tuple[dict[str, Answered], dict[str, AnswerCost]]:
    """Query id to its answer, in the order of the file, and to what it cost, which no scorer receives.

    Raises:
        InputError: with every line that is no answer, or answers a query a second time.
    """
    problems = ProblemList(InputError)
    found: dict[str, Answered] = {}
    costs: dict[str, AnswerCost] = {}
    for number, line in enumerate(decode(read_bytes(path, InputError), path, InputError).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            answer = _Answer.model_validate_json(line)
        except ValidationError as error:
            for each in error.errors(include_url=False)[:3]:
                where = ".".join(map(str, each["loc"]))
                message = f"not an answer: {where + ': ' if where else ''}{each['msg']}"
                problems.add(message, path=shown(path), line=number, expected=EXPECTED, got=shorten(line))
            continue
        if answer.query_id in found:
            expected = "one answer per query: score the answers of two systems in two files"
            message = f"query {answer.query_id!r} has two answers"
            problems.add(message, path=shown(path), line=number, expected=expected)
        found[answer.query_id], costs[answer.query_id] = answer.answered(), answer.cost()
    problems.raise_if_any()
    if not found:
        raise InputError("the file has no answer", path=shown(path), expected=EXPECTED)
    return found, costs


def write_rows(rows: Iterable[AnswerRow], path: Path) -> None:
    """Write rows of scores as JSON Lines."""
    lines = (json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n" for row in rows)
    write_unicode(path, lines, InputError)
