"""Functions that end their process, or change it: no command ends with 0 unless it has a report that says so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

QUERIES = """\
cranfield_testset: 1
name: fruit
queries:
  - {id: q1, text: apple, judgments: {apple: 1}}
  - {id: q2, text: banana, judgments: {banana: 1}}
  - {id: q3, text: cherry, judgments: {cherry: 1}}
"""
CONFIG = """\
testset: queries.yaml
measures: [RR@10]
limits: {max_failed_share: 0.9}
evidence: {nothing-matched: off}
systems:
  sut: {python: "engine:search"}
  other: {python: "other:search"}
  both: {fusion: {of: [sut, other]}}
gate:
  system: sut
  rules:
    - floor: {measure: RR@10, at_least: 0.9}
"""
DIES = "import os\ndef search(query, k):\n    if query == 'banana':\n        {0}\n    return [query]\n"
CHANGES = """\
import atexit, os, sys

atexit.register(os._exit, 0)
for module in [module for name, module in sys.modules.items() if name.startswith("cranfield")]:
    for name in {"EXIT_CODES", "judge", "reciprocal_rank", "run_gate", "run_job"} & vars(module).keys():
        setattr(module, name, lambda *_, **__: 1)
sys.exit = lambda *_: os._exit(0)

def search(query, k):
    sys.modules.pop("cranfield", None)
    return ["nothing of use"]
"""
WHOLE = "def search(query, k):\n    return [query]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "queries.yaml").write_text(QUERIES)
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "other.py").write_text(WHOLE)
    return tmp_path


def cranfield(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


def reasons(folder: Path, system: str = "sut") -> dict[str, str]:
    lines = (folder / "runs" / f"{system}.jsonl").read_text().splitlines()
    return {record["query_id"]: record["reason"] for record in map(json.loads, lines) if "reason" in record}


SCENARIOS = [
    pytest.param(WHOLE, 0, {}, id="none dies"),
    pytest.param(
        DIES.format("os._exit(0)"),
        1,
        {"q2": "the process ended with exit status 0 before it answered"},
        id="os._exit(0)",
    ),
    pytest.param(
        DIES.format("os.kill(os.getpid(), 9)"),
        1,
        {"q2": "the process was killed by SIGKILL before it answered"},
        id="kill -9",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        DIES.format("os.abort()"),
        1,
        {"q2": "the process was killed by SIGABRT before it answered"},
        id="os.abort",
        marks=pytest.mark.slow,
    ),
    pytest.param(CHANGES, 1, {}, id="changes Cranfield"),
]


@pytest.mark.parametrize(("source", "code", "failed"), SCENARIOS)
def test_a_gate_judges_what_is_left_of_a_function_that_dies(project: Path, source: str, code: int, failed) -> None:
    (project / "engine.py").write_text(source)
    done = cranfield(project, "gate")
    assert done.returncode == code, done.stdout + done.stderr
    assert f"VERDICT: {'failed' if code else 'passed'}" in done.stdout
    assert (project / "cranfield-gate" / "gate.json").exists()
    assert reasons(project / "cranfield-gate") == failed


@pytest.mark.parametrize("dies", ["os._exit(0)", pytest.param("os._exit(1)", marks=pytest.mark.slow)])
def test_a_function_that_dies_while_it_is_imported_fails_the_preflight(project: Path, dies: str) -> None:
    (project / "engine.py").write_text(f"import os\n{dies}\n")
    done = cranfield(project, "gate")
    assert done.returncode == 3
    assert "expected search to be loaded, got the process ended with exit status" in done.stderr


def test_a_part_of_a_fusion_that_dies_fails_the_query_of_the_fusion(project: Path) -> None:
    (project / "engine.py").write_text(DIES.format("os._exit(0)"))
    done = cranfield(project, "run", "--system", "both", "--system", "other", "--out", "out")
    assert "VERDICT" in done.stdout
    assert (project / "out" / "report.html").exists()
    assert reasons(project / "out", "both") == {
        "q2": "sut: error: the process ended with exit status 0 before it answered"
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", [("run",), ("grid",), ("components", "sut"), ("system", "probe", "sut", "banana")])
def test_no_command_ends_with_0_without_a_report(project: Path, command: tuple[str, ...]) -> None:
    (project / "engine.py").write_text(DIES.format("os._exit(0)").replace("k)", "k, **params)"))
    config = project / "cranfield.yaml"
    text = config.read_text().replace('"engine:search"}', '"engine:search", components: [a, b]}')
    config.write_text(text + "grid: {system: sut, over: {params.x: [1, 2]}, held_out: 0.5}\n")
    done = cranfield(project, *command)
    assert "exit status 0 before it answered" in done.stdout + done.stderr, done.stderr
    assert done.returncode or done.stdout


def test_what_a_function_prints_is_seen_on_stderr_and_a_report_is_alone_on_stdout(project: Path) -> None:
    (project / "engine.py").write_text(
        "import os\ndef search(query, k):\n    print('looking', flush=True)\n    return [query]\n"
    )
    done = cranfield(project, "gate", "--format", "json")
    assert json.loads(done.stdout)["status"] == "passed"
    assert done.stderr.count("looking") == 3
