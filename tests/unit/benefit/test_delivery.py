"""What a tool serves before a run, what its schema costs, and what became of it in a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cranfield.agents.protocol import Message, ModelAnswer, Request, Sampling, Tool, Usage
from cranfield.agents.recording import Scripted
from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.delivery import Called, measure_schema, run_delivery, served
from cranfield.benefit.mcp_tools import McpTools
from cranfield.benefit.plan import Preflight, ToolServer
from cranfield.benefit.records import Flaw

COMMIT = "0123456789abcdef0123456789abcdef01234567"
STATUS = {"index": "main", "build": {"version": "1.2", "commit": COMMIT[:9]}}
PATHS = {"tool": "status", "index": "index", "version": "build.version", "commit": "build.commit"}


@pytest.mark.parametrize(
    ("expect", "commit", "problems"),
    [
        ({}, COMMIT, []),
        ({"index": "main", "version": "1.2", "commit": COMMIT}, "", []),
        ({"index": "next"}, COMMIT, ["it serves the index 'main' instead of 'next'"]),
        ({"version": "1.20"}, "", ["it serves the version '1.2' instead of '1.20'"]),
        ({}, "f" * 40, [f"it serves the commit '{COMMIT[:9]}' instead of '{'f' * 40}'"]),
        (
            {"index": "a", "version": "b"},
            COMMIT,
            ["the index 'main' instead of 'a'", "the version '1.2' instead of 'b'"],
        ),
    ],
)
def test_index_version_and_commit_are_compared(expect: Any, commit: str, problems: list[str]) -> None:
    found, wrong = served(Preflight(**PATHS, expect=expect), STATUS, commit)
    assert found == {"index": "main", "version": "1.2", "commit": COMMIT[:9]}
    assert len(wrong) == len(problems)
    assert all(each in got for each, got in zip(problems, wrong, strict=True))


@pytest.mark.parametrize("got", ["0123", "012345", "", "0123456789abcdef0123456789abcdef01234568"])
def test_an_abbreviated_commit_has_seven_digits_and_fits(got: str) -> None:
    assert served(Preflight(tool="status", commit="c"), {"c": got}, COMMIT)[1]
    assert not served(Preflight(tool="status", commit="c"), {"c": COMMIT[:7].upper()}, COMMIT)[1]


@pytest.mark.parametrize(
    ("preflight", "value", "words"),
    [
        (Preflight(tool="status", index="index"), {"other": 1}, "its result has no index at index; got {'other': 1}"),
        (Preflight(tool="status", index="index"), "not json", "has no index at index; got the text 'not json'"),
        (Preflight(tool="status", index="index"), " ", "its result has no index at index; got empty"),
        (Preflight(tool="status", index="sum(index)"), {"index": "x"}, "its result has no index at sum(index)"),
        (Preflight(tool="status", index="a..b"), {}, "`preflight.index` is not a JMESPath expression"),
        (Preflight(tool="status", expect={"index": "main"}), {}, "`preflight.index` does not define its path"),
    ],
)
def test_a_result_that_does_not_say_is_a_problem(preflight: Preflight, value: object, words: str) -> None:
    (problem,) = served(preflight, value, COMMIT)[1]
    assert words in problem


NATIVE, ADDED = Tool("search", "Searches.", {}), Tool("kc__find", "Finds.", {"type": "object"})
REQUEST = Request(
    "openai:m", "Base.", (Message("user", "the task"),), tools=(NATIVE, ADDED), sampling=Sampling(0.0, seed=3)
)


def test_the_schema_is_the_difference_of_two_requests_that_differ_in_nothing_else() -> None:
    def script(request: Request) -> ModelAnswer:
        return ModelAnswer(text="w", usage=Usage(input=100 + 37 * len(request.tools), output=1))

    backend = Scripted(script)
    tax = event_loop().run(measure_schema(backend, REQUEST, [ADDED]))
    assert (tax.measured, tax.usage.total) == (37, 174 + 137 + 2)
    both, one = backend.requests
    assert (both.tools, one.tools) == ((NATIVE, ADDED), (NATIVE,))
    assert (both.system, both.messages, both.sampling) == (one.system, one.messages, one.sampling)
    assert both.sampling == Sampling(0.0, seed=3, max_tokens=1)
    assert "the task" not in str(both.messages)


@pytest.mark.parametrize("usage", [Usage(unmeasured=1), Usage(input=0, output=0), Usage(), Usage(input=90)])
def test_without_a_report_of_tokens_the_schema_is_estimated_and_not_measured(usage: Usage) -> None:
    tax = event_loop().run(measure_schema(Scripted(lambda _: ModelAnswer(usage=usage)), REQUEST, [ADDED]))
    assert tax.measured is None
    assert tax.estimated == 11  # 41 characters of JSON over 4, rounded up


def server(preflight: Preflight | None = None, **found: Any) -> Any:
    """A server under test with what its preflight found."""
    tools = McpTools("kc", ToolServer(command=("kc",), preflight=preflight))
    tools.found = found
    return tools


def called(tool: str, text: str, arguments: str = "{}", *, is_error: bool = False) -> Called:
    return Called(tool, arguments, is_error, text)


def test_delivery_counts_the_tools_under_test_alone() -> None:
    calls = [
        called("search", "x" * 400),
        called("kc__find", "x" * 80),
        called("kc__find", "no", is_error=True),
        called("other", "", is_error=True),
    ]
    kc = server()
    found = run_delivery({"kc__find": kc}, ["search", "kc__find"], calls, instructions="x" * 9)
    assert (found.offered, found.called, found.answered) == (True, 2, 1)
    assert (found.instructions_tokens, found.payload_tokens) == (3, 21)
    assert found.results is not None
    assert [note.tool for note in found.results] == ["kc__find"]  # errors are counted by `called` less the results
    lost = run_delivery({"kc__find": kc, "kc__show": kc}, ["search", "kc__find"], [])
    assert (lost.offered, lost.missing, lost.called) == (False, ("kc__show",), 0)


def test_a_result_without_content_is_no_answer() -> None:
    calls = [called("kc__find", text) for text in ("[]", "Error: the index is locked", "def add(item): ...")]
    found = run_delivery({"kc__find": server()}, ["kc__find"], calls)
    assert (found.called, found.answered) == (3, 1)
    assert found.results is not None
    assert [note.flaws for note in found.results] == [(Flaw.EMPTY,), (Flaw.ERROR,), ()]
    unknown = run_delivery({"kc__find": server()}, ["kc__find"], [called("kc__find", "")], has_texts=False)
    assert (unknown.answered, unknown.results, unknown.payload_tokens) == (1, None, None)


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        (json.dumps({"index": "main", "hits": ["a"]}), False),
        (json.dumps({"index": "old", "hits": ["a"]}), True),
        (json.dumps({"build": {"commit": COMMIT[:9]}, "hits": ["a"]}), False),
        (json.dumps({"build": {"commit": "f" * 40}, "hits": ["a"]}), True),
        (json.dumps({"result": json.dumps({"index": "old", "hits": ["a"]})}), True),
        (json.dumps({"hits": ["a"]}), False),  # it does not say
        ("def add(item): ...", False),
        (json.dumps([{"index": "old"}]), False),
    ],
)
def test_a_result_that_states_another_source_than_the_preflight_is_found(text: str, is_other: bool) -> None:
    kc = server(Preflight(**PATHS, results_of=("find",)), index="main", version="1.2", commit=COMMIT)
    found = run_delivery(
        {"kc__find": kc, "kc__blame": kc}, ["kc__find"], [called("kc__find", text), called("kc__blame", text)]
    )
    assert found.results is not None
    assert (Flaw.OTHER_SOURCE in found.results[0].flaws) is is_other
    assert Flaw.OTHER_SOURCE not in found.results[1].flaws  # its places mean something else: the plan does not name it
    assert found.answered == 2 - is_other
