"""An experiment from its plan: its folder, with everything that it depends on, and the runs of its cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cranfield.agents.budget import Budget
from cranfield.agents.protocol import Backend
from cranfield.agents.recording import PLAN, now, tree_files
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError, UsageError
from cranfield.base.version import __version__
from cranfield.benefit.agent import AgentSetup, open_agents
from cranfield.benefit.coding import load_coding_tasks
from cranfield.benefit.folder import TASKS, ExperimentFolder, ExperimentManifest
from cranfield.benefit.plan import BenefitPlan, ToolServer
from cranfield.benefit.plan_check import INSTRUCTIONS, CheckedPlan, check_plan
from cranfield.benefit.records import CellRecord, PreflightRecord
from cranfield.benefit.runner import RunOutcome, run_cells
from cranfield.benefit.source import record_tree, same_source
from cranfield.benefit.tool_check import check_tools
from cranfield.formats.io.files import shown, write_text
from cranfield.formats.io.yaml_text import yaml_text
from cranfield.formats.testsets.golden_json import files_of_set
from cranfield.repo.snapshot import Snapshot, snapshot_digest


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How cells are run."""

    source: Backend | None = None
    """Answers in the place of every model, for tests."""
    on_cell: Callable[[CellRecord], None] = lambda _: None
    """Called after each run of a cell."""
    allow_dirty: bool = False
    """Go on where ignored files of the repository are not as when the experiment began."""


def create_experiment(plan: BenefitPlan, folder: Path, experiments: Path, *, allow_dirty: bool = False) -> Path:
    """Check a plan, and make the folder of an experiment of it.

    The folder holds the plan with its instructions written out, and a copy of its tasks: what changes outside of it
    changes nothing in the experiment.

    Args:
        plan: checked before anything is written.
        folder: that its paths are relative to.
        experiments: folder of all experiments.
        allow_dirty: accept a repository with uncommitted changes.

    Raises:
        ConfigError: with every problem of the plan.
    """
    return write_experiment(
        check_plan(plan, folder, allow_dirty=allow_dirty, without=(experiments,)), folder, experiments
    )


def write_experiment(checked: CheckedPlan, folder: Path, experiments: Path) -> Path:
    """Make the folder of an experiment of a plan that was checked.

    Args:
        checked: the plan, its tasks, and its repository as it was read.
        folder: that its paths are relative to.
        experiments: folder of all experiments.
    """
    plan = checked.plan
    whole, files = _self_contained(checked, folder)
    manifest = ExperimentManifest(
        name=plan.name,
        created_at=now(),
        cranfield_version=__version__,
        plan_digest=whole.digest,
        labels_digest=checked.tasks.labels_digest,
        commit=checked.commit,
        snapshot_digest="" if checked.snapshot is None else snapshot_digest(checked.snapshot),
        tree=checked.tree,
        notes=checked.notes,
    )
    path = ExperimentFolder.create(
        experiments, manifest, {PLAN: _text(whole).encode(), **files, **tree_files(checked.snapshot)}
    )
    if ExperimentFolder.open(path).tasks().tasks != checked.tasks.tasks:
        hint = "put everything into one file, with its metadata next to it"
        raise ConfigError("the copy of the tasks differs", path=shown(path / TASKS), hint=hint)
    return path


def planned_digest(checked: CheckedPlan, folder: Path) -> str:
    """Digest of a plan as its experiments and their results have it.

    Args:
        checked: a plan that can be run.
        folder: that its paths are relative to.
    """
    return _self_contained(checked, folder)[0].digest


def replace_plan(path: Path, plan: BenefitPlan, folder: Path) -> None:
    """Let an experiment go on with another budget, other addresses, another pace and other attempts.

    Raises:
        ConfigError: with every problem of the plan.
        UsageError: the plan differs in something that the cells depend on.
    """
    whole, files = _self_contained(check_plan(plan, folder, allow_dirty=True, without=(path,)), folder)
    with ExperimentFolder.writing(path) as opened:
        before = opened.plan.content
        differing = [name for name, value in whole.content.items() if value != before[name]]
        differing += [name for name, data in files.items() if not _is_content(path / name, data)]
        if differing:
            expected = "the plan of the experiment; only budget, attempts, and addresses and pace of models may differ"
            got, hint = f"other {', '.join(differing)}", "begin another experiment"
            raise UsageError(
                "the experiment has a different plan", path=shown(path), expected=expected, got=got, hint=hint
            )
        write_text(path / PLAN, [_text(whole)])


def execute(path: Path, options: RunOptions | None = None) -> RunOutcome:
    """Run the cells of an experiment that have no end.

    Raises:
        UsageError: the repository is not as it was, or another process writes in the folder.
        PreflightError: a tool under test is not as the plan wants it.
        InputError: the folder is damaged.
    """
    chosen = options or RunOptions()
    with ExperimentFolder.writing(path) as folder:
        snapshot = same_source(folder, allow_dirty=chosen.allow_dirty)
        try:
            return event_loop().run(_execute(folder, snapshot, chosen))
        finally:
            record_tree(folder, "end", allowed=chosen.allow_dirty)


async def _execute(folder: ExperimentFolder, snapshot: Snapshot | None, options: RunOptions) -> RunOutcome:
    plan = folder.plan
    budget = Budget(plan.budget.tokens, plan.budget.money, plan.budget.prices)
    async with open_agents(AgentSetup(plan, folder.path, snapshot, options.source)) as agents:
        return await run_cells(folder, folder.tasks(), agents, budget, options.on_cell)


def preflights_of(path: Path, source: Backend | None = None) -> list[PreflightRecord]:
    """Ask the tools of an experiment what they serve, and run no cell.

    Raises:
        UsageError: as `execute`.
        PreflightError: a tool under test is not as the plan wants it.
        InputError: the folder is damaged.
    """
    with ExperimentFolder.writing(path) as folder:
        event_loop().run(_ask_tools(folder, same_source(folder, allow_dirty=False), source))
        return folder.preflights()


async def _ask_tools(folder: ExperimentFolder, snapshot: Snapshot | None, source: Backend | None) -> None:
    async with open_agents(AgentSetup(folder.plan, folder.path, snapshot, source)) as agents:
        await check_tools(folder, agents)


def _self_contained(checked: CheckedPlan, folder: Path) -> tuple[BenefitPlan, dict[str, bytes]]:
    """The plan with its instructions written out and paths that hold in any folder, and copies of the files of its tasks."""
    plan = checked.plan
    source, files = plan.tasks, dict[str, bytes]()
    if source.coding is not None:
        name = f"{TASKS}/coding.json"
        files[name] = load_coding_tasks(source.coding, folder).model_dump_json(indent=2).encode()
        source = source.model_copy(update={"coding": name})
    elif source.testset is not None:
        path = folder / source.testset
        for each in files_of_set(path):
            if each.is_file():
                files[f"{TASKS}/{each.name}"] = each.read_bytes()
        source = source.model_copy(update={"testset": f"{TASKS}/{path.name}"})
    tools = {name: _with_text(server, folder) for name, server in plan.tools.items()}
    where = {"repo": str((folder / plan.repo).resolve()), "at": checked.commit} if plan.repo else {}
    return plan.model_copy(update={"tasks": source, "tools": tools, **where}), files


def _is_content(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _with_text(server: ToolServer, folder: Path) -> ToolServer:
    if not server.instructions.startswith(INSTRUCTIONS):
        return server
    path = folder / server.instructions.removeprefix(INSTRUCTIONS)
    return server.model_copy(update={"instructions": path.read_text(encoding="utf-8")})


def _text(plan: BenefitPlan) -> str:
    return yaml_text(plan.model_dump(mode="json", exclude_defaults=True))
