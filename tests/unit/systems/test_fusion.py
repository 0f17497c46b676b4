"""A system made of others: what it asks, how often, and what becomes of a part's failure."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError, PreflightError, UsageError
from cranfield.config import system_config
from cranfield.config.load import load_config
from cranfield.model import Answer, Hit, Outcome, Query, TestSet
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.configured import ConfiguredSystem, Reply
from cranfield.systems.kinds.build import build_systems
from cranfield.systems.kinds.fusion import FusionSystem
from cranfield.systems.kinds.run_file import RunFileSystem
from cranfield.systems.system import CallInterruptedError

STAND_IN = {"command": ["x", "{query}"], "extract": {"regex": r"x"}}


class Shelf(ConfiguredSystem):
    """Answers from a table, and counts what it is asked."""

    kind = "command"

    def prepare(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[tuple[str, int, str]] = Counter()
        self.begun = threading.Event()
        self.holds: threading.Event | None = None
        self.is_closed = False
        self.logged: dict[str, float] = {}

    async def attempt(self, query, k, params, received) -> Reply:
        self.asked[query, k, json.dumps(dict(params))] += 1
        self.begun.set()
        if self.holds is not None:
            await asyncio.to_thread(self.holds.wait, 20)
        return Reply(f"{self.name} wrote this", answer=self.answers.get(query, Answer(Outcome.EMPTY)))

    async def search_async(self, query, k):
        answer, log = await super().search_async(query, k)
        return answer, replace(log, **self.logged)

    def request(self, query, k, params) -> str:
        return f"{query} {k} {dict(params)}"

    def close(self) -> None:
        self.is_closed = True


def shelf(name: str, answers: dict[str, Answer] | None = None, **settings) -> Shelf:
    made = Shelf.of(name, **{**STAND_IN, **settings})
    made.answers = answers or {}
    return made


def found(*ids: str, scores: bool = False) -> Answer:
    return Answer(Outcome.ANSWERED, tuple(Hit(i, 1.0 / at if scores else None) for at, i in enumerate(ids, start=1)))


def fusion(*parts: ConfiguredSystem, name: str = "hybrid", params: dict | None = None, **how) -> FusionSystem:
    config = {"fusion": {"of": [part.name for part in parts], **how}, **({"params": params} if params else {})}
    system = FusionSystem(name, system_config("sut", config))
    system.parts = {part.name: part for part in parts}
    return system


Q = Query("q1", "grid")


def test_every_part_is_asked_for_a_hundred_results_or_k_or_its_depth() -> None:
    for how, k, depth in [({}, 10, 100), ({}, 200, 200), ({"depth": 7}, 10, 7)]:
        a, b = shelf("a", {"grid": found("x", "y")}), shelf("b", {"grid": found("y")})
        answer, _ = fusion(a, b, **how).search(Q, k)
        assert [hit.id for hit in answer.hits] == ["y", "x"]
        assert list(a.asked) == list(b.asked) == [("grid", depth, "{}")]


def test_it_is_ordered_by_fused_score_and_cut_to_k() -> None:
    system = fusion(shelf("a", {"grid": found("x", "y", "z")}), shelf("b", {"grid": found("z")}))
    answer, _ = system.search(Q, 2)
    assert system.order == "descending"
    assert [(hit.id, hit.score) for hit in answer.hits] == [
        ("z", pytest.approx(1 / 63 + 1 / 61)),
        ("x", pytest.approx(1 / 61)),
    ]


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        (Outcome.TIMEOUT, "no answer in 2 s", "b: timeout: no answer in 2 s"),
        (Outcome.ERROR, "HTTP 503", "b: error: HTTP 503"),
        (Outcome.UNPARSABLE, None, "b: unparsable"),
    ],
)
def test_a_part_that_fails_is_a_failure_of_the_fusion_and_never_a_fusion_of_what_is_left(outcome, reason, said) -> None:
    broken = shelf("b", {"grid": Answer(outcome, reason=reason)})
    answer, _ = fusion(shelf("a", {"grid": found("x")}), broken).search(Q, 10)
    assert (answer.outcome, answer.hits, answer.reason) == (outcome, (), said)


def test_a_sum_of_results_without_scores_is_a_failure_that_names_the_part() -> None:
    parts = shelf("a", {"grid": found("x", scores=True)}), shelf("b", {"grid": found("x")})
    answer, _ = fusion(*parts, method="sum").search(Q, 10)
    assert answer.outcome is Outcome.ERROR
    assert answer.reason == "b: a result without a score (method: sum needs scores)"


def test_parts_that_find_nothing_make_an_empty_answer() -> None:
    assert fusion(shelf("a"), shelf("b")).search(Q, 10)[0] == Answer(Outcome.EMPTY)


def test_latency_is_the_sum_and_what_parts_wrote_and_said_stands_under_their_names() -> None:
    said = Answer(Outcome.ANSWERED, (Hit("x"),), fields={"confidence": 0.5})
    a, b = shelf("a", {"grid": said}), shelf("b")
    a.logged, b.logged = {"latency_ms": 20.0, "attempts": 3}, {"latency_ms": 5.0, "attempts": 2}
    answer, log = fusion(a, b).search(Q, 10)
    assert log.latency_ms == 25.0
    assert log.attempts == 4  # once, and again twice for a and once for b
    assert log.stdout_head == "a: a wrote this\nb: b wrote this"
    assert answer.fields == {"a.confidence": 0.5}


def test_several_fusions_ask_a_part_once_and_a_repeat_asks_it_again() -> None:
    a, b = shelf("a", {"grid": found("x")}), shelf("b")
    one, two = fusion(a, b, name="one", rrf_k=1), fusion(a, b, name="two", rrf_k=2)
    first = one.search(Q, 10)
    assert two.search(Q, 10)[1].latency_ms == first[1].latency_ms  # the very same call
    assert sum(a.asked.values()) == sum(b.asked.values()) == 1
    one.search(Q, 10)
    assert sum(a.asked.values()) == 2
    two.search(Q, 10)
    assert sum(a.asked.values()) == 2
    two.search(Query("q2", "grid"), 10)
    one.search(Query("q1", "grid", params={"lang": "en"}), 10)
    assert sum(a.asked.values()) == 4


def test_fusions_that_ask_at_once_wait_for_one_asking() -> None:
    a, b = shelf("a", {"grid": found("x")}), shelf("b")
    a.holds = threading.Event()
    systems = [fusion(a, b, name=f"f{at}", rrf_k=at) for at in range(4)]
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda s=s: answers.append(s.search(Q, 10)[0])) for s in systems]
    for thread in threads:
        thread.start()
    assert a.begun.wait(20)
    a.holds.set()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 4
    assert sum(a.asked.values()) == 1


def test_params_of_the_fusion_go_to_the_parts_over_their_own() -> None:
    a, b = shelf("a", params={"boost": 1, "lang": "en"}), shelf("b")
    fusion(a, b, params={"boost": 5}).search(Query("q1", "grid", params={"lang": "de"}), 10)
    assert [json.loads(said) for _, _, said in (*a.asked, *b.asked)] == [
        {"boost": 5, "lang": "de"},
        {"boost": 5, "lang": "de"},
    ]


def test_params_of_a_query_go_over_those_of_the_set_and_these_over_the_fusions() -> None:
    a, b = shelf("a"), shelf("b")
    settings = system_config("sut", {"fusion": {"of": ["a", "b"]}, "params": {"boost": 1, "lang": "en", "site": "x"}})
    system = FusionSystem("hybrid", settings, Path(), {"lang": "fr", "site": "y"})
    system.parts = {"a": a, "b": b}
    system.search(Query("q1", "grid", params={"site": "z"}), 10)
    (said,) = (json.loads(said) for _, _, said in a.asked)
    assert said == {"boost": 1, "lang": "fr", "site": "z"}


def test_a_part_of_weight_zero_is_not_asked() -> None:
    a, b, c = shelf("a", {"grid": found("x")}), shelf("b"), shelf("c")
    fusion(a, b, c, weights={"b": 0}).search(Q, 10)
    assert (sum(a.asked.values()), sum(b.asked.values()), sum(c.asked.values())) == (1, 0, 1)
    with pytest.raises(ConfigError, match=r"fusion\.weights: every part of the fusion has weight 0"):
        fusion(a, b, weights={"a": 0, "b": 0})


def test_it_is_asked_as_often_at_a_time_as_all_of_its_parts_may_be() -> None:
    parts = shelf("a", concurrency=8, rate_per_s=5.0), shelf("b", concurrency=4)
    assert (fusion(*parts).concurrency, fusion(*parts).rate_per_s) == (4, 5.0)
    said = FusionSystem("h", system_config("sut", {"fusion": {"of": ["a", "b"]}, "concurrency": 1}))
    said.parts = {part.name: part for part in parts}
    assert said.concurrency == 1


def test_interruption_and_closing_reach_the_parts() -> None:
    a, b = shelf("a"), shelf("b")
    a.holds = threading.Event()
    system = fusion(a, b)
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            system.search(Q, 10)
        except CallInterruptedError as interrupted:
            caught.append(interrupted)

    thread = threading.Thread(target=ask)
    thread.start()
    assert a.begun.wait(20)
    system.interrupt()
    thread.join(20)
    assert len(caught) == 1
    a.holds.set()
    assert system.search(Q, 10)[0].outcome is Outcome.EMPTY  # nothing of the call cut short was remembered
    system.close()
    assert a.is_closed
    assert b.is_closed


def test_the_digest_covers_the_parts_and_the_public_config_shows_them() -> None:
    plain = fusion(shelf("a"), shelf("b"))
    assert plain.config_digest == fusion(shelf("a"), shelf("b")).config_digest
    assert plain.config_digest != fusion(shelf("a"), shelf("b", timeout_s=1.0)).config_digest
    assert plain.config_digest != fusion(shelf("a"), shelf("b"), rrf_k=61).config_digest
    secret = fusion(shelf("a", env={"TOKEN": "hush"}), shelf("b"))
    assert secret.public_config()["parts"]["a"]["env"] == ["TOKEN"]
    assert secret.config_digest != plain.config_digest


def test_what_its_parts_send_is_shown_without_their_secrets() -> None:
    system = fusion(shelf("a", env={"TOKEN": "hush-hush"}), shelf("b"))
    shown = system.ask(Query("q1", "is hush-hush"), 10, is_shown=True).request
    assert shown == "a: is ${TOKEN} 100 {}\nb: is hush-hush 100 {}"  # for b it is a word
    assert system.request("is hush-hush", 10, {}) == shown


def test_a_fusion_without_its_parts_says_so() -> None:
    system = FusionSystem("hybrid", system_config("sut", {"fusion": {"of": ["a", "b"]}}))
    with pytest.raises(UsageError, match="made without its part a"):
        system.search(Q, 10)


SEARCH = """
import json, sys
words = json.load(open(sys.argv[1]))
print("\\n".join(words.get(sys.argv[2], [])))
"""
CONFIG = """
testset: none.yaml
baseline: one
candidate: hybrid
systems:
  one:
    command: ["{python}", -I, -S, search.py, one.json, "{query}"]
    extract: {regex: '\\S+'}
    depends: [one.json]
    preflight: [{file: one.json}, {probe: grid}]
  two:
    command: ["{python}", -I, -S, search.py, two.json, "{query}"]
    extract: {regex: '\\S+'}
    depends: [two.json, one.json]
  hybrid: {fusion: {of: [one, two]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "search.py").write_text(SEARCH)
    (tmp_path / "one.json").write_text(json.dumps({"grid": ["x", "y"], "list": ["z"]}))
    (tmp_path / "two.json").write_text(json.dumps({"grid": ["y"], "list": ["w"]}))
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    return tmp_path


def test_a_fusion_of_commands_is_collected_like_any_system(project: Path) -> None:
    (hybrid,) = build_systems(load_config(project / "cranfield.yaml"), ["hybrid"])
    run = collect(TestSet("t", (Query("q1", "grid"), Query("q2", "list"))), hybrid, k=10)
    assert {q: [hit.id for hit in answer.hits] for q, answer in run.answers.items()} == {
        "q1": ["y", "x"],
        "q2": ["z", "w"],
    }
    paths = list(hybrid.depends_on())
    assert {project / "one.json", project / "two.json"} <= set(paths)
    assert len(paths) == len(set(paths))


def test_every_check_of_every_part_is_made_before_the_first_query(project: Path) -> None:
    (hybrid,) = build_systems(load_config(project / "cranfield.yaml"), ["hybrid"])
    checks = {held.check.partition(" (")[0] for held in preflight([hybrid])}
    assert {"one: cwd .", "one: file one.json", "one: probe 'grid'", "two: cwd ."} <= checks
    (project / "one.json").unlink()
    (hybrid,) = build_systems(load_config(project / "cranfield.yaml"), ["hybrid"])
    with pytest.raises(PreflightError) as caught:
        preflight([hybrid])
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [
        ("system hybrid", "one: file one.json")
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # A TREC file cannot say that an answer is empty; JSONL can, and here it does not have one.
        ("old.run", "q2 Q0 w 1 1.0 old\n", Answer(Outcome.ANSWERED, (Hit("x", 1 / 61),))),
        (
            "old.jsonl",
            '{"cranfield_run": 1, "name": "old"}\n{"query_id": "q2", "outcome": "answered", "hits": [{"id": "w"}]}\n',
            Answer(Outcome.MISSING, reason="old: missing: the run file has no answer for it"),
        ),
    ],
)
def test_a_query_that_the_run_file_of_a_part_lacks(name: str, content: str, expected: Answer, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    stored = RunFileSystem.of("old", folder=tmp_path, run=name)
    assert fusion(shelf("a", {"grid": found("x")}), stored).search(Q, 10)[0] == expected
