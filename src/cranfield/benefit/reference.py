"""The reference agent: the loop of `agents.loop` with the tools of an arm, in this process.

Both arms have one model, one base prompt, one set of native tools and one set of limits. An arm with tools under test has
these tools and their instructions besides, and nothing else differs. Answers of the model are kept in the folder of the
experiment: a run that was interrupted goes on without paying again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256

from cranfield.agents.budget import Budget, PriceList
from cranfield.agents.loop import (
    AgentLimits,
    AgentTask,
    NoTools,
    Read,
    ToolResult,
    Toolset,
    ToolUse,
    Transcript,
    run_agent,
)
from cranfield.agents.protocol import Backend, Failure, FailureKind, ModelAnswer, Request, Tool, ToolCall, Usage
from cranfield.agents.recording import CALLS, Kept
from cranfield.agents.settings import ModelSettings, connected
from cranfield.agents.tools.source import AllowedTools, SourceTools
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError
from cranfield.benefit.agent import AgentSetup, ArmAgent, CellRun
from cranfield.benefit.delivery import Called, SchemaTax, measure_schema, run_delivery, tool_preflight
from cranfield.benefit.errors import CellError, error_of
from cranfield.benefit.mcp_tools import McpTools, ToolServerError
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.reading import CODE, QUESTION, CodeAnswer, QuestionAnswer, shipped_prompt
from cranfield.benefit.records import CellEnd, Delivery, PreflightRecord, ReadLines, cell_usage, plain_usage
from cranfield.benefit.shown import ShownLines
from cranfield.benefit.tasks import Task

_NOT_SENT = Usage(requests=0, input=0, output=0)


class ArmTools:
    """The tools of an arm in one run: native ones, and those of the servers under test."""

    def __init__(self, native: Toolset, servers: Sequence[McpTools]) -> None:
        self._native = native
        self.under_test: Mapping[str, McpTools] = {tool.name: server for server in servers for tool in server.tools}
        """Name of a tool, as the model has it, to its server."""
        self.tools: Sequence[Tool] = (*native.tools, *(tool for server in servers for tool in server.tools))
        self.lost: ToolServerError | None = None
        """The fault of a server: the run cannot go on."""

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call."""
        server = self.under_test.get(call.name)
        if server is None:
            return await self._native.call(call)
        try:
            return await server.call(call)
        except ToolServerError as error:
            self.lost = error
            return ToolResult(f"error: {error}", is_error=True)


@dataclass(frozen=True, slots=True)
class _WhileToolsLast:
    """A backend that sends nothing more once a server under test is lost."""

    backend: Backend
    tools: ArmTools

    async def ask(self, request: Request) -> ModelAnswer:
        if self.tools.lost is not None:
            return ModelAnswer(failure=Failure(FailureKind.UNAVAILABLE, str(self.tools.lost)), usage=_NOT_SENT)
        return await self.backend.ask(request)


@dataclass
class ReferenceAgent:
    """The reference agent in one arm."""

    plan: BenefitPlan
    role: ArmRole
    settings: ModelSettings
    kept: Kept
    native: Toolset
    servers: Sequence[McpTools]
    shown: ShownLines | None
    """Finds the lines that results of servers show; None: there is no repository."""
    commit: str
    versions: Mapping[str, str]
    tax: SchemaTax | None = None
    """Tokens of the schemas of its servers, once the preflight has measured them."""

    async def preflight(self) -> tuple[PreflightRecord, ...]:
        """Ask every server what it serves; where all are there, measure what their schemas cost, once."""
        records = [await tool_preflight(self.role, server, self.commit) for server in self.servers]
        if self.tax is None and records and all(record.ok for record in records):
            self.tax = await self._measure_schema()
            used = plain_usage(self.tax.usage, self.settings.model, self._prices)
            records[0] = records[0].model_copy(update={"usage": used})
        return tuple(records)

    async def run(self, task: Task, seed: int, attempt: int) -> CellRun:
        """Run a cell."""
        started = time.monotonic()
        try:
            for server in self.servers:
                await server.open()
        except ToolServerError as error:
            return self._not_started(error, time.monotonic() - started)
        tools = ArmTools(self.native, self.servers)
        salt = f"{task.id}/{self.role}/{seed}/{attempt}"
        backend = _WhileToolsLast(self.kept.salted(salt), tools)
        transcript = await run_agent(backend, self.task_of(task, seed), tools)
        return self._run_of(transcript, tools)

    async def aclose(self) -> None:
        """Servers and the search process end with what opened them."""

    def task_of(self, task: Task, seed: int) -> AgentTask:
        """What the agent is given: in both arms the same, but for the instructions of the tools under test."""
        settings = self.settings
        prompt = shipped_prompt(CODE if task.coding is not None else QUESTION)
        base, user = prompt.fill({"prompt": task.prompt})
        return AgentTask(
            model=settings.model,
            system="\n\n".join(part for part in (self.plan.agent.system.strip() or base, self.instructions) if part),
            prompt=user,
            output=CodeAnswer if task.coding is not None else QuestionAnswer,
            sampling=replace(settings.sampling, seed=(settings.seed or 0) + seed),
            output_mode=settings.output_mode,
            timeout_s=settings.timeout_s,
            limits=AgentLimits(**self.plan.limits.model_dump()),
        )

    @property
    def instructions(self) -> str:
        """Instructions of the tools under test, each under the name of its server."""
        parts = [
            f"Instructions for the tools whose names begin with {server.prefix}:\n{server.instructions}"
            for server in self.servers
            if server.instructions
        ]
        return "\n\n".join(parts)

    @property
    def _prices(self) -> PriceList:
        return self.plan.budget.prices

    async def _measure_schema(self) -> SchemaTax:
        tools, settings = ArmTools(self.native, self.servers).tools, self.settings
        request = Request(settings.model, "", (), tools=tuple(tools), sampling=settings.sampling)
        under_test = [tool for server in self.servers for tool in server.tools]
        return await measure_schema(self.kept.salted(f"schema/{self.role}"), request, under_test)

    def _not_started(self, error: ToolServerError, wall_s: float) -> CellRun:
        expected = ArmTools(self.native, self.servers).under_test or {
            server.offered_name(tool): server for server in self.servers for tool in server.server.tools or ("*",)
        }
        return CellRun(
            CellEnd.INFRASTRUCTURE,
            plain_usage(_NOT_SENT, self.settings.model, self._prices).model_copy(update={"wall_s": wall_s, "turns": 0}),
            {},
            error=error.error,
            message=str(error),
            delivery=run_delivery(expected, (), ()),
            versions=self.versions,
        )

    def _run_of(self, transcript: Transcript, tools: ArmTools) -> CellRun:
        end, error, message = _end(transcript, tools)
        output, reads = transcript.output, [self._reads(use, tools) for use in transcript.uses]
        return CellRun(
            end,
            cell_usage(transcript, self._prices),
            transcript.record(),
            error=error,
            message=message,
            answer=output.text if isinstance(output, QuestionAnswer | CodeAnswer) else "",
            named=output.named if isinstance(output, QuestionAnswer) else None,
            files=output.by_path if isinstance(output, CodeAnswer) else {},
            delivery=self._delivery(transcript, reads, tools) if self.servers else None,
            reads=tuple(
                ReadLines(path=read.path, start=read.start, end=read.end, turn=use.turn, tool=use.call.name)
                for use, found in zip(transcript.uses, reads, strict=True)
                for read in found
            ),
            models=tuple(transcript.models),
            versions={**self.versions, **{server.name: server.version for server in self.servers}},
        )

    def _delivery(self, transcript: Transcript, reads: Sequence[Sequence[Read]], tools: ArmTools) -> Delivery:
        """Every request of a run has the tools of the transcript; without a request none was offered."""
        offered = [tool.name for tool in transcript.tools] if transcript.usages else []
        calls = [
            Called(
                use.call.name,
                use.call.arguments,
                use.result.is_error,
                use.result.text,
                is_cut=use.result.is_cut,
                shows_lines=bool(found),
                names_files=self.shown is not None and self.shown.names_file(use.result.text),
            )
            for use, found in zip(transcript.uses, reads, strict=True)
            if not use.result.is_unsent
        ]
        return run_delivery(tools.under_test, offered, calls, instructions=self.instructions, tax=self.tax)

    def _reads(self, use: ToolUse, tools: ArmTools) -> Sequence[Read]:
        """Lines that a native tool says it showed, or lines of the repository in the result of another."""
        if use.call.name in tools.under_test and self.shown is not None and not use.result.is_error:
            return self.shown.find(use.result.text)
        return use.result.reads


def _end(transcript: Transcript, tools: ArmTools) -> tuple[CellEnd, str, str]:
    """How a run ended, the name of its error, and a message."""
    if tools.lost is not None:
        return CellEnd.INFRASTRUCTURE, tools.lost.error, str(tools.lost)
    if transcript.failure is not None:
        known = error_of(transcript.failure)
        return known.end, known.name, transcript.failure.detail
    end, output = CellEnd(transcript.end), transcript.output
    if end is CellEnd.SECONDS and transcript.usage.requests > transcript.turns:
        return (
            CellEnd.INFRASTRUCTURE,
            CellError.REQUEST_TIMEOUT,
            "the time limit was reached while requests were repeated",
        )
    is_blank = isinstance(output, QuestionAnswer) and not output.text.strip()
    if end is CellEnd.ANSWERED and is_blank:
        return CellEnd.NO_ANSWER, CellError.EMPTY_ANSWER, "the text of the answer is blank"
    return end, "", ""


@asynccontextmanager
async def open_reference(setup: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ArmAgent]]:
    """The reference agent in both arms. Servers start when a preflight or a run needs them, and end here.

    Raises:
        ConfigError: the plan has no model, or a variable of a server is not set.
        InputError: the file of kept answers is damaged.
    """
    plan, snapshot, settings = setup.plan, setup.snapshot, setup.plan.agent.model
    if settings is None:
        raise ConfigError("the reference agent needs a model", expected="agent.model")
    used = {name for arm in plan.arms.values() for name in arm.tools}
    async with AsyncExitStack() as stack:
        # The runner reserves for whole cells; what a request costs is counted there, with the usage of its cell.
        backend = await stack.enter_async_context(connected(settings.connection, Budget(), setup.source))
        kept = Kept(setup.folder / CALLS, backend)
        stack.callback(kept.close)
        source, shown = None, None
        if snapshot is not None:
            withheld = await event_loop().threads.call(setup.withheld)
            source = SourceTools(snapshot, withheld=withheld)
            stack.push_async_callback(source.aclose)
            if used:
                shown = await event_loop().threads.call(lambda: ShownLines.of(snapshot, withheld))
        servers = {name: McpTools(name, plan.tools[name]) for name in sorted(used)}
        for server in servers.values():
            stack.push_async_callback(server.aclose)
        versions = _versions(plan, source)
        yield {
            role: ReferenceAgent(
                plan=plan,
                role=role,
                settings=settings,
                kept=kept,
                native=AllowedTools(source, frozenset(arm.native)) if source is not None else NoTools(),
                servers=[servers[name] for name in arm.tools],
                shown=shown,
                commit=snapshot.commit if snapshot is not None and snapshot.is_commit else "",
                versions=versions,
            )
            for role, arm in plan.arms.items()
        }


def _versions(plan: BenefitPlan, source: SourceTools | None) -> dict[str, str]:
    """Versions of the parts that every run of both arms is made of."""
    found = dict(source.tool_versions()) if source is not None else {}
    if plan.agent.system.strip():
        return found | {"prompt": "sha256:" + sha256(plan.agent.system.encode()).hexdigest()}
    prompts = [shipped_prompt(name) for name in (QUESTION, CODE)]
    return found | {"prompt": ", ".join(f"{prompt.label} {prompt.digest}" for prompt in prompts)}
