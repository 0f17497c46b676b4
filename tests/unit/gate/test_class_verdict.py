"""The verdict by class in commands: config, exit codes, several test sets, comment, JUnit, pytest."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.command import call

from cranfield import evaluate, load
from cranfield.app.run import run_job
from cranfield.base.errors import ConfigError, UnknownNameError, UsageError
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.gate.forge.comment import comment_body
from cranfield.gate.use_cases.calibration import LazyEvaluation, Scores

KINDS = {"name": 30, "question": 10}
"""Names rise from rank 2 to 1, questions fall: mixed, and better as one mean."""


def project(folder: Path, more: str = "", *, sets: str = "") -> Path:
    queries, before, after = [], [], []
    for kind, n in KINDS.items():
        for place in range(n):
            query = f"{kind}{place}"
            queries.append(f"  - {{id: {query}, text: {query}, strata: {{kind: {kind}}}, judgments: {{hit: 1}}}}")
            first, second = [f"{query} Q0 hit 1 9 s"], [f"{query} Q0 x 1 9 s", f"{query} Q0 hit 2 8 s"]
            before += second if kind == "name" else first
            after += first if kind == "name" else second
    testset = "cranfield_testset: 1\nname: kinds\nqueries:\n" + "\n".join(queries) + "\n"
    (folder / "queries.yaml").write_text(testset)
    (folder / "old.run").write_text("\n".join(before) + "\n")
    (folder / "new.run").write_text("\n".join(after) + "\n")
    head = sets or "testset: queries.yaml"
    systems = "systems: {old: {run: old.run}, new: {run: new.run}}\n"
    (folder / "cranfield.yaml").write_text(f"{head}\nmeasures: [RR, R@10]\n{more}\n{systems}")
    return folder / "cranfield.yaml"


def cranfield(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return call(*args, folder=folder)


@pytest.mark.parametrize(("config", "code"), [("", "better"), ("strata: kind", "mixed"), ("verdict: pooled", "better")])
def test_the_config_names_the_classes_or_one_mean(tmp_path: Path, config: str, code: str) -> None:
    job = run_job(project(tmp_path, config), out=tmp_path / "out")
    assert job.comparison is not None
    assert job.comparison.verdict.code == code
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    assert record["verdict"] == code
    assert (record["verdict_by_class"] is not None) is (code == "mixed")


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ("strata: knid", UnknownNameError, "did you mean kind"),
        ("verdict: poled", ConfigError, "verdict"),
        ("verdict: pooled\nstrata: kind", UsageError, "leave one of them out"),
    ],
)
def test_a_rule_or_stratum_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, config: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_job(project(tmp_path, config), out=tmp_path / "out")
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("fail_on", "config", "code"),
    [
        (["mixed"], "strata: kind", 1),
        (["worse"], "strata: kind", 1),  # it is worse in a class
        (["better", "not-significant"], "strata: kind", 0),
        (["mixed"], "", 0),
        (["better"], "", 1),
    ],
)
def test_fail_on_mixed_and_on_worse_exit_with_1(tmp_path: Path, fail_on: list[str], config: str, code: int) -> None:
    project(tmp_path, config)
    options = [part for verdict in fail_on for part in ("--fail-on", verdict)]
    done = cranfield(tmp_path, "run", *options)
    assert done.returncode == code, done.stderr
    assert ("VERDICT: mixed" in done.stdout) is ("kind" in config)


def test_compare_takes_the_same_options(tmp_path: Path) -> None:
    project(tmp_path)
    call = ("compare", "queries.yaml", "old.run", "new.run", "-m", "RR")
    assert "VERDICT: mixed" in cranfield(tmp_path, *call, "--verdict-strata", "kind").stdout
    assert "VERDICT: better" in cranfield(tmp_path, *call, "--verdict", "pooled").stdout
    (tmp_path / "third.run").write_text((tmp_path / "old.run").read_text().replace("Q0 x", "Q0 y"))
    more = (*call[:4], "third.run", "-m", "RR", "--verdict-strata")
    many = cranfield(tmp_path, *more, "kind")
    assert "the mean over all queries decides here" in " ".join(many.stdout.split())
    assert "unknown stratum 'kond'" in cranfield(tmp_path, *more, "kond").stderr
    assert "--fail-on mixed needs exactly two runs" in cranfield(tmp_path, *more, "kind", "--fail-on", "mixed").stderr


def test_each_of_several_test_sets_has_its_own_classes_and_the_summary_says_mixed(tmp_path: Path) -> None:
    sets = "testsets:\n  one: {path: queries.yaml, strata: kind}\n  two: {path: queries.yaml, verdict: pooled}"
    job = run_job(project(tmp_path, sets=sets), out=tmp_path / "out")
    assert [part.comparison.verdict.code for part in job.parts if part.comparison] == ["mixed", "better"]
    summary = (tmp_path / "out" / "report.md").read_text()
    assert "mixed" in summary
    assert cranfield(tmp_path, "run", "--fail-on", "mixed").returncode == 1


def test_the_comment_of_a_merge_request_has_the_table_of_classes(tmp_path: Path) -> None:
    run_job(project(tmp_path, "strata: kind"), out=tmp_path / "out")
    body = comment_body((tmp_path / "out" / "report.md").read_text(), marker="report", limit=60_000, source="the job")
    assert "new against old is mixed: better in name, worse in question" in body
    assert re.search(r"\| question \| worse \|", body)


@pytest.mark.parametrize(
    ("config", "rule", "got"),
    [
        ("", "{measure: RR}", "better"),
        ("strata: kind", "{measure: RR}", "mixed: better in kind: name, worse in kind: question"),
        ("verdict: pooled", "{measure: RR}", "better"),
        ("verdict: pooled", "{measure: RR, by: kind}", "mixed: better in kind: name, worse in kind: question"),
        ("strata: kind", "{measure: RR, where: {kind: name}}", "better"),
    ],
)
def test_no_worse_goes_by_the_classes_of_the_verdict(tmp_path: Path, config: str, rule: str, got: str) -> None:
    project(tmp_path, f"{config}\ngate:\n  system: new\n  rules: [no_worse: {rule}]")
    assert cranfield(tmp_path, "baseline", "accept", "--run", "old.run", "--reason", "start").returncode == 0
    done = cranfield(tmp_path, "gate", "--format", "json")
    assert done.returncode == got.startswith("mixed"), done.stderr
    (result,) = json.loads(done.stdout)["gates"]
    assert [each["got"] for each in result["rules"]] == [got]


def test_a_gate_fails_on_mixed_in_its_result_and_in_junit(tmp_path: Path) -> None:
    gate = "gate:\n  system: new\n  rules: [no_worse: {measure: RR, by: kind}, no_worse: {measure: RR}]"
    project(tmp_path, gate)
    accepted = cranfield(tmp_path, "baseline", "accept", "--run", "old.run", "--reason", "start")
    assert accepted.returncode == 0, accepted.stderr
    done = cranfield(tmp_path, "gate", "--junit", "gate.xml")
    assert done.returncode == 1, done.stderr
    (written,) = tmp_path.rglob("gate.json")
    (result,) = json.loads(written.read_text())["gates"]
    assert [rule["got"] for rule in result["rules"]] == [
        "mixed: better in kind: name, worse in kind: question",
        "better",
    ]
    junit = (tmp_path / "gate.xml").read_text()
    assert junit.count('<failure type="no_worse"') >= 1
    assert 'name="no_worse: RR is not significantly worse" time="0" />' in junit


def test_scores_of_pytest_have_a_verdict_against_others(tmp_path: Path) -> None:
    project(tmp_path)
    testset = load(tmp_path / "queries.yaml")
    old, new = (
        Scores.of(LazyEvaluation(evaluate(testset, tmp_path / f"{name}.run", measures=["RR"])))
        for name in ("old", "new")
    )
    assert new.against(old, strata="kind").verdict.code is VerdictCode.MIXED
    assert new.against(old, strata="kind").verdict.code in {"worse", "mixed"}
    assert new.against(old).verdict.code == "better"
