"""Any agent that is a command: placeholders of its command line, and its answer and usage by JMESPath."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cranfield.agents.protocol import Usage
from cranfield.benefit.external.agent import AgentJob, Launch
from cranfield.benefit.external.claude_code import ClaudeReader
from cranfield.benefit.external.codex import CodexReader
from cranfield.benefit.external.events import RunOutputReader, count_of, dicts_of, json_object, plain_name
from cranfield.benefit.plan import OutputPaths
from cranfield.config.strict import fill_text

PLACEHOLDERS = ("prompt", "model", "workdir", "home", "mcp_config", "seed", "base_url", "key")


def launch(job: AgentJob) -> Launch:
    """How a run is started: the instructions stand before the prompt; the servers are in a file as Claude Code reads it."""
    config = job.place.home / "mcp.json"
    servers = {server.name: dict(server.record) for server in job.servers}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    values = {
        "prompt": "\n\n".join(filter(None, (job.instructions, job.prompt))),
        "model": job.model,
        "workdir": str(job.place.workdir),
        "home": str(job.place.home),
        "mcp_config": str(config),
        "seed": str(job.seed),
        "base_url": job.base_url,
        "key": job.key,
    }
    env = {name: fill_text(value, values) for name, value in job.env.items()}
    return Launch(tuple(fill_text(part, values) for part in job.agent.command), env, _reader(job))


def _reader(job: AgentJob) -> RunOutputReader:
    usage = job.agent.usage
    if isinstance(usage, OutputPaths):
        return PathsReader(usage)
    return _READERS[usage]()


class TextReader(RunOutputReader):
    """Reads an agent that prints its answer and nothing else."""

    def end(self) -> None:
        """The answer is whole."""
        self.events.answer = "\n".join(self.lines).strip()
        self.events.is_finished = True
        self.events.has_calls = False


class PathsReader(RunOutputReader):
    """Reads an agent that prints JSON: one document, or lines, which are a list then."""

    def __init__(self, paths: OutputPaths) -> None:
        super().__init__()
        self._paths = paths

    def end(self) -> None:
        """Look up what the plan names."""
        document, events = self._document(), self.events
        found = {name: _search(path, document) for name, path in self._paths.model_dump().items() if path}
        events.answer = found["answer"] if isinstance(found["answer"], str) else _spelled(found["answer"])
        events.error = _spelled(found.get("error"))
        events.is_finished = bool(events.answer) or (found["answer"] is not None and not events.error)
        if any(name in found for name in _TOKENS):
            read, write, output, reasoning = (count_of(found.get(name)) for name in _TOKENS[1:])
            events.usage = Usage(1, count_of(found.get(_TOKENS[0])), read, write, output, reasoning)
        money = found.get("money")
        events.money = float(money) if isinstance(money, int | float) else None
        models = found.get("model")
        for name in models if isinstance(models, list) else [models]:
            events.note_model(name)
        if isinstance(offered := found.get("offered"), list):
            events.offered = frozenset(plain_name(str(name)) for name in offered)
        given = found.get("tool_calls")
        calls = dicts_of(given)
        # A list of no calls says that there were none; anything else, such as a path that finds nothing, says nothing.
        events.has_calls = isinstance(given, list) and len(calls) == len(given)
        events.has_results = events.has_calls and all(call.get("result") is not None for call in calls)
        for number, call in enumerate(calls if events.has_calls else ()):
            events.call(str(number), str(call.get("name")), call.get("arguments"))
            events.result(str(number), _spelled(call.get("result")), is_error=call.get("ok") is not True)
        events.turns = count_of(found.get("turns"))  # last: the turn of a call is its place

    def _document(self) -> Any:
        """The output as JSON; lines that are none are counted."""
        try:
            return json.loads("\n".join(self.lines))
        except (ValueError, RecursionError):
            values: list[Mapping[str, Any]] = []
            for line in filter(str.strip, self.lines):
                value = json_object(line)
                self.events.n_unread += value is None
                values += [] if value is None else [value]
            return values


_READERS: Mapping[str, Callable[[], RunOutputReader]] = {
    "": TextReader,
    "codex": CodexReader,
    "claude-code": ClaudeReader,
}
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")


def _search(path: str, document: Any) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.search(path, document)
    except JMESPathError:  # a function that does not take what it is given
        return None


def _spelled(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
