"""Every report and gate that uses a set says that one person reviewed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cranfield.benefit.tasks import TaskSet
from cranfield.formats.sniff import read_testset
from cranfield.gate.calibration.report import CalibrationOptions, calibrate
from cranfield.gate.calibration.table import CalibrationAnswers, Correctness, ScoredAnswer
from cranfield.gate.reports.calibration import calibration_document
from cranfield.reporting.renderers.text import render_text

NAME = "golden-one-person"
REVIEW = (
    "golden 1.0: reviewed by one person (dee; not verified), intra-rater agreement on a later day: same verdict "
    "on 2 of 2; 2 sampled"
)
BY_NAME = (
    "evaluate golden_v1.0.json a.run",
    "compare golden_v1.0.json a.run b.run",
    "baseline accept cranfield.yaml --run a.run",
    "gate --run a.run",
    "holes a.run b.run --testset golden_v1.0.json",
    "pool a.run b.run --testset golden_v1.0.json",
    "testset show golden_v1.0.json",
    "answers score golden_v1.0.json answers.jsonl",
    "run --out out",
    "history",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set that one person reviewed, two runs on it, and a config with a gate."""
    records = [
        {
            "query_id": f"q{n}",
            "query_text": f"Where is thing {n} added up?",
            "task_type": "locate",
            "difficulty": "easy",
            "expected_entities": [f"src/m{n}.py::f{n}"],
            "expected_files": [f"src/m{n}.py"],
            "must_mention_facts": ["it adds"],
        }
        for n in range(6)
    ]
    facts = {"dataset_status": REVIEW, "version": "1.0", "query_count": 6, "cranfield": {"name": NAME}}
    (tmp_path / "golden_v1.0.json").write_text(json.dumps(records))
    (tmp_path / "golden_v1.0.meta.json").write_text(json.dumps(facts))
    for name, first in (("a", "f"), ("b", "g")):
        lines = [f"q{n} Q0 src/m{n}.py::{first if n % 2 else 'f'}{n} 1 9 {name}\n" for n in range(6)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps({"query_id": f"q{n}", "answer": "it adds"}) + "\n" for n in range(6))
    )
    config = "testset: golden_v1.0.json\nsystems: {a: {run: a.run}, b: {run: b.run}}\n"
    (tmp_path / "cranfield.yaml").write_text(f"{config}gate: {{rules: [floor: {{measure: R@10, at_least: 0.1}}]}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow  # ten commands
def test_every_command_that_uses_the_set_names_it_so(place: Path, call: Any) -> None:
    for command in BY_NAME:
        done = call(*command.split())
        assert done.returncode == 0, (command, done.stderr)
        assert NAME in done.stdout, command
    for command in ("evaluate golden_v1.0.json a.run", "compare golden_v1.0.json a.run b.run"):
        assert "reviewed by one person (dee" in call(*command.split(), "--format", "json").stdout, command
    assert "intra-rater agreement on a later day" in (place / "out" / "report.html").read_text()


def test_calibration_and_benefit_name_the_set_and_its_review(place: Path) -> None:
    testset = read_testset(place / "golden_v1.0.json")
    assert TaskSet((), testset).source == f"{NAME} 1.0: {REVIEW}"
    assert TaskSet(()).source == ""
    answers = [ScoredAnswer(f"q{n}", 0.5, {Correctness.STRUCTURAL: n > 2}, {}) for n in range(6)]
    source = CalibrationAnswers("a", "confidence", {Correctness.STRUCTURAL: "R@5"}, answers, f"{NAME} 1.0, {REVIEW}")
    text = " ".join(render_text(calibration_document(calibrate(source, CalibrationOptions(draws=99)), answers)).split())
    assert f"test set {NAME} 1.0, {REVIEW}" in text
