"""An experiment whose agents are scripts; as a program it runs the cells of a folder, to be killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cranfield.agents.budget import Budget
from cranfield.benefit.agent import CellRun
from cranfield.benefit.experiment import create_experiment
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellUsage, Delivery, PreflightRecord
from cranfield.benefit.runner import RunOutcome, run_cells
from cranfield.benefit.tasks import Task

TOKENS = 100
"""Of every run."""
LIMIT = 250
"""Of tokens of a cell: what is reserved."""
Script = Callable[[ArmRole, str, int, int], CellRun]


def plan_of(**changes: Any) -> dict[str, Any]:
    """A plan over three coding tasks, two seeds: twelve cells."""
    plan: dict[str, Any] = {
        "cranfield_benefit": 1,
        "name": "trial",
        "tasks": {"coding": "tasks.json"},
        "agent": {"kind": "command", "command": ["agent"], "model": {"model": "test:one", "temperature": 0}},
        "tools": {"find": {"command": ["find-server"]}},
        "arms": {
            "treatment": {"name": "with", "native": [], "tools": ["find"]},
            "control": {"name": "without", "native": []},
        },
        "seeds": 2,
        "limits": {"tokens": LIMIT, "seconds": 60},
        "success": {"by": "code", "checks": ["compiles"]},
        "strata": ["difficulty"],
    }
    return plan | changes


def write_tasks(folder: Path, n: int = 3) -> None:
    """A file of coding tasks, `tasks.json`."""
    tasks = [
        {"id": f"t{i}", "prompt": f"Write {i}.", "writes": ["main.py"], "strata": {"difficulty": "easy"}}
        for i in range(n)
    ]
    about = {"cranfield_coding_tasks": 1, "name": "few", "target": {"language": "python", "version": "3.11"}}
    (folder / "tasks.json").write_text(json.dumps({**about, "tasks": tasks}))


def experiment(folder: Path, **changes: Any) -> Path:
    """The folder of a new experiment."""
    write_tasks(folder)
    return create_experiment(BenefitPlan.model_validate(plan_of(**changes)), folder, folder / "experiments")


def run_of(
    role: ArmRole, end: CellEnd = CellEnd.ANSWERED, *, offered: bool = True, tokens: int | None = TOKENS, **fields: Any
) -> CellRun:
    """A run that used `TOKENS`."""
    delivery = Delivery(offered=offered, called=1, answered=1) if role is ArmRole.TREATMENT else None
    usage = CellUsage(total=tokens, requests=1, wall_s=0.1)
    return CellRun(end, usage, {"role": role}, delivery=delivery, **{"answer": "done", **fields})


class ScriptedAgent:
    """Runs a script for each cell."""

    def __init__(self, role: ArmRole, script: Script, found: Mapping[str, Any] | None = None) -> None:
        self.role = role
        self.script = script
        self.found = found or {"index": "v1"}
        self.seconds = 0.0

    async def preflight(self) -> tuple[PreflightRecord, ...]:
        if self.role is ArmRole.CONTROL:
            return ()
        return (PreflightRecord(arm=self.role, tool="find", ok="index" in self.found, found=self.found, message="no"),)

    async def run(self, task: Task, seed: int, attempt: int) -> CellRun:
        found = self.script(self.role, task.id, seed, attempt)
        await asyncio.sleep(self.seconds)
        return found

    async def aclose(self) -> None: ...


def agents_of(script: Script, **found: Any) -> dict[ArmRole, ScriptedAgent]:
    """Of both arms."""
    return {role: ScriptedAgent(role, script, found) for role in ArmRole}


def run(path: Path, script: Script, budget: Budget | None = None, **found: Any) -> RunOutcome:
    """Run the cells without an end."""
    with ExperimentFolder.writing(path) as folder:
        return asyncio.run(run_cells(folder, folder.tasks(), agents_of(script, **found), budget or Budget()))


def main() -> None:
    """Run the cells of a folder; every run is paid for in a ledger before it ends."""
    path, ledger = Path(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def script(role: ArmRole, task_id: str, seed: int, attempt: int) -> CellRun:
        os.write(ledger, f"{task_id}/{role}/{seed} {attempt}\n".encode())
        return run_of(role)

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    agents = agents_of(script)
    for agent in agents.values():
        agent.seconds = 0.02
    with ExperimentFolder.writing(path) as folder:
        asyncio.run(run_cells(folder, folder.tasks(), agents, Budget()))


if __name__ == "__main__":
    main()
