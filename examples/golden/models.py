"""Scripted models for the roles of a golden set: good, lazy, lying, leaking, malformed and rate-limited ones.

What a model does depends on the topic of the record alone, and what it writes on what its tools showed it: it keeps no state.

    python models.py source FOLDER               make a repository of a part of Cranfield's source
    python models.py record PLAN SOURCE CALLS    run a plan, and keep the answers of its models in a file
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import cranfield
from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, ToolCall, Usage, with_output
from cranfield.agents.pydantic_ai_backend import OUTPUT_TOOL

FOLDERS = ("agents", "base/concurrency")
"""Of the package, in the repository."""
AGENTS = "src/cranfield/agents"
PROSE = (
    "The code in question is small and has one purpose. It takes what its caller gives it, looks at every part in turn, and "
    "decides by plain conditions what is to be done with it. Where nothing is wrong it returns its result at once, and where "
    "something is wrong it reports that in a way that the caller can act on. Nothing is changed besides what the caller "
    "expects, and the order of the steps matters, because a later step relies on an earlier one. A developer who has to "
    "change this behaviour starts here, and reads the tests next."
)
"""A narrative of about 90 words that names nothing."""


@dataclass(frozen=True)
class Topic:
    """A query, and how each role treats it."""

    text: str
    targets: tuple[str, ...]
    author: str = "good"
    oracle: str = "good"
    adversary: str = "good"
    judge: str = "good"
    expects: str = "passed"
    """State in which its record ends."""


def _at(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{AGENTS}/{module}.py::{name}" for name in names)


CELLS: Mapping[tuple[str, str], Sequence[Topic]] = {
    ("locate", "easy"): (
        Topic("Where do we make sure that a call cannot cost more than is allowed?", _at("budget", "Budget.reserve")),
        Topic("Where is total_usage computed?", _at("loop", "total_usage"), author="leaking", expects="screened_out"),
        Topic(
            "Which code stops a request that would be too expensive?",
            _at("budget", "Budget.reserve"),
            author="repeating",
            expects="screened_out",
        ),
        Topic("", _at("budget", "Price.cost"), author="malformed", expects="not_authored"),
        Topic(
            "Which part takes unprintable characters out of material?",
            _at("loop", "clean"),
            oracle="lazy",
            expects="gate_failed",
        ),
        Topic(
            "Where is the Markdown fence around JSON stripped?",
            _at("protocol", "unfenced"),
            oracle="lying",
            expects="gate_failed",
        ),
        Topic(
            "How do we get rid of the cut end of a file after a crash?",
            _at("recording", "open_whole_lines"),
            oracle="malformed",
            expects="no_answer",
        ),
        Topic(
            "Where are the tokens of several requests added up?",
            _at("loop", "total_usage"),
            oracle="endless",
            expects="no_answer",
        ),
        Topic(
            "What reports the spending of an earlier process?",
            _at("recording", "Kept.usages"),
            oracle="unsure",
            expects="queued",
        ),
        Topic(
            "Which code wraps a model in everything that protects it?",
            _at("settings", "connected"),
            adversary="silent",
            expects="blocked",
        ),
        Topic(
            "Where is the list of costs per million tokens loaded?",
            _at("budget", "read_prices"),
            adversary="against",
            expects="blocked",
        ),
        Topic(
            "Where do we try again after a server was busy?",
            _at("retrying", "Retrying.ask"),
            adversary="doubting",
            expects="queued",
        ),
        Topic(
            "Which code sends one request after another until there is a result?",
            _at("loop", "run_agent"),
            adversary="malformed",
            expects="no_report",
        ),
        Topic(
            "How do delimiters become impossible to guess?",
            _at("loop", "nonce"),
            judge="malformed",
            expects="no_rating",
        ),
        Topic(
            "What answers by a plain function in tests?",
            _at("recording", "Scripted"),
            judge="diverging",
            expects="queued",
        ),
        Topic(
            "Where does a guess of the size of a request come from?",
            _at("budget", "estimate"),
            adversary="missing",
            expects="queued",
        ),
        Topic(
            "Which check refuses to start too many requests in a minute?",
            _at("retrying", "Paced.ask"),
            oracle="rate_limited",
        ),
        Topic("What makes a digest of everything that decides an answer?", _at("protocol", "Request.record")),
    ),
    ("review", "easy"): (
        Topic("Is anything lost when two writers share a file of answers?", _at("recording", "Kept.ask")),
        Topic(
            "Can a tool that fails bring the whole conversation down?", _at("loop", "NoTools.call"), expects="reserve"
        ),
    ),
    ("general", "easy"): (
        Topic("What about the keys of providers?", _at("pydantic_ai_backend", "Provider")),
        Topic("Tell me about damaged files of answers.", _at("recording", "Replaying"), expects="reserve"),
    ),
    ("explain", "medium"): (
        Topic(
            "How does a conversation that was cut off go on without paying twice?",
            _at("recording", "Kept", "is_lasting"),
        ),
        Topic(
            "How is it decided which failures deserve another try, and when?",
            (*_at("retrying", "Retrying"), "src/cranfield/base/concurrency/retry.py::retry_policy"),
            expects="reserve",
        ),
    ),
}
BY_TEXT = {topic.text: topic for topics in CELLS.values() for topic in topics if topic.text}


def plan_of(base_url: str = "", **changes: Any) -> dict[str, Any]:
    """The plan next to this file, for models at an address."""
    plan = yaml.safe_load(Path(__file__).with_name("plan.yaml").read_text())
    models = {role: {**settings, "base_url": base_url} for role, settings in plan["models"].items()}
    return {**plan, "models": models, **changes}


def make_repository(folder: Path) -> Path:
    """A repository with one commit: folders of Cranfield's source, and a file that no tool may show."""
    package = Path(cranfield.__file__).parent
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "answers")
        shutil.copytree(package / name, folder / "src" / "cranfield" / name, ignore=ignored)
    (folder / ".env").write_text("API_KEY=not-for-models\n")
    who = {f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{role}_DATE": "2026-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    for command in (["init", "-q", "-b", "main"], ["add", "-A", "-f"], ["commit", "-q", "-m", "Source"]):
        subprocess.run(["git", *command], cwd=folder, check=True, env={**os.environ, **who, **when})
    return folder


# What the models do


@dataclass(frozen=True)
class Move:
    """What a model answers: calls of tools, or its output."""

    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    output: str = ""
    is_limited: bool = False
    """The server refuses the request for now."""


@dataclass(frozen=True)
class Turn:
    """A request, as both ways of asking have it."""

    role: str
    prompt: str
    task: str
    """The system prompt."""
    n_answers: int
    """Turns of the model before this one."""
    results: Sequence[str]
    """Of tools."""
    seed: int | None = None


def decide(turn: Turn) -> Move:
    """What the model of a role answers."""
    return {"author": _author, "oracle": _oracle, "adversary": _adversary, "judge": _judge}[turn.role](turn)


MALFORMED = Move(output='{"query_text": ')


def _author(turn: Turn) -> Move:
    found = re.search(r"^Write one (\w+) question of type (\w+)\.$", turn.prompt, re.MULTILINE)
    assert found, turn.prompt
    difficulty, task_type = found.groups()
    topics = CELLS[task_type, difficulty]
    topic = topics[((turn.seed or 1) - 1) % len(topics)]
    if topic.author == "malformed":
        return MALFORMED
    if not turn.results:
        return Move([("outline", {"path": path}) for path in _paths(topic.targets)])
    draft: dict[str, Any] = {"query_text": topic.text, "target_entity_ids": list(topic.targets)}
    if difficulty != "easy":
        draft["difficulty_rationale"] = "The answer is spread over two places, one of which uses the other."
    if task_type == "general":
        draft["classifier_expectation"] = "explain"
    return Move(output=json.dumps(draft))


def _oracle(turn: Turn) -> Move:
    topic = BY_TEXT[_part(turn.prompt, "question")]
    targets = json.loads(_part(turn.prompt, "targets"))["target_entity_ids"]
    if topic.oracle == "malformed":
        return MALFORMED
    if topic.oracle == "rate_limited" and not turn.n_answers:
        return Move([("outline", {"path": path}) for path in _paths(targets)], is_limited=True)
    if topic.oracle == "endless":
        return Move([("list_files", {"folder": AGENTS})])
    if turn.n_answers == 0:
        return Move([("outline", {"path": path}) for path in _paths(targets)])
    ranges = {target: _range(turn.results, target) for target in targets}
    if turn.n_answers == 1 and topic.oracle != "lazy":
        places = [{"path": _path(target), "start": start, "end": end} for target, (start, end) in ranges.items()]
        return Move([("read_file", place) for place in places])
    return Move(output=json.dumps(_answer(topic, ranges, step=len(_paths(targets)) + 1)))


def _answer(topic: Topic, ranges: Mapping[str, tuple[int, int]], step: int) -> dict[str, Any]:
    cited = [{"file": _path(target), "start": start, "end": end} for target, (start, end) in ranges.items()]
    first = cited[0]
    entities = [f"{_path(each)}::invented_name" if topic.oracle == "lying" else each for each in ranges]
    facts = [f"The definition begins at line {first['start']}.", f"It ends at line {first['end']}."]
    facts.append(f"It is {first['end'] - first['start'] + 1} lines long.")
    return {
        "expected_entities": [
            {"entity_id": each, "role": "primary", "rationale": "It is the answer."} for each in entities
        ],
        "expected_files": _paths(ranges),
        "expected_line_ranges": cited,
        "must_mention_facts": [{"fact": fact, "citations": [first]} for fact in facts],
        "must_not_mention_facts": [{"fact": "It is empty.", "citations": [first]}],
        "canonical_narrative": PROSE,
        "source_evidence": [{**each, "read_at_step": step + number} for number, each in enumerate(cited)],
        "confidence": "low" if topic.oracle == "unsure" else "high",
        "uncertainty_notes": "Two places could be meant." if topic.oracle == "unsure" else None,
        "baseline_answerable": True,
    }


def _adversary(turn: Turn) -> Move:
    topic = BY_TEXT[_part(turn.prompt, "question")]
    claims = [json.loads(line) for line in _part(turn.prompt, "claims").splitlines()]
    places = [_place(each["claim"]) for each in claims if each["claim_type"] == "line_range"]
    if topic.adversary == "malformed":
        return MALFORMED
    if not turn.results:
        return Move([("read_file", {"path": each["file"], **_lines(each)}) for each in places])
    verdicts = [
        {"claim_type": each["claim_type"], "claim": each["claim"], "verdict": "supported", "citation": places[0]}
        for each in claims
    ]
    overall, missing = "supported", []
    if topic.adversary == "silent":
        verdicts.pop()
    elif topic.adversary == "against":
        overall = "unsupported"
        verdicts[0] |= {"verdict": overall, "note": "Another place does this."}
    elif topic.adversary == "doubting":
        overall = "partial"
        verdicts[-1] |= {"verdict": overall, "note": "Only where nothing fails."}
    elif topic.adversary == "missing":
        missing = [f"{AGENTS}/budget.py::Estimate"]
    findings = {"claim_verdicts": verdicts, "overall_verdict": overall, "missing_entities": missing}
    return Move(output=json.dumps({**findings, "findings": "The lines do what the question asks for."}))


def _judge(turn: Turn) -> Move:
    topic = BY_TEXT[_part(turn.prompt, "question")]
    if topic.judge == "malformed":
        return MALFORMED
    rating = "minor_divergence" if topic.judge == "diverging" else "equivalent"
    return Move(
        output=json.dumps({"rating": rating, "reason": "Both say the same." if rating == "equivalent" else "A detail."})
    )


# What they read


def _part(text: str, name: str) -> str:
    found = re.search(rf'<(material-\w+) part="{name}">\n(.*?)\n</\1>', text, re.DOTALL)
    assert found, text
    return found[2]


def _path(entity: str) -> str:
    return entity.partition("::")[0]


def _paths(entities: Any) -> list[str]:
    return list(dict.fromkeys(map(_path, entities)))


def _range(outlines: Sequence[str], entity: str) -> tuple[int, int]:
    """Lines of an entity, as an outline shows them."""
    found = re.search(rf"^(\d+)-(\d+) \w+ {re.escape(entity)}$", "\n".join(outlines), re.MULTILINE)
    assert found, entity
    return int(found[1]), int(found[2])


def _place(text: str) -> dict[str, Any]:
    file, _, lines = text.rpartition(":")
    start, _, end = lines.partition("-")
    return {"file": file, "start": int(start), "end": int(end)}


def _lines(place: Mapping[str, Any]) -> dict[str, int]:
    return {"start": place["start"], "end": place["end"]}


# In the process


@dataclass
class Models:
    """The models, asked in the process or over HTTP, with what they were asked."""

    n_requests: int = 0
    limited: set[str] = field(default_factory=set)
    """Prompts that were refused once."""
    wait_s: float = 0.0
    """Before each answer over HTTP."""

    def answer(self, request: Request) -> str | ModelAnswer:
        """To a request of the process: see `agents.scripted.Scripted`."""
        self.n_requests += 1
        first = request.messages[0].text
        turn = Turn(
            request.model.partition(":")[2],
            first,
            request.system,
            sum(message.role == "assistant" for message in request.messages),
            [message.text for message in request.messages if message.role == "tool"],
            request.sampling.seed,
        )
        move = self._limited(turn, decide(turn))
        usage = Usage(input=1_000, cache_read=0, output=100)
        if move.is_limited:
            return ModelAnswer(
                failure=Failure(FailureKind.RATE_LIMITED, "HTTP 429", 429, 0.01), usage=Usage(input=0, output=0)
            )
        if move.calls:
            calls = [ToolCall(f"call_{n}", name, json.dumps(given)) for n, (name, given) in enumerate(move.calls)]
            return ModelAnswer(tool_calls=tuple(calls), usage=usage, model=request.model)
        return with_output(ModelAnswer(text=move.output, usage=usage, model=request.model), request)

    def script(self, reply: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        """For `examples/model_server.py`, whose class of replies is given."""

        def answer(body: dict[str, Any]) -> Any:
            self.n_requests += 1
            time.sleep(self.wait_s)
            texts = {
                role: [str(m["content"]) for m in body["messages"] if m["role"] == role] for role in ("user", "tool")
            }
            n_answers = sum(message["role"] == "assistant" for message in body["messages"])
            turn = Turn(body["model"], texts["user"][0], "", n_answers, texts["tool"], body.get("seed"))
            move = self._limited(turn, decide(turn))
            if move.is_limited:
                return reply("slow down", status=429, headers={"Retry-After": "0"})
            calls = [(name, json.dumps(given)) for name, given in move.calls] or [(OUTPUT_TOOL, move.output)]
            return reply(tool_calls=calls, finish="tool_calls")

        return answer

    def _limited(self, turn: Turn, move: Move) -> Move:
        if move.is_limited and turn.prompt in self.limited:
            return Move(move.calls)
        if move.is_limited:
            self.limited.add(turn.prompt)
        return move


def record(plan: Path, source: Path, calls: Path) -> None:
    """Run a plan in this process, and keep the answers of its models in a file, to be replayed."""
    from cranfield.agents.recording import Scripted
    from cranfield.golden.plan import load_plan
    from cranfield.golden.run import PipelineOptions, create_run, execute
    from cranfield.repo.tree import source_snapshot

    snapshot = source_snapshot(source)
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(load_plan(plan), plan.read_text(), snapshot, Path(folder))
        execute(run, snapshot, PipelineOptions(source=Scripted(Models().answer)))
        shutil.copy(run / "calls.jsonl", calls)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["source", folder]:
            make_repository(Path(folder))
        case ["record", plan, source, calls]:
            record(Path(plan), Path(source), Path(calls))
        case _:
            sys.exit(__doc__)
