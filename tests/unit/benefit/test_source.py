"""The repository of an experiment: uncommitted changes are refused or stand first, and what changes meanwhile is noticed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.recording import TREE
from cranfield.base.errors import ConfigError, UsageError
from cranfield.benefit.experiment import RunOptions, create_experiment, execute, preflights_of, write_experiment
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
from cranfield.benefit.plan import BenefitPlan
from cranfield.benefit.plan_check import check_plan
from cranfield.benefit.reports.benefit import benefit_document
from cranfield.benefit.result import BenefitResult, ValidityKind
from cranfield.benefit.source import TreeCheck, record_tree
from cranfield.benefit.use_cases import (
    BenefitRules,
    RuleState,
    judge_result,
    publish,
    read_results,
    result_of,
    unchanged_since,
)
from cranfield.cli.main import run_command_line
from cranfield.reporting.renderers.text import render_brief, render_text

from .scripted_cells import plan_of, write_tasks
from .test_result import experiment, result

COMMENTS = "# one\n# two\n# three\n"


def git(root: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=n", "-c", "user.email=n@e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", root, *settings, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A repository with two files and a rule that ignores logs."""
    root = tmp_path / "code"
    root.mkdir()
    for name, text in (("a.py", "x = 1\n"), ("b.py", "y = 1\n"), (".gitignore", "*.log\n")):
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    return root


def plan(**changes: Any) -> BenefitPlan:
    return BenefitPlan.model_validate(plan_of(repo="code", **changes))


def begun(folder: Path, **options: Any) -> Path:
    write_tasks(folder)
    return create_experiment(plan(), folder, folder / "experiments", **options)


def edit(path: Path) -> None:
    path.write_text(COMMENTS + path.read_text())


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens while cells are run, in their place."""
    steps: list[Callable[[], None]] = []

    async def run(*_: Any) -> None:
        for step in steps:
            step()

    monkeypatch.setattr("cranfield.benefit.experiment._execute", run)
    return steps


def test_a_plan_on_uncommitted_changes_is_refused(tmp_path: Path, code: Path) -> None:
    edit(code / "a.py")
    write_tasks(tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_plan(plan(), tmp_path)
    (problem,) = caught.value.problems
    assert problem.message.startswith("Uncommitted changes: 1 file differs from commit ")
    assert problem.message.endswith(": modified a.py")
    assert "make git ignore" in problem.hint
    assert "git stash" not in problem.hint
    assert "at=" not in problem.hint
    assert not (tmp_path / "experiments").exists()
    checked = check_plan(plan(), tmp_path, allow_dirty=True)
    assert checked.tree.uncommitted == problem.message


def test_an_experiment_records_the_folder_of_its_repository(tmp_path: Path, code: Path) -> None:
    edit(code / "a.py")
    (code / "run.log").write_text("line\n")
    tree = ExperimentFolder.open(begun(tmp_path, allow_dirty=True)).manifest.tree
    assert (tree.n_uncommitted, tree.files) == (1, ("modified a.py",))
    assert tree.notes == ("The folder also has 1 ignored file (0.0 MiB), not in any commit: run.log.",)
    other = ExperimentFolder.open(begun(tmp_path, allow_dirty=True)).manifest.tree
    assert other == tree
    edit(code / "a.py")
    changed = ExperimentFolder.open(begun(tmp_path, allow_dirty=True)).manifest.tree
    assert changed.digest != tree.digest


def test_an_experiment_in_its_repository_does_not_make_that_another(
    tmp_path: Path, code: Path, cells: list[Callable[[], None]]
) -> None:
    del cells
    write_tasks(tmp_path)
    path = create_experiment(plan(), tmp_path, code / "benefit-runs")
    (note,) = (each for each in ExperimentFolder.open(path).manifest.notes if "benefit-runs" in each)
    assert (
        note
        == "The repository contains benefit-runs: a tool that reads its folder can find the expected answers there."
    )
    execute(path)
    create_experiment(plan(), tmp_path, code / "benefit-runs")
    execute(path)
    assert ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck) == []


@pytest.mark.parametrize("start", [execute, preflights_of])
def test_a_resume_on_another_folder_is_refused_by_file(
    tmp_path: Path, code: Path, start: Callable[[Path], object]
) -> None:
    path = begun(tmp_path)
    edit(code / "a.py")
    (code / "new.py").write_text("")
    with pytest.raises(UsageError) as caught:
        start(path)
    assert "has changed since the run began (2): modified a.py, untracked new.py" in str(caught.value)
    with pytest.raises(UsageError):
        execute(path, RunOptions(allow_dirty=True))


def test_changes_that_were_committed_meanwhile_are_refused_too(tmp_path: Path, code: Path) -> None:
    path = begun(tmp_path)
    edit(code / "a.py")
    git(code, "commit", "--quiet", "--all", "--message", "two")
    with pytest.raises(UsageError, match=r"has changed since the run began \(1\): modified a\.py"):
        execute(path)


def test_ignored_files_that_changed_are_refused_or_recorded(
    tmp_path: Path, code: Path, cells: list[Callable[[], None]]
) -> None:
    path = begun(tmp_path)
    (code / "run.log").write_text("line\n")
    with pytest.raises(UsageError, match=r"ignored: run\.log \(new\)") as caught:
        execute(path)
    assert "{allow_dirty}" in caught.value.problems[0].hint
    execute(path, RunOptions(allow_dirty=True))
    found = ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck)
    assert [(each.when, each.n_source, each.n_ignored, each.allowed) for each in found] == [
        ("resume", 0, 1, True),
        ("end", 0, 1, True),
    ]
    del cells


def test_changes_while_cells_are_run_are_recorded(tmp_path: Path, code: Path, cells: list[Callable[[], None]]) -> None:
    path = begun(tmp_path)
    cells.append(lambda: edit(code / "a.py"))
    execute(path)
    (found,) = ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck)
    assert (found.when, found.n_source, found.files, found.allowed) == ("end", 1, ("modified a.py",), False)


def test_a_repository_that_is_gone_is_recorded(tmp_path: Path, code: Path) -> None:
    path = begun(tmp_path)
    code.rename(tmp_path / "moved")
    for _ in range(2):
        with ExperimentFolder.writing(path) as folder:
            record_tree(folder, "score")
    (found,) = ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck)
    assert "no such folder" in found.problem


def test_a_state_of_the_folder_that_was_recorded_is_not_recorded_again(
    tmp_path: Path, code: Path, cells: list[Callable[[], None]]
) -> None:
    del cells
    path = begun(tmp_path)

    def scored() -> list[tuple[str, ...]]:
        with ExperimentFolder.writing(path) as folder:
            record_tree(folder, "score")
        return [each.files for each in ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck)]

    assert scored() == []
    edit(code / "a.py")
    first = [("modified a.py",)]
    assert scored() == scored() == first
    edit(code / "b.py")
    both = [*first, ("modified a.py", "modified b.py")]
    assert scored() == scored() == both
    git(code, "checkout", "--quiet", "b.py")
    assert scored() == both
    git(code, "checkout", "--quiet", "a.py")
    (code / "run.log").write_text("line\n")
    for _ in range(2):
        execute(path, RunOptions(allow_dirty=True))
    found = ExperimentFolder.open(path).read(ExperimentFile.TREES, TreeCheck)[2:]
    assert [each.when for each in found] == ["resume", "end"]


def test_a_damaged_state_is_no_traceback(tmp_path: Path, code: Path) -> None:
    del code
    path = begun(tmp_path)
    (path / TREE).write_text("{}")
    with pytest.raises(Exception, match="not the state of a repository"):
        execute(path)


# What the result says

SENTENCE = "Uncommitted changes: 1 file differs from commit 1f2e3d4c5b6a: modified a.py"


def result_with(folder: Path, tree: dict[str, Any] | None = None, *checks: dict[str, Any]) -> BenefitResult:
    """Of an experiment whose repository was such."""
    path = experiment(folder)
    result(path)
    manifest = json.loads((path / "run.json").read_text())
    if tree is not None:
        known = {"tree": {"digest": "sha256:0"} | tree, "commit": "1f2e3d4c5b6a7"}
        (path / "run.json").write_text(json.dumps(manifest | known))
    lines = [TreeCheck(at="2026-11-20T10:00:00Z", **each).model_dump_json() + "\n" for each in checks]
    (path / ExperimentFile.TREES).write_text("".join(lines))
    return result_of(path)


def test_a_result_of_uncommitted_changes_says_so_first(tmp_path: Path) -> None:
    found = result_with(tmp_path, {"uncommitted": SENTENCE, "n_uncommitted": 1, "files": ["modified a.py"]})
    assert found.validity[0].kind is ValidityKind.UNCOMMITTED
    caution = f"Caution: {SENTENCE}; agents read the commit, but a tool that reads the folder finds those files. "
    assert found.sentence.startswith(f"{caution}acme ")
    assert list(found.model_dump())[1] == "tree"
    document = benefit_document(found)
    assert document.verdict is not None
    assert document.verdict.sentence.startswith(caution)
    assert "commit 1f2e3d4c5b6a*" in document.subtitle
    for text in (render_text(document), render_brief(document)):
        shown = " ".join(text.split())
        assert shown.index("Uncommitted changes: 1 file differs from commit") < shown.index("strata")
    rules = BenefitRules(commit="1f2e3d4c5b6a7")
    (outcome,) = judge_result(found, rules, datetime.now(UTC)).outcomes
    assert (outcome.state, outcome.sentence) == (RuleState.INVALID, SENTENCE)
    assert judge_result(found, BenefitRules(forbid=()), datetime.now(UTC)).state is RuleState.INCONCLUSIVE
    publish(found, tmp_path / "out")
    assert read_results(tmp_path / "out").results[0].uncommitted


def test_a_result_of_a_folder_that_changed_is_void_or_says_so(tmp_path: Path) -> None:
    check = {"when": "end", "n_source": 1, "files": ("modified a.py",)}
    cases = [
        (check, True),
        (check | {"allowed": True}, False),
        (check | {"when": "score"}, False),
        ({"when": "end", "n_ignored": 1, "files": ("ignored: run.log (new)",)}, False),
        ({"when": "score", "problem": "no such folder"}, False),
    ]
    for number, (each, is_void) in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        found = result_with(tmp_path / str(number), None, each)
        (changed,) = (one for one in found.validity if one.kind is ValidityKind.TREE_CHANGED)
        assert (changed.is_void, found.is_void) == (is_void, is_void)
        assert "the folder of the repository changed" in changed.message


def test_what_else_the_folder_has_is_a_caveat(tmp_path: Path) -> None:
    note = "The folder also has 2 ignored files (0.0 MiB), not in any commit: out/."
    (found,) = result_with(tmp_path, {"notes": [note]}).validity
    assert (found.kind, found.is_void, found.message) == (ValidityKind.FOLDER_HAS_MORE, False, note[:-1])


def test_another_folder_is_measured_again(tmp_path: Path, code: Path) -> None:
    edit(code / "a.py")
    path = begun(tmp_path, allow_dirty=True)
    manifest = ExperimentFolder.open(path).manifest
    found = result_with(tmp_path, {"uncommitted": SENTENCE})
    same = {"plan_digest": manifest.plan_digest, "labels_digest": manifest.labels_digest, "commit": manifest.commit}
    publish(found.model_copy(update={"name": manifest.name, **same}), tmp_path / "out")
    assert unchanged_since(path, tmp_path / "out") is None


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_commands_refuse_uncommitted_changes(
    tmp_path: Path, code: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tasks(tmp_path)
    (tmp_path / "plan.json").write_text(plan().model_dump_json(exclude_defaults=True))
    edit(code / "a.py")
    assert run_command_line(["benefit", command, str(tmp_path / "plan.json")]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "Uncommitted changes: 1 file differs from commit" in error
    assert "--allow-dirty continues, and the result lists them first" in error
    run_command_line(["benefit", command, str(tmp_path / "plan.json"), "--allow-dirty"])
    assert "Uncommitted changes" not in capsys.readouterr().err


# What is none of the source


def planned(folder: Path, **options: Any) -> Path:
    """An experiment of a plan whose file and tasks lie in the repository."""
    write_tasks(folder / "code")
    path = folder / "code" / "plan.yaml"
    path.write_text("")
    of = BenefitPlan.model_validate(plan_of(repo="."))
    checked = check_plan(of, path.parent, without=(path, path.parent / "benefit-runs"), **options)
    return write_experiment(checked, path.parent, folder / "code" / "somewhere")


@pytest.mark.parametrize("rules", ["", "benefit-results/\nsomewhere/\n"])
def test_plan_tasks_results_and_other_experiments_are_no_changes(
    tmp_path: Path, code: Path, rules: str, cells: list[Callable[[], None]]
) -> None:
    del cells
    (code / ".git" / "info" / "exclude").write_text(rules)
    first = planned(tmp_path)
    execute(first)
    (tmp_path / "elsewhere").mkdir()
    publish(result_with(tmp_path / "elsewhere"), code / "benefit-results")
    execute(first)
    second = planned(tmp_path)
    trees = [ExperimentFolder.open(path).manifest.tree for path in (first, second)]
    assert trees[0] is not None
    assert trees[1] is not None
    assert trees[0].digest == trees[1].digest
    assert ExperimentFolder.open(first).read(ExperimentFile.TREES, TreeCheck) == []
    (code / "new.py").write_text("")
    with pytest.raises(ConfigError, match=r"1 file differs from commit \w+: untracked new\.py"):
        planned(tmp_path)


def test_the_tasks_in_a_repository_are_answers_that_a_tool_can_find(tmp_path: Path, code: Path) -> None:
    del code
    notes = " ".join(ExperimentFolder.open(planned(tmp_path)).manifest.notes)
    assert "The repository contains benefit-runs, " in notes
    assert "plan.yaml" not in notes
