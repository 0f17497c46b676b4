"""A control arm that is no competent agent makes a comparison invalid."""

from __future__ import annotations

from typing import Any

import pytest

from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellKey, CellRecord, CellUsage, Delivery, ScoreRecord, ToolCount
from cranfield.benefit.result import ValidityKind
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.benefit.tool_check import competence
from cranfield.benefit.validity import ExperimentRecords

UNKNOWN, INCOMPETENT = ValidityKind.COMPETENCE_UNKNOWN, ValidityKind.CONTROL_INCOMPETENT


def found(
    successes: list[list[bool | None]],
    *,
    answerable: Any = True,
    calls: tuple[int, ...] = (1,),
    errors: int = 0,
    is_reported: bool = True,
    called: int | None = None,
    **plan: Any,
) -> list[tuple[ValidityKind, bool, str]]:
    """Of a control arm whose tasks had these successes by seed, and whose cells called so many tools, in turn."""
    fields: dict[str, Any] = {
        "cranfield_benefit": 1,
        "name": "t",
        "tasks": {"testset": "golden.json"},
        "repo": ".",
        "agent": {"kind": "codex"},
        "arms": {"treatment": {"name": "with"}, "control": {"name": "plain"}},
        "success": {"by": "facts"},
    }
    runs, scores, position = [], {}, 0
    for task, seeds in enumerate(successes):
        for seed, success in enumerate(seeds):
            key = CellKey(task_id=f"q{task}", arm=ArmRole.CONTROL, seed=seed)
            n = calls[position % len(calls)]
            counts = {"search": ToolCount(ok=n, error=errors)} if n or errors else {}
            usage = CellUsage(wall_s=1.0, tool_calls=counts if is_reported or n else None)
            delivery = None if called is None else Delivery(offered=True, called=called)
            record = CellRecord(
                key=key,
                attempt=1,
                position=position,
                started_at="",
                end=CellEnd.ANSWERED,
                usage=usage,
                delivery=delivery,
            )
            runs.append(record)
            scores[key] = ScoreRecord(key=key, sealed_id=f"s{position}", success=success)
            position += 1
    values = answerable if isinstance(answerable, list) else [answerable] * len(successes)
    tasks = tuple(Task(f"q{n}", "?", baseline_answerable=value) for n, value in enumerate(values))
    evidence = ExperimentRecords(BenefitPlan.model_validate(fields | plan), [], runs, scores, [], "", "")
    return [(each.kind, each.is_void, each.message) for each in competence(evidence, TaskSet(tasks))]


def test_a_competent_control_arm_has_nothing_against_it() -> None:
    assert found([[True, True], [True, False]]) == []
    assert found([]) == []  # no cell has ended


def test_success_is_the_mean_over_tasks_and_not_over_cells() -> None:
    # Means of tasks: 1, 0, 0. Over cells it would be 4/6.
    ((kind, is_void, message),) = found([[True] * 4, [False], [False]])
    assert (kind, is_void) == (INCOMPETENT, True)
    assert "control (plain) succeeds at 33% on 3 tasks that can be done without the tool" in message
    assert found([[True], [False]]) == []  # the floor itself is enough


def test_only_tasks_that_can_be_done_without_the_tool_and_decided_cells_count() -> None:
    assert found([[True], [False], [False]], answerable=[True, False, None]) == []
    assert found([[True, None, None]]) == []


def test_a_weak_control_without_tools_by_the_plan_is_the_finding_and_not_invalid() -> None:
    ((kind, is_void, message),) = found([[True], [False], [False]], repo="")  # 1 of 3 is under the floor of 50 %
    assert (kind, is_void) == (INCOMPETENT, False)
    assert message == (
        "control (plain), which has no tools in the plan, succeeds at 33% on 3 tasks that can be done "
        "without the tool: "
        "this describes only the model"
    )


@pytest.mark.parametrize(("successes", "answerable"), [([[False]], None), ([[True]], False), ([[None]], True)])
def test_without_such_a_task_nothing_shows_competence_which_is_a_caveat(successes: Any, answerable: Any) -> None:
    ((kind, is_void, _),) = found(successes, answerable=answerable)
    assert (kind, is_void) == (UNKNOWN, False)


def test_an_arm_that_does_not_use_its_search_tools_is_not_competent() -> None:
    cells: list[list[bool | None]] = [[True] * 5]
    assert found(cells, calls=(1, 1, 1, 1, 0)) == []
    ((kind, is_void, message),) = found(cells, calls=(1, 1, 1, 0, 0))
    assert (kind, is_void) == (INCOMPETENT, True)
    assert "used its search tools in 60% of 5 cells; the plan requires 80%" in message
    assert found(cells, calls=(0,), competence={"search_use": 0.0}) == []


def test_calls_that_failed_are_no_search() -> None:
    """Those of tools that do not exist are among them."""
    assert found([[True]], calls=(1,), errors=3) == []
    ((kind, is_void, _),) = found([[True]], calls=(0,), errors=3)
    assert (kind, is_void) == (INCOMPETENT, True)


def test_calls_that_are_not_known_show_nothing() -> None:
    cells: list[list[bool | None]] = [[True] * 4]
    ((kind, is_void, message),) = found(cells, calls=(0,), is_reported=False)
    assert (kind, is_void) == (UNKNOWN, False)
    assert "tool calls are unknown for 4 of 4 cells of control (plain)" in message
    assert "`agent.usage.tool_calls`" in message
    ((kind, _, message),) = found(cells, calls=(1, 0), is_reported=False)
    assert kind is UNKNOWN
    assert "for 2 of 4 cells" in message
    assert found(cells, calls=(0,), is_reported=False, competence={"search_use": 0.0}) == []


def test_a_control_with_another_index_searches_by_its_tool() -> None:
    """Index A against index B: whoever asks the index has searched."""
    assert found([[True]], calls=(2,), called=2) == []
    ((kind, *_),) = found([[True]], calls=(0,), called=0)
    assert kind is INCOMPETENT


@pytest.mark.parametrize(
    "plan",
    [{"repo": ""}, {"arms": {"treatment": {"name": "with"}, "control": {"name": "plain", "native": []}}}],
)
def test_the_use_of_tools_is_not_checked_where_there_are_none(plan: dict[str, Any]) -> None:
    assert found([[True]], calls=(0,), **plan) == []
