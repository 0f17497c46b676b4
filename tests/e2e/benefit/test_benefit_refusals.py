"""What is no result: tools that are not there or serve something else, control arms that cannot answer, limits, budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # experiments over two protocols: some seconds each
FEW = ["locate-easy-1", "locate-easy-2", "locate-easy-3"]


def kinds(result: dict[str, Any], *, void: bool = True) -> set[str]:
    return {each["kind"] for each in result["validity"] if each["is_void"] is void}


def few(example: Any) -> dict[str, Any]:
    return {"testset": str(example.folder / "golden.json"), "only": {"id": FEW}}


@pytest.mark.parametrize(
    ("index", "seconds", "says"),
    [("never", 5, "beacon"), ("late", 1, "beacon"), ("stale", 30, "commit")],
)
def test_a_tool_that_is_not_there_is_refused_before_a_cell(example: Any, index: str, seconds: int, says: str) -> None:
    plan = example.plan(index, tool={"start_timeout_s": seconds}, tasks=few(example))
    ran = example.call("benefit", "run", plan, "--out", example.place / "runs")
    assert ran.returncode not in {0, 1}, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    (run,) = (example.place / "runs").iterdir()
    cells = run / "cells.jsonl"
    assert not cells.exists() or not cells.read_text()
    assert example.asked.n_requests == 0


def test_a_tool_that_starts_late_is_waited_for(example: Any) -> None:
    run = example.run(example.plan("late", tasks=few(example), seeds=1))
    cells = [json.loads(line) for line in (run / "cells.jsonl").read_text().splitlines()]
    assert {cell["end"] for cell in cells} == {"answered"}
    assert [cell["delivery"]["offered"] for cell in cells if cell["key"]["arm"] == "treatment"] == [True] * 3


def test_an_agent_that_does_not_look_makes_the_comparison_void(example: Any) -> None:
    result = example.result(example.run(example.plan(model="guessing", tasks=few(example))))
    assert "control_incompetent" in kinds(result)
    assert result["sentence"].startswith("No verdict: ")


def test_a_limit_is_a_failure_that_is_scored(example: Any) -> None:
    run = example.run(example.plan(model="endless", tasks=few(example), seeds=1))
    result = example.result(run)
    cells = [cell for task in result["tasks"] for arm in task["arms"].values() for cell in arm]
    assert {(cell["end"], cell["success"], cell["why"]) for cell in cells} == {("turns", False, "limit:turns")}


def test_a_budget_ends_a_run_and_a_larger_one_goes_on(example: Any) -> None:
    run = example.run(example.plan(budget={"tokens": 180_000, "judge_tokens": 400_000}), status=4)
    n_cells = len((run / "cells.jsonl").read_text().splitlines())
    assert 0 < n_cells < 216
    result = example.result(run)  # the judge has a limit of its own
    assert "incomplete" in kinds(result) | kinds(result, void=False)
    again = example.call("benefit", "run", example.plan(), "--resume", run)
    assert again.returncode == 0, again.stderr
    assert "incomplete" not in kinds(result := example.result(run)) | kinds(result, void=False)
