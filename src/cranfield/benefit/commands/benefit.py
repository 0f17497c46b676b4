"""Experiments: an agent with and without a retrieval tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from annotated_types import Ge

from cranfield.app.command import Exit, Output, Report, Status, note, say
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.base.errors import UsageError
from cranfield.base.words import command_word, count_noun, printable
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.agents.answers.judge import Judge
    from cranfield.agents.budget import PriceList
    from cranfield.agents.protocol import Failure
    from cranfield.benefit.records import CellRecord
    from cranfield.benefit.result import BenefitResult
    from cranfield.benefit.runner import RunOutcome
    from cranfield.benefit.use_cases import BenefitGate

SUBCOMMANDS = dict.fromkeys(
    ("check", "run", "status", "score", "result", "report", "transcripts", "gate", "history"),
    __name__,
)
"""Command to its module, in the order help lists them."""


EXPERIMENTS = Path("benefit-runs")
"""Default folder of all experiments."""
PlanArgument = Annotated[Path, Argument("Plan of an experiment, YAML or JSON.", metavar="PLAN")]


def check_command(plan: PlanArgument, *, allow_dirty: AllowDirtyOption = False) -> Report:
    """Check a plan against its tasks and its repository: arms, commit, budget, and whether every task can be scored.

    Then every tool under test is started, asked what it serves by its preflight, and ended. Shown are the cells in their order,
    the tokens that they can use, and the smallest lift that the tasks can show. No model is called. Exit codes: 0 the plan
    can be run; 2 it cannot, with every problem; 3 a tool does not start, or serves something else.
    """
    from cranfield.benefit.experiment import planned_digest
    from cranfield.benefit.reports.run import experiment_plan_document
    from cranfield.benefit.use_cases import checked_plan, tried_tools

    checked = checked_plan(plan, EXPERIMENTS, allow_dirty=allow_dirty)
    found = checked.result(planned_digest(checked, plan.parent), tried_tools(checked))
    return Report(document=experiment_plan_document(found))


PlanOption = Annotated[
    Path | None,
    Argument(
        "Plan of the experiment. With --resume: only to change budget, attempts or addresses.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
ResumeOption = Annotated[
    Path | None,
    Option("Resume this experiment; finished cells are not run again.", flag="--resume", metavar="RUN"),
]
OutOption = Annotated[Path, Option("Folder of all experiments.", flag="--out", metavar="DIR", refuses_link=True)]


def run_command(
    plan: PlanOption = None,
    *,
    resume: ResumeOption = None,
    out: OutOption = EXPERIMENTS,
    allow_dirty: AllowDirtyOption = False,
) -> Iterator[Report]:
    """Run each task in both arms, with the number of seeds of the plan, in random order, within a budget.

    Every run of a cell is written as it ends; an experiment that was interrupted goes on with --resume. A run whose
    infrastructure failed is repeated and never scored; a run that reached a limit is a failure of its arm. Exit codes: 0
    every cell ended; 2 invalid plan or folder; 3 cells wait, because a server, a tool or an agent failed, or the model was
    down in five runs in a row; 4 the budget is used up; 130 interrupted.
    """
    from cranfield.base.concurrency.interrupts import sigterm_interrupts
    from cranfield.benefit.experiment import RunOptions, execute, replace_plan
    from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
    from cranfield.benefit.plan import load_plan
    from cranfield.benefit.reports.run import experiment_status_document
    from cranfield.benefit.source import TreeCheck
    from cranfield.benefit.status import status_of
    from cranfield.benefit.use_cases import begin_experiment

    if resume is not None:
        path = resume
        if plan is not None:
            replace_plan(path, load_plan(plan), plan.parent)
    elif plan is not None:
        path = begin_experiment(plan, out, allow_dirty=allow_dirty)
    else:
        raise UsageError("neither a plan nor an experiment", expected="PLAN, or --resume RUN")
    note(f"experiment folder: {path}")
    try:
        with sigterm_interrupts():
            outcome = execute(path, RunOptions(on_cell=_print_cell, allow_dirty=allow_dirty))
    except KeyboardInterrupt:
        note(f"Hint: `cranfield benefit run --resume {command_word(path)}` continues")
        raise
    folder = ExperimentFolder.open(path)
    yield Report(document=experiment_status_document(status_of(folder)))
    for check in folder.read(ExperimentFile.TREES, TreeCheck):
        if check.is_void:
            note(printable(f"the comparison is invalid: {check.sentence}"))
    _end(outcome, path)


def _print_cell(cell: CellRecord) -> None:
    tokens = "tokens not known" if cell.usage.total is None else f"{cell.usage.total:,} tokens"
    error = f" ({cell.error})" if cell.error else ""
    note(printable(f"{cell.key} {cell.end.value}{error}, {tokens}, {cell.usage.wall_s:.1f} s"))


def _end(outcome: RunOutcome, path: Path) -> None:
    from cranfield.benefit.errors import BY_NAME, OUTAGES_IN_A_ROW, CellError

    if outcome.is_complete:
        return
    n_left = outcome.n_cells - outcome.n_scored
    note(f"not finished: {count_noun(n_left, 'cells')} of {outcome.n_cells} are unfinished")
    known = BY_NAME[CellError(outcome.stopped)] if outcome.stopped else None
    is_down = known is not None and known.is_outage
    if known is not None:
        often = f" ({OUTAGES_IN_A_ROW} runs in a row)" if is_down else ""
        note(f"stopped: {known.name}: {known.meaning}{often}")
    if outcome.waiting:
        first = outcome.waiting[0]
        note(printable(f"first: {first.key}, {first.error}: {first.message}"))
    if outcome.stopped == CellError.BUDGET:
        note(
            f"Hint: with a larger budget, `cranfield benefit run PLAN --resume {command_word(path)}` "
            "continues with them."
        )
        raise Exit(Status.INCONCLUSIVE)
    if outcome.stopped == CellError.MODEL_MISSING:
        hint = f"with the correct `base_url`, `cranfield benefit run PLAN --resume {command_word(path)}` continues with them"
        note(f"Hint: {hint}; for another model, start a new experiment.")
        raise Exit(Status.VOID)
    start = "start the server of the model, then " if is_down else ""
    note(f"Hint: {start}`cranfield benefit run --resume {command_word(path)}` continues with them.")
    raise Exit(Status.VOID)


AGAIN = (
    "If this happens again, each counts as an abstention; use another `output_mode`, more `max_tokens` or "
    "another model for the judge."
)
ExperimentArgument = Annotated[Path, Argument("Folder of an experiment, printed by `benefit run`.", metavar="RUN")]


def lost_replies(judge: Judge, prices: PriceList) -> list[str]:
    """`12 replies of the judge were no votes: 1,320 tokens, cost 0.0132 USD`, and how many votes it never gave; nothing of none."""
    number, lines = "{:,}".format, list[str]()
    if n := len(judge.unread):
        took = judge.unread_spent(prices).text(prices.currency)
        lines.append(f"{count_noun(n, 'replies', number)} of the judge were not votes: {took}")
    if n := len(judge.never):
        lines.append(f"{count_noun(n, 'votes', number)} not received in two calls count as abstentions")
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
        f"{missing}, after up to {count_noun(judge.settings.attempts, 'replies')} to each in this call",
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
    from cranfield.agents.answers.judge import FAILURES_IN_A_ROW, HOPELESS
    from cranfield.agents.protocol import FailureKind
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
    """Score the finished cells of an experiment by facts, structure or code. Scoring is blind to the arms.

    What has a score is not scored again, but for what missing votes of the judge or missing checkers left undecided. Exit
    codes: 0 scored; 3 votes of the judge are missing; 4 its budget was reached.
    """
    from cranfield.base.concurrency.interrupts import sigterm_interrupts
    from cranfield.benefit.use_cases import score_experiment

    try:
        with sigterm_interrupts():
            outcome = score_experiment(run)
    except KeyboardInterrupt:
        note(f"Hint: `cranfield benefit score {command_word(run)}` continues")
        raise
    number = "{:,}".format
    parts = [f"scored {count_noun(outcome.n_scored, 'cells', number)}; {number(outcome.n_cells)} have ended"]
    parts += [f"{outcome.n_undecided} undecided"] if outcome.n_undecided else []
    parts += (
        [f"names of tools removed from {count_noun(outcome.n_leaks, 'answers', number)}"] if outcome.n_leaks else []
    )
    parts += [f"the judge used {count_noun(outcome.spent.tokens, 'tokens', number)}"] if outcome.spent.tokens else []
    unmeasured = outcome.spent.unmeasured
    parts += [f"estimated for {count_noun(unmeasured, 'requests', number)}"] if unmeasured else []
    judge, again = outcome.judge, f"`cranfield benefit score {command_word(run)}`"
    parts += [] if judge is None else lost_replies(judge, outcome.prices)
    say("; ".join(parts))
    if judge is None:
        return
    if judge.stopped is not None:
        more = (
            f"with more for the judge in its `budget`, `cranfield benefit run PLAN --resume {command_word(run)}`, then "
        )
        _end_score(*stopped_lines(judge.stopped, f"{again} goes on.", more))
    if outcome.n_failed:
        missing = f"votes of the judge are missing in {count_noun(outcome.n_failed, 'cells', number)}"
        asks = f"{again} requests these votes again, and no others"
        _end_score(*missing_lines(judge, missing, outcome.first_missing, asks))


def _end_score(status: Status, lines: Sequence[str]) -> NoReturn:
    for line in lines:
        note(line)
    raise Exit(status)


def status_command(run: ExperimentArgument) -> Report:
    """Show the state of an experiment: cells by arm and end, complete pairs, errors, tokens, and tool calls."""
    from cranfield.benefit.folder import ExperimentFolder
    from cranfield.benefit.reports.run import experiment_status_document
    from cranfield.benefit.status import status_of

    return Report(document=experiment_status_document(status_of(ExperimentFolder.open(run))))


ResultsOption = Annotated[Path, Option("Folder of results.", flag="--out", metavar="DIR", refuses_link=True)]


def result_command(run: ExperimentArgument, *, out: ResultsOption = Path("benefit-results")) -> None:
    """Write the result of a scored experiment, `benefit_v1.0.json`, and add it to the history of its folder.

    Another run of the same plan is the next minor version. Exit codes: 0 written; 4 written, and the comparison is invalid.
    """
    from cranfield.base.words import printable
    from cranfield.benefit.use_cases import publish, result_of

    result = result_of(run)
    path, not_remembered = publish(result, out)
    for row in () if result.is_void else result.first_strata:
        name = ", ".join(row.stratum.values()) or "all tasks"
        say(printable(f"{name}: {row.verdict.value}{f' ({row.claims})' if row.claims else ''}. {row.reason}"))
    say(printable(result.sentence if result.is_void else f"Over all tasks: {result.sentence}"))
    for each in result.validity:
        if not each.is_void:
            say(printable(f"caveat: {each.message}"))
    note(f"wrote {path}")
    if not_remembered:
        note(not_remembered)
    if result.is_void:
        raise Exit(Status.INCONCLUSIVE)


ResultArgument = Annotated[
    Path,
    Argument(
        "Folder of a scored experiment, a result: benefit_v1.0.json, or a folder of results: its newest version.",
        metavar="RUN|RESULT",
    ),
]


def report_command(source: ResultArgument, *, output: Output) -> Report:
    """Show the verdict of each stratum, the cost of both arms, the delivery of the tool, and the files that agents read.

    With --html and the folder of an experiment, the transcripts of both arms of every task where the treatment was worse are
    a second page beside it. Exit codes: 0; 4 the comparison is invalid.
    """
    from cranfield.benefit.reports.benefit import benefit_document
    from cranfield.benefit.use_cases import loss_transcripts, read_source, transcripts_file

    result, run = read_source(source)
    page = transcripts_file(output.html) if output.html is not None and run is not None and result.losses else None
    document = benefit_document(result, "" if page is None else page.name)
    return Report(
        document=document,
        written=() if page is None or run is None else loss_transcripts(result, run, page),
        status=Status.INCONCLUSIVE if result.is_void else Status.OK,
    )


def transcripts_command(
    run: ExperimentArgument,
    *,
    html: Annotated[Path, Option("HTML file to write.", metavar="FILE")],
    task: Annotated[list[str] | None, Option("Only these tasks; repeat for more.", metavar="ID")] = None,
    arm: Annotated[str | None, Option("Only `treatment` or `control`.", metavar="ARM")] = None,
) -> None:
    """Write the transcripts of an experiment as one HTML file, by task, seed and arm; it requests nothing from the network."""
    from cranfield.base.errors import UnknownNameError
    from cranfield.base.words import count_noun, join_first
    from cranfield.benefit.plan import ArmRole
    from cranfield.benefit.use_cases import write_transcripts

    if arm is not None and arm not in set(ArmRole):
        raise UnknownNameError.among("arm", arm, list(ArmRole))
    arms = tuple(ArmRole) if arm is None else (ArmRole(arm),)
    n, without = write_transcripts(run, html, f"Transcripts of {run.resolve().name}", tasks=task or (), arms=arms)
    say(f"wrote {html}: {count_noun(n, 'transcripts')}")
    if without:
        note(f"{count_noun(len(without), 'runs')} without a transcript: {join_first(without)}")


ForbidOption = Annotated[
    list[str] | None,
    Option(
        "Verdict not allowed for any stratum; default: net cost; repeat for more.", flag="--forbid", metavar="VERDICT"
    ),
]
RequireOption = Annotated[
    list[str] | None,
    Option(
        "Verdict of a stratum, as `task_type=explain,difficulty=hard:pays off`.",
        flag="--require",
        metavar="STRATUM:VERDICT",
    ),
]
AgeOption = Annotated[int | None, Option("Maximum age of the result.", flag="--max-age-days", metavar="N"), Ge(0)]
CommitOption = Annotated[str, Option("Required commit of the result.", flag="--commit", metavar="SHA")]
JunitOption = Annotated[Path | None, Option("Also write JUnit XML.", flag="--junit", metavar="FILE")]


def _show(result: BenefitResult, gate: BenefitGate) -> None:
    """Every rule and every caveat; which result it is, on stderr."""
    from cranfield.base.words import printable

    version = f", version {result.version}" if result.version else ""
    note(printable(f"result of {result.name}{version}, run {result.run}"))
    for each in gate.outcomes:
        say(printable(f"{each.state.value}: {each.rule}: {each.sentence}"))
        for stratum in each.strata:
            say(f"  {printable(stratum)}")
    for caveat in result.validity:
        if not (caveat.is_void or caveat.leads):  # those are rules above
            say(printable(f"caveat: {caveat.message}"))


def gate_command(
    source: ResultArgument,
    *,
    forbid: ForbidOption = None,
    require: RequireOption = None,
    max_age_days: AgeOption = None,
    commit: CommitOption = "",
    junit: JunitOption = None,
) -> None:
    """Check a result against rules. An invalid comparison never passes.

    Exit codes: 0 every rule holds; 1 a rule is broken; 3 the comparison is invalid, too old or of another commit; 4 there is
    not enough data.
    """
    from datetime import UTC, datetime, timedelta

    from cranfield.base.errors import UnknownNameError
    from cranfield.benefit.result import StratumVerdict
    from cranfield.benefit.use_cases import BenefitRules, RuleState, judge_result, parse_requirement, read_source
    from cranfield.formats.io.files import write_text
    from cranfield.reporting.junit import junit_of_cases

    for verdict in forbid or ():
        if verdict not in set(StratumVerdict):
            raise UnknownNameError.among("verdict", verdict, list(StratumVerdict))
    result, _ = read_source(source)
    rules = BenefitRules(
        tuple(map(StratumVerdict, forbid or ("net cost",))),
        tuple(map(parse_requirement, require or ())),
        None if max_age_days is None else timedelta(days=max_age_days),
        commit,
    )
    found = judge_result(result, rules, datetime.now(UTC))
    _show(result, found)
    if junit is not None:
        cases = [(each.rule, each.state.value, each.text) for each in found.outcomes]
        write_text(junit, [junit_of_cases("cranfield benefit gate", result.name, cases)])
        note(f"wrote {junit}")
    codes = {
        RuleState.FAILED: Status.FAILED,
        RuleState.INVALID: Status.VOID,
        RuleState.INCONCLUSIVE: Status.INCONCLUSIVE,
    }
    if found.state is not RuleState.PASSED:
        raise Exit(codes[found.state])


FolderArgument = Annotated[Path, Argument("Folder of results, with its history.", metavar="[DIR]")]


def history_command(folder: FolderArgument = Path("benefit-results"), *, output: Output) -> Report:
    """Show the results of experiments over time: lift of success, tokens and verdict of each stratum, by version.

    Results of another plan or of other labels are not joined, and an invalid one is marked and not drawn.
    """
    import os

    from cranfield.benefit.reports.history import benefit_history_document
    from cranfield.benefit.use_cases import read_results
    from cranfield.formats.io.files import shown

    history = read_results(folder)
    if not history.results and not history.damaged:
        raise UsageError(
            "not a result of an experiment", path=shown(folder), hint="`cranfield benefit result RUN` writes one"
        )
    start = Path() if output.html is None else output.html.parent
    document = benefit_history_document(
        history, lambda past: Path(os.path.relpath(folder / past.file, start)).as_posix()
    )
    return Report(document=document)
