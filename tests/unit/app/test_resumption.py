"""No call is made twice: answers are kept until the report stands, whatever ends the run before."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield.app.grid import run_components, run_grid
from cranfield.app.run import run_job
from cranfield.base.errors import UsageError
from cranfield.formats.runs.jsonl import read_run
from cranfield.systems.collect import collection

SEARCH = 'echo "$1" >> calls.txt; echo "d-$1"\n'
SYSTEMS = """
measures: [P@1]
limits: {max_failed_share: null}
systems:
  old: {command: [sh, search.sh, "{query}"], extract: {regex: 'd-\\S+'}}
  new: {command: [sh, search.sh, "{query}"], extract: {regex: 'd-\\S+'}, components: [a, b]}
grid: {system: new, over: {timeout_s: [5, 6]}}
"""
QUERIES = [f"q{n}" for n in range(3)]
REPORT = "report.html"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config with two systems that note their calls; a test set, and another one."""
    for name in ("one", "two"):
        lines = [f"  - {{id: {q}, text: {q}{name}, judgments: {{d-{q}{name}: 1}}}}" for q in QUERIES]
        (tmp_path / f"{name}.yaml").write_text(f"cranfield_testset: 1\nname: {name}\nqueries:\n" + "\n".join(lines))
    (tmp_path / "search.sh").write_text(SEARCH)
    (tmp_path / "cranfield.yaml").write_text("testset: one.yaml" + SYSTEMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def n_calls(project: Path) -> int:
    calls = project / "calls.txt"
    return len(calls.read_text().splitlines()) if calls.exists() else 0


COMMANDS: dict[str, tuple[Callable[[Path], object], str, int]] = {
    "run": (lambda path: run_job(path / "cranfield.yaml", out=path / "out"), "testset: one.yaml", 6),
    "several": (
        lambda path: run_job(path / "cranfield.yaml", out=path / "out"),
        "testsets: {one: {path: one.yaml}, two: {path: two.yaml}}",
        12,
    ),
    "grid": (lambda path: run_grid(path / "cranfield.yaml", out=path / "out"), "testset: one.yaml", 9),
    "components": (
        lambda path: run_components("new", path / "cranfield.yaml", out=path / "out"),
        "testset: one.yaml",
        9,
    ),
}


@pytest.mark.parametrize("name", ["run", "several", "grid", pytest.param("components", marks=pytest.mark.slow)])
def test_a_report_that_cannot_be_written_costs_no_call(project: Path, name: str) -> None:
    command, testsets, n = COMMANDS[name]
    (project / "cranfield.yaml").write_text(testsets + SYSTEMS)
    (project / "out" / REPORT).mkdir(parents=True)
    with pytest.raises(UsageError, match="the report cannot be written"):
        command(project)
    assert n_calls(project) == n
    (project / "out" / REPORT).rmdir()
    command(project)
    assert n_calls(project) == n
    assert not list((project / "out").rglob(".partial"))
    command(project)
    assert n_calls(project) == 2 * n, "the report stands: a later call collects afresh"


def test_the_answers_of_a_run_without_a_report_are_named_with_their_age(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "out" / REPORT).mkdir(parents=True)
    started = time.monotonic()
    with pytest.raises(UsageError):
        run_job(project / "cranfield.yaml", out=project / "out")
    (project / "out" / REPORT).rmdir()
    run_job(project / "cranfield.yaml", out=project / "out")
    assert "old: resuming after 3 of 3 answers" in capsys.readouterr().err
    oldest_s = round(time.monotonic() - started)
    ages = [log.age_s for log in read_run(project / "out" / "runs" / "old.jsonl").logs.values()]
    assert len(ages) == 3
    assert all(age_s is not None and 0 <= age_s <= oldest_s for age_s in ages)


CHANGES: dict[str, tuple[str, str, str]] = {
    "k": ("k: 3\ntestset: one.yaml", "one.yaml", "k changed"),
    "testset": ("testset: two.yaml", "two.yaml", "the test set changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_between_collection_and_report_starts_over_and_is_named(
    project: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "out" / REPORT).mkdir(parents=True)
    with pytest.raises(UsageError):
        run_job(project / "cranfield.yaml", out=project / "out")
    (project / "out" / REPORT).rmdir()
    testset, _, reason = CHANGES[change]
    (project / "cranfield.yaml").write_text(testset + SYSTEMS)
    run_job(project / "cranfield.yaml", out=project / "out")
    assert n_calls(project) == 12
    assert (
        f"old: starting over, because {reason}; the earlier answers are in .partial/set-aside/old-1.jsonl"
        in " ".join(capsys.readouterr().err.split())
    )


def test_new_answers_that_are_requested_are_not_those_of_a_run_without_a_report(project: Path) -> None:
    (project / "out" / REPORT).mkdir(parents=True)
    for cache, n in (("use", 6), ("refresh", 12), ("refresh", 12)):
        with pytest.raises(UsageError):
            run_job(project / "cranfield.yaml", out=project / "out", cache=cache)  # type: ignore[arg-type]  # a literal
        assert n_calls(project) == n


def test_a_group_of_systems_keeps_its_answers_until_the_last_group_is_done(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "AT_A_TIME", 1)
    text = (project / "cranfield.yaml").read_text()
    ends = text.replace("new: {command: [sh, search.sh,", "new: {command: [sh, -c, 'kill -INT $PPID; sleep 60',")
    (project / "cranfield.yaml").write_text(ends)
    with pytest.raises(collection.Interrupted, match=r"\d+ of 6 answers are kept"):
        run_job(project / "cranfield.yaml", out=project / "out")
    (project / "cranfield.yaml").write_text(text)
    run_job(project / "cranfield.yaml", out=project / "out")
    assert n_calls(project) == 6


def test_two_runs_do_not_share_an_output_folder_until_the_report_stands(project: Path) -> None:
    with (
        collection.collected(
            *experiment_of(project),
            out_dir=project / "out",
        ),
        pytest.raises(UsageError, match="another collection is writing here"),
    ):
        run_job(project / "cranfield.yaml", out=project / "out")


def experiment_of(project: Path):
    from cranfield.app.experiment import prepare
    from cranfield.config import load_config

    experiment = prepare(load_config(project / "cranfield.yaml"), "", ["old"])
    return experiment.testset, experiment.systems


# Killed at file operations -----------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from cranfield.app.run import run_job

here, at = Path(sys.argv[1]), int(sys.argv[2])
seen = 0

def count(event, arguments):
    global seen
    if event in {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"} and sys._getframe(1).f_globals.get(
        "__name__", ""
    ).startswith("cranfield.") and "import" not in event:
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
run_job(here / "cranfield.yaml", out=here / "out")
print(seen)
"""


def start(project: Path, at: int) -> subprocess.CompletedProcess[str]:
    (project / "killed.py").write_text(KILLED)
    command = [sys.executable, "killed.py", str(project), str(at)]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("testsets", ["testset: one.yaml", "testsets: {one: {path: one.yaml}, two: {path: two.yaml}}"])
def test_killed_at_any_file_operation_a_run_asks_each_query_once(project: Path, testsets: str) -> None:
    (project / "cranfield.yaml").write_text(testsets + SYSTEMS)
    n = 6 if testsets.startswith("testset:") else 12
    whole = start(project, 0)
    assert whole.returncode == 0, whole.stderr
    points = int(whole.stdout)
    assert points > 30, "journals, runs and reports"
    for at in range(1, points + 1, points // 3):
        before = n_calls(project)
        summary = project / "out" / "report.md"  # written last
        summary.unlink()
        killed = start(project, at)
        if killed.returncode == 0:  # a later run has fewer operations: its values are in the history already
            assert at > points / 2
            break
        assert killed.returncode == -signal.SIGKILL
        is_standing = summary.exists()
        done = start(project, 0)
        assert done.returncode == 0, done.stderr
        calls = n_calls(project) - before
        n_under_way = 1
        assert n <= calls <= n + n_under_way or (is_standing and calls <= 2 * n), (at, calls)
        for folder in [project / "out"] if n == 6 else [project / "out" / "one", project / "out" / "two"]:
            assert (folder / "results.json").exists()
            assert not (folder / ".partial").exists()
            assert len(read_run(folder / "runs" / "old.jsonl").answers) == 3
