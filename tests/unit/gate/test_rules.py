"""What can be wrong with a rule, told with its line before anything is asked; and the table that all of it is read from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.gate.rule_text import rule_of

from cranfield import Query, TestSet
from cranfield.base.errors import ConfigError
from cranfield.config import load_config
from cranfield.config.amount import Amount
from cranfield.config.models import Config
from cranfield.gate.config import RULE_MODELS
from cranfield.gate.rules import RULES, check_fit, compared_measures, measure_of, rules_of, words

SYSTEMS = "systems:\n  a: {run: a.run}\n  b: {run: b.run}\n"


def loaded(folder: Path, gate: str, top: str = "testset: t.yaml\n") -> Config:
    (folder / "c.yaml").write_text(f"{top}gate:\n{gate}\n{SYSTEMS}")

    return load_config(folder / "c.yaml")


def problems(folder: Path, gate: str, top: str = "testset: t.yaml\n") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, gate, top)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def test_the_table_and_the_keys_of_a_rule_are_the_same() -> None:
    assert tuple(RULES) == tuple(RULE_MODELS)


@pytest.mark.parametrize("name", RULES)
def test_every_example_of_the_table_is_a_rule_of_its_kind(name: str) -> None:
    for example in RULES[name].examples:
        rule = rule_of(example)
        assert rule.kind == name
        assert words(rule)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("floor: {measure: RR}", "gate.rules[0].floor: missing key"),
        ("floor: {measure: RRR, at_least: 1}", "gate.rules[0].floor.measure: unknown measure 'RRR'"),
        ("floor: {measure: gm_map, at_least: 1}", "gate.rules[0].floor.measure: gm_map is one number over all queries, not a mean of values per query"),
        ("floor: {measure: RankOfFirst, at_least: 1}", "gate.rules[0].floor.measure: lower is better for RankOfFirst"),
        ("floor: {measure: 'RR[x=y]', at_least: 1, where: {x: y}}", "gate.rules[0].floor.where: RR[x=y] is one number over all queries, which where does not apply to"),
        ("floor: {measure: 'RR + P@1', every_query: 1}", "gate.rules[0].floor.every_query: RR + P@1 is one number over all queries, which every_query does not apply to"),
        ("drop: {measure: RR + P@1, at_most: 0, by: x}", "gate.rules[0].drop.by: RR + P@1 is one number over all queries, which by does not apply to"),
        ("no_worse: {measure: RR + P@1, by: x}", "gate.rules[0].no_worse.by: RR + P@1 is one number over all queries, which by does not apply to"),
        ("correct_at: {field: c, correct: RR + P@1, threshold: 0.8, at_least: 1}", "gate.rules[0].correct_at.correct: RR + P@1 is one number over all queries"),
        ("floor: {measure: RR, at_most: 1}", "gate.rules[0].floor.measure: higher is better for RR"),
        ("floor: {measure: RR, every_query: 1, by: x}", "gate.rules[0].floor: every_query already checks each query"),
        ("floor: {measure: RR, at_least: '0.4'}", "gate.rules[0].floor.at_least: '0.4' is not a number"),
        ("floor: {measure: RR, at_least: .nan}", "gate.rules[0].floor.at_least: .nan is not a number of at most 30 digits"),
        ("floor: {measure: RR, at_least: 1e-99}", "gate.rules[0].floor.at_least: 1e-99 is not a number of at most 30 digits"),
        ("floor: {measure: RR, at_least: true}", "gate.rules[0].floor.at_least: true is not a number"),
        ("floor: {measure: RR, at_least: 0, where: {}}", "gate.rules[0].floor.where is empty"),
        ("drop: {measure: RR, at_most: -1}", "gate.rules[0].drop.at_most: -1 is under 0"),
        ("drop: {measure: RR, at_most: -5 %}", "gate.rules[0].drop.at_most: -5 % is under 0"),
        ("drop: {measure: RR, at_most: 5, alpha: 0.1}", "gate.rules[0].drop: alpha and test require `significant: true`"),
        ("drop: {measure: RR, at_most: 5, significant: true, test: sign}", "gate.rules[0].drop.test: test sign has no confidence interval of a mean"),
        ("drop: {measure: RR, at_most: 5, significant: true, test: tt}", "gate.rules[0].drop.test: unknown test 'tt'"),
        ("ratchet: {measure: RR}", "gate.rules[0].ratchet: missing key"),
        ("ratchet: {measure: RR, queries: []}", "gate.rules[0].ratchet.queries is empty"),
        ("judged: {k: 0, at_least: 1}", "wrong value for gate.rules[0].judged.k"),
        ("judged: {at_least: 101 %}", "gate.rules[0].judged: at_least is 101 %, but a share cannot exceed 1"),
        ("failures: {at_most: 1.5}", "gate.rules[0].failures: at_most is 1.5: write a whole number of queries, or a share such as 2 %"),
        ("every_answer: mode", "gate.rules[0].every_answer.rule: 'mode' is not a rule on a field of an answer"),
        ("every_answer: {rule: mode > a}", "gate.rules[0].every_answer.rule: 'mode > a' compares with a"),
        ("every_answer: {rule: a = b, at_most: 1.5}", "gate.rules[0].every_answer: at_most is 1.5: write a whole number of answers, or a share such as 2 %"),
        ("ece: {field: c, correct: X@5, at_most: 1}", "gate.rules[0].ece.correct: unknown measure 'X'"),
        ("ece: {field: c, correct: RR, at_most: 2}", "gate.rules[0].ece.at_most: at_most is 2"),
        ("correct_at: {field: c, correct: RR, threshold: 80, at_least: 1}", "gate.rules[0].correct_at.threshold: threshold is 80"),
        ("accuracy: {field: task_type}", "gate.rules[0].accuracy: no bound"),
        ("latency: {}", "gate.rules[0].latency: no ceiling"),
        ("latency: {p90_ms: 1}", "unknown key 'p90_ms'"),
        ("flor: {measure: RR}", "unknown key 'flor'"),
        ("{floor: {measure: RR, at_least: 0}, failures: {at_most: 0}}", "keys that exclude each other in gate.rules[0]"),
        ("testsets: [code]\n      failures: {at_most: 0}", "gate.rules[0].testsets[0]: unknown test set 'code'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule_is_told_with_its_line(tmp_path: Path, rule: str, problem: str) -> None:
    found = problems(tmp_path, f"  rules:\n    - {rule}")
    assert any(said.partition(": ")[2] == problem for said in found), found
    assert {said.partition(":")[0] for said in found} <= {"4", "5"}


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    gate = "  system: c\n  baseline: b.txt\n  rules:\n    - floor: {measure: X@0, at_least: 1}\n    - drop: {measure: RR, at_most: 1}"
    assert problems(tmp_path, gate) == [
        "3: gate.system: unknown system 'c'",
        "4: gate.baseline: the name of a baseline must end in .json",
        "6: gate.rules[0].floor.measure: unknown measure 'X'",
    ]


def test_no_rule_is_no_gate(tmp_path: Path) -> None:
    assert problems(tmp_path, "  rules: []") == ["3: gate.rules is empty"]


SEVERAL = "testsets:\n  code: {path: c.yaml}\n  docs: {path: d.yaml}\n"


def test_several_test_sets_have_a_baseline_each(tmp_path: Path) -> None:
    rules = "  rules:\n    - drop: {measure: RR, at_most: 1}\n    - failures: {at_most: 0}\n      testsets: [docs]"
    gate = loaded(tmp_path, rules, SEVERAL).gate
    assert gate is not None
    assert gate.baseline_of("code") == "cranfield-baseline-code.json"
    assert [[index for index, _ in rules_of(gate, name)] for name in ("code", "docs")] == [[0], [0, 1]]
    assert words(gate.rules[1]) == "at most 0 queries fail or have no answer (test sets docs)"
    named = loaded(tmp_path, "  baseline: 'gate/{testset}.json'\n" + rules, SEVERAL).gate
    assert named is not None
    assert named.baseline_of("docs") == "gate/docs.json"
    assert problems(tmp_path, "  baseline: one.json\n" + rules, SEVERAL) == [
        "5: gate.baseline: several test sets but one baseline: each test set needs its own"
    ]
    alone = "  baseline: '{testset}.json'\n  rules:\n    - drop: {measure: RR, at_most: 1}"
    assert problems(tmp_path, alone) == ["3: gate.baseline: {testset} requires a config with several test sets"]


@pytest.mark.parametrize(
    ("written", "amount", "share"),
    [
        ("5 %", "5 %", "1/20"),
        ("5%", "5 %", "1/20"),
        ("0.50", "0.50", "1/2"),
        ("2.50 %", "2.50 %", "1/40"),
        ("0", "0", "0"),
    ],
)
def test_an_amount_is_kept_as_it_is_written(written: str, amount: str, share: str) -> None:
    read = rule_of(
        f"failures: {{at_most: {written}}}" if written == "0" else f"drop: {{measure: RR, at_most: {written}}}"
    ).terms
    at_most = getattr(read, "at_most")  # noqa: B009 - of one of two models
    assert isinstance(at_most, Amount)
    assert (str(at_most), str(at_most.share)) == (amount, share)


def test_measures_that_need_a_baseline_have_one_spelling(tmp_path: Path) -> None:
    gate = loaded(
        tmp_path,
        "  rules:\n    - drop: {measure: 'R(rel=1)@10', at_most: 1}\n    - ratchet: {measure: RR, queries: [q]}\n"
        "    - floor: {measure: AP, at_least: 0}\n    - judged: {at_least: 0}",
    ).gate
    assert gate is not None
    assert compared_measures(gate.rules) == ["R@10", "RR"]
    assert [measure_of(rule) for rule in gate.rules] == ["R(rel=1)@10", "RR", "AP", "Judged@10"]


def test_strata_and_queries_that_are_not_there_are_found_on_the_test_set(tmp_path: Path) -> None:
    testset = TestSet("t", (Query("q1", strata={"difficulty": "easy"}), Query("q2")))
    gate = loaded(
        tmp_path,
        "  rules:\n    - floor: {measure: RR, at_least: 0, where: {dificulty: easy}}\n"
        "    - floor: {measure: RR, at_least: 0, where: {difficulty: esay}}\n"
        "    - drop: {measure: RR, at_most: 0, by: area}\n"
        "    - ratchet: {measure: RR, queries: [q1, q3, 007]}",
    ).gate
    assert gate is not None
    found = {".".join(map(str, place[2:])): problem.message for place, problem in check_fit(gate, "", testset)}
    assert found == {
        "0.floor.where.dificulty": "unknown stratum 'dificulty'",
        "1.floor.where.difficulty": "unknown value of difficulty 'esay'",
        "2.drop.by": "unknown stratum 'area'",
        "3.ratchet.queries.1": "unknown query 'q3'",
        "3.ratchet.queries.2": "unknown query '007'",
    }


@pytest.mark.parametrize("name", RULES)
def test_the_page_on_gates_says_of_every_rule_what_the_table_says(name: str, checkout: Path) -> None:
    page = (checkout / "docs" / "how-to" / "gate.md").read_text(encoding="utf-8")
    said = page.partition(f"\n### {name}\n")[2].partition("\n##")[0]
    assert RULES[name].sentence in said
    assert [example for example in RULES[name].examples if f"    - {example}\n" not in said] == []
