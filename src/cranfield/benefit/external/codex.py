"""Codex CLI: its settings, and its events (`codex exec --json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cranfield.agents.protocol import Usage
from cranfield.benefit.external.agent import AgentJob, Launch, ServerEntry
from cranfield.benefit.external.events import EventReader, count_of, mapping_of, text_of, tool_name

UPSTREAM = "https://api.openai.com/v1"
_PROVIDER = "cranfield"
_KEY = "AGENT_MODEL_KEY"
_NATIVE = {"command_execution": "shell", "file_change": "edit_file", "web_search": "web_search"}


def launch(job: AgentJob) -> Launch:
    """How a run is started: its settings are a file in a folder of its own, so that no secret is on a command line."""
    folder = job.place.home / "codex"
    folder.mkdir()
    (folder / "config.toml").write_text(as_toml(_settings(job)), encoding="utf-8")
    command = [*(job.agent.command or ("codex",)), "exec", "--json", "--ephemeral", "--skip-git-repo-check"]
    return Launch(
        (*command, "--strict-config", "--color", "never", "-C", str(job.place.workdir), "--", job.prompt),
        {"CODEX_HOME": str(folder), _KEY: job.key},
        CodexReader(),
    )


def _settings(job: AgentJob) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "model": job.model,
        "approval_policy": "never",
        "sandbox_mode": "workspace-write" if job.is_coding else "read-only",
        "check_for_update_on_startup": False,
        "web_search": "disabled",
        "analytics": {"enabled": False},
        "history": {"persistence": "none"},
        "shell_environment_policy": {"inherit": "core"},
    }
    if job.instructions:
        settings["developer_instructions"] = job.instructions
    if (limit := job.result_tokens) is not None:
        settings["tool_output_token_limit"] = limit
    if job.base_url:
        settings["model_provider"] = _PROVIDER
        place = {"name": _PROVIDER, "base_url": job.base_url, "wire_api": "responses", "env_key": _KEY}
        # A retry is the matter of the run, which counts it.
        settings["model_providers"] = {_PROVIDER: {**place, "request_max_retries": 0, "stream_max_retries": 0}}
    if job.servers:
        settings["mcp_servers"] = {server.name: _server(server) for server in job.servers}
    return settings


def _server(entry: ServerEntry) -> dict[str, Any]:
    """By default Codex leaves out a server that is not ready in a second, and refuses its calls: it must not."""
    times = {"startup_timeout_sec": entry.start_timeout_s, "tool_timeout_sec": entry.call_timeout_s}
    server = {**entry.record, **times, "required": True, "default_tools_approval_mode": "approve"}
    if headers := server.pop("headers", None):
        server["http_headers"] = headers
    return {**server, "enabled_tools": list(entry.tools)}


def as_toml(settings: Mapping[str, Any]) -> str:
    """Settings as TOML, in inline tables; texts as JSON spells them."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_spelled(str(key))} = {_value(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, list | tuple) else _spelled(value)


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class CodexReader(EventReader):
    """Reads events. The usage of a turn is that of all requests so far: the last one counts, not the sum."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Note what an event says."""
        kind, item = event.get("type"), mapping_of(event.get("item"))
        if kind in {"item.started", "item.updated", "item.completed"}:
            self._item(item, is_complete=kind == "item.completed")
        elif kind == "turn.completed":
            self.events.usage = _usage(mapping_of(event.get("usage")))
            self.events.is_finished = True
        elif kind in {"turn.failed", "error"}:
            self.events.error = str(mapping_of(event.get("error")).get("message") or event.get("message") or kind)

    def _item(self, item: Mapping[str, Any], *, is_complete: bool) -> None:
        kind, id_ = str(item.get("type")), str(item.get("id"))
        if kind == "agent_message" and is_complete:
            self.events.answer = str(item.get("text") or "")
            self.events.say(self.events.answer)
        elif kind == "mcp_tool_call":
            self.events.call(id_, tool_name(str(item.get("server")), str(item.get("tool"))), item.get("arguments"))
            if is_complete:
                result = mapping_of(item.get("result"))
                failed = item.get("status") != "completed" or bool(item.get("error")) or result.get("is_error") is True
                text = text_of(result.get("content")) or str(mapping_of(item.get("error")).get("message") or "")
                self.events.result(id_, text, is_error=failed)
        elif kind in _NATIVE:
            self.events.call(id_, _NATIVE[kind], item.get("command") or item.get("changes") or item.get("query"))
            if is_complete:
                # `grep` that finds nothing has exit status 1, and is no error.
                is_error = item.get("status") == "failed" and item.get("exit_code") not in {0, 1}
                self.events.result(id_, str(item.get("aggregated_output") or ""), is_error=is_error)


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        input=count_of(usage.get("input_tokens")),
        cache_read=count_of(usage.get("cached_input_tokens")),
        cache_write=count_of(usage.get("cache_write_input_tokens")),
        output=count_of(usage.get("output_tokens")),
        reasoning=count_of(usage.get("reasoning_output_tokens")),
    )
