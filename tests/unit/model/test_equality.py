"""Values compare by content or, over arrays, by identity; all of them can be hashed and looked for in a list."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cranfield
from cranfield import (
    Answer,
    Convention,
    Entity,
    FusionSystem,
    Hit,
    LatencyRule,
    Limits,
    Outcome,
    Passage,
    Pattern,
    Problem,
    Query,
    Run,
    RunFileSystem,
    Span,
    TestSetOptions,
    compare,
    compare_many,
    evaluate,
    load,
    parse,
)
from cranfield.config.load import system_config

QRELS = {"q1": {"d": 1}, "q2": {"d": 1}}
RUNS = {"a": {"q1": {"d": 1.0}, "q2": {"x": 1.0}}, "b": {"q1": {"d": 1.0}}, "c": {"q2": {"d": 1.0}}}


def test_every_value_equals_itself_and_can_be_hashed() -> None:
    first, second, third = (evaluate(load(QRELS), run, name=name) for name, run in RUNS.items())
    pair = compare(first, second)
    values = [first, first.ranking, pair, pair.verdict, pair.unjudged, compare_many([first, second, third])]
    for value in (*values, first.testset, first.measures[0], *first.summaries.values()):
        assert value == value
        assert [value].count(value) == 1
        assert hash(value) == hash(value)
    assert first != evaluate(load(QRELS), RUNS["a"], name="a")  # over arrays: by identity
    assert len({first, second, third, pair}) == 4


@pytest.mark.parametrize(
    "value",
    [
        load(QRELS),
        Query("q", "text", {"kind": "a"}, {"n": 1}),
        Hit("d", 1.0, fields={"url": ["x"]}),
        Answer(Outcome.ANSWERED, (Hit("d", fields={"a": 1}),), fields={"confidence": 1}),
        Run("r", {"q1": Answer(Outcome.EMPTY), "q2": Answer(Outcome.EMPTY)}, config={"command": ["x"]}),
        Limits(evidence={"cut-short": "off"}),  # type: ignore[dict-item]
        TestSetOptions(strata=["kind=a:1"], databases={"a": "a.db"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_equal_content_are_equal_and_have_one_hash(value: object) -> None:
    again = replace(value)  # type: ignore[type-var]
    assert again == value
    assert hash(again) == hash(value)
    assert len({again, value}) == 1


def test_the_order_of_answers_makes_no_other_run() -> None:
    answers = {"q1": Answer(Outcome.EMPTY), "q2": Answer(Outcome.ANSWERED, (Hit("d"),))}
    first, second = Run("r", answers), Run("r", dict(reversed(answers.items())))
    assert first == second
    assert hash(first) == hash(second)


def test_every_public_class_has_values_that_equal_themselves_and_can_be_hashed() -> None:
    sides = [evaluate(load(QRELS), run, name=name) for name, run in RUNS.items()]
    pair = compare(*sides[:2])
    settings: dict[str, dict[str, object]] = {
        "command": {"command": ["echo", "{query}"], "extract": {"regex": "(?P<id>.+)"}},
        "lines": {"lines": ["cat"]},
        "http": {"http": {"url": "https://example.org/?q={query}"}, "extract": {"json": "hits", "id": "id"}},
        "mcp": {"mcp": {"command": ["server"], "tool": "search"}, "extract": {"json": "hits", "id": "id"}},
        "python": {"python": "module:function"},
        "run": {"run": "a.run"},
        "fusion": {"fusion": {"of": ["a", "b"]}},
    }
    classes = {"run": RunFileSystem, "fusion": FusionSystem} | {
        kind: getattr(cranfield, f"{kind.title()}System") for kind in ("command", "lines", "http", "mcp", "python")
    }
    values = [
        *(classes[kind]("s", system_config("s", config)) for kind, config in settings.items()),
        sides[0],
        sides[0].testset,
        Run("r", {}),
        pair,
        pair.verdict,
        compare_many(sides),
        parse("nDCG@10"),
        Answer(Outcome.EMPTY),
        Outcome.EMPTY,
        Hit("d", fields={"a": []}),
        Query("q"),
        Limits(),
        TestSetOptions(),
        Entity("e"),
        Passage("p"),
        Pattern("p"),
        Span("a.py", 1, 2),
        Problem("p"),
        cranfield.CranfieldError("e"),
        LatencyRule(),
        Convention("own", "A sentence."),
        cranfield.DocumentIds.of(["a", "b"]),
    ]
    public = {name for name in cranfield.__all__ if isinstance(getattr(cranfield, name), type)}
    assert {type(value).__name__ for value in values} == public
    for value in values:
        assert value == value
        assert [value].count(value) == 1
        assert hash(value) == hash(value)
