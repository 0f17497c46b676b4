"""With `--allow-writes` calls are jobs of the database, which a worker does; a cancelled call ends its job."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from cranfield.books.store.store import open_store
from cranfield.workbench.config import Workbench
from cranfield.workbench.mcp.evidence import McpEvidence
from cranfield.workbench.mcp.server import make_server
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.worker import working

from .conftest import connected, content, mean, problem
from .test_transports import searching, until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(evidence_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(evidence_folder, tmp_path / "folder")


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    """With a worker, as a server has it."""
    with closing(open_store(folder / "books.db")) as store:
        operator = Workbench.model_validate({"jobs": {"folder": str(folder / "jobs")}})
        made = open_service(store, folder / "cranfield.yaml", operator)
        with working(made):
            yield made


def test_results_are_stored_and_read_again(folder: Path, service: Service) -> None:
    evidence = McpEvidence(service, None)

    async def main() -> None:
        async with connected(make_server(evidence)) as client:
            made = [
                content(await client.call_tool("evaluate", {"testset": "testset", "system": system}))
                for system in ("good", "broken")
            ]
            assert [each["result"] for each in made] == ["evaluation/1", "evaluation/2"]
            assert [each["stored"] for each in made] == [True, True]
            assert [each["counts"] for each in made] == [True, False]
            assert mean(made[0]) == 0.875  # 7 of 8 queries
            refs = {"baseline": "evaluation/1", "candidate": "evaluation/2"}
            compared = content(await client.call_tool("compare", refs))
            assert (compared["result"], compared["counts"]) == ("comparison/1", False)
            assert compared["record"]["verdict"] == "invalid"
            for ref, expected in (("job/1", made[0]), ("evaluation/2", made[1]), ("job/3", compared)):
                assert content(await client.call_tool("get_result", {"result": ref})) == expected
            listed = content(await client.call_tool("list_results", {}))["results"]
            assert [(each["result"], bool(each["void"])) for each in listed] == [
                ("evaluation/2", True),
                ("evaluation/1", False),
            ]
            run = {"testset": "testset", "run": "1"}
            assert mean(content(await client.call_tool("evaluate", run))) == mean(made[0])
            assert "unknown" in problem(await client.call_tool("evaluate", {"testset": "testset", "system": "no"}))

    anyio.run(main)
    assert {job.trigger for job in service.jobs.all()} == {Trigger.AGENT}


def test_a_cancelled_call_ends_its_job(folder: Path, service: Service) -> None:
    evidence = McpEvidence(service, None)

    async def main() -> None:
        async with connected(make_server(evidence)) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "evaluate", {"testset": "testset", "system": "slow"})
            await until((folder / "asked").exists)
            group.cancel_scope.cancel()
        await until(lambda: service.jobs.get(1).has_ended and not searching(folder))

    anyio.run(main)
    assert service.jobs.get(1).state == JobState.CANCELLED
    assert service.evaluations.all() == ()
