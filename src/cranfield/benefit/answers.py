"""Answers of a file scored against a test set, with a judge or without."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from cranfield.agents.answers.answer_file import read_answers
from cranfield.agents.answers.judge import Judge, JudgeSettings
from cranfield.agents.answers.score import BlindAnswers, ScoredAnswers, blind_answers, redaction, score_answers
from cranfield.agents.budget import Budget
from cranfield.agents.connect import Connection, connected
from cranfield.agents.kept import Kept
from cranfield.agents.protocol import Backend
from cranfield.base.concurrency.loop import event_loop
from cranfield.model import TestSet


@dataclass(frozen=True)
class JudgedBy:
    """The model of a judge."""

    connection: Connection
    settings: JudgeSettings
    budget: Budget = field(default_factory=Budget)
    calls: Path | None = None
    """File in which its answers are kept: what it has is not requested again, in this run or another."""


def score_file(
    testset: TestSet,
    answers: Path,
    judged_by: JudgedBy | None = None,
    *,
    redact: tuple[str, ...] = (),
    seed: int = 0,
    source: Backend | None = None,
) -> ScoredAnswers:
    """Score the answers of a file.

    Args:
        testset: with labels, or with targets alone.
        answers: JSON Lines.
        judged_by: None: structure, and the facts that rules decide.
        redact: regular expressions of what no judge reads.
        seed: of the order in which answers are judged.
        source: answers in the place of the model, for tests.

    Raises:
        InputError: the file, or that of the kept answers, cannot be read.
        UsageError: an expression is none.
    """
    given, costs = read_answers(answers)
    blind = blind_answers(testset, given, redact=redaction(redact), seed=seed)
    scoring = score_answers(blind) if judged_by is None else _judged(blind, judged_by, source)
    return replace(event_loop().run(scoring), costs=costs)


async def _judged(blind: BlindAnswers, judged_by: JudgedBy, source: Backend | None) -> ScoredAnswers:
    async with connected(judged_by.connection, judged_by.budget, source) as backend:
        if judged_by.calls is None:
            return await score_answers(blind, Judge(backend, judged_by.settings))
        with closing(Kept(judged_by.calls, backend, keeps_rejections=False)) as kept:
            return await score_answers(blind, Judge(kept, judged_by.settings))
