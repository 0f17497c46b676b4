"""Score the answers of agents against the labels of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.book.rate import (
    AtOnceOption,
    BaseUrlOption,
    KeyOption,
    Mode,
    MoneyOption,
    OutputOption,
    PricesOption,
    TokensOption,
    read_budget,
)
from cranfield.cli.option_groups import SeedOption, option_groups
from cranfield.cli.shared import Output, TestSetFormatOption, deliver
from cranfield.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.answers.score import ScoredAnswers
    from cranfield.app.answers import JudgedBy
    from cranfield.options.testset import TestSetOptions

SUBCOMMANDS = {"score": __name__}
LabelsArgument = Annotated[
    Path,
    typer.Argument(metavar="LABELS", help="Test set whose queries have labels: entities, files, facts, a narrative."),
]
AnswersArgument = Annotated[
    Path,
    typer.Argument(metavar="ANSWERS", help="Answers, JSON Lines: query_id, text, and entities, files, spans if any."),
]
JudgeModelOption = Annotated[
    str,
    typer.Option(
        "--judge-model",
        metavar="PROVIDER:NAME",
        help="Model that judges facts and narratives; without one, structure and verbatim facts alone are scored.",
    ),
]
VotesOption = Annotated[
    int, typer.Option("--votes", metavar="N", min=1, max=15, help="Votes on each fact and narrative; an odd number.")
]
AttemptsOption = Annotated[
    int,
    typer.Option(
        "--attempts", metavar="N", min=1, max=20, help="Most requests for a vote whose reply is lost or cannot be read."
    ),
]
TemperatureOption = Annotated[float, typer.Option("--temperature", metavar="X", min=0, help="Of the votes.")]
CallsOption = Annotated[
    Path | None,
    typer.Option("--calls", metavar="FILE", help="Keep the judge's answers in this file; what it has costs no call."),
]
RedactOption = Annotated[
    list[str] | None,
    typer.Option("--redact", metavar="REGEX", help="Replace what it finds in all that a judge reads; repeat for more."),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Also write a row a query, JSON Lines, to this file.")
]


@option_groups
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
    output_mode: OutputOption = Mode.NATIVE,
    concurrency: AtOnceOption = 4,
    calls: CallsOption = None,
    attempts: AttemptsOption = DEFAULT_ATTEMPTS,
    budget_tokens: TokensOption = None,
    budget_money: MoneyOption = None,
    prices: PricesOption = None,
    redact: RedactOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    output: Output,
) -> None:
    """Score answers: the entities and files that they name, then their facts, then the narrative of complete ones.

    Exit codes: 0 scored; 3 votes of the judge are missing; 4 its budget was reached.
    """
    from cranfield.agents.connect import Connection
    from cranfield.answers.answer_file import write_rows
    from cranfield.answers.judge import JudgeSettings
    from cranfield.app.answers import JudgedBy, score_file
    from cranfield.app.loading import load
    from cranfield.concurrency.signals import sigterm_interrupts
    from cranfield.reporting.documents.answers import answers_document

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
    deliver(answers_document(scored.result(testset)), output)
    if out is not None:
        write_rows(scored.rows(), out)
        typer.echo(f"wrote {out}", err=True)
    raise typer.Exit(0 if judged_by is None else _exit_code(scored, judged_by))


def _exit_code(scored: ScoredAnswers, judged_by: JudgedBy) -> int:
    """0: no vote of the judge is missing."""
    from cranfield.cli.benefit.score import lost_replies, print_missing, print_stopped

    judge, missing = scored.judge, scored.missing_votes
    if judge is None:
        return 0
    for line in lost_replies(judge, judged_by.budget.prices):
        typer.echo(line, err=True)
    if judge.stopped is not None:
        asks = (
            "asks for what is missing"
            if judged_by.calls is not None
            else "asks for all, unless `--calls FILE` keeps it"
        )
        more = "with a larger `--budget-tokens` or `--budget-money`, "
        return print_stopped(judge.stopped, f"the same command {asks}.", more)
    if not missing:
        return 0
    place, failure = missing[0]
    others = (
        "and for no other" if judged_by.calls is not None else "and for all others, unless `--calls FILE` keeps them"
    )
    return print_missing(
        judge,
        f"{n_of(len(missing), 'votes')} of the judge are missing",
        f"{place}: {failure.kind}: {failure.detail}",
        f"the same command asks for these votes again, {others}",
    )
