"""A run of an external agent, as its preset receives it, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.benefit.external.events import RunOutputReader
from cranfield.benefit.external.isolation import RunFolders
from cranfield.benefit.mcp_tools import McpTools, server_command, server_environment, server_variables
from cranfield.benefit.plan import Agent
from cranfield.config.strict import fill_value


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
    """Of the plan; what is of this run is not filled in."""
    seed: int
    turns: int
    """At most."""
    base_url: str
    """Of the model; empty: the agent's own."""
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
