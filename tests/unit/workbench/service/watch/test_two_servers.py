"""Two servers on one PostgreSQL database run each time of a schedule once, also where one of them dies during the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from tests.unit.workbench.service.conftest import write_project

from cranfield.books.store.store import open_store
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.values import JobInfo
from cranfield.workbench.service.watch.scheduler import Scheduler

pytestmark = pytest.mark.slow
LONGEST_S = 300
"""Far longer than any wait of these tests."""
N_TIMES = 12
SEARCH = """echo "$1" >> calls.txt
[ "$1" = "open file" ] || while [ ! -e go ]; do sleep 0.02; done
echo p1
"""
"""The first query is answered; the others wait for the file `go`."""


def operator(folder: Path, cron: str) -> dict[str, object]:
    """The file of both servers."""
    watch = {"often": {"cron": cron, "testset": "help", "systems": ["search"], "compare": None}}
    return {"jobs": {"folder": str(folder / "jobs"), "lease_s": 2}, "watch": watch}


@contextmanager
def service_on(address: str, folder: Path, cron: str, clock: Callable[[], int] | None = None) -> Iterator[Service]:
    store = open_store(address) if clock is None else open_store(address, clock=clock)
    config = folder / "cranfield.yaml"
    yield open_service(store, config, Workbench.model_validate(operator(folder, cron)))
    store.close()


def test_two_schedulers_that_look_at_the_same_moment_start_each_time_once(
    postgres_address: str, tmp_path: Path
) -> None:
    """Each has connections of its own; both look at every time together."""
    write_project(tmp_path)
    begin = datetime(2026, 11, 24, 12, tzinfo=UTC)
    now = [round(begin.timestamp() * 1000)]
    with ExitStack() as ends:
        given = (postgres_address, tmp_path, "0 * * * *", lambda: now[0])
        services = [ends.enter_context(service_on(*given)) for _ in range(2)]
        schedulers, together = [Scheduler(each) for each in services], Barrier(2)

        def look(scheduler: Scheduler) -> list[JobInfo]:
            together.wait(LONGEST_S)
            return scheduler.tick()

        pool = ends.enter_context(ThreadPoolExecutor(2))
        for hour in range(1, N_TIMES + 1):
            now[0] = round((begin + timedelta(hours=hour)).timestamp() * 1000)
            made = {job.id for jobs in pool.map(look, schedulers) for job in jobs}
            assert len(made) == 1
            services[0].jobs.cancel(made.pop())
        keys = [job.key for job in services[0].jobs.all()]
    times = [begin + timedelta(hours=hour) for hour in range(N_TIMES, 0, -1)]
    assert keys == [f"watch:often:{time:%Y-%m-%dT%H:%MZ}" for time in times]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@contextmanager
def watching(folder: Path, address: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `cranfield watch` of its own, until the end of the block."""
    command = ("watch", "cranfield.yaml", "--workbench", "workbench.json", "--db", address)
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "cranfield", *command], cwd=folder, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(LONGEST_S)


def test_a_server_that_dies_with_the_run_of_a_schedule_is_replaced_by_the_other(
    postgres_address: str, tmp_path: Path
) -> None:
    write_project(tmp_path)
    (tmp_path / "search.sh").write_text(SEARCH)
    due = datetime.now(UTC) - timedelta(minutes=30)
    cron, key = f"{due.minute} {due.hour} * * *", f"watch:often:{due:%Y-%m-%dT%H:%MZ}"
    (tmp_path / "workbench.json").write_text(json.dumps(operator(tmp_path, cron)))
    before = round((due - timedelta(hours=1)).timestamp() * 1000)
    with service_on(postgres_address, tmp_path, cron, lambda: before) as earlier:
        job = earlier.jobs.add(EvaluateRequest(testset="help"), Trigger.WATCH, key="watch:often:by hand")
        earlier.jobs.cancel(job.id)  # the schedule ran before it was missed

    def is_under_way() -> bool:
        return (tmp_path / "calls.txt").exists() and len((tmp_path / "calls.txt").read_text().splitlines()) >= 2

    with ExitStack() as ends:
        service = ends.enter_context(service_on(postgres_address, tmp_path, cron))
        servers = [ends.enter_context(watching(tmp_path, postgres_address, name)) for name in ("one", "other")]
        until(is_under_way)
        (run,) = service.jobs.scheduled(key)
        assert run.worker is not None
        os.kill(int(run.worker.rpartition(":")[2]), signal.SIGKILL)
        (tmp_path / "go").touch()
        done = service.jobs.wait(run.id, LONGEST_S)
        assert (done.state, done.attempts, done.fence) == (JobState.DONE, 2, 2)
        assert done.worker is not None
        assert int(done.worker.rpartition(":")[2]) in {each.pid for each in servers if each.poll() is None}
        assert len(service.evaluations.for_job(run.id)) == len(service.evaluations.all()) == 1
        assert Scheduler(service).tick() == []
        assert [each.key for each in service.jobs.all()] == [key, "watch:often:by hand"]
