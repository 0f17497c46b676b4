"""The plan of an experiment: tasks, agent, two arms, limits, and the rule of the verdict. It is fixed before the first cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cranfield.agents.settings import BudgetSettings, LimitSettings, ModelSettings
from cranfield.base.errors import ConfigError
from cranfield.benefit.codecheck.settings import CheckerSettings
from cranfield.formats.io.validation import ClosedModel, Filled, load_model

_Count = Annotated[int, Field(ge=1)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$")]


class ArmRole(StrEnum):
    """The two arms that are compared. Differences are treatment less control."""

    TREATMENT = "treatment"
    CONTROL = "control"


class TaskSource(ClosedModel):
    """Where tasks come from: the labelled queries of a golden set, or a file of coding tasks."""

    testset: Filled | None = None
    """Path, relative to the plan."""
    coding: Filled | None = None
    """Path, or `package:NAME` of a file that ships with Cranfield."""
    only: Mapping[str, tuple[Filled, ...]] = {}
    """Stratum to the values that are kept, such as `difficulty: [easy, medium]`; `id: [...]` names tasks."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.testset is None) == (self.coding is None):
            raise ValueError("give either `testset` or `coding` for the tasks")
        return self


class Preflight(ClosedModel):
    """How a tool is asked which index and which version it serves."""

    tool: Filled
    """Tool of the server that is asked: `index_status`."""
    arguments: Mapping[str, Any] = {}
    index: str = ""
    """JMESPath of the index in the result; empty: not checked."""
    version: str = ""
    commit: str = ""
    results_of: tuple[Filled, ...] = ()
    """Other tools of the server whose results state them at the same places: one that states another index, version or commit
    than the preflight did makes the comparison invalid."""
    expect: Mapping[Literal["index", "version", "commit"], Filled] = {}
    """What the result must be. `commit` must also be that of the golden set."""


class ToolServer(ClosedModel):
    """A tool under test: an MCP server, with what travels with it."""

    command: tuple[Filled, ...] = ()
    """Command of a server on stdio; no shell reads it. `{python}` is the interpreter of Cranfield."""
    url: str = ""
    """Address of a server over HTTP."""
    headers: Mapping[str, str] = {}
    """Headers of requests to the `url`."""
    env: Mapping[str, str] = {}
    """Environment variables of a command. In it, in `headers` and in `url`, `{env.NAME}` is filled in: a secret is not
    written into the plan."""
    tools: tuple[Filled, ...] = ()
    """Tools of the server that the agent is offered; empty: all."""
    instructions: str = ""
    """How to use it: text, or `file:PATH`; empty: what the server sends. They are part of the treatment, and their tokens count."""
    results_parameter: str = ""
    """Argument that sets the number of results of a call; the run sets it, whatever the model writes."""
    results: Annotated[int, Field(ge=1, le=100)] | None = None
    """Results per call."""
    result_tokens: _Count | None = None
    """Most tokens of one result; what is longer is cut."""
    start_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    call_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    preflight: Preflight | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either `command` or `url` for a tool")
        return self


NativeTool = Literal["list_files", "search", "read_file", "outline"]


class Arm(ClosedModel):
    """What the agent may use. Everything else is equal in both arms."""

    name: _Name
    """In reports: `knowcode 0.5`."""
    native: tuple[NativeTool, ...] = ("list_files", "search", "read_file")
    """Tools over the files of the repository; the same in both arms, except where the plan says why."""
    tools: tuple[_Name, ...] = ()
    """Names among `tools` of the plan."""


class OutputPaths(ClosedModel):
    """Where the JSON that a command prints (a document, or lines as a list) has what counts: JMESPath."""

    answer: Filled
    error: str = ""
    input: str = ""
    """Tokens of all requests, those of a cache included."""
    cache_read: str = ""
    cache_write: str = ""
    output: str = ""
    reasoning: str = ""
    turns: str = ""
    money: str = ""
    """In USD."""
    model: str = ""
    offered: str = ""
    """Names of the tools that the model was offered: `mcp__SERVER__TOOL`, or `SERVER__TOOL`."""
    tool_calls: str = ""
    """Objects with `name` and `ok`, and `arguments` and `result` where they are known; without `result` it is not known what
    the agent read."""


class Agent(ClosedModel):
    """The agent of both arms: the reference agent of this package, or an external command."""

    kind: Literal["reference", "command", "codex", "claude-code"] = "reference"
    model: ModelSettings | None = None
    """Model of the reference agent; what is pinned of it is recorded. External agents get its name, base URL and
    key."""
    system: str = ""
    """Base prompt, in the place of that of the package; the same in both arms."""
    command: tuple[Filled, ...] = ()
    """Command line of the kind `command`, and the executable of a preset: placeholders {prompt}, {model}, {workdir},
    {home}, {mcp_config}, {seed}, {base_url}, {key}."""
    usage: Literal["", "codex", "claude-code"] | OutputPaths = ""
    """How the output of the kind `command` is read; empty: it is the answer, and nothing is known of its usage."""
    env: Mapping[str, str] = {}
    network: Literal["inherit", "none"] = "inherit"
    """`none`: in a network namespace of its own, refused where the system does not allow one."""

    @property
    def reports_calls(self) -> bool:
        """Whether its tool calls can be known."""
        return self.kind != "command" or bool(
            self.usage.tool_calls if isinstance(self.usage, OutputPaths) else self.usage
        )

    @property
    def counts_turns(self) -> bool:
        """Whether its turns can be known: from its requests, or by its report."""
        if isinstance(self.usage, OutputPaths):
            return self._is_seen or bool(self.usage.turns)
        return self._is_seen or self.usage == "claude-code"

    @property
    def counts_tokens(self) -> bool:
        """Whether its tokens can be known."""
        if isinstance(self.usage, OutputPaths):
            return self._is_seen or bool(self.usage.input and self.usage.output)
        return self._is_seen or bool(self.usage)

    @property
    def _is_seen(self) -> bool:
        """Its requests pass through us."""
        return self.kind != "command" or bool(self.model is not None and self.model.base_url)


class SuccessBy(StrEnum):
    """What makes a cell a success."""

    FACTS = "facts"
    """Every fact is mentioned, and no wrong statement is made."""
    STRUCTURE = "structure"
    """Every expected entity, file and range is named."""
    CODE = "code"
    """The code compiles, and every check passes that is in the plan and a criterion of the task."""


class Success(ClosedModel):
    """How success is decided."""

    by: SuccessBy
    checks: tuple[Literal["compiles", "symbols", "available", "not_deprecated", "tests"], ...] = (
        "compiles",
        "symbols",
        "available",
        "not_deprecated",
        "tests",
    )
    """Those of them that are criteria of a task decide it."""
    checkers: Mapping[str, CheckerSettings] = {}
    """Checkers of code, by language, that are commands; they come before those of the package."""
    judge: ModelSettings | None = None
    """Model that judges facts that rules do not decide."""
    judge_votes: Annotated[int, Field(ge=1, le=9)] = 3
    redact: tuple[Filled, ...] = ()
    """Regular expressions that no judge reads, besides the names of tools and arms."""


class TokenWeights(ClosedModel):
    """Weight of each kind of token in price-weighted tokens, in units of an uncached input token."""

    uncached: Annotated[float, Field(ge=0)] = 1.0
    cache_read: Annotated[float, Field(ge=0)] = 0.1
    cache_write: Annotated[float, Field(ge=0)] = 1.25
    output: Annotated[float, Field(ge=0)] = 5.0


class VerdictRule(ClosedModel):
    """The rule of the verdict, fixed beforehand."""

    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    lift_margin: _Share = 0.05
    """A loss of success that is accepted where tokens are saved."""
    tokens: Literal["raw", "weighted"] = "raw"
    binary: Literal["first", "majority", "all"] = "majority"
    """The one success of a task that McNemar's test compares: of its first seed, of most seeds, of all."""
    min_tasks: Annotated[int, Field(ge=2)] = 5
    """Under so many tasks the verdict is `insufficient data`."""


class Competence(ClosedModel):
    """What the control arm must reach for a comparison to be valid."""

    success: _Share = 0.5
    """On tasks whose label says that they can be answered without the tool."""
    search_use: _Share = 0.8
    """Share of its cells in which a tool to search or read gave a result; not checked where the arm has none."""


class DeliveryBounds(ClosedModel):
    """How much of what the tools under test give may be no content: above it a comparison is void, or says so first."""

    silent: _Share = 0.5
    """Largest share of cells without any result that has content, of those that called the tool; above it the
    comparison is void."""
    flawed: _Share = 0.2
    """Largest share of results that are empty, that read as an error, that were cut, or that are one result for
    different tasks. Each kind by itself; above it, it is stated first."""
    foreign: _Share = 0.5
    """Largest share of results with content that show no line and name no file of the repository, where the plan has
    one. Above it, that is stated first. 1: for a tool that is about something else, such as documentation."""
    unread: _Share = 0.2
    """Largest share of the successes of an arm in which no gold line was read, in the repository or in a result. Above
    it, that is stated first. 1: for a tool that gives answers and no lines."""


class BenefitBudget(BudgetSettings):
    """Budget of all calls together; `tokens` and `money` are those of the agents. None: no limit."""

    judge_tokens: _Count | None = None
    """Most tokens of the judge: what the agents use is not taken from it."""
    judge_money: Annotated[float, Field(gt=0)] | None = None


class BenefitPlan(ClosedModel):
    """An experiment."""

    cranfield_benefit: Literal[1]
    name: _Name
    tasks: TaskSource
    repo: str = ""
    """Folder of the repository that questions are about; empty: tasks need none."""
    at: str = ""
    """Its commit; it must be that of the golden set. Empty: the golden set's."""
    agent: Agent
    tools: Mapping[_Name, ToolServer] = {}
    arms: Mapping[ArmRole, Arm]
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    """Runs of each task in each arm."""
    limits: LimitSettings = LimitSettings()
    """Limits of a cell; reaching one is a failure of the cell, which is scored."""
    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """Most attempts at a cell whose infrastructure fails."""
    success: Success
    rule: VerdictRule = VerdictRule()
    weights: TokenWeights = TokenWeights()
    competence: Competence = Competence()
    delivery: DeliveryBounds = DeliveryBounds()
    strata: tuple[Filled, ...] = ("task_type", "difficulty")
    budget: BenefitBudget = BenefitBudget()
    seed: int = 0
    """Seed of the order of cells, of sealed ids and of resampling."""

    @property
    def judge(self) -> ModelSettings | None:
        """The judge, where success is decided by one."""
        return self.success.judge if self.success.by is SuccessBy.FACTS else None

    @property
    def content(self) -> dict[str, Any]:
        """What cells depend on, by key: not budget and attempts, and not addresses and pace of the models."""
        content = self.model_dump(mode="json", exclude={"budget", "attempts"})
        if self.agent.model is not None:
            content["agent"]["model"] = self.agent.model.content
        if self.success.judge is not None:
            content["success"]["judge"] = self.success.judge.content
        return content

    @property
    def digest(self) -> str:
        """SHA-256 of its content but for the place and the commit of the repository, however it is written."""
        content = {name: value for name, value in self.content.items() if name not in {"repo", "at"}}
        return "sha256:" + sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def servers(self, role: ArmRole) -> Mapping[str, ToolServer]:
        """The tools under test of an arm."""
        return {name: self.tools[name] for name in self.arms[role].tools}


def load_plan(path: Path) -> BenefitPlan:
    """Read a plan, YAML or JSON.

    Raises:
        ConfigError: with everything that does not fit, each at its line.
    """
    return load_model(path, BenefitPlan, ConfigError)
