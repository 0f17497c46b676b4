"""A plan against its tasks, its repository and itself, before anything is asked of a model or a tool."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.agents.pydantic_ai_backend import split_model
from cranfield.agents.recording import TreeRecord
from cranfield.agents.settings import LimitSettings, ModelSettings
from cranfield.base.errors import ConfigError, CranfieldError, Problem, did_you_mean, shorten
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.benefit.delivery import preflight_problems
from cranfield.benefit.mcp_tools import server_command, variables_of
from cranfield.benefit.plan import Agent, ArmRole, BenefitPlan, SuccessBy
from cranfield.benefit.records import CellKey, PreflightRecord
from cranfield.benefit.runner import order_digest, reservation, schedule
from cranfield.benefit.source import labels_in
from cranfield.benefit.tasks import Task, TaskSet, load_tasks
from cranfield.config.strict import ENV, fill_text
from cranfield.formats.testsets.golden_json import files_of_set
from cranfield.model.results import Record
from cranfield.repo.git import is_same_commit
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree import require_clean, source_snapshot

ASSUMED_SPREAD = 0.5
"""Standard deviation of the differences of success between arms, over tasks, before any is known: that of tasks of medium
difficulty whose two results agree as often as a correlation of .5 makes them."""
INSTRUCTIONS = "file:"
"""Begins instructions that stand in a file."""
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
"""Its first argument that ends with `.py` is a script, unless an option stands before it."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that can be run."""

    plan: BenefitPlan
    tasks: TaskSet
    snapshot: Snapshot | None
    """Snapshot of the repository; None: the tasks need none."""
    notes: tuple[str, ...]
    """What is allowed, and worth knowing before the run."""

    @property
    def commit(self) -> str:
        """Commit of the repository; empty without one."""
        return "" if self.snapshot is None else self.snapshot.commit

    @property
    def tree(self) -> TreeRecord:
        """State of the folder of the repository."""
        return TreeRecord.of(self.snapshot)

    @property
    def cells(self) -> tuple[CellKey, ...]:
        """In their order."""
        return schedule(self.plan, self.tasks.tasks)

    @property
    def most(self) -> tuple[int | None, float | None]:
        """Tokens and money of all cells, by the limits of a cell; None: there is no limit, or no price."""
        tokens, money = reservation(self.plan)
        n = len(self.cells)
        return tokens * n or None, money * n or None

    def result(self, digest: str, tools: Sequence[PreflightRecord]) -> PlanResult:
        """Its record.

        Args:
            digest: of the plan, as its results will have it.
            tools: what each tool under test serves.
        """
        plan, cells, tree = self.plan, self.cells, self.tree
        tokens, money = self.most
        return PlanResult(
            uncommitted=tree.uncommitted,
            plan=plan.name,
            digest=digest,
            order_digest=order_digest(cells),
            commit=self.commit,
            tree=tree,
            labels_digest=self.tasks.labels_digest,
            n_tasks=len(self.tasks.tasks),
            min_tasks=plan.rule.min_tasks,
            seeds=plan.seeds,
            arms={role: arm.name for role, arm in plan.arms.items()},
            cells=tuple(map(str, cells)),
            currency=plan.budget.prices.currency,
            tokens_by_limits=tokens,
            money_by_limits=money,
            has_judge=plan.judge is not None,
            judge_tokens_at_most=plan.budget.judge_tokens,
            judge_money_at_most=plan.budget.judge_money,
            spread=ASSUMED_SPREAD,
            strata=tuple(detectable_lifts(plan, self.tasks.tasks)),
            tools=tuple(tools),
            left_out=dict(self.tasks.left_out),
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class StratumPower:
    """What the tasks of a stratum can show."""

    stratum: str
    """`task_type=locate, difficulty=easy`; `all`."""
    n_tasks: int
    detectable: float | None
    """Lift of success that is found four times of five; None: too few tasks for a verdict, or not even a lift of 1 is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult(Record):
    """A plan that can be run: its cells, what they can cost, and what its tasks can show."""

    uncommitted: str
    plan: str
    """Its name."""
    digest: str
    order_digest: str
    commit: str
    tree: TreeRecord
    labels_digest: str
    n_tasks: int
    min_tasks: int
    """That a verdict takes."""
    seeds: int
    arms: Mapping[ArmRole, str]
    cells: tuple[str, ...]
    """In their order."""
    currency: str
    tokens_by_limits: int | None
    """Tokens of all cells, by the limits of a cell; None: no limit."""
    money_by_limits: float | None
    has_judge: bool
    judge_tokens_at_most: int | None
    judge_money_at_most: float | None
    spread: float
    """Spread of the differences of tasks, which `strata` assume."""
    strata: tuple[StratumPower, ...]
    tools: tuple[PreflightRecord, ...]
    """What each tool under test serves."""
    left_out: Mapping[str, str]
    notes: tuple[str, ...]


def check_plan(
    plan: BenefitPlan, folder: Path, *, allow_dirty: bool = False, without: Collection[Path] = ()
) -> CheckedPlan:
    """Read the tasks of a plan, and compare them with its repository.

    Args:
        plan: to check.
        folder: that its paths are relative to.
        allow_dirty: accept a repository with uncommitted changes.
        without: what is not looked at in its folder besides the files that the plan names: the plan, and what the experiment writes.

    Raises:
        ConfigError: with every problem.
    """
    problems = [
        *_arm_problems(plan),
        *_agent_problems(plan.agent),
        *_limit_problems(plan),
        *_tool_problems(plan, folder),
        *_budget_problems(plan),
        *_judge_budget_problems(plan),
    ]
    tasks, snapshot = None, None
    try:
        tasks = load_tasks(plan, folder)
    except CranfieldError as error:
        problems += error.problems
    if tasks is not None:
        problems += _success_problems(plan)
        problems += _commit_problems(plan, tasks)
        try:
            snapshot = _snapshot(plan, tasks, folder, (*_named_files(plan, folder), *without), allow_dirty=allow_dirty)
        except CranfieldError as error:
            problems += error.problems
        else:
            problems += _source_problems(tasks, snapshot)
    if problems or tasks is None:
        raise ConfigError(problems)
    notes = [*_notes(plan, tasks), *(() if snapshot is None else _tree_notes(plan, snapshot, folder, without))]
    return CheckedPlan(plan, tasks, snapshot, tuple(notes))


def machine_problems(plan: BenefitPlan) -> list[Problem]:
    """What this machine lacks to run a plan: programs of agents and tools, and keys and addresses of models."""
    models = {"success.judge": plan.success.judge}
    if plan.agent.kind == "reference":
        models = {"agent.model": plan.agent.model, **models}
    problems = [each for where, model in models.items() if model is not None for each in _model_problems(where, model)]
    problems += _missing_programs(plan)
    if plan.agent.kind == "reference":
        return problems
    from cranfield.benefit.external.opening import plan_problems

    return [*plan_problems(plan), *problems]


def detectable_lifts(plan: BenefitPlan, tasks: Sequence[Task]) -> list[StratumPower]:
    """The smallest lift of success that each stratum can show, under `ASSUMED_SPREAD`: cells, margins, all tasks.

    As in the verdict, alpha is divided by the number of tests of a kind: one of success and one of tokens in each stratum.
    """
    from cranfield.stats.power import minimal_detectable_effect

    def label(task: Task, names: Iterable[str]) -> str:
        return ", ".join(f"{name}={task.strata.get(name, '')}" for name in names)

    def powers(counts: Mapping[str, int]) -> Iterator[StratumPower]:
        n_tests = 2 * sum(n >= plan.rule.min_tasks for n in counts.values())
        for stratum, n in counts.items():
            found = None
            if n >= plan.rule.min_tasks:
                found = minimal_detectable_effect(ASSUMED_SPREAD, n, plan.rule.alpha / n_tests)
            yield StratumPower(stratum, n, None if found is None or found > 1 else found)

    families = [plan.strata, *((name,) for name in plan.strata if len(plan.strata) > 1)]
    counts = [Counter(label(task, names) for task in tasks) for names in families if names]
    return [row for each in (*counts, {"all": len(tasks)}) for row in powers(dict(sorted(each.items())))]


def _arm_problems(plan: BenefitPlan) -> Iterator[Problem]:
    missing = [role for role in ArmRole if role not in plan.arms]
    if missing:
        yield Problem(f"no {and_list(missing)} arm", path="arms", expected="treatment and control")
        return
    for role, arm in plan.arms.items():
        for name in arm.tools:
            if name not in plan.tools:
                hint = did_you_mean(name, list(plan.tools))
                yield Problem("unknown tool", path=f"arms.{role}.tools", got=shorten(name), hint=hint)
    treatment, control = (plan.arms[role] for role in (ArmRole.TREATMENT, ArmRole.CONTROL))
    if (set(treatment.tools), set(treatment.native)) == (set(control.tools), set(control.native)):
        yield Problem("both arms have the same tools", path="arms", expected="arms that differ in `tools`")
    if control.tools and not treatment.tools:
        hint = "lift is treatment minus control; swap the arms"
        yield Problem("only the control arm has a tool under test", path="arms", hint=hint)
    if plan.repo and (control.native or control.tools) and set(treatment.native) != set(control.native):
        differing = and_list(sorted(set(treatment.native) ^ set(control.native)))
        expected = "the same in both arms, or a control without any tool"
        hint = "such a comparison would be void: the arms differ in more than the tool under test"
        yield Problem("only one arm has a native tool", path="arms", expected=expected, got=differing, hint=hint)
    if treatment.name == control.name:
        yield Problem("both arms have the same name", path="arms", got=shorten(treatment.name))
    has_native = bool(treatment.native or control.native)
    if plan.agent.kind == "reference" and has_native and not plan.repo:
        hint = "name the repository, or write `native: []` in both arms"
        yield Problem("native tools require a repository", path="repo", hint=hint)


def _agent_problems(agent: Agent) -> Iterator[Problem]:
    if agent.kind == "reference" and agent.model is None:
        yield Problem("the reference agent needs a model", path="agent.model")
    if agent.kind == "reference" and (agent.command or agent.usage):
        yield Problem("the reference agent has no command", path="agent.command", expected="kind: command")


def _limit_problems(plan: BenefitPlan) -> Iterator[Problem]:
    """Limits that nothing would keep."""
    models = {
        "agent.model": (plan.agent.model, "set them as `limits` of the plan, which apply to a cell"),
        "success.judge": (
            plan.success.judge,
            "a judge answers in single requests; `budget.judge_tokens` limits them all",
        ),
    }
    for where, (model, hint) in models.items():
        if model is not None and model.limits != LimitSettings():
            yield Problem(
                "limits of this model are not applied", path=f"{where}.limits", expected="no `limits`", hint=hint
            )
    if not plan.agent.reports_calls and plan.limits.tool_calls != LimitSettings().tool_calls:
        hint = "set their path as `agent.usage.tool_calls`, or leave the limit out"
        yield Problem("the tool calls of this agent are not counted", path="limits.tool_calls", hint=hint)
    if not plan.agent.counts_turns and plan.limits.turns != LimitSettings().turns:
        hint = "set the path of their number as `agent.usage.turns`, or leave the limit out"
        yield Problem("the turns of this agent are not counted", path="limits.turns", hint=hint)


def _model_problems(where: str, model: ModelSettings) -> Iterator[Problem]:
    try:
        connection = model.connection
    except CranfieldError as error:
        yield from (replace(problem, path=where) for problem in error.problems)
        return
    name = model.api_key_env
    if name and not os.environ.get(name):
        yield Problem("an environment variable is not set", path=f"{where}.api_key_env", expected=name)
    elif not name and not connection.base_url and split_model(model.model)[0] == "openai":
        expected = "the environment variable with the key"
        yield Problem("no OpenAI API key", path=f"{where}.api_key_env", expected=expected)


def _tool_problems(plan: BenefitPlan, folder: Path) -> Iterator[Problem]:
    for name, server in plan.tools.items():
        where = f"tools.{name}"
        for variable in sorted(set(variables_of(server)) - set(os.environ)):
            yield Problem("an environment variable is not set", path=where, expected=variable)
        if server.preflight is not None:
            yield from (Problem(text, path=where) for text in preflight_problems(server.preflight))
        if server.instructions.startswith(INSTRUCTIONS):
            path = folder / server.instructions.removeprefix(INSTRUCTIONS)
            if not path.is_file():
                yield Problem("file of instructions not found", path=f"{where}.instructions", got=shorten(str(path)))
        if (server.results is None) != (not server.results_parameter):
            message = "`results` and `results_parameter` must be set together"
            yield Problem(message, path=where, hint="the parameter is the argument of a call for the number of results")


def _missing_programs(plan: BenefitPlan) -> Iterator[Problem]:
    """Programs and Python scripts of the tools of the arms that are not there, each as its server would be started."""
    variables = {ENV + name: value for name, value in os.environ.items()}
    for name in sorted({name for arm in plan.arms.values() for name in arm.tools} & set(plan.tools)):
        server = plan.tools[name]
        path = fill_text(server.env.get("PATH", "{env.PATH}"), variables)
        where, (program, script) = f"tools.{name}.command", [*server_command(server), "", ""][:2]
        if server.command and shutil.which(program, path=path) is None:
            expected, got = "a program on the PATH, or its path from the working folder", shorten(server.command[0])
            yield Problem("the program does not exist", path=where, expected=expected, got=got)
        elif _PYTHON.fullmatch(Path(program).name) and Path(script).suffix == ".py" and not Path(script).exists():
            expected = "its path from the working folder, or an absolute one"
            yield Problem("script not found", path=where, expected=expected, got=shorten(script))


def _budget_problems(plan: BenefitPlan) -> Iterator[Problem]:
    budget = plan.budget
    if (budget.tokens, budget.money) == (None, None):
        return
    if plan.limits.tokens is None:
        hint = "a cell is started only if its maximum usage is within the budget"
        yield Problem("a budget requires a token limit per cell", path="limits.tokens", hint=hint)
    model = "" if plan.agent.model is None else plan.agent.model.model
    if budget.money is not None and model not in budget.prices.models:
        yield Problem("a money budget requires the price of the model", path="budget.prices.models", expected=model)
    tokens, money = reservation(plan)
    if (budget.tokens or tokens) < tokens or (budget.money or money) < money:
        got = f"{tokens:,} tokens" if (budget.tokens or tokens) < tokens else f"{money:g} of money"
        yield Problem("the budget does not allow a single cell", path="budget", got=f"{got} for a cell")


def _judge_budget_problems(plan: BenefitPlan) -> Iterator[Problem]:
    budget, judge = plan.budget, plan.judge
    if judge is None:
        return
    is_limited = (budget.tokens, budget.money) != (None, None)
    if is_limited and (budget.judge_tokens, budget.judge_money) == (None, None):
        expected = "`judge_tokens` or `judge_money`"
        yield Problem("a budget requires a limit for the judge", path="budget.judge_tokens", expected=expected)
    if budget.judge_money is not None and judge.model not in budget.prices.models:
        message = "a money budget requires the price of the judge"
        yield Problem(message, path="budget.prices.models", expected=judge.model)


def _success_problems(plan: BenefitPlan) -> Iterator[Problem]:
    is_coding = plan.tasks.coding is not None
    if is_coding != (plan.success.by is SuccessBy.CODE):
        expected = "code" if is_coding else "facts or structure"
        yield Problem("the tasks do not support this success criterion", path="success.by", expected=expected)


def _commit_problems(plan: BenefitPlan, tasks: TaskSet) -> Iterator[Problem]:
    """Commits that differ from that of the golden set."""
    if not tasks.commit:
        return
    for name, server in plan.tools.items():
        served = "" if server.preflight is None else server.preflight.expect.get("commit", "")
        if served and not is_same_commit(served, tasks.commit):
            where = f"tools.{name}.preflight.expect.commit"
            yield Problem("not the commit of the golden set", path=where, expected=tasks.commit, got=shorten(served))
    others = [
        query_id
        for query_id, label in (tasks.testset.labels if tasks.testset else {}).items()
        if query_id in tasks.by_id
        and not is_same_commit(str(label.provenance.get("commit") or tasks.commit), tasks.commit)
    ]
    if others:
        message = f"{count_noun(len(others), 'records')} of the golden set with a different commit than the set"
        yield Problem(
            message,
            expected=tasks.commit,
            got=and_list(others[:5]),
            hint="`cranfield testset verify SET --repo DIR` shows why",
        )


def _snapshot(
    plan: BenefitPlan, tasks: TaskSet, folder: Path, without: Collection[Path], *, allow_dirty: bool
) -> Snapshot | None:
    """The repository at the commit of the plan, which must be that of the golden set."""
    if not plan.repo:
        return None
    snapshot = source_snapshot(
        folder / plan.repo,
        plan.at or tasks.commit or None,
        allow_dirty=True,
        without=without,
        reads_folder=True,
    )
    if tasks.commit and not is_same_commit(snapshot.commit, tasks.commit):
        hint = "leave out `at`, or update the golden set to that commit"
        message = "the code differs from that of the golden set"
        raise ConfigError(message, path="at", expected=tasks.commit, got=snapshot.commit or "no commit", hint=hint)
    if snapshot.tree is not None and not allow_dirty:
        require_clean(snapshot.tree, folder / plan.repo, names_commit=False)
    return snapshot


def _source_problems(tasks: TaskSet, snapshot: Snapshot | None) -> Iterator[Problem]:
    """Files of the golden set that are other files in the repository."""
    if snapshot is None or tasks.testset is None:
        return
    stored = tasks.testset.meta.source_files
    differing = [path for path, digest in stored.items() if snapshot.sha256(path) != digest.removeprefix("sha256:")]
    if differing:
        message = f"{count_noun(len(differing), 'files')} differ from the verified state of the golden set"
        yield Problem(
            message, got=and_list(differing[:5]), hint="`cranfield testset verify SET --repo DIR` shows what moved"
        )


def _notes(plan: BenefitPlan, tasks: TaskSet) -> Iterator[str]:
    yield from _agent_notes(plan)
    unlimited = [name for name in ("tokens", "seconds") if getattr(plan.limits, name) is None]
    if unlimited:
        yield f"Cells have no limit of {and_list(unlimited)}."
    control = plan.arms[ArmRole.CONTROL]
    if plan.repo and not (control.native or control.tools):
        yield "The control arm has no tools, so the lift is relative to an agent that cannot search or read."
    unused = sorted(set(plan.tools) - {name for arm in plan.arms.values() for name in arm.tools})
    if unused:
        yield f"No arm uses {and_list(unused)}."
    silent = [name for name, server in plan.tools.items() if name not in unused and server.preflight is None]
    if silent:
        yield f"The index served by {and_list(silent)} is not checked, because there is no preflight."
    if plan.success.by is SuccessBy.FACTS and plan.success.judge is None:
        yield "No judge: a task stays undecided if rules cannot decide a fact."
    if tasks.left_out:
        reasons = Counter(tasks.left_out.values())
        yield (
            "Not in the experiment: "
            + "; ".join(f"{count_noun(n, 'queries')}, {why}" for why, n in reasons.items())
            + "."
        )
    if tasks.testset is not None and tasks.testset.meta.uncommitted:
        yield f"Note of the golden set on its repository: {tasks.testset.meta.uncommitted}"
    if tasks.source:
        yield f"Source of the tasks: {tasks.source.rstrip('.')}."
    if plan.repo and not tasks.commit:
        yield "The tasks have no commit, so it is not checked whether the code matches."


def _named_files(plan: BenefitPlan, folder: Path) -> list[Path]:
    """Files that a plan names: its tasks first."""
    tasks = plan.tasks.testset or plan.tasks.coding or ""
    texts = [each.instructions for each in plan.tools.values() if each.instructions.startswith(INSTRUCTIONS)]
    return [folder / tasks, *(folder / each.removeprefix(INSTRUCTIONS) for each in texts)]


def _tree_notes(plan: BenefitPlan, snapshot: Snapshot, folder: Path, without: Collection[Path]) -> Iterator[str]:
    """What of the folder is not as in the commit, and where a tool that reads it can find the expected answers."""
    yield from snapshot.notes
    root = snapshot.root.resolve()
    tasks = _named_files(plan, folder)[0]
    places = [*(each for each in without if not each.is_file()), *([tasks] if tasks.is_file() else ())]
    written = () if snapshot.tree is None else snapshot.tree.written
    if inside := {*(each.name for each in places if each.resolve().is_relative_to(root)), *written}:
        names = join_first(sorted(inside))
        yield f"The repository contains {names}: a tool that reads its folder can find the expected answers there."
    if plan.tasks.testset is None:
        return
    contents = {each.read_bytes() for each in files_of_set(tasks) if each.is_file()}
    if found := sorted(labels_in(snapshot, contents)):
        yield (
            f"The golden set is in the repository, as {and_list(found)}. It is hidden from agents, but a tool "
            "that indexes the folder can find the expected answers: exclude these files from its index."
        )


def _agent_notes(plan: BenefitPlan) -> Iterator[str]:
    model = plan.agent.model
    if model is not None and model.temperature is None:
        yield "No temperature is set: the default of the provider applies."
    if not plan.agent.reports_calls:
        yield (
            "Tool calls of the agent are neither counted nor limited, so it is unknown whether an arm used its "
            "tools. Set their path in the output with `agent.usage.tool_calls`."
        )
    if not plan.agent.counts_tokens and plan.limits.tokens is not None:
        yield (
            "Tokens of the agent are not counted, so `limits.tokens` has no effect. Set their paths in the "
            "output with `agent.usage.input` and `agent.usage.output`."
        )
