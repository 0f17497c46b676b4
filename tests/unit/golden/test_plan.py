"""The rules of difficulty, the plan and its checks, and the estimate of its cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, get_args

import pytest

from cranfield.agents.protocol import Usage
from cranfield.base.errors import ConfigError, UnknownNameError
from cranfield.golden.models import budget_of, shared_model_problems
from cranfield.golden.plan import Plan, load_plan, shipped_plan
from cranfield.golden.plan_check import check_plan
from cranfield.golden.plan_cost import estimate
from cranfield.golden.records import Difficulty, TaskType
from cranfield.golden.rules import RULES, Bound, Extent
from cranfield.golden.run import require_valid
from cranfield.repo.snapshot import Snapshot, take

MODEL = {"model": "openai:a", "base_url": "http://127.0.0.1:1/v1"}
MODELS = {"author": MODEL, "oracle": MODEL, "adversary": {**MODEL, "model": "openai:b"}, "judge": MODEL}
FILES = {"src/a/one.py": "def first():\n    pass\n" * 40, "src/b/two.py": "X = 1\n", "docs/page.md": "# Title\n"}


@pytest.fixture(scope="module")
def snapshot(write_files):
    return take(write_files(FILES))


def plan_of(**changes: Any) -> Plan:
    cells = [
        {"task_type": "locate", "difficulty": "easy", "n": 3},
        {"task_type": "debug", "difficulty": "hard", "n": 2},
    ]
    return Plan.model_validate(
        {"cranfield_plan": 1, "name": "test", "total": 5, "cells": cells, "models": MODELS} | changes
    )


def test_the_table_has_a_rule_for_every_type_and_difficulty():
    assert set(RULES) == set(product(get_args(TaskType), get_args(Difficulty)))
    for (_, difficulty), rule in RULES.items():
        assert (difficulty == "easy") == (rule.files == Bound(1, 1))
        assert (difficulty == "hard") == (rule.files.least >= 2 and rule.files.most is None)


def test_the_page_has_the_table(checkout):
    page = (checkout / "docs/how-to/golden-plan.md").read_text()
    rows = [
        f"| {' | '.join(cell)} | {r.entities} | {r.files} | {r.folders} | {r.source} |" for cell, r in RULES.items()
    ]
    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize(
    ("cell", "entities", "files", "problems"),
    [
        (("locate", "medium"), 1, ["a/x"], []),  # q_00042
        (("debug", "medium"), 1, ["a/x"], ["1 entity where there should be 2 to 4"]),
        (("explain", "hard"), 4, ["a/x"], ["1 file where there should be 2 or more"]),
        (("extend", "hard"), None, ["a/1", "a/2", "a/3", "a/4"], ["1 folder where there should be 2 or more"]),
        (("extend", "hard"), 4, ["a/1", "a/2", "b/3", "b/4"], []),
    ],
)
def test_a_rule_reports_what_differs(cell, entities, files, problems):
    assert RULES[cell].problems(Extent(entities, frozenset(files))) == problems


def test_the_shipped_plan_is_the_matrix_of_the_design_and_has_no_problem(snapshot):
    plan = shipped_plan("phase1")
    sums = {difficulty: sum(cell.n for cell in plan.cells if cell.difficulty == difficulty) for _, difficulty in RULES}
    assert sums == {"easy": 15, "medium": 29, "hard": 16}
    types = {task_type: sum(cell.n for cell in plan.cells if cell.task_type == task_type) for task_type, _ in RULES}
    assert list(types.values()) == [10, 12, 12, 12, 8, 6]
    assert (plan.total, len(plan.cells)) == (60, 17)
    assert check_plan(plan, snapshot) == []
    with pytest.raises(UnknownNameError, match="did you mean phase1"):
        shipped_plan("phase")


def test_everything_that_is_wrong_in_a_file_is_reported_at_once(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("cranfield_plan: 2\nname: x\ntotal: 0\ncells: [{task_type: lokate, difficulty: easy, n: 1}]\n")
    with pytest.raises(ConfigError) as raised:
        load_plan(path)
    found = {(problem.line, problem.message) for problem in raised.value.problems}
    assert {line for line, _ in found} >= {1, 3, 4}
    assert "missing key 'models'" in {message for _, message in found}


CHECKS = {
    "total": ({"total": 6}, "the cells do not sum to the total"),
    "repeated cell": ({"cells": [{"task_type": "locate", "difficulty": "easy", "n": n} for n in (2, 3)]}, "2 cells of"),
    "same model": ({"models": {**MODELS, "adversary": MODEL}}, "oracle and adversary are the same model"),
    "no provider": ({"models": {**MODELS, "judge": {"model": "gpt"}}}, "the model has no provider"),
    "no price": ({"budget": {"money": 3}}, "the budget limits money, but the model has no price"),
    "scope": ({"scope": ["src/c"]}, "folder or file not found in the repository"),
    "focus": (
        {"cells": [{"task_type": "locate", "difficulty": "easy", "n": 5, "focus": ["src/z"]}]},
        "folder or file not found in the repository",
    ),
    "focus outside": (
        {"cells": [{"task_type": "locate", "difficulty": "easy", "n": 5, "scope": ["src/a"], "focus": ["src/b"]}]},
        "outside of the scope",
    ),
    "no headings": ({"scope": ["src"], "targets": "headings"}, "its scope has no files with headings"),
    "spans in four files": (
        {"targets": "spans", "cells": [{"task_type": "extend", "difficulty": "hard", "n": 5}]},
        "spans cannot satisfy its rule",
    ),
    "least above most": ({"quotas": [{"path": "src", "least": 2, "most": 1}]}, "least is greater than most"),
    "quota above the total": (
        {"quotas": [{"path": "src/a", "least": 3}, {"path": "docs", "least": 3}]},
        "the quotas cannot all be satisfied",
    ),
    "quota out of scope": (
        {"scope": ["src"], "quotas": [{"path": "docs", "least": 1}]},
        "the quota cannot be satisfied",
    ),
    "quota without room": (
        {"quotas": [{"path": "src", "most": 3}, {"path": "docs", "most": 1}]},
        "the quotas leave too little room",
    ),
    "cell without room": (
        {"scope": ["src"], "quotas": [{"path": "src/a", "most": 1}, {"path": "src/b", "most": 1}]},
        "its quotas leave too little room",
    ),
    "two quotas of one place": (
        {"quotas": [{"path": "src", "least": 1}, {"path": "src/", "least": 1}]},
        "2 quotas for the same place",
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_plan_that_cannot_be_run_is_refused(name, snapshot):
    changes, message = CHECKS[name]
    assert any(problem.message.startswith(message) for problem in check_plan(plan_of(**changes), snapshot))


def test_a_plan_that_can_be_run_is_not(snapshot):
    quotas = [{"path": "src", "most": 4, "least": 2}, {"path": "src/a", "most": 2}, {"path": "docs", "most": 1}]
    assert check_plan(plan_of(quotas=quotas), snapshot) == []
    same = plan_of(models={**MODELS, "adversary": MODEL}, allow_same_model=True)
    assert check_plan(same, snapshot) == []


def test_candidates_are_written_with_exact_headroom():
    plan = plan_of(headroom=1.1, cells=[{"task_type": "locate", "difficulty": "easy", "n": 10}], total=10)
    assert plan.emitted(plan.cells[0]) == 11  # 10 x 1.1 is 11.000000000000002 in floating point
    assert Fraction("1.1") * 10 == 11


def test_the_estimate_counts_every_turn_and_is_priced_by_model(snapshot):
    limits = {"turns": 1, "tokens": 1_000}
    models = {role: {**settings, "limits": limits} for role, settings in MODELS.items()}
    prices = {"models": {name: {"input": 1, "output": 2} for name in ("openai:a", "openai:b")}}
    found = estimate(plan_of(models=models, budget={"prices": prices}), snapshot)
    assert [role.records for role in found.roles] == [5 + 3, 5, 5, 5]  # 3 x 1.5 and 2 x 1.5, rounded up
    # one turn: the prompt is sent once, and the answer is written
    assert [role.tokens for role in found.roles] == [8 * 2_900, 5 * 4_300, 5 * 4_000, 5 * 2_620]
    assert found.money == pytest.approx((23 * 2_500 + 2 * (8 * 400 + 5 * 1_800 + 5 * 1_500 + 5 * 120)) / 1e6)
    assert (found.token_limit, found.money_limit) == (23_000, pytest.approx(0.046))
    free = estimate(plan_of(budget={"tokens": 7}), snapshot)
    assert (free.money, free.token_limit, free.money_limit) == (None, 7, None)
    assert free.tokens > found.tokens


def test_roles_that_share_a_model_call_it_in_one_way():
    own = {"model": "openai:m", "base_url": "http://127.0.0.1:1/v1"}
    plan = plan_of(models={**MODELS, "author": own, "judge": {**own, "concurrency": 2}})
    assert shared_model_problems(plan) == []
    other = {**own, "base_url": "http://127.0.0.1:2/v1"}
    plan = plan_of(models={**MODELS, "author": own, "judge": other})
    (problem,) = shared_model_problems(plan)
    assert (problem.path, problem.got) == ("models.judge", "openai:m")


def test_a_model_without_a_provider_does_not_hide_the_other_problems(snapshot: Snapshot) -> None:
    plan = plan_of(total=99, models={**MODELS, "author": {"model": "m"}})
    with pytest.raises(ConfigError) as caught:
        require_valid(plan, snapshot)
    assert {"total", "models.author"} <= {problem.path for problem in caught.value.problems}


def test_kept_answers_are_charged_to_the_budget():
    prices = {"models": {"openai:m": {"input": 1.0, "output": 10.0}}}
    plan = plan_of(budget={"tokens": 10_000, "prices": prices})
    known = Usage(input=1_000, output=100)
    spent = budget_of(plan, [("openai:m", known), ("openai:m", known)]).spent
    assert (spent.requests, spent.unmeasured, spent.tokens) == (2, 0, 2_200)
    assert spent.money == pytest.approx(2 * (1_000 + 10 * 100) / 1e6)
    assert budget_of(plan, [("openai:other", known)]).spent.money is None


def test_an_estimate_reads_no_file(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    expected = sorted(len(snapshot.data(path) or b"") for path in snapshot.files)
    assert sorted(snapshot.sizes.values()) == expected
    before = estimate(plan, snapshot)
    monkeypatch.setattr(Snapshot, "data", None)
    assert estimate(plan, snapshot) == before
