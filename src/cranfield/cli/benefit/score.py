"""`cranfield benefit score`: the cells of an experiment, scored blind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_SYSTEM
from cranfield.words import command_word, n_of, printable

if TYPE_CHECKING:
    from cranfield.agents.budget import PriceList
    from cranfield.agents.protocol import Failure
    from cranfield.answers.judge import Judge

AGAIN = (
    "If the same comes again, each counts as an abstention; the judge then needs another `output_mode`, more `max_tokens`, or is "
    "another model."
)
ExperimentArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of an experiment, which `benefit run` printed.")
]


def lost_replies(judge: Judge, prices: PriceList) -> list[str]:
    """`12 replies of the judge were no votes: 1,320 tokens, cost 0.0132 USD`, and how many votes it never gave; nothing of none."""
    number, lines = "{:,}".format, list[str]()
    if n := len(judge.unread):
        took = judge.unread_spent(prices).text(prices.currency)
        lines.append(f"{n_of(n, 'replies', number)} of the judge were no votes: {took}")
    if n := len(judge.never):
        lines.append(f"{n_of(n, 'votes', number)} that two calls did not get count as abstentions")
    return lines


def print_missing(judge: Judge, missing: str, first: str, asks: str) -> int:
    """That votes are missing, what came instead of the first, and what asks for them again.

    Args:
        judge: that was asked.
        missing: a clause: how many, and where.
        first: the place of one, and what came instead.
        asks: a clause: what the next call does.

    Returns:
        The exit code.
    """
    typer.echo(f"{missing}, after up to {n_of(judge.settings.attempts, 'replies')} to each in this call", err=True)
    typer.echo(printable(f"first: {first}"), err=True)
    typer.echo(f"Hint: {asks}. {AGAIN}", err=True)
    return EXIT_SYSTEM


def print_stopped(stopped: Failure, goes_on: str, more_budget: str) -> int:
    """Why the judge is not asked any more, and what to do.

    Args:
        stopped: the last failure.
        goes_on: a sentence: what the next call does.
        more_budget: what comes before it where the budget was reached.

    Returns:
        The exit code.
    """
    from cranfield.agents.protocol import FailureKind
    from cranfield.answers.judge import FAILURES_IN_A_ROW, HOPELESS
    from cranfield.benefit.errors import error_of

    known, is_budget = error_of(stopped), stopped.kind is FailureKind.BUDGET
    is_down = known.is_outage and stopped.status not in HOPELESS
    often = f" ({FAILURES_IN_A_ROW} calls of the judge in a row)" if is_down else ""
    typer.echo(printable(f"stopped: {known.name}: {known.meaning}{often}: {stopped.detail}"), err=True)
    first = "start the server of the judge, then " if is_down else "correct that, then "
    typer.echo(f"Hint: {more_budget if is_budget else first}{goes_on}", err=True)
    return EXIT_INCONCLUSIVE if is_budget else EXIT_SYSTEM


def score_command(run: ExperimentArgument) -> None:
    """Score the cells of an experiment that have ended, by facts, structure or code; the scorer does not know the arms.

    What has a score is not scored again, but for what missing votes of the judge or missing checkers left undecided. Exit
    codes: 0 scored; 3 votes of the judge are missing; 4 its budget was reached.
    """
    from cranfield.app.benefit import score_experiment
    from cranfield.concurrency.signals import sigterm_interrupts

    try:
        with sigterm_interrupts():
            outcome = score_experiment(run)
    except KeyboardInterrupt:
        typer.echo(f"Hint: `cranfield benefit score {command_word(run)}` goes on", err=True)
        raise
    number = "{:,}".format
    parts = [f"scored {n_of(outcome.n_scored, 'cells', number)}; {number(outcome.n_cells)} have ended"]
    parts += [f"{outcome.n_undecided} undecided"] if outcome.n_undecided else []
    parts += [f"names of tools removed from {n_of(outcome.n_leaks, 'answers', number)}"] if outcome.n_leaks else []
    parts += [f"the judge used {n_of(outcome.spent.tokens, 'tokens', number)}"] if outcome.spent.tokens else []
    unmeasured = outcome.spent.unmeasured
    parts += [f"of them estimated: those of {n_of(unmeasured, 'requests', number)}"] if unmeasured else []
    judge, again = outcome.judge, f"`cranfield benefit score {command_word(run)}`"
    parts += [] if judge is None else lost_replies(judge, outcome.prices)
    typer.echo("; ".join(parts))
    if judge is None:
        return
    if judge.stopped is not None:
        more = (
            f"with more for the judge in its `budget`, `cranfield benefit run PLAN --resume {command_word(run)}`, then "
        )
        raise typer.Exit(print_stopped(judge.stopped, f"{again} goes on.", more))
    if outcome.n_failed:
        missing = f"votes of the judge are missing in {n_of(outcome.n_failed, 'cells', number)}"
        asks = f"{again} asks for these votes again, and for no other"
        raise typer.Exit(print_missing(judge, missing, outcome.first_missing, asks))
