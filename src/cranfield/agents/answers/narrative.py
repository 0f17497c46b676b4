"""The narrative of an answer, against that of its label: rated by a judge, and only where the structure is complete."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cranfield.agents.answers.judge import Ballot, Judge, Vote, own_prompt

PROMPT = "answer-narrative-1"


class NarrativeRating(StrEnum):
    """How far an answer agrees with the canonical one; only `equivalent` passes."""

    EQUIVALENT = "equivalent"
    MINOR_DIVERGENCE = "minor_divergence"
    SIGNIFICANT_DIVERGENCE = "significant_divergence"


class NarrativeVote(BaseModel):
    """The vote of a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rating: Literal["equivalent", "minor_divergence", "significant_divergence", "unclear"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NarrativeScore:
    """The rating of the majority."""

    rating: NarrativeRating | None
    """None: no majority of votes."""
    ballot: Ballot


async def score_narrative(text: str, question: str, reference: str, judge: Judge) -> NarrativeScore:
    """Rate an answer against the canonical narrative.

    Args:
        text: of the answer; who gave it is not known here.
        question: text of the query.
        reference: the canonical narrative.
        judge: asked several times.
    """

    def read(given: NarrativeVote) -> Vote:
        return Vote(None if given.rating == "unclear" else given.rating, reason=given.reason)

    parts = {"question": question, "reference": reference, "answer": text}
    ballot = await judge.vote(own_prompt(PROMPT), parts, NarrativeVote, read)
    return NarrativeScore(None if ballot.verdict is None else NarrativeRating(ballot.verdict), ballot)
