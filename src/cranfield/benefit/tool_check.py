"""The preflight of an experiment: every tool under test serves what the plan wants, and the same as before."""

from __future__ import annotations

from collections.abc import Mapping

from cranfield.base.errors import PreflightError, Problem
from cranfield.benefit.agent import ArmAgent
from cranfield.benefit.delivery import tool_preflight
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
from cranfield.benefit.mcp_tools import McpTools
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import PreflightRecord

_SAME = ("server", "found", "tools", "schema_digest", "instructions_digest")
"""Fields of a preflight that may not change within an experiment."""


async def check_tools(folder: ExperimentFolder, agents: Mapping[ArmRole, ArmAgent]) -> None:
    """Ask the tools of both arms what they serve, and write down the answers; one that ends the call is not ok.

    Raises:
        PreflightError: with every tool that is not as the plan wants it, or other than when the experiment began.
    """
    plan = folder.plan
    first = {(record.arm, record.tool): record for record in reversed(folder.preflights()) if record.ok}
    problems = []
    for role in ArmRole:
        records = await agents[role].preflight()
        for record in records:
            found = _problems(record, first.get((role, record.tool)))
            refused = {"ok": False, "message": "; ".join(each.message for each in found)}
            folder.append(ExperimentFile.PREFLIGHT, record.model_copy(update=refused) if found else record)
            problems += found
        missing = sorted(set(plan.servers(role)) - {record.tool for record in records})
        problems += [Problem("no preflight of a tool", path=f"{role}.{name}") for name in missing]
    if problems:
        raise PreflightError(problems)


async def try_tools(plan: BenefitPlan, commit: str) -> list[PreflightRecord]:
    """Start every tool under test of a plan, ask it what it serves, and end it.

    Args:
        plan: with its tools.
        commit: of the repository that the tasks are about; empty: not compared.

    Raises:
        PreflightError: with every tool that is not as the plan wants it.
        MissingExtraError: the library for MCP is not installed.
        ConfigError: a variable of the environment is missing.
    """
    records = []
    for role in ArmRole:
        for name, server in plan.servers(role).items():
            tools = McpTools(name, server)
            try:
                records.append(await tool_preflight(role, tools, commit))
            finally:
                await tools.aclose()
    if problems := [problem for record in records for problem in _problems(record, None)]:
        raise PreflightError(problems)
    return records


async def ask_again(folder: ExperimentFolder, agents: Mapping[ArmRole, ArmAgent]) -> None:
    """Ask the tools once more after cells were run, and write down the answers: whether they are still what they were."""
    for role in ArmRole:
        for record in await agents[role].preflight():
            folder.append(ExperimentFile.PREFLIGHT, record.model_copy(update={"after_run": True}))


def has_last_answers(folder: ExperimentFolder) -> bool:
    """Whether the tools were asked after the last cell; a call that was killed did not come to it."""
    records = folder.preflights()
    return not records or records[-1].after_run


def tool_changes(record: PreflightRecord, earlier: PreflightRecord) -> list[str]:
    """What a tool says of itself that it did not say earlier."""
    return [name for name in _SAME if getattr(record, name) != getattr(earlier, name)]


def _problems(record: PreflightRecord, first: PreflightRecord | None) -> list[Problem]:
    where = f"{record.arm}.{record.tool}"
    if not record.ok:
        return [Problem(record.message or "the tool is not ready", path=where)]
    changed = [] if first is None else tool_changes(record, first)
    if not changed:
        return []
    hint = "begin another experiment: cells of two versions of a tool cannot be compared"
    return [Problem(f"the tool is another than when the experiment began: {', '.join(changed)}", path=where, hint=hint)]
