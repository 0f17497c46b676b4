"""A row of scores: an answer to a query, and what it cost. Scores of one system and of the arms of an experiment share it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

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


class AnswerRow(AnswerCost, AnswerScores):
    """Scores and cost of an answer."""
