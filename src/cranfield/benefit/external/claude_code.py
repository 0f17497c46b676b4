"""Claude Code: its options, and its events (`claude -p --output-format stream-json`), as they are documented."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cranfield.agents.protocol import Usage
from cranfield.benefit.external.agent import AgentJob, Launch, ServerEntry
from cranfield.benefit.external.events import (
    MCP,
    EventReader,
    count_of,
    dicts_of,
    mapping_of,
    plain_name,
    text_of,
    tool_name,
)
from cranfield.benefit.external.gateway import anthropic_usage
from cranfield.benefit.records import CellEnd

UPSTREAM = "https://api.anthropic.com"
_READING = ("Read", "Grep", "Glob", "LS")
_WRITING = ("Edit", "Write", "Bash")
_COUNTS = {
    "input_tokens": "inputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
    "output_tokens": "outputTokens",
}
"""Name of a count in a request to that of a model."""


def launch(job: AgentJob) -> Launch:
    """How a run is started: only the servers of the plan, only their tools, and settings of its own folder."""
    folder = job.place.home / "claude"
    folder.mkdir()
    config = job.place.home / "mcp.json"
    servers = {server.name: _server(server) for server in job.servers}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    offered = [f"{MCP}{tool_name(server.name, tool)}" for server in job.servers for tool in server.tools]
    denied = [
        f"{MCP}{tool_name(server.name, tool)}"
        for server in job.servers
        for tool in server.listed
        if tool not in server.tools
    ]
    options = ["--output-format", "stream-json", "--verbose", "--mcp-config", str(config), "--strict-mcp-config"]
    options += ["--model", job.model] if job.model else []
    options += ["--max-turns", str(job.turns), "--no-session-persistence"]
    options += ["--append-system-prompt", job.instructions] if job.instructions else []
    options += ["--allowedTools", ",".join([*_READING, *(_WRITING if job.is_coding else ()), *offered])]
    options += ["--disallowedTools", ",".join(["WebFetch", "WebSearch", *denied])]
    return Launch(
        (*(job.agent.command or ("claude",)), *options, "-p", job.prompt),
        _environment(job, folder),
        ClaudeReader(),
    )


def _environment(job: AgentJob, folder: Path) -> dict[str, str]:
    longest_start = max((server.start_timeout_s for server in job.servers), default=0)
    longest_call = max((server.call_timeout_s for server in job.servers), default=0)
    env = {
        "CLAUDE_CONFIG_DIR": str(folder),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ANTHROPIC_API_KEY": job.key,
    }
    if job.base_url:
        env["ANTHROPIC_BASE_URL"] = job.base_url
    if job.servers:
        env |= {"MCP_TIMEOUT": str(int(longest_start * 1000)), "MCP_TOOL_TIMEOUT": str(int(longest_call * 1000))}
    if job.result_tokens is not None:
        env["MAX_MCP_OUTPUT_TOKENS"] = str(job.result_tokens)
    return {name: value for name, value in env.items() if value}


def _server(entry: ServerEntry) -> Mapping[str, Any]:
    record = dict(entry.record)
    if "url" in record:
        return {"type": "http", **record}
    folder = record.pop("cwd")  # its settings have no folder of a server
    return {
        "type": "stdio",
        **record,
        "command": "env",
        "args": ["-C", folder, record["command"], *record["args"]],
    }


class ClaudeReader(EventReader):
    """Reads events. The `init` event names every server with its state, and every tool."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: set[str] = set()

    def take(self, event: Mapping[str, Any]) -> None:
        """Note what an event says."""
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            self._init(event)
        elif kind == "assistant":
            self._assistant(mapping_of(event.get("message")), is_main=not event.get("parent_tool_use_id"))
        elif kind == "user":
            self._results(mapping_of(event.get("message")))
        elif kind == "result":
            self._end(event)

    def _init(self, event: Mapping[str, Any]) -> None:
        tools, events = event.get("tools"), self.events
        events.offered = frozenset(plain_name(str(name)) for name in tools) if isinstance(tools, list) else None
        events.servers = {str(each.get("name")): str(each.get("status")) for each in dicts_of(event.get("mcp_servers"))}
        events.version = str(event.get("claude_code_version") or "")

    def _assistant(self, message: Mapping[str, Any], *, is_main: bool) -> None:
        """A message comes once for each of its blocks, with the same id."""
        if is_main:
            self._turns.add(str(message.get("id")))
            self.events.turns = len(self._turns)
        self.events.note_model(message.get("model"))
        for block in dicts_of(message.get("content")):
            if block.get("type") == "text":
                self.events.say(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                id_ = str(block.get("id"))
                self.events.call(id_, str(block.get("name")).removeprefix(MCP), block.get("input"))

    def _results(self, message: Mapping[str, Any]) -> None:
        for block in dicts_of(message.get("content")):
            if block.get("type") != "tool_result":
                continue
            id_, text = str(block.get("tool_use_id")), text_of(block.get("content"))
            self.events.result(id_, text, is_error=bool(block.get("is_error")))

    def _end(self, event: Mapping[str, Any]) -> None:
        events, used = self.events, mapping_of(event.get("modelUsage"))
        events.is_finished = not event.get("is_error") and event.get("subtype") == "success"
        if events.is_finished:
            events.answer = str(event.get("result") or "")
        else:
            events.error = str(event.get("result") or event.get("subtype") or "error")
            events.limit = CellEnd.TURNS if event.get("subtype") == "error_max_turns" else None
        events.usage = _sum(dicts_of(list(used.values()))) if used else anthropic_usage(mapping_of(event.get("usage")))
        for model in used:
            events.note_model(model)
        money, model_ms = event.get("total_cost_usd"), event.get("duration_api_ms")
        events.money = float(money) if isinstance(money, int | float) else None
        events.model_s = model_ms / 1000 if isinstance(model_ms, int | float) else None


def _sum(models: Sequence[Mapping[str, Any]]) -> Usage:
    """Usage of all models, those of subagents included; `inputTokens` are those that no cache held."""
    counts = {name: [count_of(model.get(own)) for model in models] for name, own in _COUNTS.items()}
    return anthropic_usage(
        {name: None if None in found else sum(filter(None, found)) for name, found in counts.items()}
    )
