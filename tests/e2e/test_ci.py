"""The files of examples/ci and examples/pytest, run as a CI server would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import typer
import yaml

from cranfield.cli.main import command_line

CHECKOUT = Path(__file__).resolve().parents[2]
CI, SUITE = CHECKOUT / "examples" / "ci", CHECKOUT / "examples" / "pytest"
WORKFLOWS = ("github-actions.yml", "gitlab-ci.yml")
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
LOADED = ("-p", "cranfield.pytest_plugin")
Once = Callable[[str, Callable[[Path], object]], Path]
JOB_VARIABLES = re.compile(r"GITHUB_.*|GITLAB_.*|CI(_.*)?|.*_proxy|GIT_.*|PYTEST_.*", re.IGNORECASE)


def loaded(name: str) -> dict[str, Any]:
    return yaml.safe_load((CI / name).read_text())


def scripts(name: str) -> list[str]:
    """Every shell script of a workflow."""
    jobs = loaded(name)
    if "jobs" in jobs:
        return [step["run"] for job in jobs["jobs"].values() for step in job["steps"] if "run" in step]
    return [line for job in jobs.values() for line in job["script"]]


def calls(script: str) -> Iterator[list[str]]:
    """Arguments of every call of ours in a shell script."""
    for command in re.split(r"&&|\|\||;|\n|\bthen\b", script):
        words = shlex.split(command)
        if words and words[0] == "cranfield":
            yield words[1:]


def step(name: str) -> str:
    """The script of a named step of the GitHub workflow."""
    steps = [step for job in loaded("github-actions.yml")["jobs"].values() for step in job["steps"]]
    (found,) = [one["run"] for one in steps if one.get("name") == name]
    return found


@pytest.mark.parametrize(("name", "n_calls"), [(name, 2) for name in WORKFLOWS])
def test_every_call_in_a_workflow_is_one_the_command_takes(name: str, n_calls: int) -> None:
    found = [call for script in scripts(name) for call in calls(script)]
    assert len(found) == n_calls
    for call in found:
        group: Any = typer.main.get_command(command_line())
        arguments = list(call)
        while hasattr(group, "commands"):
            group = group.commands[arguments.pop(0)]
        group.make_context("cranfield", arguments)  # raises where an option is unknown


def test_a_call_that_the_command_does_not_take_is_found() -> None:
    group: Any = typer.main.get_command(command_line())
    with pytest.raises(Exception, match="No such option"):
        group.commands["gate"].make_context("cranfield", ["--no-such-option"])


def test_the_github_workflow_gives_no_more_than_is_needed() -> None:
    workflow = loaded("github-actions.yml")
    assert list(workflow[True]) == ["pull_request", "schedule", "workflow_dispatch"]  # `on` is true to YAML 1.1
    assert workflow["permissions"] == {}
    gate, comment = workflow["jobs"]["gate"], workflow["jobs"]["comment"]
    assert gate["permissions"] == {"contents": "read"}
    assert comment["permissions"] == {"pull-requests": "write"}
    used = [step["uses"] for step in comment["steps"] if "uses" in step]
    assert not [name for name in used if "checkout" in name]
    (checkout,) = [step for step in gate["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert "head.repo.full_name == github.repository" in comment["if"]
    assert "github.event_name == 'pull_request'" in comment["if"]


def test_no_script_of_a_workflow_interpolates_text_of_a_pull_request() -> None:
    """What a branch is called would be run by the shell: it comes by a variable."""
    assert not [script for script in scripts("github-actions.yml") if "${{" in script]


def test_the_gitlab_jobs_keep_the_report_and_need_a_token_to_comment() -> None:
    jobs = loaded("gitlab-ci.yml")
    gate, comment = jobs["search-quality"], jobs["search-quality-comment"]
    assert gate["artifacts"]["when"] == "always"
    assert gate["artifacts"]["reports"] == {"junit": "gate.xml"}
    assert comment["needs"] == ["search-quality"]
    assert comment["rules"] == [
        {"if": '$CI_PIPELINE_SOURCE == "merge_request_event" && $GITLAB_TOKEN', "when": "always"}
    ]


GATE = """
gate:
  rules:
    - floor: {measure: nDCG@10, at_least: 0.5}
    - drop: {measure: nDCG@10, at_most: 5 %}
"""


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not JOB_VARIABLES.fullmatch(name)}
    return plain | {"HOME": "/nonexistent"} | more


def bash(folder: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=120)


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, env=environment(), check=True, capture_output=True)


@pytest.fixture
def pull_request(tmp_path: Path, make_once: Once) -> Path:
    """A clone, on a branch, of a repository with a gate and an accepted baseline on main."""
    return Path(shutil.copytree(make_once("pull request", fill_pull_request) / "clone", tmp_path / "clone"))


def fill_pull_request(folder: Path) -> None:
    origin, clone = folder / "origin", folder / "clone"
    shutil.copytree(CHECKOUT / "examples" / "handbook", origin, ignore=shutil.ignore_patterns(".cranfield"))
    config = (origin / "cranfield.yaml").read_text()
    (origin / "cranfield.yaml").write_text(config + "candidate: titles\n" + GATE)
    accepted = bash(origin, "cranfield baseline accept --reason first")
    assert accepted.returncode == 0, accepted.stderr
    shutil.rmtree(origin / "cranfield-gate", ignore_errors=True)
    git(origin, "init", "-q")
    git(origin, "add", "cranfield.yaml", "cranfield-baseline.json", "handbook.json", "queries.yaml", "search.py")
    git(origin, "commit", "-q", "-m", "search")
    git(folder, "clone", "-q", str(origin), str(clone))
    git(clone, "checkout", "-q", "-b", "change")


def test_the_steps_of_the_workflow_pass_an_equal_search(pull_request: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = bash(pull_request, step("Gate"), BASE="origin/main", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    root = ET.fromstring((pull_request / "gate.xml").read_bytes())
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "0", "0")
    assert summary.read_text() == (pull_request / "gate.md").read_text()


def test_the_steps_of_the_workflow_fail_a_worse_search_and_report_it(pull_request: Path, tmp_path: Path) -> None:
    search = pull_request / "search.py"
    search.write_text(search.read_text().replace("reverse=True", "reverse=False"))
    config = pull_request / "cranfield.yaml"
    config.write_text(config.read_text().replace("at_most: 5 %", "at_most: 100 %").replace("0.5}", "0}"))  # in vain
    summary, output = tmp_path / "summary.md", tmp_path / "output"
    done = bash(pull_request, step("Gate"), BASE="origin/main", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stderr
    root = ET.fromstring((pull_request / "gate.xml").read_bytes())
    # Cases are rules: nDCG@10 falls from .9041 to .5615, which is 38 % and still above the floor of 0.5.
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "1", "0")
    (failed,) = (case for case in root.iter("testcase") if case.find("failure") is not None)
    assert failed.attrib["name"] == "drop: nDCG@10 drops by at most 5 %"
    assert (failed.findtext("failure") or "").count("\nquery: ") == 10
    assert not list(root.iter("skipped"))
    report = (pull_request / "gate.md").read_text()
    assert summary.read_text() == report
    assert "failed" in report.partition("<details")[0]  # the verdict is not folded
    assert "![" not in report
    assert bash(pull_request, step("Is there a report?"), GITHUB_OUTPUT=str(output)).returncode == 0
    assert output.read_text() == "there=yes\n"


def test_a_format_for_programs_does_not_switch_the_gate_off(pull_request: Path) -> None:
    search = pull_request / "search.py"
    search.write_text(search.read_text().replace("reverse=True", "reverse=False"))
    done = bash(pull_request, "cranfield gate --baseline-ref origin/main --format json")
    assert done.returncode == 1
    assert json.loads(done.stdout)


def test_a_missing_step_summary_is_an_error_before_any_answer_is_collected(pull_request: Path) -> None:
    done = bash(pull_request, "cranfield gate --step-summary")
    assert done.returncode == 2
    assert "GITHUB_STEP_SUMMARY is not set" in done.stderr
    assert not (pull_request / "cranfield-gate").exists()


class Forge(BaseHTTPRequestHandler):
    """As much of GitHub as one new comment takes."""

    written: list[str]

    def do_GET(self) -> None:
        self.answer([])

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/graphql":
            self.answer({"data": {"viewer": {"databaseId": 1}}})
        else:
            self.written.append(said["body"])
            self.answer({"id": 5, "user": {"id": 1}, "body": said["body"], "html_url": "here"})

    def answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""


def test_the_step_that_comments_takes_the_report_of_the_gate(pull_request: Path) -> None:
    queries = pull_request / "queries.yaml"
    queries.write_text(queries.read_text().replace("lost key,", '"@all see #1 ![x](y) lost key",', 1))
    assert bash(pull_request, "cranfield baseline accept").returncode == 0
    search = pull_request / "search.py"
    search.write_text(search.read_text().replace("reverse=True", "reverse=False"))
    assert bash(pull_request, "cranfield gate --markdown gate.md").returncode == 1
    assert "all see" in (pull_request / "gate.md").read_text()
    server = HTTPServer(("127.0.0.1", 0), type("OneForge", (Forge,), {"written": []}))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        done = bash(
            pull_request,
            step("Comment"),
            GITHUB_ACTIONS="true",
            GITHUB_TOKEN="t",
            GITHUB_API_URL=f"http://127.0.0.1:{server.server_port}",
            GITHUB_REPOSITORY="owner/name",
            GITHUB_REF="refs/pull/3/merge",
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (done.returncode, done.stdout, done.stderr) == (0, "comment created: here\n", "")
    (body,) = server.RequestHandlerClass.written  # type: ignore[attr-defined]
    assert body.startswith("<!-- cranfield: report -->\n")
    assert "all see" in body
    assert not re.search(r"(?<![A-Za-z0-9])@\w|!\[|#\d", body)


@pytest.fixture
def suite(tmp_path: Path, make_once: Once) -> Path:
    """A copy of the suite, with its index."""

    def fill(folder: Path) -> None:
        ignored = shutil.ignore_patterns("index.db", "__pycache__", ".pytest_cache")
        shutil.copytree(SUITE, folder, ignore=ignored, dirs_exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\n")
        built(folder)

    return Path(shutil.copytree(make_once("suite of examples", fill), tmp_path / "suite"))


def run_suite(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    options = ["-q", *LOADED, "-p", "no:randomly", "-p", "no:cacheprovider", "--strict-markers"]
    command = ["quick-pytest", *options, *more]
    return subprocess.run(command, cwd=folder, env=environment(**ALONE), capture_output=True, text=True, timeout=120)


def built(folder: Path) -> None:
    command = [sys.executable, "build_index.py"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
    assert re.fullmatch(r"\d{3} entities\n", done.stdout)


def test_the_six_assertions_of_the_suite_hold(suite: Path) -> None:
    done = run_suite(suite)
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


@pytest.mark.parametrize(
    ("line", "changed", "messages"),
    [
        ("4, 1), id LIMIT", "4, 1) DESC, id LIMIT", ["6 failed", "nothing relevant in 10 results"]),
        (
            "return [doc_id for (doc_id,) in found]",
            'return ["x.py::x"]',
            ["6 errors", "search.find: 24 of 24 queries get the same list (x.py::x)"],
        ),
    ],
    ids=["the worst results first", "one result for every query"],
)
def test_each_of_the_six_assertions_can_fail(suite: Path, line: str, changed: str, messages: list[str]) -> None:
    search = suite / "search.py"
    search.write_text(search.read_text().replace(line, changed))
    done = run_suite(suite)
    assert done.returncode == 1
    assert all(message in done.stdout for message in messages)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("index.db", "unable to open database file"),
        pytest.param("golden.json", "no such file", marks=pytest.mark.slow),
    ],
)
def test_without_its_data_the_suite_is_red_and_skips_nothing(suite: Path, missing: str, said: str) -> None:
    (suite / missing).unlink()
    done = run_suite(suite)
    assert done.returncode == 1
    assert "6 errors" in done.stdout
    assert "skipped" not in done.stdout
    assert said in done.stdout


def test_the_same_six_are_rules_of_a_gate(suite: Path) -> None:
    (suite / "index.db").unlink()
    unbuilt = bash(suite, "cranfield gate")
    assert (unbuilt.returncode, "index.db" in unbuilt.stderr) == (3, True)
    built(suite)
    done = bash(suite, "cranfield gate --junit gate.xml")
    assert done.returncode == 0, done.stdout
    root = ET.fromstring((suite / "gate.xml").read_bytes())
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("6", "0", "0")


def test_an_assertion_is_a_line_and_the_suite_a_few(suite: Path) -> None:
    lines = (suite / "test_search_quality.py").read_text().splitlines()
    assert sum(line.strip().startswith("assert ") for line in lines) == 6
    assert sum(bool(line.strip()) for line in lines) <= 18


ROUTED = """
testset: {testsets}
primary: RR
systems:
  routed:
    command: ["{{python}}", -I, -S, answer.py, "{{query}}"]
    extract: {{json: hits, id: id, fields: {{confidence: confidence, answered_locally: local, tokens: usage.tokens}}}}
"""
ANSWER = """
import json, sys
local = sys.argv[1] == "apple"
print(json.dumps({"hits": [{"id": "a"}], "confidence": 0.9 if local else 0.2, "local": local, "usage": {"tokens": 120}}))
"""


def test_fields_of_answers_are_kept_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "cranfield.yaml").write_text(ROUTED.format(testsets="set.yaml"))
    (tmp_path / "answer.py").write_text(ANSWER)
    (tmp_path / "set.yaml").write_text(
        "cranfield_testset: 1\nname: t\nqueries:\n"
        "  - {id: q1, text: apple, judgments: {a: 1}}\n  - {id: q2, text: pear, judgments: {b: 1}}\n"
    )
    done = bash(tmp_path, "cranfield run --format json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "cranfield-out/runs/routed.jsonl").read_text().splitlines()]
    fields = {record["query_id"]: record["fields"] for record in records if "query_id" in record}
    assert fields == {
        "q1": {"confidence": 0.9, "answered_locally": True, "tokens": 120},
        "q2": {"confidence": 0.2, "answered_locally": False, "tokens": 120},
    }
