"""What a tool serves before a run, what its schema costs, and what became of it in a run."""

from __future__ import annotations

from typing import Any

import pytest

from cranfield.agents.protocol import Answer, Message, Request, Sampling, Tool, Usage
from cranfield.agents.scripted import Scripted
from cranfield.benefit.delivery import measure_schema, run_delivery, served
from cranfield.benefit.plan import Preflight
from cranfield.benefit.records import Delivery
from cranfield.concurrency.loop import event_loop

COMMIT = "0123456789abcdef0123456789abcdef01234567"
STATUS = {"index": "main", "build": {"version": "1.2", "commit": COMMIT[:9]}}
PATHS = {"tool": "status", "index": "index", "version": "build.version", "commit": "build.commit"}


@pytest.mark.parametrize(
    ("expect", "commit", "problems"),
    [
        ({}, COMMIT, []),
        ({"index": "main", "version": "1.2", "commit": COMMIT}, "", []),
        ({"index": "next"}, COMMIT, ["it serves the index 'main', and not 'next'"]),
        ({"version": "1.20"}, "", ["it serves the version '1.2', and not '1.20'"]),
        ({}, "f" * 40, [f"it serves the commit '{COMMIT[:9]}', and not '{'f' * 40}'"]),
        ({"index": "a", "version": "b"}, COMMIT, ["the index 'main', and not 'a'", "the version '1.2', and not 'b'"]),
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
        (Preflight(tool="status", index="index"), {"other": 1}, "its result has no index at index"),
        (Preflight(tool="status", index="index"), "not json", "its result has no index at index"),
        (Preflight(tool="status", index="sum(index)"), {"index": "x"}, "its result has no index at sum(index)"),
        (Preflight(tool="status", index="a..b"), {}, "`preflight.index` is not a JMESPath expression"),
        (Preflight(tool="status", expect={"index": "main"}), {}, "`preflight.index` does not say where it stands"),
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
    def script(request: Request) -> Answer:
        return Answer(text="w", usage=Usage(input=100 + 37 * len(request.tools), output=1))

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
    tax = event_loop().run(measure_schema(Scripted(lambda _: Answer(usage=usage)), REQUEST, [ADDED]))
    assert tax.measured is None
    assert tax.estimated == 11  # 41 characters of JSON over 4, rounded up


def test_delivery_counts_the_tools_under_test_alone() -> None:
    calls = [("search", False, "x" * 400), ("kc__find", False, "x" * 80), ("kc__find", True, "no"), ("other", True, "")]
    found = run_delivery(["kc__find"], ["search", "kc__find"], calls, instructions="x" * 9)
    assert found == Delivery(offered=True, called=2, answered=1, instructions_tokens=3, payload_tokens=21)
    lost = run_delivery(["kc__find", "kc__show"], ["search", "kc__find"], [])
    assert (lost.offered, lost.missing, lost.called) == (False, ("kc__show",), 0)
