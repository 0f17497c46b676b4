"""Two small systems with everything that can happen to a query, and text that would like to be markup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cranfield.app.evaluate import compare, evaluate
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import Answer, CallLog, Hit, Outcome, Pattern, Query, Run, TestSet

EVIL = "<script>alert(1)</script>"
"""Would run if anything forgot to escape it."""

MakePair = Callable[..., tuple[Evaluation, Evaluation]]


def answered(*ids: str) -> Answer:
    hits = tuple(Hit(doc_id, title=f"About {doc_id}") for doc_id in ids)
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits)


def small_testset(name: str = "small") -> TestSet:
    texts = ["json dumps", "how to sort", "", "socket", "path", "csv", "never", "timeout"]
    queries = tuple(
        Query(f"q{n}", text, {"class": "even" if n % 2 == 0 else "odd"}) for n, text in enumerate(texts, start=1)
    )
    return TestSet(
        name, queries, {query.id: {f"{query.id}-a": 2, f"{query.id}-b": 1} for query in queries}, version="3"
    )


def small_runs(testset: TestSet) -> tuple[Run, Run]:
    # first relevant rank on A to B:   q1 2→1   q2 1→2   q3 1→1   q4 none→3   q5 2→none   q6 1→1   q7 none→none
    a = {
        "q1": answered("x", "q1-a", "q1-b"),
        "q2": answered("q2-a", "x"),
        "q3": answered("q3-a", "q3-b"),
        "q4": answered("x", "y"),
        "q5": answered("x", "q5-b"),
        "q6": answered("q6-a", "q6-a", "q6-b"),
        "q7": answered("x"),
        "q8": answered("q8-a"),
    }
    b = {
        "q1": answered("q1-a", "q1-b"),
        "q2": answered("x", "q2-a"),
        "q3": answered("q3-a", "q3-b"),
        "q4": answered("x", "y", "q4-b"),
        "q5": answered(),
        "q6": answered("q6-a", "q6-b"),
        "q7": answered("y"),
        "q8": Answer(Outcome.TIMEOUT, reason="no answer in 30 s"),
    }
    logs = {query_id: CallLog(10.0 + place, calls_before=3 + place) for place, query_id in enumerate(a)}
    digests = {"testset_digest": testset.digest, "config_digest": "sha256:" + "c" * 64}
    config = {"command": ["search", "{query}"]}
    failed = logs | {"q8": CallLog(30_000.0, stderr_head="\n  boom: index locked\nmore", calls_before=10)}
    return (
        Run("plain", a, depth=10, logs=logs, config=config, **digests),
        Run("weighted", b, depth=10, logs=failed, config=config, **digests),
    )


@pytest.fixture(scope="session")
def testset() -> TestSet:
    return small_testset()


@pytest.fixture(scope="session")
def runs(testset: TestSet) -> tuple[Run, Run]:
    return small_runs(testset)


@pytest.fixture(scope="session")
def pair(testset: TestSet, runs: tuple[Run, Run]) -> tuple[Evaluation, Evaluation]:
    return evaluate(testset, runs[0]), evaluate(testset, runs[1])


@pytest.fixture(scope="session")
def comparison(pair: tuple[Evaluation, Evaluation]) -> Comparison:
    """No significant difference: 1 of 8 queries failed, which the limits allow here."""
    return compare(*pair, margin=0.05, limits=Limits(max_failed_share=0.2))


@pytest.fixture(scope="session")
def invalid(pair: tuple[Evaluation, Evaluation]) -> Comparison:
    """1 of 8 queries failed, which the default limits do not allow."""
    return compare(*pair)


@pytest.fixture(scope="session")
def pilot(testset: TestSet, runs: tuple[Run, Run]) -> Comparison:
    """One side is not for the record."""
    return compare(evaluate(testset, replace(runs[0], pilot=True)), evaluate(testset, runs[1]))


@pytest.fixture(scope="session")
def patterned() -> Evaluation:
    """A system whose truth is a pattern that many results match: closed world, credited once, counts unknown."""
    queries = (Query("p1", "root"), Query("p2", "leaf"))
    testset = TestSet(
        "patterns", queries, targets={"p1": (Pattern("^doc://a"),), "p2": (Pattern("^z", credit="every"),)}
    )
    answers = {"p1": answered("doc://a/1", "doc://a/2", "other"), "p2": answered("y", "z1", "z2")}
    return evaluate(testset, Run("patterned", answers, depth=10))


@pytest.fixture(scope="session")
def evil() -> Comparison:
    """Markup, formulas, escape sequences and halves of characters in every place that takes text."""
    wild = [
        EVIL,
        "=1+1",
        "a | b `c` *d*",
        "\x1b[31mred\u202e",
        "half \udc80 of it",
        '"><img src=x onerror=alert(1)>',
        "日本語",
    ]
    queries = tuple(Query(f"{text} {n}", text, {f"{EVIL} key": f"{EVIL} {n % 2}"}) for n, text in enumerate(wild))
    testset = TestSet(EVIL, queries, {query.id: {query.text: 1} for query in queries}, version=EVIL)

    def run(name: str, shift: int) -> Run:
        answers = {}
        for n, query in enumerate(queries):
            ids = [wild[(n + shift + step) % len(wild)] for step in range(4)]
            answers[query.id] = Answer(Outcome.ANSWERED, tuple(Hit(doc_id, title=f"{EVIL} {doc_id}") for doc_id in ids))
        answers[queries[-1].id] = Answer(Outcome.NONZERO_EXIT, reason=f"exit code 1 {EVIL}")
        logs = {query.id: CallLog(5.0, stderr_head=EVIL, stdout_head=EVIL) for query in queries}
        return Run(f"{name} {EVIL}", answers, depth=10, logs=logs, config={"command": [EVIL], "env": {"A": EVIL}})

    return compare(evaluate(testset, run("a", 1)), evaluate(testset, run("b", 0)))
