"""The fields of answers from a real system to its report: rules before and after collection, and the table of types."""

import json
import subprocess

import pytest

SYSTEM = """\
import json, sys
query, mode = sys.argv[1:]
if mode == "tired" and query in ("hat", "coat"):
    mode = "lexical"
found = {"shoes": "a", "boots": "b", "hat": "c", "coat": "d"}[query]
print(json.dumps({"results": [found], "mode": mode, "type": "help" if query == "hat" else "product"}))
"""
TESTSET = """\
cranfield_testset: 1
name: shop
queries:
  - {id: q1, text: shoes, strata: {task_type: product}, judgments: {a: 1}}
  - {id: q2, text: boots, strata: {task_type: product}, judgments: {b: 1}}
  - {id: q3, text: hat, strata: {task_type: product}, judgments: {c: 1}}
  - {id: q4, text: coat, strata: {task_type: help}, judgments: {d: 1}}
"""
CONFIG = """\
testset: queries.yaml
measures: [RR@10]
confusion: {{routed: task_type}}
{more}
systems:
  shop:
    command: ["{{python}}", -I, -S, system.py, "{{query}}", {mode}]
    extract: {{json: results, fields: {{mode: mode, routed: type}}}}
    preflight: [{{every_answer: mode = {rule}}}]
"""
GATE = "gate: {rules: [every_answer: mode = tired]}"


@pytest.fixture
def cranfield(tmp_path):
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "queries.yaml").write_text(TESTSET)

    def run(*arguments, mode="semantic", rule="semantic", more=""):
        (tmp_path / "cranfield.yaml").write_text(CONFIG.format(mode=mode, rule=rule, more=more))
        command = ["cranfield", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, " ".join(done.stdout.split()), " ".join(done.stderr.split())

    return run


def results(tmp_path):
    return json.loads((tmp_path / "cranfield-out" / "results.json").read_text())


def test_a_healthy_run_has_its_table(cranfield, tmp_path):
    code, out, _ = cranfield("run")
    assert (code, "VERDICT: invalid" in out) == (0, False)
    (table,) = results(tmp_path)["systems"][0]["confusion"]
    assert (table["field"], table["stratum"], table["accuracy"], table["n"]) == ("routed", "task_type", 0.5, 4)
    assert table["wrong"] == {
        "q3": ["product", "help"],
        "q4": ["help", "product"],
    }


def test_a_rule_that_the_first_answer_breaks_ends_the_run_before_collection(cranfield, tmp_path):
    code, _, err = cranfield("run", mode="lexical")
    assert code == 3
    assert (
        "every answer: mode = semantic; expected mode = semantic, got mode is \"lexical\" in the answer to 'shoes'"
        in err
    )
    assert not (tmp_path / "cranfield-out").exists()


def test_a_system_that_changes_its_mode_on_the_way_has_a_void_run(cranfield, tmp_path):
    code, out, _ = cranfield("run", mode="tired", rule="tired")
    sentence = "shop: 2 of 4 answers break the rule declared in the config for every answer, mode = tired: q3"
    assert (code, "VERDICT: invalid" in out, sentence in out) == (3, True, True)
    assert [(found["check"], found["query_ids"]) for found in results(tmp_path)["evidence"]] == [
        ("answer-rules", ["q3", "q4"])
    ]
    # The saved run says so too, and the check is switched off by its name.
    saved = "cranfield-out/runs/shop.jsonl"
    assert cranfield("evaluate", "queries.yaml", saved)[0] == 3
    assert cranfield("evaluate", "queries.yaml", saved, "--evidence", "answer-rules=off")[0] == 0
    assert cranfield("run", mode="tired", rule="tired", more="evidence: {answer-rules: 0.5}")[0] == 0


def test_a_gate_names_the_answers(cranfield):
    code, out, _ = cranfield("gate", mode="tired", rule="tired", more=f"{GATE}\nevidence: {{answer-rules: off}}")
    assert code == 1
    assert '2 of 4 answers break the rule mode = tired: q3 (mode is "lexical"), q4 (mode is "lexical")' in out
    code, out, _ = cranfield("gate", mode="tired", rule="tired", more=GATE)
    assert code == 3  # broken evidence goes before a broken rule
    assert " shop: 2 of 4 answers" in out


def test_a_probe_shows_the_rules(cranfield):
    assert "rule mode = tired kept" in cranfield("system", "probe", "shop", "boots", mode="tired", rule="tired")[1]
    code, out, _ = cranfield("system", "probe", "shop", "coat", mode="tired", rule="tired")
    assert (code, 'rule mode = tired mode is "lexical"' in out) == (3, True)


def test_a_stratum_that_there_is_not_is_an_error_before_any_query(cranfield, tmp_path):
    code, _, err = cranfield("run", more="k: 3")
    assert code == 0
    (tmp_path / "queries.yaml").write_text(TESTSET.replace("task_type", "kind"))
    code, _, err = cranfield("run", "--out", "other")
    assert code == 2
    assert "confusion: unknown stratum 'task_type'; expected kind" in err
    assert not (tmp_path / "other").exists()


def test_a_measure_is_described_by_its_name_in_any_case(cranfield):
    assert cranfield("measures", "p") == cranfield("measures", "P")
