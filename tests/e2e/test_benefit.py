"""An experiment from its plan to its verdict, with scripted agents: tools that help, do nothing, cost, never start, leak, crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.benefit.scripted_cells import plan_of, run, run_of

from cranfield.benefit.agent import CellRun
from cranfield.benefit.errors import CellError
from cranfield.benefit.experiment import create_experiment
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.result import BenefitResult, StratumKind, StratumVerdict, ValidityKind
from cranfield.benefit.use_cases import result_of, score_experiment

T, C = ArmRole.TREATMENT, ArmRole.CONTROL
N = 20
FACT = "Format {} is read by `parse_{}`."


def ability(task_id: str) -> float:
    """Of an agent without a tool, by task."""
    return random.Random(task_id).uniform(0.3, 0.9)


@dataclass(frozen=True)
class Agents:
    """Both arms: the treatment succeeds more often by `lift`, and uses `cost` times the tokens."""

    lift: float = 0.0
    cost: float = 1.0
    offered: bool = True
    says: str = ""
    """What the treatment says before its answer."""
    crashes: float = 0.0
    """Share of the runs of both arms that end in an exception."""

    def __call__(self, role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        """The run of a cell."""
        # One draw for both arms: a tool that does nothing changes nothing.
        luck = random.Random(f"{task_id} {seed}")
        draw, tokens = luck.random(), 150 + luck.randrange(50)
        if random.Random(f"{role} {task_id} {seed} {attempt}").random() < self.crashes:
            raise RuntimeError("the agent broke")
        is_treated = role is T
        is_right = draw < ability(task_id) + (self.lift if is_treated else 0)
        number = task_id[1:]
        answer = f"- {FACT.format(number, number)}" if is_right else "I do not know."
        answer = f"{self.says}\n{answer}" if is_treated and self.says else answer
        used = round(tokens * (self.cost if is_treated else 1))
        return run_of(role, offered=self.offered, tokens=used, answer=answer, models=("one",))


def outcome(folder: Path, script: Callable[[ArmRole, str, int, int], CellRun]) -> BenefitResult:
    """The result of an experiment with 20 tasks and 3 seeds."""
    records = [
        {"query_id": f"q{n}", "query_text": f"How is format {n} read?", "task_type": "explain", "difficulty": "easy",
         "expected_files": [f"src/f{n}.py"], "must_mention_facts": [FACT.format(n, n)], "baseline_answerable": True}
        for n in range(N)
    ]  # fmt: skip
    (folder / "set.json").write_text(json.dumps(records))
    plan = plan_of(tasks={"testset": "set.json"}, success={"by": "facts"}, seeds=3, attempts=6)
    path = create_experiment(BenefitPlan.model_validate(plan), folder, folder / "experiments")
    run(path, script)
    score_experiment(path)
    return result_of(path)


def verdict(found: BenefitResult) -> StratumVerdict:
    (cell,) = (each for each in found.strata if each.kind is StratumKind.CELL)
    return cell.verdict


HELPS = Agents(lift=0.35)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (HELPS, StratumVerdict.PAYS_OFF),
        (Agents(), StratumVerdict.NO_DIFFERENCE),
        (Agents(cost=1.2), StratumVerdict.NET_COST),
    ],
    ids=["helps", "does nothing", "only costs"],
)
def test_the_verdict_is_that_of_the_tool(script: Agents, expected: StratumVerdict, tmp_path: Path) -> None:
    found = outcome(tmp_path, script)
    assert not found.is_void, found.sentence
    assert verdict(found) is expected, [each.reason for each in found.strata]


@pytest.mark.slow  # two whole experiments
def test_an_agent_that_crashes_at_random_has_the_same_result_as_one_that_does_not(tmp_path: Path) -> None:
    for name in ("sound", "crashing"):
        (tmp_path / name).mkdir()
    sound, crashing = outcome(tmp_path / "sound", HELPS), outcome(tmp_path / "crashing", replace(HELPS, crashes=0.3))
    assert crashing.errors[CellError.AGENT_CRASHED] > 10
    assert not crashing.is_void
    assert crashing.strata == sound.strata
    assert crashing.sentence == sound.sentence


def test_a_tool_that_never_starts_has_no_verdict(tmp_path: Path) -> None:
    found = outcome(tmp_path, Agents(offered=False))
    assert found.is_void
    assert ValidityKind.TOOL_NOT_DELIVERED in {each.kind for each in found.validity}
    assert "the tool did not start in 60 of 60 cells of treatment (with)" in found.sentence
    assert not found.tasks[0].arms[T]


@pytest.mark.slow  # two whole experiments
def test_an_agent_that_names_its_tool_gains_nothing_by_it(tmp_path: Path) -> None:
    for name in ("silent", "leaking"):
        (tmp_path / name).mkdir()
    silent = outcome(tmp_path / "silent", HELPS)
    leaking = outcome(tmp_path / "leaking", replace(HELPS, says="The find-server, called as mcp__find__look, shows:"))
    assert [each.kind for each in leaking.validity if each not in silent.validity] == [ValidityKind.LEAK]
    assert leaking.strata == silent.strata
