"""The runner: every cell once, whatever fails, is interrupted or too expensive."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.unit.benefit.scripted_cells import LIMIT, TOKENS, experiment, run, run_of

from cranfield.agents.budget import Budget
from cranfield.agents.protocol import Failure, FailureKind
from cranfield.base.errors import InputError, PreflightError, UsageError
from cranfield.benefit.agent import CellRun
from cranfield.benefit.errors import CATALOGUE, OUTAGES_IN_A_ROW, CellError, error_in, error_of
from cranfield.benefit.folder import TRANSCRIPTS, BegunRecord, ExperimentFile, ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd, CellKey, CellUsage, PreflightRecord
from cranfield.benefit.runner import schedule

N_CELLS = 12
T, C = ArmRole.TREATMENT, ArmRole.CONTROL


def answers(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
    return run_of(role)


def fails(error: str, end: CellEnd = CellEnd.INFRASTRUCTURE) -> Any:
    return lambda role, *_: run_of(role, end, error=error, answer="")


def test_every_cell_is_run_once_in_the_planned_order(tmp_path: Path) -> None:
    path = experiment(tmp_path, agent={"kind": "command", "command": ["agent"]})
    outcome = run(path, answers)
    assert (outcome.n_cells, outcome.n_scored, outcome.n_run, outcome.waiting) == (N_CELLS, N_CELLS, N_CELLS, ())
    folder = ExperimentFolder.open(path)
    order = schedule(folder.plan, folder.tasks().tasks)
    assert [cell.key for cell in folder.cells()] == list(order)
    assert [cell.position for cell in folder.cells()] == list(range(N_CELLS))
    assert outcome.spent.tokens == N_CELLS * TOKENS
    assert len(list((path / TRANSCRIPTS).iterdir())) == 2  # by content
    assert folder.transcript(folder.cells()[0].transcript) == {"role": order[0].arm}
    again = run(path, fails("connection"))
    assert (again.n_run, again.is_complete) == (0, True)


def test_a_failure_of_the_infrastructure_is_run_again_and_a_failure_of_the_agent_is_not(tmp_path: Path) -> None:
    def script(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        if role is T and attempt < 3:
            return run_of(role, CellEnd.INFRASTRUCTURE, error=CellError.TOOL_LOST)
        return run_of(role, CellEnd.TURNS if role is C else CellEnd.ANSWERED)

    path = experiment(tmp_path)
    outcome = run(path, script)
    assert (outcome.n_scored, outcome.n_run) == (N_CELLS, 6 + 3 * 6)
    cells = ExperimentFolder.open(path).cells()
    assert Counter((cell.key.arm, cell.attempt, cell.end) for cell in cells) == {
        (C, 1, CellEnd.TURNS): 6,
        (T, 1, CellEnd.INFRASTRUCTURE): 6,
        (T, 2, CellEnd.INFRASTRUCTURE): 6,
        (T, 3, CellEnd.ANSWERED): 6,
    }


def test_attempts_end_and_the_next_call_goes_on(tmp_path: Path) -> None:
    path = experiment(tmp_path, attempts=2)
    outcome = run(path, fails(CellError.REQUEST_TIMEOUT))
    assert (outcome.n_scored, outcome.n_run, len(outcome.waiting)) == (0, 2 * N_CELLS, N_CELLS)
    assert {cell.attempt for cell in outcome.waiting} == {2}
    outcome = run(path, answers)
    assert outcome.is_complete
    assert {cell.attempt for cell in ExperimentFolder.open(path).scored_cells().values()} == {3}


@pytest.mark.parametrize("error", [each.name for each in CATALOGUE if each.retry == "again_if_up"])
def test_a_model_that_is_down_ends_the_call_and_the_next_goes_on(tmp_path: Path, error: str) -> None:
    path = experiment(tmp_path, agent={"kind": "command", "command": ["agent"]})
    order = schedule(ExperimentFolder.open(path).plan, ExperimentFolder.open(path).tasks().tasks)
    n_up, calls = 3, iter(range(100))

    def goes_down(role: ArmRole, *_: Any) -> CellRun:
        return run_of(role) if next(calls) < n_up else run_of(role, CellEnd.INFRASTRUCTURE, error=error)

    outcome = run(path, goes_down)
    assert (outcome.n_run, outcome.n_scored, outcome.stopped) == (n_up + OUTAGES_IN_A_ROW, n_up, error)
    assert [cell.attempt for cell in outcome.waiting] == [1] * OUTAGES_IN_A_ROW
    assert run(path, answers).is_complete
    begun_last = [cell.key for cell in ExperimentFolder.open(path).cells()][-OUTAGES_IN_A_ROW:]
    assert begun_last == list(order[n_up : n_up + OUTAGES_IN_A_ROW])  # after those that have not failed yet


def test_a_server_that_answers_between_failures_is_not_down(tmp_path: Path) -> None:
    path, calls = experiment(tmp_path, agent={"kind": "command", "command": ["agent"]}), iter(range(100))
    errors = [*[CellError.CONNECTION, CellError.SERVER_ERROR] * 2, CellError.REQUEST_TIMEOUT] * 2

    def falters(role: ArmRole, *_: Any) -> CellRun:
        number = next(calls)
        return run_of(role, CellEnd.INFRASTRUCTURE, error=errors[number]) if number < len(errors) else run_of(role)

    outcome = run(path, falters)
    assert (outcome.is_complete, outcome.stopped, outcome.n_run) == (True, "", N_CELLS + len(errors))


@pytest.mark.parametrize("error", [each.name for each in CATALOGUE if each.retry in {"stop", "not_now"}])
def test_what_would_fail_again_is_not_run_again(tmp_path: Path, error: str) -> None:
    path = experiment(tmp_path, agent={"kind": "command", "command": ["agent"]})
    outcome = run(path, fails(error))
    stops = next(each.retry == "stop" for each in CATALOGUE if each.name == error)
    assert (outcome.n_run, outcome.stopped) == ((1, error) if stops else (N_CELLS, ""))


def test_an_agent_that_raises_is_a_crash_with_its_error(tmp_path: Path) -> None:
    def script(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        if attempt == 1 and random.Random(f"{role}{task_id}{seed}").random() < 0.5:
            raise ValueError("no more memory")
        return run_of(role)

    path = experiment(tmp_path)
    outcome = run(path, script)
    crashed = [cell for cell in ExperimentFolder.open(path).cells() if cell.error == CellError.AGENT_CRASHED]
    assert outcome.is_complete
    assert crashed
    assert {cell.message for cell in crashed} == {"ValueError: no more memory"}
    assert outcome.spent.unmeasured == len(crashed)
    assert outcome.spent.tokens == N_CELLS * TOKENS + len(crashed) * LIMIT


def test_a_tool_that_silently_never_starts_is_not_scored(tmp_path: Path) -> None:
    def script(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        return run_of(role, offered=attempt > 1)

    path = experiment(tmp_path)
    assert run(path, script).is_complete
    lost = [cell for cell in ExperimentFolder.open(path).cells() if not cell.end.is_scored]
    assert {(cell.key.arm, cell.error, cell.message) for cell in lost} == {
        (T, CellError.TOOL_NOT_STARTED, "the agent was not offered find")
    }
    assert len(lost) == 6


def test_a_budget_ends_the_run_before_it_is_exceeded_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    outcome = run(path, answers, Budget(tokens=5 * TOKENS + LIMIT - 1))
    assert (outcome.stopped, outcome.n_run, outcome.spent.tokens) == (CellError.BUDGET, 5, 5 * TOKENS)
    outcome = run(path, answers, Budget(tokens=5 * TOKENS + LIMIT - 1))
    assert (outcome.stopped, outcome.n_run) == (CellError.BUDGET, 0)
    assert run(path, answers, Budget(tokens=2 * N_CELLS * LIMIT)).is_complete


def test_a_run_whose_usage_is_not_known_counts_as_its_limit(tmp_path: Path) -> None:
    outcome = run(experiment(tmp_path), lambda role, *_: run_of(role, tokens=None))
    assert outcome.spent.tokens == N_CELLS * LIMIT


def test_money_is_reserved_by_the_limit_of_tokens_at_the_dearest_price(tmp_path: Path) -> None:
    prices = {"models": {"test:one": {"input": 1, "output": 10}}}
    path = experiment(tmp_path, budget={"money": 0.01, "prices": prices})
    plan = ExperimentFolder.open(path).plan
    outcome = run(path, answers, Budget(money=plan.budget.money, prices=plan.budget.prices))
    assert (outcome.n_run, outcome.stopped) == (4, CellError.BUDGET)  # 4 * 250 tokens at 10 of a million: 0.01
    assert outcome.spent.money == pytest.approx(0.01)


def test_no_cell_is_run_where_a_tool_is_not_ready_or_has_changed(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    with pytest.raises(PreflightError, match=r"treatment\.find: no"):
        run(path, answers, version="1")
    assert ExperimentFolder.open(path).cells() == []
    assert run(path, fails("authentication"), index="v1").n_scored == 0
    with pytest.raises(PreflightError, match="has changed since the experiment began: found"):
        run(path, answers, index="v2")
    assert run(path, answers, index="v1").is_complete
    records = ExperimentFolder.open(path).preflights()
    assert [(record.ok, record.found.get("index"), record.after_run) for record in records] == [
        (False, None, False),
        (True, "v1", False),
        (True, "v1", True),
        (False, "v2", False),
        (True, "v1", False),
        (True, "v1", True),
    ]
    assert "has changed since the experiment began" in records[3].message


def test_there_is_one_writer(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    with ExperimentFolder.writing(path), pytest.raises(UsageError, match="another process is writing"):
        run(path, answers)


def test_a_cell_with_two_ends_is_refused(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    run(path, answers)
    file = path / ExperimentFile.CELLS
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[3]]) + "\n")
    with pytest.raises(InputError, match="ended twice") as caught:
        ExperimentFolder.open(path).cells()
    assert caught.value.problems[0].line == N_CELLS + 1


def test_a_changed_transcript_is_refused(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    run(path, answers)
    name = ExperimentFolder.open(path).cells()[0].transcript
    (path / TRANSCRIPTS / name).write_text("{}")
    with pytest.raises(InputError, match="has been changed"):
        ExperimentFolder.open(path).transcript(name)


def test_interrupted_runs_are_charged_once_and_begun_again_with_their_number(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    key = CellKey(task_id="t1", arm=T, seed=0)
    with ExperimentFolder.writing(path) as folder:
        folder.append(ExperimentFile.BEGUN, BegunRecord(key=key, attempt=1, at="2026-11-23T14:05:09Z"))
    outcome = run(path, answers)
    assert outcome.spent.tokens == N_CELLS * TOKENS + LIMIT
    assert ExperimentFolder.open(path).scored_cells()[key].attempt == 1


def test_interrupted_runs_of_an_agent_that_keeps_its_answers_cost_nothing(tmp_path: Path) -> None:
    path = experiment(tmp_path, agent={"model": {"model": "test:one", "temperature": 0}})
    with ExperimentFolder.writing(path) as folder:
        folder.append(
            ExperimentFile.BEGUN, BegunRecord(key=CellKey(task_id="t1", arm=T, seed=0), attempt=1, at="2026-11-23")
        )
    assert run(path, answers).spent.tokens == N_CELLS * TOKENS


def test_the_requests_that_measure_schemas_are_charged_once(tmp_path: Path) -> None:
    path, usage = experiment(tmp_path), CellUsage(total=40, wall_s=0.1)
    record = PreflightRecord(arm=T, tool="find", ok=True, found={"index": "v1"}, usage=usage)
    with ExperimentFolder.writing(path) as folder:
        for _ in range(2):
            folder.append(ExperimentFile.PREFLIGHT, record)
    assert run(path, answers).spent.tokens == N_CELLS * TOKENS + 40


def test_killed_at_random_no_cell_is_lost_doubled_or_charged_twice(tmp_path: Path) -> None:
    path, ledger = experiment(tmp_path), tmp_path / "ledger"
    command = [sys.executable, "-m", "tests.unit.benefit.scripted_cells", str(path), str(ledger)]
    draw, n_killed = random.Random(20), 0
    for n_paid in (draw.randint(1, 6), draw.randint(7, 12)):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            while process.poll() is None and (not ledger.exists() or ledger.read_bytes().count(b"\n") < n_paid):
                time.sleep(0.001)
            process.kill()
        n_killed += process.returncode != 0
    outcome = run(path, lambda role, task_id, seed, attempt: _paid(ledger, role, task_id, seed, attempt))
    folder = ExperimentFolder.open(path)
    paid = Counter(ledger.read_text().splitlines())
    cells = Counter(f"{cell.key} {cell.attempt}" for cell in folder.cells())
    assert outcome.is_complete
    assert set(cells.values()) == {1}
    assert len(cells) == N_CELLS
    # A run that was paid for and has no line was interrupted, and is charged by its limit.
    assert sum((paid - cells).values()) <= folder.n_interrupted() <= 4 * n_killed
    assert outcome.spent.tokens == N_CELLS * TOKENS + folder.n_interrupted() * LIMIT


def _paid(ledger: Path, role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
    with ledger.open("a") as file:
        file.write(f"{task_id}/{role}/{seed} {attempt}\n")
    return run_of(role)


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_of_a_request_is_in_the_catalogue(kind: FailureKind) -> None:
    assert error_of(Failure(kind, "anything")).name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HTTP 429 Too Many Requests", CellError.RATE_LIMITED),
        ('{"error": {"code": "context_length_exceeded"}}', CellError.CONTEXT_WINDOW),
        ("MCP client for `find` failed to start: handshaking failed", CellError.TOOL_NOT_STARTED),
        ("stream disconnected before completion", CellError.CONNECTION),
        ("Incorrect API key provided", CellError.AUTHENTICATION),
        ("OSError: [Errno 28] No space left on device", CellError.OUT_OF_DISK),
        ("All 42 tests passed in 5.03 s", None),
    ],
)
def test_what_a_program_prints_is_known_by_its_fingerprint(text: str, name: CellError | None) -> None:
    found = error_in(text)
    assert (found and found.name) == name


def test_the_manifest_and_the_plan_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("Call find first.")
    path = experiment(tmp_path, tools={"find": {"command": ["find-server"], "instructions": "file:how.md"}})
    for name in ("tasks.json", "how.md"):
        (tmp_path / name).unlink()
    folder = ExperimentFolder.open(path)
    assert folder.plan.tools["find"].instructions == "Call find first."
    assert [task.id for task in folder.tasks().tasks] == ["t0", "t1", "t2"]
    assert folder.manifest.plan_digest == folder.plan.digest
    assert json.loads((path / "run.json").read_text())["labels_digest"] == folder.tasks().labels_digest
