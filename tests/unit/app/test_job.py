"""The job: everything wrong with the call and its config before the first query, and several test sets in turn."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.command import call

from cranfield.app.run import CompletedRun, run_job
from cranfield.base.errors import ConfigError, MeasureError, PreflightError, TestSetError, UsageError
from cranfield.formats.runs.jsonl import read_run

TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, patterns: [{regex: ^a$}]}\n"
CONFIG = """\
testset: queries.yaml
{rules}
systems:
  old: {{command: [touch, asked, "{{query}}"], extract: {{regex: a}}}}
  new: {{command: [touch, asked, "{{query}}"], extract: {{regex: a}}}}
"""


def project(folder: Path, rules: str) -> Path:
    (folder / "queries.yaml").write_text(TESTSET)
    (folder / "cranfield.yaml").write_text(CONFIG.format(rules=rules))
    return folder / "cranfield.yaml"


def test_measures_and_tests_nobody_knows_are_named_with_their_lines_beside_all_else(tmp_path: Path) -> None:
    config = project(tmp_path, "measures: [RRR@10, P@0]\nprimary: foo\ntest: permutatin\nk: 0")
    with pytest.raises(ConfigError) as caught:
        run_job(config, out=tmp_path / "out")
    assert [(problem.line, problem.message.split(":")[0]) for problem in caught.value.problems] == [
        (2, "measures[0]"),
        (2, "measures[1]"),
        (3, "primary"),
        (4, "test"),
        (5, "wrong value for k"),
    ]
    assert caught.value.problems[3].hint == "did you mean permutation?"
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("out", ["taken", "taken/deeper"])
def test_a_file_where_the_results_should_go_is_found_before_anything_is_asked(tmp_path: Path, out: str) -> None:
    config = project(tmp_path, "measures: [RR]")
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match=r"taken: this is a file; expected a folder for the results"):
        run_job(config, out=tmp_path / out)
    assert not (tmp_path / "asked").exists()
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_primary_measure_alone_does_not_ask_for_what_patterns_do_not_allow(tmp_path: Path) -> None:
    job = run_job(project(tmp_path, "primary: P@1\nlimits: {max_failed_share: null}"), out=tmp_path / "out")
    assert job.comparison is not None
    assert str(job.comparison.primary) == "P@1"
    assert [str(measure) for measure in job.evaluations[0].measures][-2:] == ["Success@5", "P@1"]


# Every call leaves a line in asked.txt. `right` answers in the mode it is asked for, `wrong` always in code mode.
SEVERAL = """\
testsets:
  code: {path: code.yaml, params: {mode: code}}
  docs: {path: docs.yaml, params: {mode: docs}, measures: [RR]}
measures: [P@1]
limits: {max_failed_share: null}
systems:
  wrong: {command: [sh, answer.sh, code, "{query}"], extract: {regex: 'doc:\\S+'}}
  right: {command: [sh, answer.sh, "{params.mode}", "{query}"], extract: {regex: 'doc:\\S+'}}
"""
ANSWER = 'echo "$1 $2" >> asked.txt; if [ -e broken ] && [ "$1" = docs ]; then kill -TERM $PPID; sleep 60; fi; echo "doc:$1:$2"\n'


def several(folder: Path, config: str = SEVERAL, docs: str = "") -> Path:
    """Two test sets of two queries; each expects the answer in its own mode. A query's own mode goes first."""
    for mode in ("code", "docs"):
        lines = [f"cranfield_testset: 1\nname: {mode}\nqueries:"]
        lines += [f"  - {{id: {q}, text: {q}, judgments: {{'doc:{mode}:{q}': 1}}{docs}}}" for q in ("q1", "q2")]
        (folder / f"{mode}.yaml").write_text("\n".join(lines) + "\n")
    (folder / "answer.sh").write_text(ANSWER)
    (folder / "cranfield.yaml").write_text(config)
    return folder / "cranfield.yaml"


def asked(folder: Path) -> list[str]:
    return (folder / "asked.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CompletedRun]:
    folder = tmp_path_factory.mktemp("two")
    return folder, run_job(several(folder), out=folder / "out")


def test_each_test_set_is_asked_with_its_own_params_and_scored_by_its_own_measures(
    two: tuple[Path, CompletedRun],
) -> None:
    folder, job = two
    # wrong: code for both sets; right: the mode of the set
    assert sorted(asked(folder)) == sorted(f"{m} {q}" for m in ("code", "code", "code", "docs") for q in ("q1", "q2"))
    code, docs = job.parts
    assert [str(code.primary), str(docs.primary)] == ["P@1", "RR"]
    assert code.comparison is not None
    assert docs.comparison is not None
    assert [(m.baseline.mean, m.candidate.mean) for m in code.comparison.measures.values()] == [(1, 1)]
    assert next((m.baseline.mean, m.candidate.mean) for m in docs.comparison.measures.values()) == (0, 1)


def test_each_test_set_has_its_own_folder_and_a_summary_stands_on_top(two: tuple[Path, CompletedRun]) -> None:
    folder, job = two
    files = {str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*") if path.is_file()}
    own = {"report.html", "report.md", "results.json"}
    assert {name for name in files if "/" not in name} == own - {"results.json"}
    for name in ("code", "docs"):
        assert {f"{name}/{one}" for one in (*own, "runs/wrong.jsonl", "runs/right.jsonl")} <= files
    assert {str(path.relative_to(folder / "out")) for path in job.written} <= files
    text = (folder / "out" / "report.md").read_text()
    rows = [
        line
        for line in text.splitlines()
        if line.startswith(("| [code](code/report.html)", "| [docs](docs/report.html)"))
    ]
    assert ["no significant difference" in row for row in rows] == [True, True]
    assert "\n- code: No significant difference between wrong and right: " in text
    assert "\n- docs: No significant difference between wrong and right: " in text
    assert 'mode: "docs"' in rows[1]
    assert not (folder / "out" / ".partial").exists()


def test_the_params_are_the_systems_and_not_the_test_sets(two: tuple[Path, CompletedRun]) -> None:
    """The digest of the test set is that of its file; what was asked stands with the run."""
    folder, job = two
    run = read_run(folder / "out" / "docs" / "runs" / "right.jsonl")
    other = read_run(folder / "out" / "code" / "runs" / "right.jsonl")
    assert run.testset_digest == job.parts[1].evaluations[0].testset.digest
    assert run.config is not None
    assert run.config["params"] == {"mode": "docs"}
    assert run.config_digest != other.config_digest


def test_the_summary_is_one_result_for_machines_too(two: tuple[Path, CompletedRun]) -> None:
    _, job = two
    payload = job.document.payload()
    assert list(payload) == ["testsets"]
    assert [part["verdict"] for part in payload["testsets"].values()] == [
        part.comparison.verdict.code for part in job.parts if part.comparison is not None
    ]
    table = job.document.tidy()
    assert table.columns[0].title == "test set"
    assert {row[0] for row in table.rows} == {"code", "docs"}


def test_a_query_s_own_params_go_before_those_of_its_set(tmp_path: Path) -> None:
    config = several(tmp_path, docs=", params: {mode: own}")
    run_job(config, out=tmp_path / "out", systems=["right"])
    assert sorted(asked(tmp_path)) == ["own q1", "own q1", "own q2", "own q2"]


def test_what_is_wrong_with_any_set_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    config = several(tmp_path)
    (tmp_path / "code.yaml").write_text("cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1}\n")
    (tmp_path / "docs.yaml").write_text("cranfield_testset: 1\nname: t\n")
    with pytest.raises(TestSetError) as caught:
        run_job(config, out=tmp_path / "out")
    assert {Path(str(problem.path)).name for problem in caught.value.problems} == {"code.yaml", "docs.yaml"}
    assert not (tmp_path / "asked.txt").exists()


def test_a_system_that_is_not_there_hides_no_set_that_cannot_be_read(tmp_path: Path) -> None:
    config = several(tmp_path, SEVERAL.replace("[sh, answer.sh, code,", "[no-such-program, answer.sh, code,"))
    with pytest.raises(PreflightError) as alone:
        run_job(config, out=tmp_path / "out")
    assert len(alone.value.problems) == 1, "said once, though two sets ask it"
    (tmp_path / "docs.yaml").write_text("cranfield_testset: 1\nname: t\n")
    with pytest.raises(TestSetError) as both:
        run_job(config, out=tmp_path / "out")
    said = str(both.value)
    assert "no-such-program" in said
    assert "docs.yaml" in said
    assert not (tmp_path / "asked.txt").exists()


def test_an_interrupted_run_asks_no_finished_set_again(tmp_path: Path) -> None:
    """The first call is ended while the second set is asked; `kill` ends the whole call as Ctrl-C would."""
    config = several(tmp_path)
    (tmp_path / "broken").touch()
    command = ["cranfield", "run", str(config), "--out", str(tmp_path / "out")]
    first = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert first.returncode == 130, first.stderr
    before = asked(tmp_path)
    (tmp_path / "broken").unlink()
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 0, second.stderr
    assert second.stderr.count("resuming after 2 of 2 answers") == 2, second.stderr
    after = asked(tmp_path)[len(before) :]
    assert sorted(before[:4]) == ["code q1", "code q1", "code q2", "code q2"], (
        "both systems, in the one mode of the set"
    )
    # Of the second set, the one call that was under way was made twice.
    assert sorted([*before[4:], *after]) == ["code q1", "code q2", "docs q1", "docs q1", "docs q2"]
    third = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert third.returncode == 0
    assert len(asked(tmp_path)) == len(before) + len(after) + 8, "the whole was done, and all is asked again"


@pytest.mark.parametrize(
    ("limits", "fail_on", "code"),
    [
        ("max_failed_share: null", [], 0),
        # code: no significant difference (4), docs: with two queries no more (4)
        ("max_failed_share: null", ["--fail-on", "not-significant"], 4),
        ("max_failed_share: null", ["--fail-on", "better"], 0),
        # nothing of the docs set is judged in the lists of `wrong`: invalid, and that is worse
        ("min_judged_share: 0.9", ["--fail-on", "not-significant"], 3),
        ("min_judged_share: 0.9", [], 3),
    ],
)
def test_the_worst_set_decides_the_exit_code(tmp_path: Path, limits: str, fail_on: list[str], code: int) -> None:
    config = several(tmp_path, SEVERAL.replace("max_failed_share: null", limits))
    done = call("run", config, "--out", tmp_path / "out", *fail_on)
    assert done.returncode == code, done.stderr
    assert "2 test sets: code, docs" in done.stdout


def test_a_set_that_drifted_from_its_repository_is_refused_and_allowed_by_the_call_alone(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def f():\n    return 1\n")
    (tmp_path / "queries.yaml").write_text(
        "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, entities: ['a.py::gone']}\n"
    )
    config = tmp_path / "cranfield.yaml"
    config.write_text(
        CONFIG.format(rules="repo: repo\nlimits: {max_failed_share: null}").replace("touch, asked", "echo")
    )
    with pytest.raises(TestSetError, match=r"a\.py::gone"):
        run_job(config, out=tmp_path / "out")
    assert run_job(config, out=tmp_path / "out", allow_drift=True).comparison is not None
    config.write_text(config.read_text().replace("repo: repo\n", ""))
    with pytest.raises(UsageError, match="allow_drift needs a repository"):
        run_job(config, out=tmp_path / "out", allow_drift=True)


STRATIFIED = """\
cranfield_testset: 1
name: t
queries:
  - {id: q1, text: a, strata: {kind: x}, patterns: [{regex: ^a$}]}
  - {id: q2, text: a, strata: {kind: x}, patterns: [{regex: ^a$}]}
  - {id: q3, text: b, strata: {kind: y}, patterns: [{regex: ^a$}]}
  - {id: q4, text: b, strata: {kind: y}, patterns: [{regex: ^a$}]}
"""


def test_strata_are_contrasted_and_one_that_is_not_there_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    config = project(tmp_path, "measures: [RR]\nlimits: {max_failed_share: null}")
    (tmp_path / "queries.yaml").write_text(STRATIFIED)
    with pytest.raises(UsageError, match="zz"):
        run_job(config, out=tmp_path / "out", contrasts=[("kind", "x", "zz")])
    assert not (tmp_path / "asked").exists()
    job = run_job(config, out=tmp_path / "out", contrasts=[("kind", "x", "y")])
    assert "contrasts" in job.document.payload()
    assert (tmp_path / "asked").exists()


def test_a_measure_that_the_test_set_does_not_allow_is_refused_before_a_query_is_sent(tmp_path, checkout):
    shutil.copytree(
        checkout / "examples" / "handbook", tmp_path / "handbook", ignore=shutil.ignore_patterns(".cranfield")
    )
    config = tmp_path / "handbook" / "cranfield.yaml"
    config.write_text(config.read_text() + "measures: [nDCG@10, alpha_nDCG@10]\n")
    with pytest.raises(MeasureError, match="alpha_nDCG@10"):
        run_job(config, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "handbook" / ".cranfield").exists()
