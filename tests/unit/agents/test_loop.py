"""The loop of an agent, and answers that are kept, over scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from cranfield.agents.loop import AgentLimits, AgentTask, End, NoTools, Read, ToolResult, Toolset, Transcript, run_agent
from cranfield.agents.protocol import Backend, Failure, FailureKind, ModelAnswer, Request, Tool, ToolCall, Usage
from cranfield.agents.recording import Kept, Scripted
from cranfield.base.errors import InputError


class Word(BaseModel):
    word: str


TASK = AgentTask("openai:m", "Find it.", "Which word?", Word)
GOOD = '{"word": "yes"}'
READ = Tool("read", "Reads lines of a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
USAGE = Usage(input=10, cache_read=0, cache_write=0, output=2, reasoning=0)


class Files:
    """A tool that reads the first two lines of any file."""

    tools = (READ,)

    async def call(self, call: ToolCall) -> ToolResult:
        path = json.loads(call.arguments)["path"]
        if path == "long.py":
            return ToolResult("x" * 50_000, (Read(path, 1, 900),))
        return ToolResult(f"1: # {path}\n2: x = 1", (Read(path, 1, 2),))


def calls(*paths: str, tool: str = "read") -> ModelAnswer:
    given = (ToolCall(f"call-{n}", tool, json.dumps({"path": path})) for n, path in enumerate(paths))
    return ModelAnswer(tool_calls=tuple(given), usage=USAGE, model="m-1")


def script(*answers: str | ModelAnswer) -> Scripted:
    given = iter(answers)
    return Scripted(lambda _: next(given))


def run(backend: Backend, toolset: Toolset | None = None, limits: AgentLimits | None = None) -> Transcript:
    task = TASK if limits is None else replace(TASK, limits=limits)
    return asyncio.run(run_agent(backend, task, toolset or Files()))


def test_an_agent_calls_tools_until_it_answers_and_its_log_says_what_it_read() -> None:
    backend = script(calls("a.py"), calls("b.py", "c.py"), GOOD)
    transcript = run(backend)
    assert (transcript.end, transcript.output) == (End.ANSWERED, Word(word="yes"))
    assert transcript.reads == ((1, Read("a.py", 1, 2)), (2, Read("b.py", 1, 2)), (3, Read("c.py", 1, 2)))
    assert [message.role for message in transcript.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [len(request.messages) for request in backend.requests] == [1, 3, 6]
    assert backend.requests[2].messages[4].tool_call_id == "call-0"
    record = transcript.record()
    assert json.loads(json.dumps(record)) == record
    assert (record["turns"], record["models"], len(record["uses"])) == (3, ["m-1", "openai:m"], 3)


def test_usage_is_the_sum_and_what_one_request_did_not_report_is_unknown() -> None:
    known = run(script(calls("a.py"), ModelAnswer(text=GOOD, output=Word(word="yes"), usage=USAGE)))
    assert known.usage == Usage(requests=2, input=20, cache_read=0, cache_write=0, output=4, reasoning=0)
    silent = run(script(calls("a.py"), ModelAnswer(text=GOOD, output=Word(word="yes"), usage=Usage(unmeasured=1))))
    assert (silent.usage.total, silent.usage.unmeasured, silent.usage.requests) == (None, 1, 2)


@pytest.mark.parametrize(
    ("answer", "limits", "end", "turns"),
    [
        (lambda: calls("a.py"), AgentLimits(turns=3), End.TURNS, 3),
        (lambda: calls("a.py", "b.py"), AgentLimits(tool_calls=3), End.TOOL_CALLS, 3),
        (lambda: calls("a.py"), AgentLimits(tokens=24), End.TOKENS, 2),
        (lambda: calls("a.py"), AgentLimits(seconds=0.0), End.SECONDS, 0),
    ],
)
def test_each_limit_is_an_end_of_its_own(
    answer: Callable[[], ModelAnswer], limits: AgentLimits, end: End, turns: int
) -> None:
    transcript = run(Scripted(lambda _: answer()), limits=limits)
    assert (transcript.end, transcript.turns, transcript.output) == (end, turns, None)


def test_beyond_the_limit_of_calls_the_model_is_told_and_may_still_answer() -> None:
    backend = script(calls("a.py", "b.py"), GOOD)
    transcript = run(backend, limits=AgentLimits(tool_calls=1))
    assert (transcript.end, len(transcript.uses)) == (End.ANSWERED, 1)
    assert "no more calls" in backend.requests[1].messages[3].text


def test_an_answer_that_does_not_fit_is_sent_back_and_the_second_is_taken() -> None:
    backend = script("no JSON", GOOD)
    assert run(backend).end is End.ANSWERED
    assert "cannot be used" in backend.requests[1].messages[-1].text
    assert backend.requests[1].messages[-2].text == "no JSON"
    lasting = run(Scripted(lambda _: "no JSON"), limits=AgentLimits(corrections=2))
    assert (lasting.end, lasting.turns) == (End.FAILED, 3)
    assert lasting.failure is not None
    assert lasting.failure.kind is FailureKind.BAD_OUTPUT


def test_a_failed_request_ends_the_agent_with_its_failure() -> None:
    filtered = ModelAnswer(failure=Failure(FailureKind.FILTERED, "no"))
    transcript = run(script(calls("a.py"), filtered))
    assert (transcript.end, transcript.failure) == (End.FAILED, filtered.failure)


def test_an_unknown_tool_is_an_error_to_the_model_and_reads_nothing() -> None:
    transcript = run(script(calls("a.py", tool="retrieve"), GOOD))
    assert transcript.end is End.ANSWERED
    assert transcript.uses[0].result == ToolResult("error: there is no tool 'retrieve'; there are: read", is_error=True)
    assert run(script(calls("a.py"), GOOD), NoTools()).reads == ()


def test_a_result_that_is_cut_proves_no_lines() -> None:
    transcript = run(script(calls("long.py"), GOOD))
    assert transcript.reads == ()
    assert "10,000 more characters are not shown" in transcript.uses[0].result.text


def test_kept_answers_are_not_asked_again_wherever_a_run_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def source(request: Request) -> str | ModelAnswer:
        return GOOD if len(request.messages) == 5 else calls(f"{len(request.messages)}.py")

    first = Scripted(source)
    kept = Kept(path, first)
    whole = run(kept)
    kept.close()
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    for n in range(4):
        path.write_bytes(b"".join(lines[:n]) + (lines[n][:20] if n < 3 else b""))
        second = Scripted(source)
        kept = Kept(path, second)
        again = run(kept)
        kept.close()
        assert (kept.n_kept, len(second.requests)) == (n, 3 - n)
        assert (again.messages, again.output, again.reads) == (whole.messages, whole.output, whole.reads)
        assert len(path.read_bytes().splitlines()) == 3


def test_a_replay_asks_nothing_and_the_same_request_has_as_many_answers_as_it_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    kept = Kept(path, script('{"word": "a"}', '{"word": "b"}'))
    first = [run(kept, NoTools()).output for _ in range(2)]
    kept.close()
    replay = Kept(path)
    assert [model for model, _ in replay.usages()] == ["openai:m"] * 2
    assert [run(replay, NoTools()).output for _ in range(2)] == first == [Word(word="a"), Word(word="b")]
    third = run(replay, NoTools())
    assert third.failure is not None
    assert third.failure.kind is FailureKind.NOT_RECORDED


def test_what_may_pass_is_not_kept_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    kept = Kept(path, script(ModelAnswer(failure=Failure(FailureKind.UNAVAILABLE, "down"))))
    assert run(kept).end is End.FAILED
    kept.close()
    assert path.read_bytes() == b""
    path.write_text('{"cranfield_recording": 1}\n')
    with pytest.raises(InputError, match="1: not a valid line of a file of stored answers"):
        Kept(path)
    with pytest.raises(InputError, match="cannot be read"):
        Kept(tmp_path / "none.jsonl")
