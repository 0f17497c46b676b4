"""Score the answers of agents against the labels of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Interval

from cranfield.agents.options import (
    AtOnceOption,
    BaseUrlOption,
    KeyOption,
    MoneyOption,
    OutputOption,
    PricesOption,
    SchemaMode,
    TokensOption,
    read_budget,
)
from cranfield.app.command import Report, Status
from cranfield.app.commands.shared import SeedOption, TestSetFormatOption
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.base.words import count_noun
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.agents.answers.score import ScoredAnswers
    from cranfield.benefit.use_cases import JudgedBy
    from cranfield.evaluation.options.blocks import TestSetOptions

SUBCOMMANDS = {"score": __name__}
LabelsArgument = Annotated[
    Path,
    Argument("Test set whose queries have labels: entities, files, facts, a narrative.", metavar="LABELS"),
]
AnswersArgument = Annotated[
    Path,
    Argument("Answers, JSON Lines: query_id, text, and entities, files, spans if any.", metavar="ANSWERS"),
]
JudgeModelOption = Annotated[
    str,
    Option(
        "Model that judges facts and narratives; default: score only structure and verbatim facts.",
        flag="--judge-model",
        metavar="PROVIDER:NAME",
    ),
]
VotesOption = Annotated[
    int, Option("Number of votes per fact and narrative; odd.", flag="--votes", metavar="N"), Interval(ge=1, le=15)
]
AttemptsOption = Annotated[
    int,
    Option("Maximum number of requests for a vote if the reply is lost or unreadable.", flag="--attempts", metavar="N"),
    Interval(ge=1, le=20),
]
TemperatureOption = Annotated[
    float, Option("Sampling temperature of the judge.", flag="--temperature", metavar="X"), Ge(0)
]
CallsOption = Annotated[
    Path | None,
    Option("Store the answers of the judge in this file, and reuse them.", flag="--calls", metavar="FILE"),
]
RedactOption = Annotated[
    list[str] | None,
    Option(
        "Regular expression to redact in all texts for the judge; repeat for more.", flag="--redact", metavar="REGEX"
    ),
]
OutOption = Annotated[
    Path | None, Option("Also write one row per query to this file (JSON Lines).", flag="--out", metavar="FILE")
]


def score_command(
    labels: LabelsArgument,
    answers: AnswersArgument,
    *,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
    judge_model: JudgeModelOption = "",
    votes: VotesOption = 3,
    base_url: BaseUrlOption = "",
    api_key_env: KeyOption = "",
    temperature: TemperatureOption = 0.7,
    output_mode: OutputOption = SchemaMode.NATIVE,
    concurrency: AtOnceOption = 4,
    calls: CallsOption = None,
    attempts: AttemptsOption = DEFAULT_ATTEMPTS,
    budget_tokens: TokensOption = None,
    budget_money: MoneyOption = None,
    prices: PricesOption = None,
    redact: RedactOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
) -> Report:
    """Score answers: named entities and files, then facts, then the narrative of complete answers.

    Exit codes: 0 scored; 3 votes of the judge are missing; 4 its budget was reached.
    """
    from cranfield.agents.answers.judge import JudgeSettings
    from cranfield.agents.answers.rows import write_rows
    from cranfield.agents.settings import Connection
    from cranfield.app.loading import load
    from cranfield.base.concurrency.interrupts import sigterm_interrupts
    from cranfield.benefit.reports.answers import answers_document
    from cranfield.benefit.use_cases import JudgedBy, score_file

    judged_by = None
    if judge_model:
        settings = JudgeSettings(
            judge_model, votes, temperature, seed, output_mode.value, concurrency, attempts=attempts
        )
        budget = read_budget(judge_model, budget_tokens, budget_money, prices)
        connection = Connection(judge_model, base_url, api_key_env, attempts=attempts)
        judged_by = JudgedBy(connection, settings, budget, calls)
    testset = load(labels, format=testset_format, options=options)
    with sigterm_interrupts():
        scored = score_file(testset, answers, judged_by, redact=tuple(redact or ()), seed=seed)
    notes = []
    if out is not None:
        write_rows(scored.rows(), out)
        notes = [f"wrote {out}"]
    status, lines = (Status.OK, []) if judged_by is None else _missing_votes(scored, judged_by)
    return Report(document=answers_document(scored.result(testset)), notes=[*notes, *lines], status=status)


def _missing_votes(scored: ScoredAnswers, judged_by: JudgedBy) -> tuple[Status, list[str]]:
    """What the judge did not answer."""
    from cranfield.benefit.commands.benefit import lost_replies, missing_lines, stopped_lines

    judge, missing = scored.judge, scored.missing_votes
    if judge is None:
        return Status.OK, []
    lines = list(lost_replies(judge, judged_by.budget.prices))
    if judge.stopped is not None:
        asks = (
            "requests the missing votes"
            if judged_by.calls is not None
            else "requests all votes again, unless `--calls FILE` stores them"
        )
        more = "with a larger `--budget-tokens` or `--budget-money`, "
        status, more_lines = stopped_lines(judge.stopped, f"the same command {asks}.", more)
        return status, [*lines, *more_lines]
    if not missing:
        return Status.OK, lines
    place, failure = missing[0]
    others = "and no others" if judged_by.calls is not None else "and all others, unless `--calls FILE` stores them"
    status, more_lines = missing_lines(
        judge,
        f"{count_noun(len(missing), 'votes')} of the judge are missing",
        f"{place}: {failure.kind}: {failure.detail}",
        f"the same command requests these votes again, {others}",
    )
    return status, [*lines, *more_lines]
