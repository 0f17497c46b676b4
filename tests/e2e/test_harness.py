"""Three hand-written harnesses and the configs that replace them: each README runs as it stands, and its figures are the harness's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from sybil import Document
from tests.docs.test_examples import UPDATES, failures, parse_page, update_page

ACTION = Path(__file__).resolve().parents[2] / "action.yml"
FOLDER = ACTION.parent / "examples" / "harness"
MOST_LINES = 15
"""Lines of a config, without comments."""


@dataclass(frozen=True)
class Harness:
    """An example, and what is known of it."""

    old: tuple[str, ...]
    """Command of the harness that is replaced."""
    measures: Mapping[str, str]
    """A figure that it prints to the measure that it is."""
    edits: Mapping[str, Any]
    """What the config has in place of what `init` proposes; None of a key that it leaves out."""
    worse: tuple[str, ...]
    """Queries that the gate names once the pull request is applied."""
    needs: str = ""
    """Program that is not in the environment of the tests."""


USUAL = {"r5": "R@5", "r10": "R@10", "p5": "P@5", "success1": "Success@1"}
HARNESSES = {
    "node-http": Harness(
        ("node", "replaced-eval.mjs"),
        {**USUAL, "ndcg": "nDCG@10", "rr": "RR", "bestRr": "RR(only_best=True)", "silence": "Silence"},
        {"systems.server.serve.ready": "/health", "gate": ...},
        ("how heavy can a parcel be", "price of letter", "sending battery"),
        needs="node",
    ),
    "jsonl-command": Harness(
        ("python", "replaced_eval.py"),
        {**USUAL, "mrr": "RR", "ndcg10": "nDCG@10", "forbidden": "Forbidden@5"},
        {"gate": ...},
        ("call on a Saturday", "how do I return an order", "is there free shipping", "what does shipping cost"),
    ),
    "mcp-docs": Harness(
        ("python", "replaced_eval.py"),
        {**USUAL, "ndcg10": "nDCG@10", "mrr": "RR", "best_mrr": "RR(only_best=True)"},
        {"primary": None, "gate": ...},
        (
            "cache a result (library=store)",
            "handle errors (library=router)",
            "handle errors (library=store)",
            "how do I install it (library=store)",
            "keep the state after a reload (library=store)",
        ),
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_python: str) -> Path:
    """An empty folder to work in, where `python` has imported the libraries."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nexec {quick_python} "$@"\n')
    (programs / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def ask_old(harness: Harness) -> dict[str, float]:
    """The figures of the harness that is replaced, by measure."""
    settings = {**os.environ, "PORT": free_port()}
    done = subprocess.run(harness.old, env=settings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"(?m)^(\w+) +(\d\.\d{4})$", done.stdout))
    assert printed.keys() == harness.measures.keys(), done.stderr
    return {measure: float(printed[name]) for name, measure in harness.measures.items()}


def settings_of(path: Path) -> dict[str, Any]:
    """A config as data, without comments and order."""
    return dict(yaml.safe_load(path.read_text()))


def edited(proposed: dict[str, Any], stored: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, Any]:
    """The proposal with the edits; `...` is what the stored config has."""
    for path, value in edits.items():
        *outer, last = path.split(".")
        inner = proposed
        for step in outer:
            inner = inner[step]
        inner[last] = stored[path] if value is ... else value
        if value is None:
            del inner[last]
    return proposed


def means_of(measures: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield from ((name, found["mean"]) for name, found in measures.items())


@pytest.mark.parametrize(
    # The target of the slow tests installs the programs that they need.
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if harness.needs else name for name, harness in HARNESSES.items()],
)
def test_a_config_replaces_a_harness_with_its_figures_a_gate_and_a_snapshot(name: str, folder: Path) -> None:
    harness = HARNESSES[name]
    if harness.needs and shutil.which(harness.needs) is None:
        pytest.skip(f"{harness.needs} is not installed")
    if name == "mcp-docs":
        pytest.importorskip("mcp")
    shutil.copytree(FOLDER / name, folder, dirs_exist_ok=True)
    config = folder / "cranfield.yaml"
    lines = [line for line in config.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= MOST_LINES
    figures = ask_old(harness)
    document = Document.parse(str(FOLDER / name / "README.md"), parse_page)
    wrong = failures(document)  # it ends with the pull request applied
    if UPDATES in document.namespace:
        update_page(FOLDER / name / "README.md", document)
    assert not wrong, "\n\n".join(wrong)

    stored = settings_of(config)
    assert edited(settings_of(folder / "proposed.yaml"), stored, harness.edits) == stored
    (measured,) = json.loads((folder / "cranfield-out" / "results.json").read_text())["systems"]
    means = dict(means_of(measured["measures"]))
    assert means == pytest.approx(figures, abs=5e-5)
    assert json.loads((folder / "cranfield-baseline.json").read_text())["means"] == pytest.approx(means, abs=1e-6)

    (gate,) = json.loads((folder / "cranfield-gate" / "gate.json").read_text())["gates"]
    assert gate["status"] == "failed"
    shown = [each["text"] + "".join(f" ({k}={v})" for k, v in each["params"].items()) for each in gate["worse"]]
    assert tuple(sorted(shown)) == harness.worse


@pytest.mark.skipif(not ACTION.exists(), reason="no checkout: the action is part of the repository")
@pytest.mark.parametrize("name", HARNESSES)
def test_a_workflow_runs_on_changes_weekly_and_on_request_with_the_pins_of_the_example(name: str) -> None:
    def steps_of(path: Path) -> list[dict[str, Any]]:
        return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]

    path = FOLDER / name / ".github" / "workflows" / "search-quality.yml"
    started = yaml.safe_load(path.read_text())[True]  # YAML 1.1 reads `on` as true
    assert set(started) == {"pull_request", "schedule", "workflow_dispatch"}
    pinned = {step.get("uses") for step in steps_of(ACTION.parent / "examples" / "ci" / "github-actions.yml")}
    inputs = yaml.safe_load(ACTION.read_text())["inputs"]
    own = [step for step in steps_of(path) if step.get("uses") == "OWNER/cranfield@COMMIT"]
    assert [set(step.get("with", {})) - set(inputs) for step in own] == [set(), set()]
    assert {step["uses"] for step in steps_of(path) if "uses" in step and step not in own} <= pinned
