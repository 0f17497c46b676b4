"""A run from its plan: the checks before it, its folder, and the pipeline over its models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cranfield.agents.budget import Spent
from cranfield.agents.protocol import Backend
from cranfield.agents.recording import CALLS, PLAN, TreeRecord, now, read_lines, require_same_tree, tree_files
from cranfield.agents.settings import NOT_CONTENT
from cranfield.agents.tools.source import SourceTools
from cranfield.base.concurrency.loop import event_loop, run_all
from cranfield.base.errors import ConfigError, InputError, UsageError
from cranfield.base.version import __version__
from cranfield.formats.io.files import shown, write_text
from cranfield.golden.index import FEEDBACK, RecordStatus, RunFolder, RunIndex
from cranfield.golden.models import open_models, role_settings, shared_model_problems
from cranfield.golden.outcomes import RunManifest
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.plan import Plan, load_plan
from cranfield.golden.plan_check import check_plan, model_problems
from cranfield.golden.records import SCHEMA_VERSION, QueryCandidate, ReviewFeedback
from cranfield.golden.roles import NAMES, RolePrompts
from cranfield.golden.states import ENTERS_AT, PLANNED, STATES, EntryStep, State
from cranfield.golden.steps.context import (
    StepContext,
    Waiting,
    WaitingError,
    answer,
    author_all,
    check_answer,
    conclude,
    queue,
    reopen,
    reserve_rest,
    review,
    screen,
)
from cranfield.model.results import Record
from cranfield.repo.secret_files import Withheld, find_withheld
from cranfield.repo.snapshot import GitHistory, Snapshot, snapshot_digest


class Until(StrEnum):
    """The last step of a call."""

    AUTHOR = "author"
    SCREEN = "screen"
    ORACLE = "oracle"
    GATE = "gate"
    ADVERSARY = "adversary"
    AGREE = "agree"

    def reaches(self, other: Until) -> bool:
        """Whether `other` is this step or one before it."""
        steps = list(Until)
        return steps.index(other) <= steps.index(self)


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Where every record stands after a call."""

    statuses: tuple[RecordStatus, ...]
    waiting: tuple[Waiting, ...]
    """Records that have no answer for now; the run can be resumed."""

    @property
    def counts(self) -> Counter[State]:
        """Records by state."""
        return Counter(each.state for each in self.statuses)

    @property
    def is_complete(self) -> bool:
        """Whether every record has an end."""
        return all(STATES[each.state].is_end for each in self.statuses)


async def run_pipeline(context: StepContext, until: Until = Until.AGREE) -> PipelineResult:
    """Take every record as far as it goes, up to a step."""
    for record in context.index.agreements:  # a process may be killed between two files
        queue(context, record)
    reopen(context)
    if context.index.folder.manifest.source == PLANNED:
        await _planned(context, until)
    else:
        await _advance_all(context, list(context.index.candidates), until)
    return PipelineResult(tuple(context.index.statuses()), tuple(context.waiting))


async def _planned(context: StepContext, until: Until) -> None:
    await author_all(context)
    if context.waiting or not until.reaches(Until.SCREEN):
        return
    judged: set[str] = set()
    accepted: list[QueryCandidate] = []
    while chosen := screen(context, accepted, judged):
        await _advance_all(context, [each.query_id for each in chosen], until)
        if context.waiting:
            return
        accepted = [
            each for each in (*accepted, *chosen) if STATES[context.index.status(each.query_id).state].fills_cell
        ]
    if until is Until.AGREE:
        reserve_rest(context, judged)


async def _advance_all(context: StepContext, query_ids: list[str], until: Until) -> None:
    await run_all(_advance(context, query_id, until) for query_id in query_ids)


async def _advance(context: StepContext, query_id: str, until: Until) -> None:
    """Take a record from step to step, up to its end or the last step of the call."""
    try:
        while await _step(context, query_id, until):
            pass
    except WaitingError as error:
        context.waiting.append(error.waiting)


async def _step(context: StepContext, query_id: str, until: Until) -> bool:
    """Take the next step; False where there is none."""
    state = context.index.status(query_id).state
    if state is State.AUTHORED and until.reaches(Until.ORACLE):
        await answer(context, query_id)
    elif state is State.ANSWERED and until.reaches(Until.GATE):
        await context.parse()
        is_checked = _enters_after_gate(context, query_id) or check_answer(context, query_id)
        if not is_checked or not until.reaches(Until.ADVERSARY):
            return False
        await review(context, query_id)
    elif state is State.REPORTED and until.reaches(Until.AGREE):
        await conclude(context, query_id)
    else:
        return False
    return True


def _enters_after_gate(context: StepContext, query_id: str) -> bool:
    """Whether the answer is one of an existing set that is known to pass the gate; a new answer of an oracle is not."""
    entry = context.index.folder.manifest.more.get(ENTERS_AT)
    return entry == EntryStep.ADVERSARY and context.index.attempt(query_id) == 1


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """How the pipeline is run."""

    until: Until = Until.AGREE
    replay: Path | None = None
    """Answers of another run, in the place of models."""
    source: Backend | None = None
    """Answers in the place of every model, for tests."""
    prompts: Path | None = None
    """Folder of prompts that replace the built-in ones."""
    on_status: Callable[[RecordStatus], None] = lambda _: None
    """Called where a record has a new state."""


@dataclass(frozen=True, slots=True)
class PipelineOutcome:
    """What a call of the pipeline did."""

    result: PipelineResult
    spent: Spent
    """By all calls of the run."""
    currency: str
    """Currency of its money."""
    n_kept: int
    """Answers that were taken from the run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus(Record):
    """Where the records of a run stand."""

    uncommitted: str
    """That of the manifest."""
    run: RunManifest
    planned: int | None
    """Drafts that the plan of the run wants; None of a run over an existing set."""
    states: Mapping[State, int]
    """Every state, and its records."""
    records: tuple[RecordStatus, ...]


def run_status(folder: RunFolder) -> RunStatus:
    """Where the records of a run stand.

    Raises:
        InputError: the folder is damaged.
    """
    manifest, records = folder.manifest, RunIndex(folder).statuses()
    counts = Counter(each.state for each in records)
    return RunStatus(
        uncommitted=manifest.tree.uncommitted,
        run=manifest,
        planned=load_plan(folder.path / PLAN).n_drafts if manifest.source == PLANNED else None,
        states={state: counts[state] for state in STATES},
        records=tuple(records),
    )


def require_valid(plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a plan that cannot be run.

    Raises:
        ConfigError: with every problem.
    """
    problems = [*check_plan(plan, snapshot), *shared_model_problems(plan)]
    if problems:
        raise ConfigError(problems)


def require_models(plan: Plan) -> None:
    """Refuse a plan whose models cannot work together, whatever its cells are.

    Raises:
        ConfigError: with every problem.
    """
    problems = [*model_problems(plan), *shared_model_problems(plan)]
    if problems:
        raise ConfigError(problems)


def withheld_files(plan: Plan, snapshot: Snapshot) -> Withheld:
    """Files that no tool shows: what looks like a secret, and what the plan adds."""
    return find_withheld(snapshot, patterns=plan.secrets.patterns, exempt=plan.secrets.exempt)


def manifest_of(plan: Plan, snapshot: Snapshot, *, source: str = PLANNED, prompts: Path | None = None) -> RunManifest:
    """What a run of a plan over a snapshot is of.

    Args:
        plan: with its models.
        snapshot: that the roles read.
        source: `plan`, or the name of the existing set whose records enter.
        prompts: folder of prompts in the place of those of the package.
    """
    used, withheld = RolePrompts.load(prompts), withheld_files(plan, snapshot)
    oracle, adversary = plan.models.oracle.model, plan.models.adversary.model
    notes = [f"oracle and adversary are the same model: {oracle}"] if oracle == adversary else []
    notes += [f"files not withheld as requested: {each}" for each in withheld.not_honoured]
    return RunManifest(
        name=plan.name,
        created_at=now(),
        cranfield_version=__version__,
        plan_digest=plan.digest,
        commit=snapshot.commit,
        snapshot_digest=snapshot_digest(snapshot),
        tree=TreeRecord.of(snapshot),
        source=source,
        models={role: settings.model for role, settings in role_settings(plan).items()},
        prompts={used.used(name).label: used.used(name).digest for name in NAMES},
        tool_versions=_tools(plan, snapshot).tool_versions(),
        withheld={path: str(reason) for path, reason in sorted(withheld.names.items())},
        notes=tuple(notes),
        seed=plan.seed,
    )


def create_run(
    plan: Plan,
    text: str,
    snapshot: Snapshot,
    runs: Path,
    *,
    prompts: Path | None = None,
    feedback: Path | None = None,
) -> Path:
    """Check a plan, and make the folder of a run of it.

    Args:
        plan: checked before anything is written.
        text: of the plan, as it was read; it is copied.
        snapshot: that the roles read.
        runs: folder of all runs.
        prompts: folder of prompts in the place of those of the package.
        feedback: failures that people found in an earlier batch, JSON Lines; they are copied.

    Raises:
        ConfigError: with every problem of the plan.
        InputError: with every line of the feedback that is damaged.
    """
    require_valid(plan, snapshot)
    found = [] if feedback is None else read_lines(feedback, ReviewFeedback, SCHEMA_VERSION)
    others = {PLAN: text.encode(), **tree_files(snapshot)}
    path = RunFolder.create(runs, manifest_of(plan, snapshot, prompts=prompts), others)
    if found:
        write_text(path / FEEDBACK, [each.model_dump_json() + "\n" for each in found])
    return path


def replace_plan(path: Path, plan: Plan, text: str) -> None:
    """Let a run go on with another budget, other addresses and another pace.

    Raises:
        UsageError: the plan differs in something that the records depend on.
    """
    with RunFolder.writing(path):
        if _content(load_plan(path / PLAN)) != _content(plan):
            expected = f"the plan of the run; only budget and {', '.join(sorted(NOT_CONTENT))} may differ"
            raise UsageError(
                "the run has a different plan", path=shown(path), expected=expected, hint="start a new run"
            )
        write_text(path / PLAN, [text])


def execute(path: Path, snapshot: Snapshot, options: PipelineOptions | None = None) -> PipelineOutcome:
    """Run the pipeline over a run folder, from where it stands.

    Raises:
        UsageError: the source is another one than the run began with, or another process writes in the folder.
        InputError: the folder is damaged.
    """
    chosen = options or PipelineOptions()
    with RunFolder.writing(path) as folder:
        require_same(folder, snapshot, chosen)
        return run_plan(folder, load_plan(path / PLAN), snapshot, chosen, calls=path / CALLS)


def run_plan(
    folder: RunFolder, plan: Plan, snapshot: Snapshot, options: PipelineOptions, *, calls: Path
) -> PipelineOutcome:
    """Run the pipeline over a folder that is open for writing.

    Args:
        folder: of the records.
        plan: of the queries.
        snapshot: that the roles read.
        options: see there.
        calls: file that answers of models are kept in.
    """
    return event_loop().run(_run_plan(folder, plan, ParsedSource(snapshot), options, calls))


async def _run_plan(
    folder: RunFolder, plan: Plan, source: ParsedSource, options: PipelineOptions, calls: Path
) -> PipelineOutcome:
    tools = _tools(plan, source.snapshot, folder.manifest.withheld)
    feedback = folder.path / FEEDBACK
    try:
        async with open_models(plan, calls, source=options.source, replay=options.replay) as (
            kept,
            budget,
        ):
            context = StepContext(
                plan=plan,
                index=RunIndex(folder),
                source=source,
                prompts=RolePrompts.load(options.prompts),
                kept=kept,
                tools=tools,
                feedback=read_lines(feedback, ReviewFeedback, SCHEMA_VERSION) if feedback.is_file() else (),
                on_status=options.on_status,
            )
            result = await run_pipeline(context, options.until)
            return PipelineOutcome(result, budget.spent, budget.prices.currency, kept.n_kept)
    finally:
        await tools.aclose()


def _tools(plan: Plan, snapshot: Snapshot, withheld: Mapping[str, str] | None = None) -> SourceTools:
    needs_history = any(cell.task_type == "review" for cell in plan.cells)
    history = GitHistory.of_snapshot(snapshot) if snapshot.is_commit and needs_history else None
    return SourceTools(snapshot, git=history, withheld=withheld or ())


def require_same(folder: RunFolder, snapshot: Snapshot, options: PipelineOptions) -> None:
    """Refuse to go on with another source, with another state of its folder, or with other prompts.

    Raises:
        UsageError: the source is another one, or its folder changed.
        InputError: the prompts are.
    """
    manifest, where, prompts = folder.manifest, shown(folder.path), RolePrompts.load(options.prompts)
    if snapshot_digest(snapshot) != manifest.snapshot_digest:
        expected = f"commit {manifest.commit}" if manifest.commit else "the initial files of the run"
        got = snapshot.commit or "other files"
        raise UsageError("the run has a different source", path=where, expected=expected, got=got, parameters=("at",))
    # Ignored files may differ: no role reads one.
    require_same_tree(folder.path, manifest.tree, snapshot.tree, allow_dirty=True, names_commit=True)
    digests = {prompts.used(name).label: prompts.used(name).digest for name in NAMES}
    changed = sorted(label for label, digest in manifest.prompts.items() if digests.get(label) != digest)
    if changed:
        raise InputError(
            "the run was started with other prompts", path=where, got=", ".join(changed), hint="start a new run"
        )


def _content(plan: Plan) -> str:
    """What records depend on."""
    models = {role: settings.content for role, settings in role_settings(plan).items()}
    return repr((models, plan.model_dump(exclude={"budget", "models"})))
