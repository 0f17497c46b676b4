"""Scripted models for an experiment: an agent that searches with what it has, and a judge. They keep no state.

The agent calls the tool under test where it is offered, and else searches for the words of the question. Its answer is what
the functions that it was shown say of themselves; it knows neither the golden set nor its arm.

    python models.py source FOLDER    make the repository that golden.json is about
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cranfield.agents.pydantic_ai_backend import OUTPUT_TOOL

HERE = Path(__file__).resolve().parent
COMMON = {"what", "which", "where", "does", "code", "many", "somebody", "another", "function", "says", "that", "from"}
SLIPS = 0.08
"""Share of the answers that forget what was found."""
MAX_THOUGHTS = 2_000
"""Tokens of the reasoning before an answer."""


def make_repository(folder: Path) -> Path:
    """A repository with one commit, which is the same everywhere."""
    shutil.copytree(HERE / "source", folder, ignore=shutil.ignore_patterns("__pycache__"))
    who = {f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{role}_DATE": "2026-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    settings = ["-c", "core.autocrlf=false", "-c", "core.fileMode=false", "-c", "commit.gpgSign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A", "-f"], ["commit", "-q", "-m", "Source"]):
        subprocess.run(["git", *settings, *command], cwd=folder, check=True, env={**os.environ, **who, **when})
    return folder


@dataclass(frozen=True)
class Turn:
    """A request to the agent."""

    question: str
    tools: list[str]
    calls: list[tuple[str, dict[str, Any], str]]
    """Name, arguments and result of those before."""
    luck: float
    """In [0, 1), of this request: a sampled model does not write the same twice."""

    @property
    def tested(self) -> str:
        """The tool under test; empty: there is none."""
        return next((name for name in self.tools if name.endswith("__find_code")), "")

    @property
    def n_places(self) -> int:
        """Parts of the question."""
        return 2 if ", and " in self.question else 1


Move = tuple[str, dict[str, Any]]
"""A tool, and its arguments."""
Code = tuple[str, str]
"""Path, and lines of the file."""


def good(turn: Turn) -> Move:
    """Look with the tool, else with native ones; read the best file where lines of code do not answer; then answer."""
    if not turn.calls:
        if turn.tested:
            return turn.tested, {"query": " ".join(terms(turn.question))}
        return "search", {"pattern": "|".join(words(turn.question)), "ignore_case": True, "limit": 50, "context": 0}
    shown = "\n".join(result for _, _, result in turn.calls)
    found = functions_in(shown) or answering_lines(turn)
    if len(found) < turn.n_places and hits(turn) and turn.calls[-1][0] != "read_file":
        return "read_file", {"path": hits(turn)[0]}
    return answer(turn, found or best_functions(turn))


def answer(turn: Turn, code: list[Code]) -> Move:
    """What the code says of itself, and where it is."""
    if turn.luck < SLIPS or not code:
        return OUTPUT_TOOL, {"text": "I did not find the code in question."}
    says = [(path, re.search(r'"""(.*?)"""', each, re.DOTALL)) for path, each in code[: turn.n_places]]
    text = "\n".join(f"- The code says: {found[1]}" for _, found in says if found)
    return OUTPUT_TOOL, {"text": text, "files": list(dict.fromkeys(path for path, found in says if found))}


def leaking(turn: Turn) -> Move:
    """As good, and it says with what it found it."""
    tool, given = good(turn)
    if tool == OUTPUT_TOOL and turn.tested:
        given |= {"text": f"With beacon's `{turn.tested}`, in the arm with the tool, I found:\n{given['text']}"}
    return tool, given


def endless(_: Turn) -> Move:
    """Read on, without an answer."""
    return "list_files", {"folder": "src/ferry"}


def guessing(_: Turn) -> Move:
    """Answer without looking."""
    return OUTPUT_TOOL, {"text": "I would look into the settings."}


def coder(turn: Turn) -> Move:
    """Write what the current documentation says where there is some, and what was right years ago where there is none."""
    from cranfield.benefit.coding import load_coding_tasks

    tasks = load_coding_tasks("package:python", HERE).tasks
    (task,) = (each for each in tasks if each.prompt in turn.question)
    if turn.tested and not turn.calls:
        return turn.tested, {"query": task.prompt}
    knows = bool(turn.tested) or hashlib.sha256(task.id.encode()).digest()[0] < 128
    files = task.reference if knows else task.traps[0].files
    return OUTPUT_TOOL, {"files": [{"path": path, "content": text} for path, text in files.items()]}


AGENTS: dict[str, Callable[[Turn], Move]] = {
    "agent": good, "leaking": leaking, "endless": endless, "guessing": guessing, "coder": coder,
}  # fmt: skip


def terms(text: str) -> list[str]:
    """Words that say something."""
    return [word for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in COMMON]


def words(text: str) -> list[str]:
    """Their beginnings, each once."""
    return list(dict.fromkeys(word[:6] for word in terms(text)))


def functions_in(shown: str) -> list[Code]:
    """Functions that the tool under test showed whole, in its order."""
    found = re.findall(r'"file": ?"([^"]*)".*?"code": ?"((?:[^"\\]|\\.)*)"', shown, re.DOTALL)
    return [(path, json.loads(f'"{code}"')) for path, code in found]


def lines_in(turn: Turn) -> list[tuple[str, str, int]]:
    """Path and text of the lines that were found, with the number of words of the question in them."""
    shown = "\n".join(result for name, _, result in turn.calls if name != "read_file")
    found = re.findall(r"^(\S+\.py):\d+:(.*)$", shown, re.MULTILINE)
    return [(path, line, sum(word in line.lower() for word in words(turn.question))) for path, line in found]


def hits(turn: Turn) -> list[str]:
    """Paths of the lines that were found, the one with the most words first."""
    found: Counter[str] = Counter()
    for path, _, n_words in lines_in(turn):
        found[path] += n_words
    return sorted(found, key=lambda path: (-found[path], path))


def answering_lines(turn: Turn) -> list[Code]:
    """Docstrings with several words of the question, those with the most first."""
    found = [each for each in lines_in(turn) if each[2] > 1 and each[1].count('"""') > 1]
    return [(path, line) for path, line, _ in sorted(found, key=lambda each: -each[2])]


def best_functions(turn: Turn) -> list[Code]:
    """Functions of the files that were read, those with the most words of the question first."""
    scores: dict[Code, int] = {}
    for name, given, result in turn.calls:
        if name == "read_file":
            code = re.sub(r"^ *\d+\t", "", result, flags=re.MULTILINE)
            for each in re.findall(r"^def .*?(?=\n\n\n|\Z|\n\S+, lines )", code, re.MULTILINE | re.DOTALL):
                scores[given["path"], each] = sum(word in each.lower() for word in words(turn.question))
    return sorted((each for each in scores if scores[each]), key=lambda each: -scores[each])


def judge(prompt: str) -> dict[str, str]:
    """Whether a line of an answer has nearly all words of the statement."""
    parts = dict(re.findall(r'^<part-\S+ name="(\w+)">\n(.*?)\n</part', prompt, re.MULTILINE | re.DOTALL))
    wanted = set(re.findall(r"\w{3,}", parts["statement"].lower()))
    lines = parts["answer"].splitlines()
    best = max(lines, key=lambda line: len(wanted & set(re.findall(r"\w{3,}", line.lower()))))
    if len(wanted & set(re.findall(r"\w{3,}", best.lower()))) < 0.85 * len(wanted):
        return {"quote": "", "verdict": "absent"}
    return {"quote": best, "verdict": "supported"}


def turn_of(body: dict[str, Any]) -> Turn:
    """Of a request of chat completions."""
    # Ids of calls are those of one answer: calls and results have the same order.
    asked = [
        (call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
        for message in body["messages"]
        for call in message.get("tool_calls") or []
    ]
    results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    question = next(str(message["content"]) for message in body["messages"] if message["role"] == "user")
    return Turn(
        question,
        [tool["function"]["name"] for tool in body.get("tools", [])],
        [(*call, result) for call, result in zip(asked, results, strict=False)],
        luck(body),
    )


def luck(body: dict[str, Any]) -> float:
    """Of a request: the same one has the same."""
    text = json.dumps([body["messages"], body.get("tools"), body.get("seed")], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


@dataclass
class Models:
    """The models over HTTP, with what they were asked."""

    n_requests: int = 0
    wait_s: float = 0.0
    """Before each answer."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Of each different request to an agent."""

    def script(self, reply: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        """For `examples/model_server.py`, whose class of replies is given."""

        def respond(body: dict[str, Any]) -> Any:
            self.n_requests += 1
            time.sleep(self.wait_s)
            size = len(json.dumps([body["messages"], body.get("tools")])) // 4
            thoughts = round(MAX_THOUGHTS * luck(body)) if body.get("max_completion_tokens") != 1 else 1
            usage = {"prompt_tokens": size, "completion_tokens": thoughts, "total_tokens": size + thoughts,
                     "prompt_tokens_details": {"cached_tokens": 0}}  # fmt: skip
            if body["model"] == "judge":
                return reply(json.dumps(judge(str(body["messages"][-1]["content"]))), usage=usage)
            self.tokens[json.dumps(body, sort_keys=True)] = size + thoughts
            turn = turn_of(body)
            if OUTPUT_TOOL not in turn.tools:
                return reply("x", usage=usage, finish="length")
            name, given = AGENTS[body["model"]](turn)
            return reply(tool_calls=[(name, json.dumps(given))], usage=usage, finish="tool_calls")

        return respond


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["source", folder]:
            make_repository(Path(folder))
        case _:
            sys.exit(__doc__)
