"""What a scorer must not read: names of tools, servers and arms, by which an answer would say in which arm it was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import get_args
from urllib.parse import urlsplit

from cranfield.agents.answers.score import REDACTED, Redact, redaction
from cranfield.benefit.plan import ArmRole, BenefitPlan, NativeTool
from cranfield.benefit.records import CellRecord, PreflightRecord
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.model.judging import Label

NATIVE: tuple[str, ...] = get_args(NativeTool)
MCP = "mcp"
MACHINE = "path of this machine"
GENERIC = frozenset((
    "agent", "answer", "arm", "baseline", "client", "code", "codebase", "context", "control", "docs", "index",
    "local", "main", "mcp", "node", "none", "npx", "python", "query", "repo", "repository", "retrieval", "search",
    "server", "source", "test", "tool", "tools", "treatment", "uvx", "with", "without",
))  # fmt: skip
"""Words of prose, which do not give an arm away where they are no code: a tool may be called one of these."""
_JOINT = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_PLAIN = re.compile(r"[a-z]+")
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
_BETWEEN = r"[\W_]{0,3}"
_MIN_LETTERS = 3


@dataclass(frozen=True)
class Redaction:
    """Removes names, and what the expressions of the plan find. The same for every answer and every label."""

    patterns: Mapping[str, re.Pattern[str]]
    """Name to what finds it, longer names first."""
    of_plan: Redact

    def __call__(self, text: str) -> str:
        """The text without them."""
        for pattern in self.patterns.values():
            text = pattern.sub(REDACTED, text)
        return self.of_plan(text)

    def found(self, text: str) -> frozenset[str]:
        """The names that stand in a text; of a name within a longer one, the longer one."""
        names = set()
        for name, pattern in self.patterns.items():
            text, n = pattern.subn(REDACTED, text)
            names |= {name} if n else set()
        return frozenset(names)


def redaction_of(
    plan: BenefitPlan, cells: Iterable[CellRecord] = (), preflight: Iterable[PreflightRecord] = ()
) -> Redaction:
    """What is redacted in an experiment.

    - keys of tools in the plan, names of MCP servers: wherever they stand, with any joint (`know-code`, `KnowCode`);
    - names of arms, of the tools of these servers, and words of their commands: so too, unless they may be prose (one
      word of lower-case letters): those as code or beside the word "tool" only;
    - native tools that one arm has and the other has not;
    - `mcp__...`, "MCP tool", and paths below the home folder and the repository of this machine;
    - what `success.redact` of the plan finds.

    Raises:
        UsageError: with every expression of the plan that is none.
    """
    records = list(preflight)
    servers = [record.server.split()[0] for record in records if record.server.strip()]
    products = set({name.casefold(): name for name in (*servers, *plan.tools)}.values())
    others = {arm.name for arm in plan.arms.values()}
    for server in plan.tools.values():
        # Names of programs and packages: `knowcode-mcp` of `/usr/bin/knowcode-mcp` and of `knowcode-mcp==0.5`.
        words = (re.split(r"[=<>@~\[]", part.lstrip("@"))[0] for part in server.command if not part.startswith("-"))
        stems = {PurePosixPath(word).name.removesuffix(".py").removesuffix(".js") for word in words}
        host = urlsplit(server.url).hostname or ""
        others |= {
            *server.tools,
            *{stem for stem in stems if stem and stem.lower().rstrip("0123456789.") not in GENERIC},
            *({label for label in host.split(".")[:-1] if not label.isdigit()} - {"www", "localhost"}),
        }
    others |= {tool for record in records for tool in record.tools}
    others |= {(tool.rpartition("__")[2] or tool) for cell in cells for tool in cell.usage.tool_calls or ()} - set(
        NATIVE
    )
    treatment, control = (frozenset[str](plan.arms[role].native) for role in ArmRole)
    others |= treatment ^ control
    patterns = {name: _anywhere(name) for name in sorted(products) if name.lower() not in GENERIC}
    for name in sorted((others | products) - patterns.keys()):
        if len(name) >= _MIN_LETTERS:
            patterns[name] = _as_code(name) if _PLAIN.fullmatch(name) else _anywhere(name)
    longest_first = dict(sorted(patterns.items(), key=lambda item: (-len(item[0]), item[0])))
    roots = {str(Path.home())} | ({str(Path(plan.repo).resolve())} if plan.repo else set())
    alternatives = "|".join(re.escape(root) for root in sorted(roots, key=len, reverse=True) if root.count("/") > 0)
    found = re.compile(rf"(?<![\w/])(?:{alternatives})(?:/[\w.@+~-]+)+") if alternatives else None
    paths = {} if found is None else {MACHINE: found}
    return Redaction({MCP: _MCP, **longest_first, **paths}, redaction(plan.success.redact))


@dataclass(frozen=True)
class LeakFinder:
    """Names of tools and arms that an answer says and its task does not."""

    redaction: Redaction
    tasks: TaskSet

    @cached_property
    def _own(self) -> dict[str, frozenset[str]]:
        return {task.id: self.redaction.found(self._says(task)) for task in self.tasks.tasks}

    def _says(self, task: Task) -> str:
        testset = self.tasks.testset
        label = testset.labels.get(task.id, Label()) if testset is not None else Label()
        facts = (fact.text for fact in (*label.must_mention, *label.must_not_mention))
        return "\n".join([task.prompt, label.narrative, *facts])

    def __call__(self, task_id: str, text: str) -> tuple[str, ...]:
        """The names in an answer to a task, in the order of the alphabet."""
        return tuple(sorted(self.redaction.found(text) - self._own[task_id]))


_MCP = re.compile(rf"{_START}mcp(?:__\w+|[ -]tools?{_END})", re.IGNORECASE)


def _joined(name: str) -> str:
    return _BETWEEN.join(re.escape(part) for part in _JOINT.split(name) if part)


def _anywhere(name: str) -> re.Pattern[str]:
    return re.compile(f"{_START}{_joined(name)}{_END}", re.IGNORECASE)


def _as_code(word: str) -> re.Pattern[str]:
    """In backticks, called, after `__`, or beside the word `tool`."""
    forms: list[Callable[[str], str]] = [
        lambda w: f"(?<=`){w}(?=`)",
        lambda w: rf"(?<![\w.:/]){w}(?=\()",
        lambda w: f"(?<=__){w}{_END}",
        lambda w: rf"{_START}{w}(?=['\"]? tools?{_END})",
        lambda w: rf"(?<=\btool ){w}{_END}",
    ]
    return re.compile("|".join(form(word) for form in forms), re.IGNORECASE)
