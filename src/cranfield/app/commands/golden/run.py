"""`cranfield golden run`: make a golden set by its plan, or go on with a run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Exit, Report, Status, note
from cranfield.app.commands.golden.options import RUNS, AtOption, OutOption, RepoOption, read_plan
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.errors import UsageError
from cranfield.options.declaration import Argument, Option
from cranfield.words import command_word, first_of, n_of, or_list, printable

if TYPE_CHECKING:
    from cranfield.golden.index import RecordStatus
    from cranfield.golden.plan_cost import Estimate
    from cranfield.golden.run import RunOutcome
    from cranfield.repo.snapshot import Snapshot

PlanOption = Annotated[
    str | None,
    Argument(
        "Plan file, or the name of a plan of the package. With --resume: only where budget or addresses differ.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
ResumeOption = Annotated[
    Path | None, Option("Go on with this run; no answer is requested again.", flag="--resume", metavar="RUN")
]
UntilOption = Annotated[
    str,
    Option(
        "Last step: author, screen, oracle, gate, adversary or agree; default: agree.", flag="--until", metavar="STEP"
    ),
]
ReplayOption = Annotated[
    Path | None,
    Option("Take all answers from this calls.jsonl of another run; ask no model.", flag="--replay", metavar="FILE"),
]
FeedbackOption = Annotated[
    Path | None,
    Option("Failures that people found in an earlier batch (JSON Lines).", flag="--feedback", metavar="FILE"),
]
PromptsOption = Annotated[
    Path | None,
    Option("Folder of prompts in the place of those of the package.", flag="--prompts", metavar="DIR"),
]
DryRunOption = Annotated[bool, Option("Check the plan and estimate its cost; ask no model.", flag="--dry-run")]


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
    """Make candidates, answers and reviews by a plan: author, screen, oracle, gate, adversary, agreement.

    Every answer of a model is written to the run folder as it comes; a run that was interrupted goes on with --resume.
    Exit codes: 0 every record has an end, or the last step was reached; 2 invalid plan, source or run folder; 3 records
    wait, because a model has no answer for now or the budget is used up; 130 interrupted.
    """
    from cranfield.agents.kept import Kept
    from cranfield.agents.record_folder import PLAN
    from cranfield.app.golden_review import after_run
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.pipeline import Until
    from cranfield.golden.plan import load_plan
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import RunOptions, execute, run_status
    from cranfield.reporting.documents.golden import run_document
    from cranfield.reporting.documents.golden_plan import cost_verdict

    if until not in list(Until):
        raise UsageError(f"--until is {until!r}", expected=or_list(list(Until)))
    if plan is None and resume is None:
        raise UsageError("neither a plan nor a run", expected="PLAN, or --resume RUN")
    source = Source(repo, at, out, resume, (plan_file(plan), feedback, prompts, replay), allow_dirty=allow_dirty)
    if dry_run:
        yield from show_plan(plan or str(resume / PLAN if resume else ""), source)
        return
    if replay is not None:
        Kept(replay)  # a damaged file is refused before a folder is made
    path, snapshot = source.open_run(plan, feedback=feedback, prompts=prompts)
    note(f"run folder: {path}")
    if resume is None and (cost := estimate(load_plan(path / PLAN), snapshot)).over_budget:
        note(cost_verdict(cost))
    options = RunOptions(Until(until), replay=replay, prompts=prompts, on_status=print_status)
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
class Source:
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
        from cranfield.agents.tree_record import left_out_of

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
        from cranfield.golden.folder import RunFolder
        from cranfield.golden.run import create_run, replace_plan
        from cranfield.repo.source import source_snapshot

        if self.resume is None:
            snapshot = source_snapshot(self.repo, self.at, allow_dirty=self.allow_dirty, without=self.without)
            found, text = read_plan(plan or "")
            return create_run(found, text, snapshot, self.out, **settings), snapshot
        if settings.get("feedback") is not None:
            raise UsageError("a run that goes on has its feedback already", expected="--feedback with a new run")
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
        from cranfield.agents.tree_record import changed_since
        from cranfield.golden.folder import RunFolder
        from cranfield.repo.tree import read_tree

        if snapshot.tree is None:
            return
        now = read_tree(self.repo, snapshot.commit, without=(run, *self.without))
        changed = changed_since(run, RunFolder.open(run).manifest.tree, now)
        if not changed.source:
            return
        got, hint = "records may be of either state", "begin another run"
        if snapshot.commit:
            got = f"the records are of commit {snapshot.commit[:12]}, and stand"
            go_on = f"cranfield golden run --resume {command_word(run)}{self.resumed} --at {snapshot.commit[:12]}"
            hint = f"`{go_on}` goes on with the commit alone"
        message = f"the folder of the repository changed during the run: {first_of(changed.source)}"
        raise UsageError(message, path=str(snapshot.root), got=got, hint=hint)


def show_plan(plan: str, source: Source) -> Iterator[Report]:
    """Check a plan, and report what it takes.

    Raises:
        Exit: that is over the budget.
    """
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.source import source_snapshot

    found, _ = read_plan(plan)
    snapshot = source_snapshot(source.repo, source.at, allow_dirty=source.allow_dirty, without=source.without)
    require_valid(found, snapshot)
    measure = f"`cranfield golden plan {command_word(plan)} --measure 3{source.options}`"
    yield from show_cost(estimate(found, snapshot), measure)


def show_cost(estimate: Estimate, measure: str = "") -> Iterator[Report]:
    """Report what a plan takes, and the command that measures it where it is named.

    Raises:
        Exit: that is over the budget.
    """
    from cranfield.reporting.documents.golden_plan import plan_document

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


def print_usage(outcome: RunOutcome) -> None:
    """What all calls of a run used."""
    spent = outcome.spent
    kept = f"; {n_of(outcome.n_kept, 'answers')} taken from the run folder" if outcome.n_kept else ""
    note(f"the run so far: {n_of(spent.requests, 'requests')}, {spent.text(outcome.currency)}{kept}")


def _print_unreadable(outcome: RunOutcome) -> None:
    found = [each for each in outcome.result.statuses if each.is_unreadable]
    if not found:
        return
    first = found[0]
    note(f"no reply could be read in {n_of(len(found), 'records')}")
    note(printable(f"first: {first.query_id}, {first.reasons[0].message}"))
    note(
        "Hint: if the same comes each time, the model needs another `output_mode` or more `limits.corrections`, in a new run."
    )


def print_waiting(outcome: RunOutcome, command: str) -> None:
    """Which records have no answer for now, and the command that goes on with them."""
    waiting = outcome.result.waiting
    kinds = ", ".join(f"{kind} ({n})" for kind, n in Counter(each.kind for each in waiting).items())
    note(f"not finished: {n_of(len(waiting), 'records')} without an answer: {kinds}")
    first = waiting[0]
    note(printable(f"first: {first.query_id}, {first.role.value}: {first.message}"))
    note(f"next: `{command}` goes on with them")
