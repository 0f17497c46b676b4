"""Golden commands on a repository with uncommitted changes: refused, or said first; and a run that goes on finds the same folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.budget import Spent
from cranfield.agents.recording import TREE, TreeRecord
from cranfield.base.errors import InputError, UsageError
from cranfield.books.options import open_books
from cranfield.cli.main import run_command_line
from cranfield.formats.testsets.golden_json import read_golden_json
from cranfield.golden.commands import RunSource
from cranfield.golden.index import RunFolder
from cranfield.golden.plan import Plan, shipped_text
from cranfield.golden.run import PipelineOptions, PipelineOutcome, PipelineResult, create_run, execute
from cranfield.golden.use_cases.assemble import SetEvidence, assemble
from cranfield.repo.tree import source_snapshot

SET = """\
cranfield_testset: 1
name: shop
queries:
  - {id: q1, text: where is the sum, strata: {task_type: locate, difficulty: easy}, entities: ["a.py::total"]}
"""


def git(root: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=n", "-c", "user.email=n@e", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", root, *settings, *arguments], check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one file, beside a set of one query; the working folder is that of the set."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "a.py").write_text("def total(items):\n    return sum(items)\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    (tmp_path / "set.yaml").write_text(SET)
    monkeypatch.chdir(tmp_path)
    return root


def edit(root: Path) -> None:
    path = root / "a.py"
    path.write_text("# one\n# two\n# three\n" + path.read_text())


COMMANDS: dict[str, tuple[str, ...]] = {
    "plan": ("golden", "plan", "phase1"),
    "run": ("golden", "run", "phase1"),
    "dry run": ("golden", "run", "phase1", "--dry-run"),
    "gate": ("golden", "gate", "set.yaml"),
    "enter": ("golden", "enter", "set.yaml", "--step", "people"),
    "check": ("golden", "check", "set.yaml", "--model", "openai:none", "--replay", "none.jsonl"),
    "verify": ("testset", "verify", "set.yaml"),
    "rehash": ("testset", "rehash", "set.yaml"),
    "answers": ("answers", "score", "set.yaml", "answers.jsonl"),
    "evaluate": ("evaluate", "set.yaml", "run.trec"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_that_reads_a_repository_refuses_uncommitted_changes(
    shop: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(shop)
    before = sorted(path.name for path in shop.parent.iterdir())
    assert run_command_line([*command, "--repo", "shop"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "Uncommitted changes: 1 file differs from commit" in error
    assert "modified a.py" in error
    assert "commit them, or make git ignore files that do not belong to the source" in error
    assert "--allow-dirty continues" in error
    assert sorted(path.name for path in shop.parent.iterdir()) == before


@pytest.mark.parametrize("command", ["gate", "verify"])
def test_a_commit_that_is_named_is_read_alone(shop: Path, command: str) -> None:
    edit(shop)
    assert run_command_line([*COMMANDS[command], "--repo", "shop", "--at", "HEAD"]) == 0


@pytest.mark.parametrize("output", ["text", "json", "brief", "markdown"])
@pytest.mark.parametrize("command", ["gate", "verify", "answers"])
def test_the_result_says_it_first(shop: Path, command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop)
    (shop.parent / "answers.jsonl").write_text(
        '{"query_id": "q1", "text": "a.py::total", "entities": ["a.py::total"]}\n'
    )
    code = run_command_line([*COMMANDS[command], "--repo", "shop", "--allow-dirty", "--format", output])
    assert code in {0, 1}
    shown = capsys.readouterr().out
    if output == "json":
        record = json.loads(shown)
        first = list(record)[1]
        assert first == ("testset" if command == "answers" else "uncommitted")
        assert "modified a.py" in str(record[first])
        return
    lines = [line for line in shown.splitlines() if line.strip() and not set(line) <= {"=", "-"}]
    assert "Uncommitted changes: 1 file differs from commit" in "".join(lines[:3])


def test_a_rehashed_set_says_it_first_and_names_no_commit(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop)
    assert run_command_line([*COMMANDS["rehash"], "--repo", "shop", "--allow-dirty"]) == 0
    assert "note: No commit is named. Uncommitted changes: 1 file" in " ".join(capsys.readouterr().err.split())
    text = (shop.parent / "set.yaml").read_text()
    meta = text[text.index("meta:") :]
    assert meta.index("uncommitted: ") < meta.index("source_files")
    assert "commit: " not in meta.replace("uncommitted: ", "")
    (shop.parent / "run.trec").write_text("q1 Q0 a.py::total 1 1.0 r\n")
    assert run_command_line(["evaluate", "set.yaml", "run.trec"]) == 0
    assert "When the set was made: Uncommitted changes" in " ".join(capsys.readouterr().out.split())
    git(shop, "commit", "--quiet", "--all", "--message", "two")
    assert run_command_line([*COMMANDS["rehash"], "--repo", "shop"]) == 0
    assert "uncommitted" not in (shop.parent / "set.yaml").read_text()


def test_the_set_itself_may_be_changed_in_its_repository(shop: Path) -> None:
    path = shop / "set.yaml"
    shutil.copy(shop.parent / "set.yaml", path)
    git(shop, "add", "set.yaml")
    git(shop, "commit", "--quiet", "--message", "set")
    assert run_command_line(["testset", "rehash", str(path), "--repo", "shop"]) == 0
    assert run_command_line(["testset", "verify", str(path), "--repo", "shop"]) == 0
    assert run_command_line(["golden", "gate", str(path), "--repo", "shop"]) == 0


def test_an_evaluation_has_the_changes_as_its_first_caveat(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop)
    (shop.parent / "run.trec").write_text("q1 Q0 a.py::total 1 1.0 r\n")
    assert run_command_line([*COMMANDS["evaluate"], "--repo", "shop", "--allow-dirty", "--format", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["evidence"]
    assert findings[0]["check"] == "uncommitted-changes"


# Runs


@pytest.fixture
def repo(models: Any, tmp_path: Path) -> Path:
    return models.make_repository(tmp_path / "source")


def begin(models: Any, repo: Path, runs: Path, **options: Any) -> Path:
    text = json.dumps(models.plan_of())
    snapshot = source_snapshot(repo, without=(runs,), **options)
    return create_run(Plan.model_validate_json(text), text, snapshot, runs)


def test_a_run_records_the_folder_of_its_repository(models: Any, repo: Path) -> None:
    path = begin(models, repo, repo / "golden-runs")
    manifest = RunFolder.open(path).manifest
    assert manifest.tree.digest
    assert (manifest.tree.n_uncommitted, (path / TREE).is_file()) == (0, True)
    named = begin(models, repo, repo / "golden-runs", at="HEAD")
    assert (RunFolder.open(named).manifest.tree, (named / TREE).exists()) == (TreeRecord(), False)


def test_a_run_goes_on_only_where_the_folder_is_as_it_was(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = begin(models, repo, tmp_path / "runs")
    (repo / "new.py").write_text("x = 1\n")
    snapshot = source_snapshot(repo, RunFolder.open(path).manifest.commit, allow_dirty=True, reads_folder=True)
    with pytest.raises(UsageError, match=r"has changed since the run began \(1\): untracked new\.py"):
        execute(path, snapshot, PipelineOptions())
    assert run_command_line(["golden", "run", "--resume", str(path), "--repo", str(repo)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "untracked new.py" in error
    assert "--at " in error


def test_a_folder_that_changes_during_a_run_is_noticed(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begin(models, repo, tmp_path / "runs")

    def run(*_: object) -> PipelineOutcome:
        (repo / "new.py").write_text("x = 1\n")
        return PipelineOutcome(PipelineResult((), ()), Spent(), "USD", 0)

    monkeypatch.setattr("cranfield.golden.run.execute", run)
    assert run_command_line(["golden", "run", "--resume", str(path), "--repo", str(repo)]) == 2
    assert "changed during the run: untracked new.py" in " ".join(capsys.readouterr().err.split())


def test_a_state_that_is_missing_or_another_one_is_refused(models: Any, repo: Path, tmp_path: Path) -> None:
    path, snapshot = begin(models, repo, tmp_path / "runs"), source_snapshot(repo)
    whole = (path / TREE).read_text()
    (path / TREE).write_text(whole.replace('"changes": {}', '"changes": {"a": {"kind": "modified", "digest": ""}}'))
    with pytest.raises(InputError, match="not the initial state of the run"):
        execute(path, snapshot, PipelineOptions())
    (path / TREE).unlink()
    with pytest.raises(InputError, match=r"tree\.json"):
        execute(path, snapshot, PipelineOptions())


def test_an_assembled_set_says_it_first(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop)
    assert run_command_line([*COMMANDS["enter"], "--repo", "shop", "--allow-dirty", "--out", "runs"]) == 0
    (run,) = Path("runs").iterdir()
    done = assemble(run, shop, Path("golden"), SetEvidence(), draft=True)
    facts = json.loads(done.written[1].read_text())
    assert next(iter(facts)) == "uncommitted_changes"
    said = facts["uncommitted_changes"]
    assert said.startswith("When the records were made: Uncommitted changes: 1 file")
    assert said.count("Uncommitted changes") == 1
    assert read_golden_json(done.written[0]).meta.uncommitted == said
    git(shop, "checkout", "--quiet", ".")
    shutil.rmtree("golden")
    capsys.readouterr()
    assert run_command_line(["golden", "assemble", str(run), "--repo", "shop", "--draft"]) == 1
    assert "When the records were made: Uncommitted changes" in "".join(capsys.readouterr().out.splitlines()[:6])


def test_a_version_keeps_what_is_said_of_the_version_before(shop: Path) -> None:
    edit(shop)
    assert run_command_line([*COMMANDS["enter"], "--repo", "shop", "--allow-dirty", "--out", "first"]) == 0
    (run,) = Path("first").iterdir()
    first = assemble(run, shop, Path("golden"), SetEvidence(), draft=True)
    Path("golden", "golden_v1.0.json").write_text(first.written[0].read_text())
    Path("golden", "golden_v1.0.meta.json").write_text(first.written[1].read_text())
    git(shop, "checkout", "--quiet", ".")
    Path("set.yaml").write_text(SET.replace("q1", "q2").replace("where is the sum", "how is a total made"))
    assert run_command_line([*COMMANDS["enter"], "--repo", "shop", "--out", "second"]) == 0
    (run,) = Path("second").iterdir()
    said = first.testset.meta.uncommitted
    assert said.startswith("When the records were made: Uncommitted changes")
    assert assemble(run, shop, Path("golden"), SetEvidence(), draft=True).testset.meta.uncommitted == said


def test_a_set_is_assembled_from_the_commit_of_its_run_alone(shop: Path) -> None:
    assert run_command_line([*COMMANDS["enter"], "--repo", "shop", "--out", "runs"]) == 0
    (run,) = Path("runs").iterdir()
    (shop / "baseline.json").write_text("{}")
    git(shop, "add", "--all")
    git(shop, "commit", "--quiet", "--message", "baseline")
    edit(shop)
    assert assemble(run, shop, Path("golden"), SetEvidence(), draft=True).testset.meta.uncommitted == ""


# What is none of the source


@pytest.fixture
def within(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is the repository, and has what earlier calls wrote and what a call is given."""
    monkeypatch.chdir(shop)
    for name in ("set.yaml", "set.yaml.meta.json"):
        Path(name).write_text(SET if name == "set.yaml" else "{}")
    Path("myplan.yaml").write_text(shipped_text("phase1"))
    Path("feedback.jsonl").write_text("")
    open_books("reviews.db", create=True).close()
    Path("old-runs", "one").mkdir(parents=True)
    Path("old-runs", "one", "run.json").write_text('{"cranfield_version": "1"}')
    return shop


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "myplan.yaml"),
        ("run", "myplan.yaml", "--dry-run", "--feedback", "feedback.jsonl"),
        ("enter", "set.yaml", "--step", "people", "--plan", "myplan.yaml"),
    ],
    ids=lambda command: command[0],
)
def test_files_that_a_call_names_and_those_of_cranfield_are_no_changes(
    within: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {name for name in ("set.yaml", "myplan.yaml", "feedback.jsonl") if name not in command}
    for name in given:
        (within / name).unlink()
    (within / "set.yaml.meta.json").unlink()
    run_command_line(["golden", *command])
    assert "Uncommitted changes" not in capsys.readouterr().err
    (within / "new.py").write_text("")
    run_command_line(["golden", *command])
    assert "Uncommitted changes: 1 file differs from commit" in " ".join(capsys.readouterr().err.split())


def test_a_run_goes_on_where_only_ignored_files_differ_or_what_the_first_call_named(
    models: Any, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".git" / "info" / "exclude").write_text("*.log\n")
    text = json.dumps(models.plan_of())
    (repo / "plan.json").write_text(text)
    snapshot = source_snapshot(repo, without=(repo / "plan.json",))
    path = create_run(Plan.model_validate_json(text), text, snapshot, repo / "runs")
    (repo / "index.log").write_text("line")
    calls = []
    monkeypatch.setattr("cranfield.golden.run.run_plan", lambda *_, **__: calls.append(1))
    source = RunSource(repo, None, repo / "runs", path, (), allow_dirty=False)
    execute(path, source.open_run(None)[1])
    assert calls


def test_a_change_during_a_dry_run_over_the_budget_is_still_said_with_what_is_next(
    models: Any, repo: Path, tmp_path: Path
) -> None:
    path = begin(models, repo, tmp_path / "runs")
    source = RunSource(repo, None, tmp_path / "runs", path, (), allow_dirty=False)
    snapshot = source.open_run(None)[1]
    (repo / "new.py").write_text("x = 1\n")
    with pytest.raises(UsageError) as caught:
        source.refuse_changed(path, snapshot)
    hint = f"`cranfield golden run --resume {path} --repo {repo} --at {snapshot.commit[:12]}` continues"
    assert caught.value.problems[0].hint.startswith(hint)
