"""Plans of experiments: their problems, their tasks, the order of their cells, and what they can show."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.benefit.scripted_cells import LIMIT, experiment, plan_of, write_tasks

from cranfield.base.errors import ConfigError, UsageError
from cranfield.benefit.experiment import create_experiment, execute, replace_plan
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.plan_check import check_plan, detectable_lifts, machine_problems
from cranfield.benefit.runner import order_digest, schedule
from cranfield.benefit.tasks import Task, load_tasks
from cranfield.model.judging import Lines
from cranfield.stats.power import minimal_detectable_effect

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs"]), min_size=1, max_size=8)
MODEL = {"model": "test:one", "temperature": 0, "base_url": "http://127.0.0.1:1/v1"}


def plan(**changes: Any) -> BenefitPlan:
    return BenefitPlan.model_validate(plan_of(**changes))


@given(st.sets(names, min_size=1, max_size=12), st.integers(1, 4), st.integers(0, 9))
def test_the_order_has_every_cell_once_in_balanced_blocks(ids: set[str], seeds: int, seed: int) -> None:
    tasks = [Task(task_id, "do") for task_id in ids]
    drawn = plan(seeds=seeds, seed=seed)
    cells = schedule(drawn, tasks)
    assert len(set(cells)) == len(cells) == 2 * seeds * len(ids)
    blocks = list(zip(cells[::2], cells[1::2], strict=True))
    assert all((a.task_id, a.seed) == (b.task_id, b.seed) and a.arm is not b.arm for a, b in blocks)
    n_first = sum(first.arm is ArmRole.TREATMENT for first, _ in blocks)
    assert n_first == len(blocks) // 2
    assert schedule(drawn, tasks[::-1]) == cells


def test_another_seed_is_another_order() -> None:
    tasks = [Task(f"t{i}", "do") for i in range(20)]
    digests = {order_digest(schedule(plan(seed=seed), tasks)) for seed in range(5)}
    assert len(digests) == 5


Repo = Callable[[], tuple[Path, str]]


@pytest.fixture
def repo(tmp_path: Path) -> tuple[Path, str]:
    """A repository with one commit, and a golden set that is true of it."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        done = subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD")
    write_golden(tmp_path, commit)
    return folder, commit


def write_golden(folder: Path, commit: str, **first: Any) -> None:
    """A golden set of three records: the last has no facts."""
    records = [
        {
            "query_id": f"q{i}",
            "query_text": f"Where is {name}?",
            "task_type": "locate",
            "difficulty": difficulty,
            "expected_entities": [{"entity_id": f"a.py::{name}", "role": "primary"}],
            "expected_files": ["a.py"],
            "expected_line_ranges": [{"file": "a.py", "start": start, "end": start + 1}],
            "must_mention_facts": [f"`{name}` returns a number."] if name != "three" else [],
            "must_not_mention_facts": [],
            "baseline_answerable": i == 1,
        }
        for i, (name, difficulty, start) in enumerate([("one", "easy", 1), ("two", "hard", 5), ("three", "easy", 1)], 1)
    ]
    records[0] |= first
    (folder / "golden.json").write_text(json.dumps(records))
    (folder / "golden.meta.json").write_text(json.dumps({"source_sha": commit}))


def golden_plan(**changes: Any) -> BenefitPlan:
    about: dict[str, Any] = {
        "tasks": {"testset": "golden.json"},
        "repo": "repo",
        "success": {"by": "facts"},
        "strata": ["task_type", "difficulty"],
        "agent": {"kind": "reference", "model": MODEL},
        "arms": {"treatment": {"name": "with", "tools": ["find"]}, "control": {"name": "without"}},
    }
    return plan(**about | changes)


def test_tasks_of_a_golden_set(tmp_path: Path, repo: tuple[Path, str]) -> None:
    checked = check_plan(golden_plan(), tmp_path)
    first = checked.tasks.tasks[0]
    assert (first.id, first.prompt, first.baseline_answerable) == ("q1", "Where is one?", True)
    assert dict(first.strata) == {"task_type": "locate", "difficulty": "easy"}
    assert first.gold == (Lines("a.py", 1, 2),)
    assert [task.id for task in checked.tasks.tasks] == ["q1", "q2"]
    assert checked.tasks.left_out == {"q3": "it has no facts"}
    assert checked.commit == checked.tasks.commit == repo[1]
    assert checked.most == (LIMIT * 8, None)
    assert "Not in the experiment: 1 query, it has no facts." in checked.notes


def test_only_some_tasks(tmp_path: Path, repo: tuple[Path, str]) -> None:
    del repo
    hard = golden_plan(tasks={"testset": "golden.json", "only": {"difficulty": ["hard"]}})
    assert [task.id for task in load_tasks(hard, tmp_path).tasks] == ["q2"]
    wrong = {"testset": "golden.json", "only": {"difficulty": ["hadr"], "zzz": ["x"], "id": ["q1", "q9"]}}
    with pytest.raises(ConfigError) as caught:
        load_tasks(golden_plan(tasks=wrong, strata=["task_tipe"]), tmp_path)
    wanted = ["difficulty 'hadr'", "stratum 'zzz'", "id 'q9'", "stratum 'task_tipe'"]
    assert [problem.message for problem in caught.value.problems] == [f"unknown {each}" for each in wanted]


def test_code_of_another_commit_is_refused(tmp_path: Path, repo: tuple[Path, str]) -> None:
    folder, commit = repo
    (folder / "a.py").write_text("# changed\n")
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=n@e", "commit", "-qam", "two"], check=True
    )
    with pytest.raises(
        ConfigError, match=r"Another commit is checked out, \w{12}: 1 file differs from .*modified a\.py"
    ):
        check_plan(golden_plan(), tmp_path)
    found = check_plan(golden_plan(), tmp_path, allow_dirty=True)
    assert found.commit == commit  # that of the golden set, whatever HEAD is
    assert found.tree.uncommitted.startswith("Another commit is checked out")
    with pytest.raises(ConfigError, match="the code differs from that of the golden set") as caught:
        check_plan(golden_plan(at="HEAD"), tmp_path)
    assert caught.value.problems[0].expected == commit
    served = {"find": {"command": ["x"], "preflight": {"tool": "s", "expect": {"commit": "abc1234"}}}}
    with pytest.raises(ConfigError, match=r"tools\.find\.preflight\.expect\.commit"):
        check_plan(golden_plan(tools=served), tmp_path)
    subprocess.run(["git", "-C", folder, "checkout", "-q", commit], check=True)
    write_golden(tmp_path, commit, provenance={"commit": "f" * 40})
    with pytest.raises(ConfigError, match="1 record of the golden set with a different commit"):
        check_plan(golden_plan(), tmp_path)


def test_a_run_of_changed_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("1\n")
    path = experiment(tmp_path, repo="code")
    (tmp_path / "code" / "a.py").write_text("2\n")
    with pytest.raises(UsageError, match=r"has changed since the run began \(1\): a\.py \(changed\)"):
        execute(path)


def test_all_problems_of_a_plan_at_once(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    wrong = plan(
        agent={"kind": "reference"},
        tools={
            "find": {
                "command": ["x"],
                "env": {"KEY": "{env.NOT_SET_ANYWHERE}"},
                "instructions": "file:none.md",
                "results": 3,
            }
        },
        arms={"treatment": {"name": "same", "tools": ["fond"]}, "control": {"name": "same"}},
        success={"by": "facts"},
        limits={},
        budget={"tokens": 10, "money": 1},
        strata=["dificulty"],
    )
    with pytest.raises(ConfigError) as caught:
        check_plan(wrong, tmp_path)
    assert sorted(problem.path or problem.message for problem in caught.value.problems) == [
        "agent.model",
        "arms",
        "arms.treatment.tools",
        "budget.prices.models",
        "limits.tokens",
        "repo",
        "tools.find",
        "tools.find",
        "tools.find.instructions",
        "unknown stratum 'dificulty'",
    ]


@pytest.mark.parametrize(
    ("treatment", "control", "message"),
    [
        ({}, {"tools": ["find"]}, "only the control arm has a tool under test"),
        ({"tools": ["find"]}, {"native": ["search"]}, "only one arm has a native tool"),
        ({"tools": ["find"], "native": []}, {}, "only one arm has a native tool"),
        ({"tools": ["find"]}, {"tools": ["other"], "native": []}, "only one arm has a native tool"),
        ({"tools": ["find"], "native": []}, {"tools": ["other"], "native": []}, ""),
        ({"tools": ["find"]}, {"native": []}, ""),
    ],
)
def test_arms_whose_comparison_would_mean_nothing_are_refused(
    tmp_path: Path, repo: tuple[Path, str], treatment: dict[str, Any], control: dict[str, Any], message: str
) -> None:
    del repo
    arms = {"treatment": {"name": "a", **treatment}, "control": {"name": "b", **control}}
    given = golden_plan(arms=arms, tools={name: {"command": ["x"]} for name in ("find", "other")})
    if message:
        with pytest.raises(ConfigError) as caught:
            check_plan(given, tmp_path)
        assert [(problem.path, problem.message) for problem in caught.value.problems] == [("arms", message)]
    else:
        notes = check_plan(given, tmp_path).notes
        assert any("cannot search or read" in note for note in notes) is ("tools" not in control)


def test_a_budget_has_a_limit_for_the_judge_and_its_price(tmp_path: Path) -> None:
    judge = {"by": "facts", "judge": {"model": "test:judge"}}
    budgets = {
        "budget.judge_tokens": [{"tokens": LIMIT}],
        "budget.prices.models": [{"judge_money": 1}, {"tokens": LIMIT, "judge_money": 1}],
        "": [{}, {"tokens": LIMIT, "judge_tokens": 9}, {"judge_tokens": 9}],
    }

    def places(budget: dict[str, Any], success: dict[str, Any]) -> list[str]:
        with pytest.raises(ConfigError) as caught:  # there are no tasks
            check_plan(plan(budget=budget, success=success), tmp_path)
        return [path for problem in caught.value.problems if (path := problem.path or "").startswith("budget")]

    for place, each in budgets.items():
        assert [places(budget, judge) for budget in each] == [[place] if place else []] * len(each)
    assert places({"tokens": LIMIT}, judge | {"by": "structure"}) == []  # no judge is asked


def test_limits_that_nothing_keeps_are_refused(tmp_path: Path) -> None:
    limits = {"turns": 3}
    agent = {"kind": "reference", "model": MODEL | {"limits": limits}}
    success = {"by": "code", "judge": {"model": "test:judge", "limits": limits}}
    write_tasks(tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_plan(plan(agent=agent, success=success, repo=""), tmp_path)
    hints = {problem.path: problem.hint or "" for problem in caught.value.problems}
    assert "`limits` of the plan" in hints["agent.model.limits"]
    assert "`budget.judge_tokens`" in hints["success.judge.limits"]


def test_tool_calls_that_nothing_counts_have_no_limit(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    for usage, is_known in (("", False), ({"answer": "a"}, False), ({"answer": "a", "tool_calls": "c"}, True)):
        agent = {"kind": "command", "command": ["agent", "{prompt}"], "usage": usage}
        notes = check_plan(plan(agent=agent), tmp_path).notes
        assert any("Tool calls of the agent are neither counted nor limited" in note for note in notes) is not is_known
        limited = plan(agent=agent, limits={"tokens": LIMIT, "tool_calls": 9})
        if is_known:
            assert check_plan(limited, tmp_path)
        else:
            with pytest.raises(ConfigError, match=r"limits\.tool_calls"):
                check_plan(limited, tmp_path)


@pytest.mark.parametrize(
    ("usage", "url", "counts"),
    [
        ("", "", (False, False)),
        ("codex", "", (False, True)),
        ("claude-code", "", (True, True)),
        ({"answer": "a", "turns": "t"}, "", (True, False)),
        ({"answer": "a", "input": "i", "output": "o"}, "", (False, True)),
        ("", "http://127.0.0.1:1/v1", (True, True)),
    ],
)
def test_turns_that_nothing_counts_have_no_limit_and_tokens_a_note(
    tmp_path: Path, usage: Any, url: str, counts: tuple[bool, bool]
) -> None:
    write_tasks(tmp_path)
    model = {"model": "test:one", "base_url": url}
    agent = {"kind": "command", "command": ["agent", "{prompt}", "{base_url}"], "usage": usage, "model": model}
    notes = check_plan(plan(agent=agent), tmp_path).notes
    assert any("`limits.tokens` has no effect" in note for note in notes) is not counts[1]
    limited = plan(agent=agent, limits={"turns": 3})
    if counts[0]:
        assert check_plan(limited, tmp_path)
    else:
        with pytest.raises(ConfigError, match=r"limits\.turns"):
            check_plan(limited, tmp_path)


@pytest.mark.parametrize(
    ("command", "n"),
    [
        (["{python}", "none.py"], 1),
        (["python3", "deep/none.py", "--root", "."], 1),
        (["{python}", "there.py", "none.py"], 0),
        (["{python}", "-m", "server", "none.py"], 0),
        (["{python}", "-c", "none.py"], 0),
        (["env", "none.py"], 0),
    ],
)
def test_a_script_that_is_not_there_is_found_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], n: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").write_text("")
    found = machine_problems(plan(tools={"find": {"command": command}}))
    assert sum(problem.message == "script not found" for problem in found) == n


def test_a_budget_under_one_cell_is_refused(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    with pytest.raises(ConfigError, match="does not allow a single cell"):
        check_plan(plan(budget={"tokens": LIMIT - 1}), tmp_path)
    assert check_plan(plan(budget={"tokens": LIMIT}), tmp_path)


def test_strata_with_too_few_tasks_show_nothing(tmp_path: Path) -> None:
    tasks = [Task(f"t{i}", "do", {"a": "x" if i < 4 else "y", "b": "z"}) for i in range(30)]
    rows = {row.stratum: row for row in detectable_lifts(plan(strata=["a", "b"]), tasks)}
    assert list(rows) == ["a=x, b=z", "a=y, b=z", "a=x", "a=y", "b=z", "all"]
    assert (rows["a=x"].n_tasks, rows["a=x"].detectable) == (4, None)
    # Half of statsmodels' TTestPower().solve_power(nobs=30, alpha=0.05 / 2): success and tokens are tested.
    assert rows["all"].detectable == pytest.approx(0.2943, abs=1e-4)


def test_what_the_tasks_can_show_is_what_the_verdict_can_find(tmp_path: Path) -> None:
    tasks = [Task(f"t{i}", "do", {"a": "xyz"[i % 3], "b": "uv"[i % 2]}) for i in range(60)]
    rows = {row.stratum: row.detectable for row in detectable_lifts(plan(strata=["a", "b"]), tasks)}
    # Both claims of all strata of one kind are adjusted together: 6 cells, then 3 values of a, then 2 of b, then all tasks.
    for stratum, n, n_tests in (("a=x, b=u", 10, 12), ("a=x", 20, 6), ("b=u", 30, 4), ("all", 60, 2)):
        assert rows[stratum] == minimal_detectable_effect(0.5, n, 0.05 / n_tests)
    few = [Task(f"t{i}", "do", {"a": "x"}) for i in range(5)]
    assert [row.detectable for row in detectable_lifts(plan(strata=["a"]), few)] == [
        None,
        None,
    ]  # 1.025: over a lift of 1


def test_only_what_no_cell_depends_on_may_change(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    before = ExperimentFolder.open(path).plan.digest
    agent = {
        "kind": "command",
        "command": ["agent"],
        "model": {"model": "test:one", "temperature": 0, "concurrency": 2},
    }
    replace_plan(path, plan(budget={"tokens": 9_000}, attempts=5, agent=agent), tmp_path)
    changed = ExperimentFolder.open(path).plan
    assert (changed.budget.tokens, changed.attempts, changed.digest) == (9_000, 5, before)
    with pytest.raises(UsageError, match="a different plan") as caught:
        replace_plan(path, plan(seeds=3, rule={"alpha": 0.1}), tmp_path)
    assert caught.value.problems[0].got == "other seeds, rule"
    write_tasks(tmp_path, 4)
    with pytest.raises(UsageError, match=r"other tasks/coding\.json"):
        replace_plan(path, plan(), tmp_path)


def test_nothing_is_written_for_a_plan_that_cannot_be_run(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    with pytest.raises(ConfigError):
        create_experiment(plan(strata=["none"]), tmp_path, tmp_path / "experiments")
    assert not (tmp_path / "experiments").exists()
