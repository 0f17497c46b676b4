"""The external agents of a plan: what the plan and the machine must allow, before the first run."""

from __future__ import annotations

import os
import shutil
from asyncio import timeout
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.concurrency.child_process import NotStartedError, child_process
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError, Problem
from cranfield.benefit.agent import AgentSetup, ArmAgent
from cranfield.benefit.external import claude_code, codex, command
from cranfield.benefit.external.agent import ExternalAgent, Preset
from cranfield.benefit.external.isolation import network_problem
from cranfield.benefit.mcp_tools import McpTools, variables_of
from cranfield.benefit.plan import Arm, ArmRole, BenefitPlan, OutputPaths
from cranfield.benefit.shown import ShownLines
from cranfield.config.reading import ExpressionError, compile_path
from cranfield.config.strict import ENV, environment_names, fill_value, placeholders
from cranfield.systems.calls.answer_schema import first_line
from cranfield.systems.calls.redact import Redactor

_VERSION_S = 60.0


@dataclass(frozen=True, slots=True)
class AgentKind:
    """A kind of external agent."""

    preset: Preset
    program: str
    """That is run where the plan names none."""
    upstream: str
    """Base URL of its model, where the plan names none."""
    reports_offered: bool
    """Its output names the tools that the model is offered."""


KINDS: Mapping[str, AgentKind] = {
    "codex": AgentKind(codex.launch, "codex", codex.UPSTREAM, reports_offered=False),
    "claude-code": AgentKind(claude_code.launch, "claude", claude_code.UPSTREAM, reports_offered=True),
    "command": AgentKind(command.launch, "", "", reports_offered=False),
}


@asynccontextmanager
async def open_external(setup: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ArmAgent]]:
    """The external agents of both arms.

    Raises:
        ConfigError: the plan or the machine does not allow it, with every problem.
        MissingExtraError: the library for MCP servers is not installed.
    """
    plan = setup.plan
    problems = plan_problems(plan)
    if problems:
        raise ConfigError(problems)
    versions = {} if plan.agent.kind == "command" else {str(plan.agent.kind): await _version(plan)}
    snapshot, withheld = setup.snapshot, await event_loop().threads.call(setup.withheld)
    shown = None if snapshot is None else ShownLines.of(snapshot, withheld)
    async with AsyncExitStack() as stack:
        agents: dict[ArmRole, ArmAgent] = {}
        for role in ArmRole:
            agent = _agent(setup, role, versions, shown, withheld)
            stack.push_async_callback(agent.aclose)
            agents[role] = agent
        yield agents


def _agent(
    setup: AgentSetup, role: ArmRole, versions: Mapping[str, str], shown: ShownLines | None, withheld: Collection[str]
) -> ExternalAgent:
    plan, kind = setup.plan, KINDS[setup.plan.agent.kind]
    settings = plan.agent.model
    servers = plan.servers(role)
    tools = tuple(McpTools(name, server) for name, server in servers.items())
    own = "\n\n".join(server.instructions for server in servers.values() if server.instructions)
    needed = {*_variables(plan), *([settings.api_key_env] if settings and settings.api_key_env else [])}
    return ExternalAgent(
        plan=plan,
        role=role,
        preset=kind.preset,
        upstream=(settings.base_url if settings is not None else "") or kind.upstream,
        key=os.environ.get(settings.api_key_env, "") if settings is not None and settings.api_key_env else "",
        env=dict(fill_value(plan.agent.env, {ENV + name: os.environ[name] for name in _agent_variables(plan)})),
        instructions="\n\n".join(filter(None, (plan.agent.system, own))),
        tool_instructions=own,
        tools=tools,
        versions=versions,
        snapshot=setup.snapshot,
        shown=shown,
        withheld=withheld,
        redactor=Redactor({name: os.environ[name] for name in needed}),
    )


def plan_problems(plan: BenefitPlan) -> list[Problem]:
    """What the plan, or this machine, does not allow."""
    return [Problem(message, path=path, expected=expected) for path, message, expected in _problems(plan)]


def _problems(plan: BenefitPlan) -> Iterator[tuple[str, str, str]]:
    """Where, what is wrong, and what is expected."""
    agent = plan.agent
    yield from _command_problems(plan)
    yield from _path_problems(plan)
    yield from _model_problems(plan)
    yield from _tool_problems(plan)
    for name in sorted(_agent_variables(plan)):
        if name not in os.environ:
            yield "agent.env", f"the environment variable {name} is not set", "a value"
    if agent.network == "none" and (why := network_problem()):
        yield "agent.network", f"this system cannot run programs without a network: {why}", "network: inherit"


def _tool_problems(plan: BenefitPlan) -> Iterator[tuple[str, str, str]]:
    agent, kind = plan.agent, KINDS[plan.agent.kind]
    for role, arm in plan.arms.items():
        if arm.native != Arm.model_fields["native"].default:
            yield f"arms.{role}.native", "an external agent has its own tools", "no `native`"
    used = {name for arm in plan.arms.values() for name in arm.tools}
    for name, server in plan.tools.items():
        if server.results_parameter or server.results is not None:
            expected = "the number of results as an argument or variable of the server"
            yield f"tools.{name}", "only the reference agent sets an argument of a call", expected
        if server.result_tokens is not None and agent.kind == "command":
            expected = "the limit as an argument or variable of the server"
            yield f"tools.{name}.result_tokens", "results of a command are not truncated", expected
        if server.url and agent.network == "none":
            yield f"tools.{name}.url", "it cannot be reached without a network", "a `command`"
    reports = kind.reports_offered or (agent.usage == "claude-code")
    reports = reports or (isinstance(agent.usage, OutputPaths) and bool(agent.usage.offered))
    has_gateway = bool(kind.upstream or (agent.model is not None and agent.model.base_url))
    if used and not (reports or has_gateway):
        expected = "`agent.model.base_url` and {base_url} in the command, or `agent.usage.offered`"
        yield "agent", "the tools offered to the model cannot be determined", expected


def _command_problems(plan: BenefitPlan) -> Iterator[tuple[str, str, str]]:
    agent, kind = plan.agent, KINDS[plan.agent.kind]
    texts = (*agent.command, *agent.env.values())
    used = {name for text in texts for name in placeholders(text)}
    program = agent.command[0] if agent.command else kind.program
    if not program:
        yield "agent.command", "the command is missing", "the program and its arguments"
    elif shutil.which(program) is None:
        yield "agent.command", f"program {program} not found", "a program on the PATH, or its path"
    if agent.kind == "command":
        yield from _missing_placeholders(plan, used)
    elif agent.usage:
        yield "agent.usage", f"the output format of {agent.kind} is built in", "no `usage`"
    for name in sorted(used - set(command.PLACEHOLDERS)):
        if not name.startswith(ENV):
            yield "agent", f"unknown placeholder {{{name}}}", ", ".join(f"{{{each}}}" for each in command.PLACEHOLDERS)


def _missing_placeholders(plan: BenefitPlan, used: set[str]) -> Iterator[tuple[str, str, str]]:
    has_tools = any(arm.tools for arm in plan.arms.values())
    has_url = plan.agent.model is not None and bool(plan.agent.model.base_url)
    if "prompt" not in used:
        yield "agent.command", "no {prompt}: every task would make the same call", "{prompt} in an argument"
    if has_tools and "mcp_config" not in used:
        yield "agent.command", "no {mcp_config}: the agent gets no tool", "{mcp_config} in an argument"
    if has_url and "base_url" not in used:
        yield (
            "agent.command",
            "no {base_url}: its requests could not be recorded",
            "{base_url} in an argument or in `env`",
        )


def _path_problems(plan: BenefitPlan) -> Iterator[tuple[str, str, str]]:
    if isinstance(plan.agent.usage, OutputPaths):
        for name, path in plan.agent.usage.model_dump().items():
            try:
                compile_path(path or "@")
            except ExpressionError as error:
                yield f"agent.usage.{name}", str(error), "JMESPath"


def _model_problems(plan: BenefitPlan) -> Iterator[tuple[str, str, str]]:
    agent, model = plan.agent, plan.agent.model
    if model is None:
        if agent.kind != "command":
            yield "agent.model", "the model is not pinned", "`model: PROVIDER:NAME`"
        return
    if ":" not in model.model:
        yield "agent.model.model", "the model has no provider", "PROVIDER:NAME"
    if model.api_key_env and model.api_key_env not in os.environ:
        yield "agent.model.api_key_env", f"the environment variable {model.api_key_env} is not set", "the API key"
    elif agent.kind != "command" and not model.api_key_env and not model.base_url:
        yield "agent.model.api_key_env", "no API key", "the environment variable with the key"
    for name in ("temperature", "top_p", "seed", "max_tokens"):
        if getattr(model, name) is not None:
            yield f"agent.model.{name}", "an external agent sets its own sampling", f"no `{name}`"


def _agent_variables(plan: BenefitPlan) -> set[str]:
    return set(environment_names(dict(plan.agent.env)))


def _variables(plan: BenefitPlan) -> set[str]:
    """Environment variables that the plan names."""
    return _agent_variables(plan).union(*(variables_of(server) for server in plan.tools.values()))


async def _version(plan: BenefitPlan) -> str:
    """That the program reports.

    Raises:
        ConfigError: it does not start.
    """
    argv = [*(plan.agent.command or (KINDS[plan.agent.kind].program,)), "--version"]
    try:
        async with timeout(_VERSION_S), child_process(argv, cwd=Path.cwd(), env=dict(os.environ)) as child:
            status = await child.run()
            text = bytes(child.stdout).decode("utf-8", "replace")
    except NotStartedError as error:
        raise ConfigError(f"{argv[0]} cannot be started: {error}", path="agent.command") from None
    except TimeoutError:
        raise ConfigError(
            f"{argv[0]} --version: time limit of {_VERSION_S:g} s exceeded", path="agent.command"
        ) from None
    if status:
        raise ConfigError(f"{argv[0]} --version ended with exit status {status}", path="agent.command")
    return first_line(text)
