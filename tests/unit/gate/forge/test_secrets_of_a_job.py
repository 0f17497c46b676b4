"""A job of CI whose systems echo their secret everywhere: no report, log, comment or table that it writes or prints holds it."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cranfield.cli.main import run_command_line

SECRET = "s3cr3t-0f-th3-j0b"
CONFIG = """\
testset: queries.yaml
measures: [RR]
limits: {max_failed_share: 1.0}
gate:
  system: shell
  rules: [{floor: {measure: RR, every_query: 0.9}}]
systems:
  shell:
    command: [sh, answer.sh, "{query}"]
    env: {TOKEN: "${env.JOB_SECRET}"}
    extract: {json: "hits[]", id: id, title: title, span: span, fields: {mode: mode, all: "@"}}
    order: given
  made: {python: "made:make", with: {token_env: JOB_SECRET}}
"""
SHELL = """\
echo "started with $TOKEN" >&2
[ "$1" = three ] && { echo "no access with $TOKEN" >&2; exit 1; }
[ "$1" = four ] && { echo "$TOKEN is no JSON"; exit; }
hit='{"id": "'$TOKEN'/d1", "title": "T '$TOKEN'", "span": "1-'$TOKEN'"}'
echo '{"hits": ['$hit', {"id": "d1"}], "mode": "by '$TOKEN'", "'$TOKEN'": 1}'
"""
MADE = """\
def make(environment, token_env):
    def search(query, k):
        if query == "one":
            raise RuntimeError("no access with " + environment[token_env])
        return [environment[token_env] + "/d1", "d1"]
    return search
"""
COMMANDS = {
    "run": 0,
    "gate --junit junit.xml --markdown comment.md --step-summary": 1,
    "gate --format json": 1,
    "gate --format markdown": 1,
    "history": 0,
    "history --format json --html history.html": 0,
    "system list": 0,
    "system show shell": 0,
    **{
        f"system probe {name} {query} --format {form}": None
        for name, query in (("shell", "one"), ("shell", "three"), ("shell", "four"), ("made", "one"), ("made", "two"))
        for form in ("text", "json")
    },
    "evaluate queries.yaml cranfield-out/runs/shell.jsonl --format json --html scores.html": 3,
    "compare queries.yaml cranfield-out/runs/shell.jsonl cranfield-out/runs/made.jsonl --max-failed 1.0": 0,
    "compare queries.yaml cranfield-out/runs/shell.jsonl cranfield-out/runs/made.jsonl --max-failed 1.0 --format json"
    " --html difference.html": 0,
}
WRITTEN = {
    "cranfield-out/report.html", "cranfield-out/report.md", "cranfield-out/results.json",
    "cranfield-gate/gate.html", "cranfield-gate/gate.json", "junit.xml", "comment.md", "step.md", "history.html",
    "scores.html", "difference.html",
}  # fmt: skip


def called(arguments: str) -> tuple[int, str]:
    """The exit code of a command in this process, and all that it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = run_command_line(arguments.split())
    return code, printed.getvalue()


@pytest.mark.slow
def test_nothing_that_a_job_writes_or_posts_holds_its_secret(
    github: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [f"  - {{id: q{n}, text: {n}, judgments: {{d1: 1}}}}\n" for n in ("one", "two", "three", "four")]
    (tmp_path / "queries.yaml").write_text("cranfield_testset: 1\nname: s\nqueries:\n" + "".join(queries))
    for name, text in (("cranfield.yaml", CONFIG), ("answer.sh", SHELL), ("made.py", MADE)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOB_SECRET", SECRET)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    for command, expected in COMMANDS.items():
        code, printed = called(command)
        assert SECRET not in printed, command
        assert expected is None or code == expected, f"{command}: {printed}"
    github.run("comment.md")
    assert [SECRET in body for body in github.bodies()] == [False]
    assert "JOB_SECRET" in (tmp_path / "cranfield-out/report.md").read_text()
    private = ("runs", ".cranfield")  # what re-scoring needs, readable by its owner alone
    files = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
    assert files.keys() >= WRITTEN
    holding = [name for name, path in files.items() if SECRET.encode() in path.read_bytes()]
    assert [name for name in holding if not any(part in private for part in Path(name).parts)] == []
    assert holding, "the systems do not echo their secret"
    assert {oct(files[name].stat().st_mode & 0o777) for name in holding} == {"0o600"}
