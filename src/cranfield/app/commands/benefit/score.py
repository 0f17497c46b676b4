"""`cranfield benefit score`: the cells of an experiment, scored blind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from cranfield.app.command import Exit, Status, note, say
from cranfield.options.declaration import Argument
from cranfield.words import command_word, n_of, printable

if TYPE_CHECKING:
    from cranfield.agents.budget import PriceList
    from cranfield.agents.protocol import Failure
    from cranfield.answers.judge import Judge

AGAIN = (
    "If the same comes again, each counts as an abstention; the judge then needs another `output_mode`, more `max_tokens`, or is "
    "another model."
)
ExperimentArgument = Annotated[Path, Argument("Folder of an experiment, which `benefit run` printed.", metavar="RUN")]


def lost_replies(judge: Judge, prices: PriceList) -> list[str]:
    """`12 replies of the judge were no votes: 1,320 tokens, cost 0.0132 USD`, and how many votes it never gave; nothing of none."""
    number, lines = "{:,}".format, list[str]()
    if n := len(judge.unread):
        took = judge.unread_spent(prices).text(prices.currency)
        lines.append(f"{n_of(n, 'replies', number)} of the judge were no votes: {took}")
    if n := len(judge.never):
        lines.append(f"{n_of(n, 'votes', number)} that two calls did not get count as abstentions")
    return lines


def missing_lines(judge: Judge, missing: str, first: str, asks: str) -> tuple[Status, list[str]]:
    """That votes are missing, what came instead of the first, and what asks for them again.

    Args:
        judge: that was asked.
        missing: a clause: how many, and where.
        first: the place of one, and what came instead.
        asks: a clause: what the next call does.

    Returns:
        What the command came to, and the lines.
    """
    return Status.VOID, [
        f"{missing}, after up to {n_of(judge.settings.attempts, 'replies')} to each in this call",
        printable(f"first: {first}"),
        f"Hint: {asks}. {AGAIN}",
    ]


def stopped_lines(stopped: Failure, goes_on: str, more_budget: str) -> tuple[Status, list[str]]:
    """Why the judge is not asked any more, and what to do.

    Args:
        stopped: the last failure.
        goes_on: a sentence: what the next call does.
        more_budget: what comes before it where the budget was reached.

    Returns:
        What the command came to, and the lines.
    """
    from cranfield.agents.protocol import FailureKind
    from cranfield.answers.judge import FAILURES_IN_A_ROW, HOPELESS
    from cranfield.benefit.errors import error_of

    known, is_budget = error_of(stopped), stopped.kind is FailureKind.BUDGET
    is_down = known.is_outage and stopped.status not in HOPELESS
    often = f" ({FAILURES_IN_A_ROW} calls of the judge in a row)" if is_down else ""
    first = "start the server of the judge, then " if is_down else "correct that, then "
    return Status.INCONCLUSIVE if is_budget else Status.VOID, [
        printable(f"stopped: {known.name}: {known.meaning}{often}: {stopped.detail}"),
        f"Hint: {more_budget if is_budget else first}{goes_on}",
    ]


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
        note(f"Hint: `cranfield benefit score {command_word(run)}` goes on")
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
    say("; ".join(parts))
    if judge is None:
        return
    if judge.stopped is not None:
        more = (
            f"with more for the judge in its `budget`, `cranfield benefit run PLAN --resume {command_word(run)}`, then "
        )
        _end(*stopped_lines(judge.stopped, f"{again} goes on.", more))
    if outcome.n_failed:
        missing = f"votes of the judge are missing in {n_of(outcome.n_failed, 'cells', number)}"
        asks = f"{again} asks for these votes again, and for no other"
        _end(*missing_lines(judge, missing, outcome.first_missing, asks))


def _end(status: Status, lines: Sequence[str]) -> NoReturn:
    for line in lines:
        note(line)
    raise Exit(status)
