"""A row of scores: an answer to a query, what decided it, and what it cost. Scores of one system and of the arms of an
experiment share it.

Quotes and reasons are texts of a model about texts of another: they are cut, and without characters that a program along the
way would interpret. What a judge may not read was removed before it wrote them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cranfield.agents.answers.facts import DecidedBy, FactsScore, FactVerdict
from cranfield.agents.answers.judge import Ballot
from cranfield.base.words import printable, shorten_to

VOTE_COLUMNS = 300
"""Of a quote, a reason or a problem."""
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
