"""The action of the repository: every script of it run by bash, with the variables and files that a runner gives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
ACTION = CHECKOUT / "action.yml"
HANDBOOK = CHECKOUT / "examples" / "handbook"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
GATE = "candidate: titles\ngate:\n  rules:\n    - floor: {measure: nDCG@10, at_least: %s}\n"

pytestmark = pytest.mark.skipif(not ACTION.exists(), reason="no checkout: the action is part of the repository")


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    return dict(yaml.safe_load(ACTION.read_text()))


@dataclass
class Runner:
    """As much of a runner as the action needs: expressions of inputs and outputs, files, and bash."""

    action: Mapping[str, Any]
    root: Path
    inputs: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    token: str = "secret"

    def __post_init__(self) -> None:
        known = self.action["inputs"]
        assert set(self.inputs) <= set(known)
        self.inputs = {name: str(each.get("default", "")) for name, each in known.items()} | self.inputs
        self.workspace = self.root / "workspace"
        self.workspace.mkdir(exist_ok=True)
        (self.root / "temp").mkdir(exist_ok=True)

    def value(self, expression: str) -> str:
        """An expression of the form that the action has: a name."""
        place, _, name = expression.partition(".")
        if place == "inputs":
            return EXPRESSION.sub(lambda found: self.value(found[1]), self.inputs[name])
        if expression == "github.token":
            return self.token
        return self.outputs.get(expression.removeprefix("steps.measure.outputs."), "")

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run the script of a step."""
        (step,) = [each for each in self.action["runs"]["steps"] if each["name"] == name]
        filled = {key: EXPRESSION.sub(lambda found: self.value(found[1]), text) for key, text in step["env"].items()}
        output = self.root / "output"
        output.write_text("")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "CI", "PIP_"))}
        runner = {
            "GITHUB_ACTION_PATH": str(CHECKOUT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.root / "summary.md"),
            "RUNNER_TEMP": str(self.root / "temp"),
            "PATH": path,
        }
        folder = EXPRESSION.sub(lambda found: self.value(found[1]), step.get("working-directory", "."))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.workspace / folder,
            env={**plain, **runner, **self.environment, **filled},
            capture_output=True,
            text=True,
        )
        self.outputs |= dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done


@pytest.fixture
def runner(action: dict[str, Any], tmp_path: Path) -> Runner:
    made = Runner(action, tmp_path, {"baseline-ref": "none"})
    shutil.copytree(HANDBOOK, made.workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".cranfield"))
    config = made.workspace / "cranfield.yaml"
    config.write_text(config.read_text() + GATE % "0.1")
    return made


def test_no_script_holds_an_expression_and_every_action_is_pinned(action: dict[str, Any]) -> None:
    steps = action["runs"]["steps"]
    assert [each["name"] for each in steps if EXPRESSION.search(each.get("run", ""))] == []
    pins = [each["uses"].partition("@")[2] for each in steps if "uses" in each]
    assert [pin for pin in pins if not re.fullmatch(r"[0-9a-f]{40}", pin)] == []
    assert [each["name"] for each in steps if "GITHUB_TOKEN" in each.get("env", {})] == ["Comment"]


@pytest.mark.parametrize(
    ("inputs", "installed"),
    [
        ({}, str(CHECKOUT)),
        ({"extras": "mcp,web"}, f"{CHECKOUT}[mcp,web]"),
        ({"package": "https://host/cranfield.whl"}, "cranfield @ https://host/cranfield.whl"),
        ({"package": "$(touch here)", "extras": "`touch here`"}, "cranfield[`touch here`] @ $(touch here)"),
    ],
    ids=["the action's own", "extras", "package", "what a shell would run"],
)
def test_the_package_is_one_argument_of_pip(runner: Runner, inputs: dict[str, str], installed: str) -> None:
    programs = runner.root / "programs"
    programs.mkdir()
    (programs / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (programs / "python").chmod(0o755)
    runner.inputs |= inputs
    runner.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = runner.run("Install")
    options = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    assert done.stdout.splitlines() == [*options, installed]
    assert not (runner.workspace / "here").exists()


@pytest.mark.slow
def test_pip_would_install_the_checkout(runner: Runner) -> None:
    runner.environment |= {"PIP_DRY_RUN": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    done = runner.run("Install")
    assert done.returncode == 0, done.stderr


def test_a_gate_that_passes_leaves_a_report_and_a_summary(runner: Runner) -> None:
    done = runner.run("Measure")
    assert (done.returncode, runner.outputs) == (0, {"exit-code": "0", "report": "search-quality.md"}), done.stderr
    report = (runner.workspace / "search-quality.md").read_text()
    assert "passed" in report
    assert (runner.root / "summary.md").read_text() == report
    assert (runner.workspace / "search-quality.xml").exists()
    assert runner.run("End with the exit code").returncode == 0


def test_a_gate_that_fails_keeps_its_report_before_the_step_fails(runner: Runner) -> None:
    config = runner.workspace / "cranfield.yaml"
    config.write_text(config.read_text().replace("at_least: 0.1", "at_least: 0.999"))
    assert runner.run("Measure").returncode == 0
    assert runner.outputs == {"exit-code": "1", "report": "search-quality.md"}
    assert runner.run("End with the exit code").returncode == 1


def test_a_gate_of_a_pull_request_takes_rules_and_baseline_of_its_base(runner: Runner) -> None:
    runner.inputs["baseline-ref"] = ""
    runner.environment["GITHUB_BASE_REF"] = "main"
    done = runner.run("Measure")
    assert runner.outputs["exit-code"] == "2"
    assert "origin/main" in done.stderr or "git" in done.stderr


def test_a_run_writes_its_short_report_and_takes_arguments(runner: Runner) -> None:
    runner.inputs |= {"command": "run", "arguments": "--fail-on=better\n--fail-on=worse\n--fail-on=not-significant\n"}
    done = runner.run("Measure")
    assert runner.outputs["report"] == "search-quality.md", done.stderr
    assert runner.outputs["exit-code"] in {"1", "4"}
    report = (runner.workspace / "search-quality.md").read_text()
    assert (runner.root / "summary.md").read_text() == report
    assert len(report.splitlines()) < 60


def test_text_of_an_input_is_no_program(runner: Runner) -> None:
    runner.inputs |= {"config": "$(touch here).yaml", "arguments": "`touch here`\n; touch here", "baseline-ref": "none"}
    runner.run("Measure")
    assert runner.outputs == {"exit-code": "2"}
    assert not (runner.workspace / "here").exists()


def test_an_unknown_command_is_an_error_of_usage(runner: Runner) -> None:
    runner.inputs["command"] = "serve"
    assert "expected gate, run or comment" in runner.run("Measure").stderr
    assert runner.outputs == {"exit-code": "2"}
    assert runner.run("End with the exit code").returncode == 2


def test_a_folder_is_the_working_directory(runner: Runner) -> None:
    inner = runner.workspace / "inner folder"
    inner.mkdir()
    for path in runner.workspace.iterdir():
        if path != inner:
            path.rename(inner / path.name)
    runner.inputs["working-directory"] = "inner folder"
    assert runner.run("Measure").returncode == 0
    assert (inner / "search-quality.md").exists()


def test_without_a_report_nothing_is_commented(runner: Runner) -> None:
    done = runner.run("Comment")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no report" in done.stderr


def test_the_comment_is_that_of_the_command_and_has_the_token(runner: Runner) -> None:
    folder = runner.root / "temp" / "search-quality" / "inner"
    folder.mkdir(parents=True)
    (folder / "search-quality.md").write_text("# passed\n")
    programs = runner.root / "programs"
    programs.mkdir()
    (programs / "cranfield").write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$GITHUB_TOKEN"\n')
    (programs / "cranfield").chmod(0o755)
    runner.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    runner.inputs["arguments"] = "--marker=nightly"
    done = runner.run("Comment")
    assert done.stdout.splitlines() == [
        "ci",
        "comment",
        str(folder / "search-quality.md"),
        "--marker=nightly",
        "secret",
    ]


def test_a_job_without_a_report_reaches_the_step_that_says_so(action: dict[str, Any]) -> None:
    """`download-artifact` fails where there is no artifact of the name."""
    step = next(each for each in action["runs"]["steps"] if "download-artifact" in each.get("uses", ""))
    assert step["continue-on-error"] is True
