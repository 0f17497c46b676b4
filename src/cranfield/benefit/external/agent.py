"""An external agent in an arm: a program for each run, watched while it works, and the record of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.agents.budget import PriceList
from cranfield.agents.loop import Read
from cranfield.agents.protocol import Usage
from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError, TooMuchOutputError, exit_reason
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.words import printable
from cranfield.benefit.agent import CellRun
from cranfield.benefit.delivery import Called, SchemaTax, run_delivery, tool_preflight
from cranfield.benefit.errors import CellError, error_in, error_of
from cranfield.benefit.external.events import Events, RunOutputReader, plain_name, tool_name, transcript_fields
from cranfield.benefit.external.gateway import Gateway, ModelExchange, open_gateway
from cranfield.benefit.external.isolation import RunFolders, make_place, without_network
from cranfield.benefit.mcp_tools import McpTools, server_command, server_environment, server_variables
from cranfield.benefit.plan import Agent, ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellUsage, Delivery, PreflightRecord, ReadLines, token_fields
from cranfield.benefit.shown import ShownLines
from cranfield.benefit.tasks import Task
from cranfield.config.strict import fill_value
from cranfield.repo.snapshot import Snapshot
from cranfield.systems.calls.redact import Redactor


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A tool under test, as the settings of agents have it."""

    name: str
    record: Mapping[str, Any]
    """`command`, `args`, `env` and `cwd`; or `url` and `headers`."""
    tools: tuple[str, ...]
    """Tools that the agent is offered, by the server's own names."""
    listed: tuple[str, ...]
    """Tools of the server."""
    start_timeout_s: float
    call_timeout_s: float
    result_tokens: int | None


@dataclass(frozen=True, slots=True)
class AgentJob:
    """What a run needs."""

    agent: Agent
    place: RunFolders
    prompt: str
    instructions: str
    """Base prompt of the plan, and what travels with the tools."""
    servers: tuple[ServerEntry, ...]
    is_coding: bool
    """It may write files."""
    env: Mapping[str, str]
    """Environment variables of the plan; those of this run are not filled in."""
    seed: int
    turns: int
    """At most."""
    base_url: str
    """Base URL of the model; empty: the agent's own."""
    key: str
    """That the agent sends: not the user's."""
    result_tokens: int | None
    """Smallest limit of the plan, the same in both arms."""

    @property
    def model(self) -> str:
        """Its name without the provider; empty: the agent's own choice."""
        return "" if self.agent.model is None else self.agent.model.model.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Besides that of every agent."""
    reader: RunOutputReader


def entry_of(tools: McpTools) -> ServerEntry:
    """A server as the settings of agents have it, after it was opened once: then its tools are known.

    It has the environment and the folder that it has in a session of our own.
    """
    server = tools.server
    if server.url:
        values = server_variables(tools.name, server)
        record = {"url": str(fill_value(server.url, values)), "headers": dict(fill_value(server.headers, values))}
    else:
        program, *arguments = server_command(server)
        record = {"command": program, "args": arguments, "env": server_environment(tools.name, server)}
        record["cwd"] = str(Path.cwd())
    wanted = server.tools or tools.listed
    times = (server.start_timeout_s, server.call_timeout_s)
    return ServerEntry(tools.name, record, tuple(wanted), tools.listed, *times, server.result_tokens)


Preset = Callable[[AgentJob], Launch]

NO_KEY = "unused"
"""Key that the agent is given: the user's is put in on the way to the model."""
_MAX_OUTPUT = 64 * 1024 * 1024
_SHOWN = 500


@dataclass
class Watched:
    """A run of a program, as far as it is seen from outside."""

    stopped: CellEnd | None = None
    """The limit for which it was ended."""
    error: CellError | None = None
    """Why it did not run."""
    message: str = ""
    status: int | None = None
    stderr: str = ""
    wall_s: float = 0.0


@dataclass
class ExternalAgent:
    """The program of a plan in one arm."""

    plan: BenefitPlan
    role: ArmRole
    preset: Preset
    upstream: str
    """Base URL of the model; empty: requests do not pass through the gateway."""
    key: str
    """The user's."""
    instructions: str
    """Base prompt, and what travels with the tools."""
    tool_instructions: str
    """The second part of them alone."""
    env: Mapping[str, str]
    """Environment variables of the plan."""
    tools: tuple[McpTools, ...]
    """Tools under test, for sessions of our own."""
    versions: Mapping[str, str]
    snapshot: Snapshot | None
    shown: ShownLines | None
    """Finds lines of the snapshot in what tools returned."""
    withheld: Collection[str]
    """Files of the snapshot that look like secrets: the agent does not have them."""
    redactor: Redactor
    servers: tuple[ServerEntry, ...] = ()
    """For the settings of the agent; none before the preflight."""
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def preflight(self) -> tuple[PreflightRecord, ...]:
        """Ask every tool under test what it serves, in a session of our own, which ends before the agent has one."""
        commit = "" if self.snapshot is None else self.snapshot.commit
        async with self._opening:
            records = [await tool_preflight(self.role, tools, commit) for tools in self.tools]
            self.servers = tuple(entry_of(tools) for tools in self.tools)
            await self.aclose()
        return tuple(records)

    async def run(self, task: Task, seed: int, attempt: int) -> CellRun:
        """Run a cell in a new place."""
        if len(self.servers) < len(self.tools):
            await self.preflight()
        place = await event_loop().threads.call(partial(make_place, self.snapshot, self.withheld))
        try:
            async with self._gateway(place) as gateway:
                launch = self.preset(self._job(task, seed, place, gateway))
                watched = await self._watch(launch, place, gateway)
            files = await event_loop().threads.call(place.written)
        finally:
            await event_loop().threads.call(place.remove)
        run = self._outcome(task, launch, watched, gateway, files)
        return replace(run, transcript={**run.transcript, "seed": seed, "attempt": attempt})

    async def aclose(self) -> None:
        """Nothing runs between the runs but the servers that the preflight started."""
        for tools in self.tools:
            await tools.aclose()

    @asynccontextmanager
    async def _gateway(self, place: RunFolders) -> AsyncIterator[Gateway | None]:
        if not self.upstream:
            yield None
            return
        unix = place.root / "model" if self.plan.agent.network == "none" else None
        async with open_gateway(self.upstream, self.key, self.plan.limits, unix) as gateway:
            yield gateway

    def _job(self, task: Task, seed: int, place: RunFolders, gateway: Gateway | None) -> AgentJob:
        limits = [server.result_tokens for server in self.plan.tools.values() if server.result_tokens is not None]
        return AgentJob(
            agent=self.plan.agent,
            place=place,
            prompt=task.prompt,
            instructions=self.instructions,
            servers=self.servers,
            is_coding=task.coding is not None,
            env=self.env,
            seed=seed,
            turns=self.plan.limits.turns,
            base_url="" if gateway is None else gateway.base_url,
            key=NO_KEY if gateway is not None else "",
            result_tokens=min(limits, default=None),
        )

    async def _watch(self, launch: Launch, place: RunFolders, gateway: Gateway | None) -> Watched:
        """Run the program until it ends, or a limit ends it. Nothing of it is left then."""
        watched, started = Watched(), time.monotonic()
        argv = launch.argv
        if self.plan.agent.network == "none":
            argv = without_network(argv, place.root / "model" if gateway else None, gateway.port if gateway else 0)
        try:
            child = await ChildProcess.start(argv, cwd=place.workdir, env=self._environment(place, launch))
        except NotStartedError as error:
            watched.error, watched.message = CellError.AGENT_MISSING, f"{argv[0]} cannot be started: {error}"
            return watched
        try:
            async with asyncio.timeout(self.plan.limits.seconds):
                await _until(gateway, self._read(child, launch.reader, watched))
                if watched.stopped is None and not (gateway is not None and gateway.reached):
                    watched.status = await child.run()
        except TimeoutError:
            watched.stopped = CellEnd.SECONDS
        except TooMuchOutputError:
            watched.error, watched.message = CellError.AGENT_CRASHED, "its output is over the limit"
        finally:
            watched.wall_s = time.monotonic() - started
            await child.end()
            watched.stderr = bytes(child.stderr).decode("utf-8", "replace")
        launch.reader.end()
        if watched.stopped is None and self._is_over(launch.reader):  # the calls may all be read at the end
            watched.stopped = CellEnd.TOOL_CALLS
        if watched.stopped is None and (gateway is None or not gateway.turns):
            watched.stopped = self._exceeded(launch.reader.events)
        return watched

    def _is_over(self, reader: RunOutputReader) -> bool:
        return len(reader.events.calls) > self.plan.limits.tool_calls

    def _exceeded(self, events: Events) -> CellEnd | None:
        """The limit that an agent whose requests are not seen reports to have exceeded."""
        limits, tokens = self.plan.limits, None if events.usage is None else events.usage.total
        if events.turns is not None and events.turns > limits.turns:
            return CellEnd.TURNS
        is_over = limits.tokens is not None and tokens is not None and tokens > limits.tokens
        return CellEnd.TOKENS if is_over else None

    def _environment(self, place: RunFolders, launch: Launch) -> dict[str, str]:
        return place.environment | dict(self.env) | dict(launch.env)

    async def _read(self, child: ChildProcess, reader: RunOutputReader, watched: Watched) -> None:
        size = 0
        while (line := await child.read_line()) is not None:
            text = line.decode("utf-8", "replace")
            size += len(line)
            if size > _MAX_OUTPUT:
                raise TooMuchOutputError
            reader.line(text)
            if self._is_over(reader):
                watched.stopped = CellEnd.TOOL_CALLS
                return

    def _outcome(
        self, task: Task, launch: Launch, watched: Watched, gateway: Gateway | None, files: Mapping[str, str]
    ) -> CellRun:
        events, redact = launch.reader.events, self.redactor.redact
        reads = (
            {id_: self.shown.find(call.text) for id_, call in events.calls.items()} if self.shown is not None else {}
        )
        delivery = self._delivery(events, gateway, reads)
        has_answer = bool(events.answer.strip()) or (task.coding is not None and bool(files))
        end, error, message = _end(watched, events, gateway, delivery, has_answer=has_answer)
        usage = _usage(watched, events, gateway)
        fields = transcript_fields(events, task.prompt, usage, reads, end, (error, message))
        return CellRun(
            end=end,
            error="" if error is None else error.value,
            message=printable(redact(message))[:_SHOWN],
            answer=redact(events.answer),
            files={name: redact(text) for name, text in files.items()},
            usage=usage.model_copy(update={"money": self._money(usage, events, gateway)}),
            delivery=delivery,
            reads=tuple(_reads(events, reads)) if events.has_calls and events.has_results else None,
            models=_models(events, gateway),
            versions={**self.versions, **({"agent": events.version} if events.version else {})},
            transcript=self.redactor.redact_value(fields | self._transcript(watched, launch.reader, gateway)),
        )

    def _delivery(
        self, events: Events, gateway: Gateway | None, reads: Mapping[str, Sequence[Read]]
    ) -> Delivery | None:
        """Delivery in an arm with tools under test: what was in the request, or what the agent reports to offer."""
        if not self.servers:
            return None
        servers = {tools.name: tools for tools in self.tools}
        expected = {
            plain_name(tool_name(entry.name, tool)): servers[entry.name]
            for entry in self.servers
            for tool in entry.tools
        }
        offered = events.offered or frozenset() if gateway is None else gateway.offered
        calls = None
        if events.has_calls:
            calls = [
                Called(
                    plain_name(call.name),
                    call.arguments,
                    call.is_error is not False,
                    call.text,
                    shows_lines=bool(reads.get(id_)),
                    names_files=self.shown is not None and self.shown.names_file(call.text),
                )
                for id_, call in events.calls.items()
            ]
        tax = None
        if gateway is not None:
            tokens = sum(gateway.offered.get(name, 0) for name in expected)
            tax = SchemaTax(None, tokens, Usage(requests=0))
        # What a server sends, its agent may show to the model or not.
        is_known = all(tools.server.instructions or not tools.instructions for tools in self.tools)
        instructions, has_texts = self.tool_instructions if is_known else None, events.has_results
        return run_delivery(expected, offered, calls, instructions=instructions, tax=tax, has_texts=has_texts)

    def _money(self, usage: CellUsage, events: Events, gateway: Gateway | None) -> float | None:
        """By the price list of the plan; else as the agent reports it, which is in USD."""
        prices, model = self.plan.budget.prices, self.plan.agent.model
        used = events.usage if gateway is None else gateway.usage
        if model is not None and model.model in prices.models:
            return None if usage.unmeasured or used is None else prices.cost(model.model, used)
        return events.money if prices.currency == PriceList().currency else None

    def _transcript(self, watched: Watched, reader: RunOutputReader, gateway: Gateway | None) -> dict[str, Any]:
        """What a transcript of the reference agent does not have, and settings of the plan."""
        events = reader.events
        return {
            "agent": self.plan.agent.kind,
            "model": "" if self.plan.agent.model is None else self.plan.agent.model.model,
            "system": self.instructions,
            "models": _models(events, gateway),
            "requests": [] if gateway is None else [_exchange(each) for each in gateway.exchanges],
            "servers": dict(events.servers),
            "exit": None if watched.status is None else exit_reason(watched.status),
            "error": events.error,
            "stderr": watched.stderr,
            "output": reader.lines,
            "unread_lines": events.n_unread,
        }


async def _until(gateway: Gateway | None, reading: Any) -> None:
    """Read until the output ends, or the gateway reaches a limit."""
    tasks = [asyncio.ensure_future(reading)]
    if gateway is not None:
        tasks.append(asyncio.ensure_future(gateway.stopped.wait()))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _end(
    watched: Watched, events: Events, gateway: Gateway | None, delivery: Delivery | None, *, has_answer: bool
) -> tuple[CellEnd, CellError | None, str]:
    """How a run ended: a tool that was not there first, limits next; what was answered counts only without them."""
    is_seen = events.is_finished or events.offered is not None or (gateway is not None and bool(gateway.turns))
    if delivery is not None and not delivery.offered and is_seen:
        states = "".join(f"; {name}: {state}" for name, state in events.servers.items())
        message = f"not offered to the model: {', '.join(delivery.missing)}{states}"
        return CellEnd.INFRASTRUCTURE, CellError.TOOL_NOT_STARTED, message
    limit = (gateway.reached if gateway is not None else None) or watched.stopped or events.limit
    if limit is not None:
        return _end_at_limit(limit, delivery)
    if watched.error is not None:
        return CellEnd.INFRASTRUCTURE, watched.error, watched.message
    if watched.status == 0 and events.is_finished:
        if has_answer:
            return CellEnd.ANSWERED, None, ""
        return CellEnd.NO_ANSWER, CellError.EMPTY_ANSWER, "the agent ended without an answer"
    return _failure(watched, events, gateway)


def _end_at_limit(limit: CellEnd, delivery: Delivery | None) -> tuple[CellEnd, CellError | None, str]:
    """End at a limit: the limit itself, where tools were offered or nothing of them was reported; else an error."""
    if delivery is None or delivery.offered:
        return limit, None, f"the limit of {limit} was reached"
    message = f"the limit of {limit} was reached before the agent reported {', '.join(delivery.missing)}"
    return CellEnd.INFRASTRUCTURE, CellError.TOOL_NOT_STARTED, message


def _failure(watched: Watched, events: Events, gateway: Gateway | None) -> tuple[CellEnd, CellError, str]:
    failure = gateway.exchanges[-1].failure if gateway is not None and gateway.exchanges else None
    reason = exit_reason(watched.status or 0)
    if failure is not None:
        known = error_of(failure)
        return known.end, known.name, f"{reason}; {failure.message}"
    printed = "\n".join(filter(None, (events.error, watched.stderr.strip())))
    found = error_in(printed)
    silence = "its output has no answer" if watched.status == 0 else "no message"
    last = (events.error or watched.stderr.strip()).splitlines()[-1:] or [silence]
    message = f"{reason}: {last[0]}"
    return (found.end, found.name, message) if found else (CellEnd.INFRASTRUCTURE, CellError.AGENT_CRASHED, message)


def _usage(watched: Watched, events: Events, gateway: Gateway | None) -> CellUsage:
    """Counted from the requests where they pass through us; else as the agent reports it."""
    # An agent that answers without a request has another way to its model.
    seen = gateway if gateway is not None and gateway.turns else None
    used, unmeasured = events.usage, 0 if events.usage is not None else 1
    if seen is not None and (not seen.usage.unmeasured or used is None):
        used, unmeasured = seen.usage, seen.usage.unmeasured
    if used is not None and used.total is None:
        unmeasured = max(1, unmeasured)
    tokens = {} if used is None or unmeasured else token_fields(used)
    model_s = events.model_s if seen is None else sum(each.wall_s for each in seen.turns)
    return CellUsage(
        **tokens,
        requests=None if seen is None else len(seen.turns),
        unmeasured=unmeasured,
        turns=events.turns if seen is None else sum(each.failure is None for each in seen.turns),
        tool_calls=events.tool_counts,
        wall_s=watched.wall_s,
        model_s=None if model_s is None else min(model_s, watched.wall_s),
    )


def _reads(events: Events, reads: Mapping[str, Sequence[Read]]) -> Iterator[ReadLines]:
    """Lines of the repository that stand in the results of tools, whatever their format."""
    for id_, found in reads.items():
        for read in found:
            call = events.calls[id_]
            yield ReadLines(path=read.path, start=read.start, end=read.end, turn=call.turn, tool=call.name)


def _models(events: Events, gateway: Gateway | None) -> tuple[str, ...]:
    seen = [] if gateway is None else [each.model for each in gateway.turns if each.model]
    return tuple(dict.fromkeys(seen or events.models))


def _exchange(each: ModelExchange) -> dict[str, Any]:
    return {**asdict(each), "wall_s": round(each.wall_s, 3)}
