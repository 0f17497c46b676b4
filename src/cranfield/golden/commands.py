"""Create golden sets for a code base, checked against the source."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Interval

from cranfield.app.command import Exit, Output, OutputFormat, Report, Status, note, say, takes_runs
from cranfield.app.commands.shared import (
    AllowDirtyOption,
    MeasureOption,
    SeedOption,
    SetArgument,
    SetFormatOption,
    TodayOption,
    day_of,
)
from cranfield.base.errors import UsageError
from cranfield.base.words import command_word, count_noun, join_first, or_list, printable
from cranfield.books.options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.golden.states import EntryStep

if TYPE_CHECKING:
    from cranfield.golden.index import RecordStatus
    from cranfield.golden.plan import Plan
    from cranfield.golden.plan_cost import CostEstimate, DryRun
    from cranfield.golden.rows import CheckedRow
    from cranfield.golden.run import PipelineOutcome
    from cranfield.repo.snapshot import Snapshot

SUBCOMMANDS = dict.fromkeys(
    (
        "plan",
        "run",
        "status",
        "transcripts",
        "gate",
        "enter",
        "check",
        "assemble",
        "batch",
        "models",
        "review",
        "reviewed",
    ),
    __name__,
)
"""Command to its module, in the order help lists them."""
PlanArgument = Annotated[
    str | None,
    Argument(
        "Plan file, YAML or JSON; or the name of a built-in plan; default: phase1.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
RepoOption = Annotated[Path, Option("Repository of the golden set.", flag="--repo", metavar="DIR")]
AtOption = Annotated[
    str | None,
    Option(
        "Commit to read; default: HEAD. Without git: the current files of the folder.", flag="--at", metavar="COMMIT"
    ),
]
OutOption = Annotated[Path, Option("Folder of all runs.", flag="--out", metavar="DIR", refuses_link=True)]
RUNS = Path("golden-runs")
RunArgument = Annotated[Path, Argument("Folder of a run, printed by `golden run`.", metavar="RUN")]


def read_plan(plan: str) -> tuple[Plan, str]:
    """A plan, and its text: of a file, or of the package where there is no such file.

    Raises:
        ConfigError: with everything that does not fit.
        UnknownNameError: there is neither such a file nor such a plan.
    """
    from cranfield.golden.plan import load_plan, shipped_plan, shipped_text

    path = Path(plan)
    if path.suffix or path.exists():
        return load_plan(path), path.read_text(encoding="utf-8")
    return shipped_plan(plan), shipped_text(plan)


PlanOption = Annotated[
    str | None,
    Argument(
        "Plan file, or the name of a built-in plan. With --resume: only to change budget or addresses.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
ResumeOption = Annotated[
    Path | None, Option("Continue this run; no answer is requested again.", flag="--resume", metavar="RUN")
]
UntilOption = Annotated[
    str,
    Option(
        "Last step: author, screen, oracle, gate, adversary or agree; default: agree.", flag="--until", metavar="STEP"
    ),
]
ReplayOption = Annotated[
    Path | None,
    Option("Use the answers in this calls.jsonl of another run; call no model.", flag="--replay", metavar="FILE"),
]
FeedbackOption = Annotated[
    Path | None,
    Option("Failures found by reviewers in an earlier batch (JSON Lines).", flag="--feedback", metavar="FILE"),
]
PromptsOption = Annotated[
    Path | None,
    Option("Folder of prompts that replace the built-in ones.", flag="--prompts", metavar="DIR"),
]
DryRunOption = Annotated[bool, Option("Check the plan and estimate its cost; call no model.", flag="--dry-run")]


def run_command(
    plan: PlanOption = None,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    out: OutOption = RUNS,
    resume: ResumeOption = None,
    until: UntilOption = "agree",
    replay: ReplayOption = None,
    feedback: FeedbackOption = None,
    prompts: PromptsOption = None,
    dry_run: DryRunOption = False,
) -> Iterator[Report]:
    """Create candidates, answers and reviews from a plan: author, screen, oracle, gate, adversary, agreement.

    Every answer of a model is written to the run folder as it comes; a run that was interrupted goes on with --resume.
    Exit codes: 0 every record has an end, or the last step was reached; 2 invalid plan, source or run folder; 3 records
    wait, because a model has no answer for now or the budget is used up; 130 interrupted.
    """
    from cranfield.agents.recording import PLAN, Kept
    from cranfield.golden.index import RunFolder
    from cranfield.golden.plan import load_plan
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.reports.golden import run_document
    from cranfield.golden.reports.plan import cost_verdict
    from cranfield.golden.run import PipelineOptions, Until, execute, run_status
    from cranfield.golden.use_cases.review import after_run

    if until not in list(Until):
        raise UsageError(f"--until is {until!r}", expected=or_list(list(Until)))
    if plan is None and resume is None:
        raise UsageError("neither a plan nor a run", expected="PLAN, or --resume RUN")
    source = RunSource(repo, at, out, resume, (plan_file(plan), feedback, prompts, replay), allow_dirty=allow_dirty)
    if dry_run:
        yield from show_plan(plan or str(resume / PLAN if resume else ""), source)
        return
    if replay is not None:
        Kept(replay)  # a damaged file is refused before a folder is made
    path, snapshot = source.open_run(plan, feedback=feedback, prompts=prompts)
    note(f"run folder: {path}")
    if resume is None and (cost := estimate(load_plan(path / PLAN), snapshot)).over_budget:
        note(cost_verdict(cost))
    options = PipelineOptions(Until(until), replay=replay, prompts=prompts, on_status=print_status)
    outcome = execute(path, snapshot, options)
    print_usage(outcome)
    yield Report(document=run_document(run_status(RunFolder.open(path))))
    _print_unreadable(outcome)
    source.refuse_changed(path, snapshot)
    if outcome.result.waiting:
        print_waiting(outcome, f"cranfield golden run --resume {command_word(path)}{source.resumed}")
        raise Exit(Status.VOID)
    note(f"next: {after_run(path, outcome.result.statuses, repo)}")


@dataclass(frozen=True)
class RunSource:
    """The repository that a call reads, and the run folder that it writes."""

    repo: Path
    at: str | None
    out: Path
    """Folder of all runs."""
    resume: Path | None
    """A run that goes on."""
    given: tuple[Path | None, ...]
    """Files that the call names: the plan, feedback, prompts, answers."""
    allow_dirty: bool

    @property
    def without(self) -> tuple[Path | None, ...]:
        """What is none of the source: what the call names, and what it named when the run began."""
        from cranfield.agents.recording import left_out_of

        if self.resume is None:
            return self.given
        return (self.resume, *self.given, *left_out_of(self.resume, self.repo))

    @property
    def options(self) -> str:
        """The options of a new run of it as the next command has them, with a space before them."""
        words = ["--repo", str(self.repo), *(["--at", self.at] if self.at else [])]
        words += ["--allow-dirty"] * self.allow_dirty
        return " " + shlex.join([*words, *(["--out", str(self.out)] if self.out != RUNS else [])])

    @property
    def resumed(self) -> str:
        """The options with which the next command goes on with a run of it, with a space before them.

        The commit is that of its manifest, or the one that this call went on with.
        """
        at = f" --at {command_word(self.at)}" if self.at and self.resume else ""
        return f" --repo {command_word(self.repo)}{at}"

    def open_run(self, plan: str | None, **settings: Path | None) -> tuple[Path, Snapshot]:
        """The run folder, new or resumed, and the source that it is of.

        Args:
            plan: a file or a name; of a run that goes on, the one that takes the place of its plan.
            settings: `feedback` and `prompts` of a new run.
        """
        from cranfield.golden.index import RunFolder
        from cranfield.golden.run import create_run, replace_plan
        from cranfield.repo.tree import source_snapshot

        if self.resume is None:
            snapshot = source_snapshot(self.repo, self.at, allow_dirty=self.allow_dirty, without=self.without)
            found, text = read_plan(plan or "")
            return create_run(found, text, snapshot, self.out, **settings), snapshot
        if settings.get("feedback") is not None:
            raise UsageError("a resumed run already has its feedback", expected="--feedback with a new run")
        manifest = RunFolder.open(self.resume).manifest
        if plan is not None:
            replace_plan(self.resume, *read_plan(plan))
        # Whether the folder may differ from the commit was decided when the run began: it must be as it was.
        return self.resume, source_snapshot(
            self.repo,
            self.at or manifest.commit or None,
            allow_dirty=True,
            without=self.without,
            reads_folder=bool(manifest.tree.digest) and self.at is None,
        )

    def refuse_changed(self, run: Path, snapshot: Snapshot) -> None:
        """Refuse a repository whose folder changed while the run was under way.

        Raises:
            UsageError: with the files.
        """
        from cranfield.agents.recording import changed_since
        from cranfield.golden.index import RunFolder
        from cranfield.repo.tree import read_tree

        if snapshot.tree is None:
            return
        now = read_tree(self.repo, snapshot.commit, without=(run, *self.without))
        changed = changed_since(run, RunFolder.open(run).manifest.tree, now)
        if not changed.source:
            return
        got, hint = "records may be of either state of the files", "start a new run"
        if snapshot.commit:
            got = f"the records are of commit {snapshot.commit[:12]}, and are kept"
            go_on = f"cranfield golden run --resume {command_word(run)}{self.resumed} --at {snapshot.commit[:12]}"
            hint = f"`{go_on}` continues with only the commit"
        message = f"the folder of the repository changed during the run: {join_first(changed.source)}"
        raise UsageError(message, path=str(snapshot.root), got=got, hint=hint)


def show_plan(plan: str, source: RunSource) -> Iterator[Report]:
    """Check a plan, and report what it takes.

    Raises:
        Exit: that is over the budget.
    """
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.tree import source_snapshot

    found, _ = read_plan(plan)
    snapshot = source_snapshot(source.repo, source.at, allow_dirty=source.allow_dirty, without=source.without)
    require_valid(found, snapshot)
    measure = f"`cranfield golden plan {command_word(plan)} --measure 3{source.options}`"
    yield from show_cost(estimate(found, snapshot), measure)


def show_cost(estimate: CostEstimate, measure: str = "") -> Iterator[Report]:
    """Report what a plan takes, and the command that measures it where it is named.

    Raises:
        Exit: that is over the budget.
    """
    from cranfield.golden.reports.plan import plan_document

    yield Report(document=plan_document(estimate))
    if any(each.is_likely for each in estimate.over_budget):
        if measure:
            note(f"Hint: {measure} measures the cost on three queries.")
        raise Exit(Status.FAILED)


def plan_file(plan: str | None) -> Path | None:
    """The file of a plan; of one of the package there is none."""
    return Path(plan) if plan is not None and Path(plan).is_file() else None


def print_status(status: RecordStatus) -> None:
    """A line about a record with a new state."""
    reason = f": {status.reason}" if status.reason else ""
    note(f"{status.query_id} {status.state.value}{reason}")


def print_usage(outcome: PipelineOutcome) -> None:
    """What all calls of a run used."""
    spent = outcome.spent
    kept = f"; {count_noun(outcome.n_kept, 'answers')} taken from the run folder" if outcome.n_kept else ""
    note(f"the run so far: {count_noun(spent.requests, 'requests')}, {spent.text(outcome.currency)}{kept}")


def _print_unreadable(outcome: PipelineOutcome) -> None:
    found = [each for each in outcome.result.statuses if each.is_unreadable]
    if not found:
        return
    first = found[0]
    note(f"no readable reply for {count_noun(len(found), 'records')}")
    note(printable(f"first: {first.query_id}, {first.reasons[0].message}"))
    note(
        "Hint: if this happens repeatedly, start a new run with another `output_mode` or more "
        "`limits.corrections` for the model."
    )


def print_waiting(outcome: PipelineOutcome, command: str) -> None:
    """Which records have no answer for now, and the command that goes on with them."""
    waiting = outcome.result.waiting
    kinds = ", ".join(f"{kind} ({n})" for kind, n in Counter(each.kind for each in waiting).items())
    note(f"not finished: {count_noun(len(waiting), 'records')} without an answer: {kinds}")
    first = waiting[0]
    note(printable(f"first: {first.query_id}, {first.role.value}: {first.message}"))
    note(f"next: `{command}` continues with them")


DEFAULT_PLAN = "phase1"


def plan_command(
    plan: PlanArgument = None,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    measure: Annotated[
        int | None,
        Option(
            (
                "Run N queries of different cells through all steps with the models of the plan, and estimate "
                "the cost from them. The answers are stored in a run folder."
            ),
            metavar="N",
        ),
        Ge(1),
    ] = None,
    resume: Annotated[Path | None, Option("With --measure: continue in this run folder.", metavar="RUN")] = None,
    out: OutOption = RUNS,
    replay: ReplayOption = None,
    prompts: PromptsOption = None,
) -> Iterator[Report]:
    """Check a plan and its repository, and estimate the cost in tokens and money.

    No model is called, except with --measure: `--measure 3` is a dry run of three queries, within the budget of the plan.
    `golden run --resume RUN` then makes the whole set, and pays for none of these answers again. Exit codes: 0 the plan can be
    run; 1 it can, and its typical or measured cost is over the budget; 2 it cannot, with every problem; 3 a query of the dry run
    waits, because a model has no answer for now or the budget is used up.
    """
    source = RunSource(repo, at, out, resume, (plan_file(plan), prompts, replay), allow_dirty=allow_dirty)
    if measure is not None:
        yield from _measure(measure, plan, source, replay=replay, prompts=prompts)
        return
    given = {"--resume": resume, "--replay": replay, "--prompts": prompts}
    if unused := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{' and '.join(unused)} without a dry run", expected="--measure N")
    yield from show_plan(plan or DEFAULT_PLAN, source)
    note(f"next: `cranfield golden run {command_word(plan or DEFAULT_PLAN)}{source.options}`")


def _measure(
    n: int, plan: str | None, source: RunSource, *, replay: Path | None, prompts: Path | None
) -> Iterator[Report]:
    from cranfield.golden.plan_cost import estimate, measure, part_of
    from cranfield.golden.run import PipelineOptions

    if source.resume is None:
        part_of(read_plan(plan or DEFAULT_PLAN)[0], n)  # too many are refused before a folder is made
    path, snapshot = source.open_run(plan or (None if source.resume else DEFAULT_PLAN), prompts=prompts)
    note(f"run folder: {path}")
    found = measure(path, snapshot, n, PipelineOptions(replay=replay, prompts=prompts, on_status=print_status))
    print_usage(found.outcome)
    if found.outcome.result.waiting:
        command = f"cranfield golden plan --measure {n} --resume {command_word(path)}{source.resumed}"
        print_waiting(found.outcome, command)
        raise Exit(Status.VOID)
    _print_kept(found, f"cranfield golden run --resume {command_word(path)}{source.resumed}")
    try:
        yield from show_cost(estimate(found.whole, snapshot, found.uses))
    finally:  # also where the cost is over the budget
        source.refuse_changed(path, snapshot)


def _print_kept(found: DryRun, command: str) -> None:
    cells = ", ".join(f"{cell.n} of {cell.task_type} {cell.difficulty}" for cell in found.part.cells)
    note(f"dry run of {count_noun(found.part.total, 'queries')}: {cells}")
    silent = {role: use.n_unreported for role, use in found.uses.items() if use.n_unreported}
    if silent:
        text = ", ".join(f"{n} of {role}" for role, n in silent.items())
        note(f"records without reported tokens, left out: {text}")
    note(f"next: `{command}` creates the set, and reuses these answers")


def status_command(run: RunArgument) -> Iterator[Report]:
    """Show the state of all records of a run: counts by state, the records with their reasons, and the next step.

    The counts add up to the number of drafts: every draft ends in exactly one state.
    """
    from cranfield.golden.index import RunFolder
    from cranfield.golden.reports.golden import run_document
    from cranfield.golden.run import run_status
    from cranfield.golden.use_cases.review import after_status

    folder = RunFolder.open(run)
    status = run_status(folder)
    yield Report(document=run_document(status))
    note(f"next: {after_status(folder, status.records)}")


GateArgument = Annotated[Path, Argument("Test set whose queries expect places in a repository.", metavar="SET")]
TaskTypeOption = Annotated[
    str, Option("Task type of queries that have none: locate, explain, debug, ...", flag="--task-type", metavar="NAME")
]
DifficultyOption = Annotated[
    str, Option("Difficulty of queries that have none: easy, medium or hard.", flag="--difficulty", metavar="NAME")
]


def gate_command(
    testset: GateArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    task_type: TaskTypeOption = "",
    difficulty: DifficultyOption = "",
) -> Report:
    """Check the records of an existing set against a repository. Calls no model and writes nothing.

    What a set does not have, such as facts or a narrative, is missing, not failed: the report says on how many records each
    check could run. Exit codes: 0 no record failed; 1 a record failed; 2 the set or the repository cannot be read.
    """
    from cranfield.agents.recording import now
    from cranfield.app.loading import load
    from cranfield.golden.existing import Defaults, gate_set, import_set
    from cranfield.golden.reports.golden import gate_document
    from cranfield.repo.tree import source_snapshot

    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=(testset,))
    loaded = load(testset)
    imported = import_set(loaded, commit=snapshot.commit, at=now(), defaults=Defaults(task_type, difficulty))
    found = gate_set(loaded, imported, snapshot)
    return Report(
        document=gate_document(found), status=Status.FAILED if found.n_passed < len(found.records) else Status.OK
    )


def enter_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    step: Annotated[EntryStep, Option("Step to resume from; earlier steps are skipped.")] = EntryStep.GATE,
    plan: Annotated[
        str,
        Option("Plan that defines the models; its cells are not used.", metavar="PLAN"),
    ] = "phase1",
    task_type: Annotated[str, Option("Task type of all queries without one.", metavar="NAME")] = "",
    difficulty: Annotated[str, Option("Difficulty of all queries without one.", metavar="NAME")] = "",
    out: OutOption = RUNS,
    testset_format: SetFormatOption = None,
) -> Iterator[Report]:
    """Create a run from an existing test set. It continues at the gate, at the adversary, or with reviewers.

    What a record lacks (facts, a narrative, evidence) is missing, which is no failure of the gate. `golden run --resume`
    goes on with the run.
    """
    from cranfield.app.loading import read_stored
    from cranfield.base.words import count_noun
    from cranfield.golden.existing import Defaults, EntryPlan, enter, gate_set
    from cranfield.golden.index import RunFolder, RunIndex
    from cranfield.golden.reports.golden import gate_document
    from cranfield.golden.use_cases.review import after_run
    from cranfield.repo.tree import source_snapshot

    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=(testset, Path(plan)))
    judged = read_stored(testset, testset_format)
    given = EntryPlan(*read_plan(plan))
    entered = enter(judged, snapshot, out, step, given, Defaults(task_type, difficulty))
    if step is EntryStep.GATE:
        yield Report(document=gate_document(gate_set(judged, entered.imported, snapshot, given.plan.bounds)))
    note(f"{count_noun(len(entered.imported.candidates), 'records')} entered; next step: {step.value}")
    note(f"wrote {entered.folder}")
    statuses = RunIndex(RunFolder.open(entered.folder)).statuses()
    note(f"next: {after_run(entered.folder, statuses, repo)}")


MAX_VOTES = 99


def check_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    models: Annotated[
        list[str],
        Option("Model that votes; several models take turns.", flag="--model", metavar="PROVIDER:NAME"),
    ],
    votes: Annotated[int, Option("Number of votes per row.", metavar="N"), Interval(ge=1, le=MAX_VOTES)] = 3,
    out: Annotated[Path, Option("Folder of votes and results; a second call continues from it.", metavar="DIR")] = Path(
        "row-check"
    ),
    base_url: Annotated[str, Option("Address of the models.", metavar="URL")] = "",
    api_key_env: Annotated[str, Option("Environment variable of the API key.", metavar="NAME")] = "",
    tokens: Annotated[
        int | None, Option("Maximum number of tokens of all votes.", flag="--max-tokens", metavar="N"), Ge(1)
    ] = None,
    concurrency: Annotated[int, Option("Number of concurrent votes.", metavar="N"), Ge(1)] = 4,
    replay: Annotated[Path | None, Option("Use the answers in this file; call no model.", metavar="FILE")] = None,
    apply: Annotated[bool, Option("Write the corrections into SET.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
) -> Iterator[Report]:
    """Check each row of a test set (path, lines, grade) by votes of independent agents, and correct it by majority.

    Rows whose file or lines do not exist or are of no expected entity, and rows without a majority, go to a person: they are
    in OUT/for_people.jsonl.
    The corrections are printed as a diff of SET, after the text of the report, and are in OUT/corrections.diff. Exits with 1
    where a row is not confirmed.
    """
    from cranfield.golden.use_cases.assemble import CheckOptions, check_set

    options = CheckOptions(
        tuple(models), votes, base_url, api_key_env, tokens, concurrency, allow_dirty, replay, on_row=_print_row
    )
    report = check_set(
        testset, repo, out, options, at=at, today=day_of(today), testset_format=testset_format, apply=apply
    )
    yield Report(document=report.document)
    if output.format is OutputFormat.TEXT:
        say(report.diff, end="")
    for path in report.written:
        note(f"wrote {path}")
    if not report.is_confirmed:
        raise Exit(Status.FAILED)


def _print_row(checked: CheckedRow) -> None:
    note(f"{checked.row.query_id} {checked.row.target.label} {checked.state.value}")


def transcripts_command(
    run: RunArgument,
    *,
    html: Annotated[Path, Option("HTML file to write.", metavar="FILE")],
    record: Annotated[list[str] | None, Option("Only these records; repeat for more.", metavar="ID")] = None,
) -> None:
    """Write the transcripts of a run, or of `golden check`, as one HTML file, by record and role; it requests nothing from the network."""
    from cranfield.agents.recording import read_lines
    from cranfield.base.errors import UnknownNameError
    from cranfield.formats.io.files import write_text
    from cranfield.golden.index import RunFolder, Step
    from cranfield.golden.outcomes import TranscriptLine
    from cranfield.golden.records import SCHEMA_VERSION
    from cranfield.reporting.transcripts import transcripts_page

    path = run / Step.TRANSCRIPTS
    lines = (
        read_lines(path, TranscriptLine, SCHEMA_VERSION)
        if path.is_file()
        else RunFolder.open(run).read(Step.TRANSCRIPTS, TranscriptLine)
    )
    known = list(dict.fromkeys(line.query_id for line in lines))
    for name in record or ():
        if name not in known:
            raise UnknownNameError.among("record", name, known)
    shown = [line.model_dump(mode="json") for line in lines if not record or line.query_id in record]
    write_text(html, [transcripts_page(shown, f"Transcripts of {run.resolve().name}")])
    say(f"wrote {html}")


AlphaOption = Annotated[
    float, Option("Significance level over all metrics.", flag="--alpha", metavar="P"), Interval(ge=0.0001, le=0.5)
]


@takes_runs("runs")
def assemble_command(
    run: RunArgument,
    *,
    repo: RepoOption = Path(),
    out: Annotated[Path, Option("Folder of the versions; the newest is the previous version.", metavar="DIR")] = Path(
        "golden"
    ),
    runs: Annotated[
        list[Path] | None, Option("Run of a system to evaluate; repeat for more.", flag="--run", metavar="RUN")
    ] = None,
    baseline: Annotated[Path | None, Option("Baseline file of the gate, committed to git.", metavar="FILE")] = None,
    calibration: Annotated[Path | None, Option("JSON written by `cranfield calibrate`.", metavar="FILE")] = None,
    draft: Annotated[bool, Option("Write a set that is not golden as draft_vX.Y.json.")] = False,
    today: TodayOption = None,
) -> Iterator[Report]:
    """Write the records of a run as a version of a golden set, if every criterion is met.

    Prints each criterion with its result. Exits with 1 if a criterion is not met; the set is then not golden.
    """
    from cranfield.golden.reports.sets import assembly_document
    from cranfield.golden.use_cases.assemble import SetEvidence, assemble

    evidence = SetEvidence(tuple(runs or ()), baseline, calibration)
    assembly = assemble(run, repo, out, evidence, draft=draft, today=day_of(today))
    yield Report(document=assembly_document(assembly.result(draft=draft)))
    for path in assembly.written:
        note(f"wrote {path}")
    if not assembly.is_golden:
        raise Exit(Status.FAILED)


@takes_runs("runs")
def batch_command(
    old: Annotated[Path, Argument("Current golden set, or the folder of its versions.", metavar="BLESSED")],
    new: Annotated[Path, Argument("Test set with only the new records.", metavar="BATCH")],
    *,
    runs: Annotated[
        list[Path] | None,
        Option("Run of a system over the queries of both, to compare its scores.", flag="--run", metavar="RUN"),
    ] = None,
    measure: MeasureOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
) -> Report:
    """Compare a new batch of records with the accepted ones: counts, lengths, word overlaps, and scores of systems.

    Exits with 1 if the batch differs significantly: send it back to its authors.
    """
    from cranfield.app.loading import read_stored
    from cranfield.golden.batch import BatchVerdict, batch_drift
    from cranfield.golden.reports.sets import batch_document
    from cranfield.golden.use_cases.assemble import batch_scores

    blessed, batch = read_stored(old), read_stored(new)
    scores = batch_scores(blessed, batch, runs or (), measure)
    drift = batch_drift(blessed, batch, scores, alpha=alpha, seed=seed)
    return Report(
        document=batch_document(drift), status=Status.FAILED if drift.verdict is BatchVerdict.REQUEUE else Status.OK
    )


def models_command(
    runs: Annotated[list[Path], Argument("Folders of runs, oldest first.", metavar="RUN...")],
    *,
    acceptable: Annotated[float, Option("Acceptable share of rejected records of a model.", metavar="P")] = 0.1,
    unacceptable: Annotated[
        float, Option("Share of rejected records at which a model should be retired.", metavar="P")
    ] = 0.3,
) -> Report:
    """Test whether an oracle or an adversary has too many rejected records, by a sequential test.

    Exits with 1 where a model is to be retired.
    """
    from cranfield.golden.index import RunFolder, RunIndex
    from cranfield.golden.models import model_records
    from cranfield.golden.reports.sets import models_document
    from cranfield.golden.retirement import Decision, ModelTests, SequentialTest, model_histories

    test = SequentialTest(acceptable, unacceptable)
    records = [record for run in runs for record in model_records(RunIndex(RunFolder.open(run)))]
    histories = model_histories(records, test)
    return Report(
        document=models_document(ModelTests(models=histories, test=test)),
        status=Status.FAILED if any(each.decision is Decision.RETIRE for each in histories) else Status.OK,
    )


ProfileOption = Annotated[
    str | None,
    Option(
        (
            "Sample size and ceilings: bootstrap (15 % and one of each cell) or scale (5 %, batches of 40), with "
            "two reviewers; bootstrap-one-person or scale-one-person with one reviewer who reviews again a day later; default: the profile of the plan."
        ),
        flag="--profile",
        metavar="NAME",
        shows_default=False,
    ),
]
BookOption = Annotated[
    str | None, Option("Name of the new book; default: the name of the run folder.", flag="--book", metavar="NAME")
]
ReviewSeedOption = Annotated[
    int | None, Option("Random seed of the sample; default: the seed of the run.", flag="--seed", metavar="N"), Ge(0)
]
EarlierOption = Annotated[
    list[Path] | None,
    Option("Earlier run, for the cumulative rate; repeat for more.", flag="--earlier", metavar="RUN"),
]


def review_command(
    run: RunArgument,
    *,
    repo: RepoOption = Path(),
    profile: ProfileOption = None,
    book: BookOption = None,
    seed: ReviewSeedOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Draw the review sample of a finished run, and create a book for the reviewers.

    After records were sent back and answered again, the same command adds them to the book. Where one person reviews, it opens
    the second look at what he or she decided a day before.
    """
    from cranfield.base.words import count_noun
    from cranfield.golden.review import PROFILES
    from cranfield.golden.use_cases.review import make_review_book, people_steps, second_look_steps

    with closing(open_books(db, create=True)) as store:
        made = make_review_book(run, repo, store, name=book, profile=profile, seed=seed)
        where = store.where
    sample, reviewers = made.sample, PROFILES[made.sample.profile]
    who = "two reviewers" if made.second is None else "one reviewer, the first look"
    say(
        f"book {made.book.name}: {count_noun(made.n_new, 'new records')} for {who}, in {where}\n"
        f"sample: {len(sample.sampled)} of {count_noun(sample.n_batch, 'records')}; "
        f"{sample.n_by_share} required by the share, {sample.n_by_cells} by one of each cell\n"
        f"mandatory records in addition: {len(sample.must_see)}"
    )
    option = _db_option(db)
    steps = [f"`cranfield judge {command_word(made.book.name)}{option}`"] if made.is_open else []
    if (second := made.second) is not None:
        say(f"book {second.book}: {count_noun(second.n_new, 'new records')}, the second look")
        steps += second_look_steps(run, second, repo=repo, db=option)
    steps += people_steps(run, reviewers, made.book.name, repo, option)
    for step in steps or [f"`cranfield golden reviewed {command_word(run)}{option}`"]:
        say(f"next: {step}")


def _db_option(db: str) -> str:
    """The option of a database of books as the next command needs it. An address, which may hold a password, is left out."""
    if db == DEFAULT_DATABASE:
        return ""
    return " --db URL" if "://" in db else f" --db {command_word(db)}"


def reviewed_command(
    run: RunArgument,
    *,
    earlier: EarlierOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> Iterator[Report]:
    """Write the decisions of reviewers into the run, and check the batch against its ceilings.

    Exits with 0 where the batch passed, 1 where a ceiling is breached, 4 where reviews are missing. What failed is written
    to review_feedback.jsonl: give it to the next run with `golden run --feedback`.
    """
    from cranfield.app.command import Status
    from cranfield.base.words import count_noun, join_first
    from cranfield.golden.batch import review_of, write_feedback
    from cranfield.golden.index import RunFolder
    from cranfield.golden.reports.review import review_document
    from cranfield.golden.review import ReviewOutcome
    from cranfield.golden.use_cases.review import after_review, collect_reviews

    with closing(open_books(db)) as store:
        found = collect_reviews(run, store)
    folder = RunFolder.open(run)
    report = review_of(folder, earlier or ())
    written = write_feedback(folder, report)
    note(f"{count_noun(found.n_new, 'new decisions')} of book {found.book}")
    for names, what in (
        (found.undecided, "waiting for a reviewer"),
        ((*found.differing, *(found.second.skipped if found.second else ())), "waiting for a lead"),
        (found.skipped, "that could not be judged, without another reviewer"),
        (
            found.edited_twice,
            "with the same field edited in both reviews: the text of the worse verdict is used, else the second text",
        ),
        (found.late, "changed after they were sent back, dropped or compared: the earlier decision is kept"),
    ):
        if names:
            note(f"{count_noun(len(names), 'records')} {what}: {join_first(names)}")
    report = replace(report, next_steps=after_review(run, found, report, folder.manifest.source, _db_option(db)))
    yield Report(document=review_document(report), written=written)
    code = {ReviewOutcome.BREACHED: Status.FAILED, ReviewOutcome.INCOMPLETE: Status.INCONCLUSIVE}.get(report.outcome)
    if code is not None:
        raise Exit(code)
