"""Experiments on a schedule: run, resumed, compared with the last result, and shown."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.benefit.scripted_cells import TOKENS, ScriptedAgent, plan_of, run_of
from tests.unit.workbench.service.shop import work_here

from cranfield.base.errors import ConfigError
from cranfield.benefit import agent as agents
from cranfield.benefit.agent import AgentSetup, CellRun
from cranfield.benefit.errors import CellError
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd
from cranfield.formats.io.delimited import file_versions
from cranfield.workbench.config import load_workbench
from cranfield.workbench.server.tables import job_subject
from cranfield.workbench.service.requests import BenefitRequest
from cranfield.workbench.service.responses import JobResponse, JobState
from cranfield.workbench.service.watch.scheduler import watch_states
from cranfield.workbench.service.webhooks import messages
from cranfield.workbench.service.work import work_on

QUARTERLY = "knowcode: {cron: '0 3 1 */3 *', benefit: plan.json, when: %s}"
START = "2026-11-23T12:00"
N_CELLS = 24


class Place:
    """A folder with a plan over six tasks, and scripted agents that count their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: Counter[str] = Counter()
        self.found: dict[str, Any] = {"index": "v1"}
        self.failing = self.is_costly = False
        self.models: dict[ArmRole, str] = {}
        self.interrupted_at = -1
        self.agents: Mapping[ArmRole, ScriptedAgent] = {}
        self.write_plan()

    def write_plan(self, **changes: Any) -> None:
        records = [
            {
                "query_id": f"t{i}",
                "query_text": f"Where is {i}?",
                "task_type": "locate",
                "difficulty": "easy",
                "expected_entities": [{"entity_id": f"a.py::get_{i}"}],
                "expected_files": ["a.py"],
            }
            for i in range(6)
        ]
        (self.folder / "golden.json").write_text(json.dumps(records))
        about: dict[str, Any] = {
            "agent": {
                "kind": "command",
                "command": [sys.executable, "{prompt}", "{mcp_config}"],
                "usage": {"answer": "a", "offered": "o"},
                "model": {"model": "test:m"},
            },
            "tools": {"find": {"command": [sys.executable]}},
            "arms": {"treatment": {"name": "with", "tools": ["find"]}, "control": {"name": "without"}},
            "tasks": {"testset": "golden.json"},
            "success": {"by": "structure"},
            "competence": {"success": 0, "search_use": 0},
        }
        (self.folder / "plan.json").write_text(json.dumps(plan_of(**about | {"attempts": 1} | changes)))

    def script(self, role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        del attempt
        if self.ran.total() == self.interrupted_at:
            self.interrupted_at = -1
            os.kill(os.getpid(), signal.SIGINT)
            for agent in self.agents.values():
                agent.seconds = 60
        self.ran[f"{task_id}/{role}/{seed}"] += 1
        if self.failing and task_id == "t1":
            return run_of(role, CellEnd.INFRASTRUCTURE, error=CellError.CONNECTION, message="the server is down")
        is_right = task_id == "t0" or (role is ArmRole.TREATMENT) is not self.is_costly
        tokens = TOKENS * (2 if self.is_costly and role is ArmRole.TREATMENT else 1) + int(task_id[1:])
        answer = f"It is `get_{task_id[1:]}` in `a.py`." if is_right else "I do not know."
        return run_of(role, answer=answer, models=(self.models.get(role, "one"),), tokens=tokens)

    @property
    def files(self) -> list[str]:
        return [path.name for path in file_versions(self.folder / "benefit-results", "benefit").values()]

    @property
    def experiments(self) -> list[Path]:
        return sorted((self.folder / "benefit-runs").iterdir())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Agents of the kind `command` are scripts."""
    found = Place(tmp_path)

    @asynccontextmanager
    async def opened(setup: AgentSetup) -> AsyncIterator[Mapping[ArmRole, ScriptedAgent]]:
        del setup
        found.agents = {role: ScriptedAgent(role, found.script, found.found) for role in ArmRole}
        yield found.agents

    monkeypatch.setattr(agents, "open_external", opened, raising=False)
    monkeypatch.setattr(agents, "OPENERS", {"command": "cranfield.benefit.agent:open_external"})
    return found


def run_due(server: Any, place: Place, time: str) -> Any:
    """The job of a time, done in this process."""
    (key,) = server.at(time)
    (job,) = server.service.jobs.scheduled(key)
    return work_here(server.service, job.id, place.folder / f"job{job.id}")


def test_an_experiment_is_run_scored_and_remembered_at_its_time(desk, place):
    server = desk(QUARTERLY % "always", START)
    assert server.at("2026-12-31T23:00") == []
    job = run_due(server, place, "2027-01-01T03:00")
    assert (job.kind, job.state, job.problems) == ("benefit", JobState.DONE, ())
    assert job.request == BenefitRequest(schedule="knowcode")
    assert (job.n_done, job.n_all) == (N_CELLS, N_CELLS)
    assert (len(place.ran), set(place.ran.values()), place.files) == (N_CELLS, {1}, ["benefit_v1.0.json"])
    (state,) = watch_states(server.service)
    lines = "\n".join(state.last.lines())
    assert "result: benefit_v1.0.json" in lines
    assert "difficulty=easy: " in lines
    assert state.last.result == "passed", lines
    assert (state.as_json()["benefit"], state.as_json()["outcome"]["file"]) == ("plan.json", "benefit_v1.0.json")
    assert JobResponse.model_validate(job).outcome == job.outcome
    assert job_subject(job) == "the experiment of the schedule knowcode"
    again = run_due(server, place, "2027-04-01T03:00")
    assert (again.outcome.file, again.outcome.unchanged, len(place.experiments)) == ("benefit_v1.1.json", False, 2)


def test_nothing_is_run_where_nothing_has_changed(desk, place):
    server = desk(QUARTERLY % "changed", START)
    run_due(server, place, "2027-01-01T03:00")
    same = run_due(server, place, "2027-04-01T03:00")
    assert (same.state, same.outcome.unchanged, same.outcome.file) == (JobState.DONE, True, "benefit_v1.0.json")
    assert (place.ran.total(), len(place.experiments)) == (N_CELLS, 1)
    (state,) = watch_states(server.service)
    assert next(state.last.lines()).startswith("nothing changed since benefit_v1.0.json of 20")
    place.found["index"] = "v2"
    assert run_due(server, place, "2027-07-01T03:00").outcome.file == "benefit_v1.1.json"
    place.write_plan(rule={"min_tasks": 6})
    assert run_due(server, place, "2027-10-01T03:00").outcome.file == "benefit_v2.0.json"
    assert run_due(server, place, "2028-01-01T03:00").outcome.unchanged
    assert place.ran.total() == 3 * N_CELLS


def test_an_invalid_result_is_shown_and_measured_again(desk, place):
    server = desk(QUARTERLY % "changed", START)
    place.models = {ArmRole.TREATMENT: "another"}
    job = run_due(server, place, "2027-01-01T03:00")
    assert job.outcome.void, job.outcome
    (state,) = watch_states(server.service)
    assert (state.last.result, job.outcome.verdicts) == ("void", {})
    assert [message.event for message in messages(server.service, job)] == ["void"]
    assert not run_due(server, place, "2027-04-01T03:00").outcome.unchanged


def test_a_stratum_that_turns_into_a_net_cost_breaks_the_gate_and_stays_so(desk, place):
    server = desk(QUARTERLY % "changed", START)
    place.is_costly = True
    job = run_due(server, place, "2027-01-01T03:00")
    assert job.outcome.verdicts == {"difficulty=easy": "net cost"}
    assert [message.event for message in messages(server.service, job)] == ["gate-failed"]
    assert run_due(server, place, "2027-04-01T03:00").outcome.unchanged
    (state,) = watch_states(server.service)
    assert state.last.result == "gate_failed"
    assert [line for line in state.last.lines() if line.startswith("gate: failed: ") and "net cost" in line]


def test_a_failed_job_goes_on_with_its_cells(desk, place):
    server = desk(QUARTERLY % "always", START)
    place.failing = True
    job = run_due(server, place, "2027-01-01T03:00")
    assert (job.state, [each.code for each in job.problems], place.files) == (JobState.FAILED, ["system"], [])
    assert job.problems[0].message.startswith("4 cells of 24 are unfinished: t1/")
    assert watch_states(server.service)[0].last.result == "failed"
    place.failing = False
    server.service.jobs.retry(job.id)
    done = work_here(server.service, job.id, place.folder / f"job{job.id}")
    assert (done.state, place.files, len(place.experiments)) == (JobState.DONE, ["benefit_v1.0.json"], 1)
    assert place.ran.total() == N_CELLS + 4


def test_an_interrupted_job_goes_on_with_its_experiment(desk, place):
    server = desk(QUARTERLY % "changed", START)
    (key,) = server.at("2027-01-01T03:00")
    (job,) = server.service.jobs.scheduled(key)
    place.interrupted_at = 6
    claim = server.service.jobs.claim("here")
    with pytest.raises(KeyboardInterrupt):
        work_on(server.service, claim, place.folder / "job")
    server.service.jobs.release(claim)
    (experiment,) = place.experiments
    before = ExperimentFolder.open(experiment).scored_cells()
    assert 0 < len(before) < place.ran.total() < N_CELLS
    done = work_here(server.service, job.id, place.folder / "job")
    assert (done.state, place.experiments, place.files) == (JobState.DONE, [experiment], ["benefit_v1.0.json"])
    assert {key for key, n in place.ran.items() if n == 1} >= set(map(str, before))
    assert len(ExperimentFolder.open(experiment).cells()) == len(place.ran) == N_CELLS


def test_a_plan_that_cannot_be_run_is_shown_before_its_time(desk, place):
    server = desk(QUARTERLY % "always", START)
    place.write_plan(seeds=0)
    (state,) = watch_states(server.service)
    assert any("seeds" in note for note in state.notes())
    assert run_due(server, place, "2027-01-01T03:00").problems[0].code == "input"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("testset: a, benefit: plan.json", "exactly one of testset, benefit"),
        ("when: always", "exactly one of testset, benefit"),
        ("benefit: plan.json, systems: [a]", "systems"),
        ("benefit: other.json", "no such file"),
        ("benefit: plan.json, when: never", "always"),
    ],
)
def test_a_schedule_is_of_an_evaluation_or_of_an_experiment(tmp_path, fields, message):
    (tmp_path / "plan.json").write_text("{}")
    path = tmp_path / "workbench.yaml"
    path.write_text(f"watch: {{a: {{cron: '0 2 * * *', {fields}}}}}")
    with pytest.raises(ConfigError, match=message):
        load_workbench(path)
