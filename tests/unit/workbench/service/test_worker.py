"""Jobs in processes of their own: resumed, cancelled, put back, taken over; exactly one result each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.workbench.service.shop import work_here

from cranfield.books.store.store import open_store
from cranfield.workbench.config import Workbench
from cranfield.workbench.service import work
from cranfield.workbench.service.children import JobTask, ProcessStatus
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.store.jobs import ProblemCode
from cranfield.workbench.service.values import Claim, JobInfo
from cranfield.workbench.service.worker import Worker, _Stop, _Watched, working

from .conftest import write_project

pytestmark = pytest.mark.slow

SEARCH = """echo "$1" >> calls.txt
echo $$ >> pids.txt
[ "$1" = "open file" ] || while [ ! -e go ]; do sleep 0.02; done
echo p1
"""
"""The first query is answered; the others wait for the file `go`."""
ASKED = ["open file", "sort list", "parse json"]
LONGEST_S = 300
"""Far longer than any wait of these tests."""


def until(condition: Callable[[], object]) -> None:
    """Wait for an event."""
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Place:
    """A project whose system waits, and services on its database."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.config = write_project(folder)
        (folder / "search.sh").write_text(SEARCH)
        self.store = open_store(address)
        self.service = self.service_with()

    def service_with(self, **jobs: object) -> Service:
        blocks = {"jobs": {"folder": str(self.folder / "jobs"), **jobs}}
        return open_service(self.store, self.config, Workbench.model_validate(blocks))

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []

    def go(self) -> None:
        (self.folder / "go").touch()

    def submit(self) -> JobInfo:
        return self.service.jobs.submit(EvaluateRequest(testset="help"))

    def done(self, job: JobInfo) -> JobInfo:
        found = self.service.jobs.wait(job.id, LONGEST_S)
        assert (found.state, found.problems) == (JobState.DONE, ())
        assert len(self.service.evaluations.for_job(job.id)) == 1
        return found

    def is_waiting(self) -> bool:
        return len(self.calls) >= 2


@pytest.fixture
def place(sqlite_address: str, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "project", sqlite_address)
    yield made
    made.store.close()


def test_progress_is_seen_and_a_job_whose_process_is_killed_goes_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[JobInfo] = []
    with working(place.service, on_end=ended.append):
        assert place.service.worker_problem() == ""
        job = place.submit()
        until(lambda: place.is_waiting() and place.service.jobs.get(job.id).n_done)
        now = place.service.jobs.get(job.id)
        assert (now.state, now.n_done, now.n_all, now.progress) == (JobState.RUNNING, 1, 3, "asking search")
        os.kill(_child_of(job), signal.SIGKILL)
        place.go()
        assert place.done(job).attempts == 2
        until(lambda: ended)
    assert place.calls == [*ASKED[:2], *ASKED[1:]]  # the call that was under way is made again, no other
    assert [each.id for each in ended] == [job.id]
    assert not any((place.folder / "jobs").iterdir())
    logged = [record.getMessage() for record in caplog.records if record.name == "cranfield.jobs"]
    assert logged == [f"the process of job {job.id} ended: killed by SIGKILL"]  # and no text of a query


def test_a_server_that_stops_puts_its_job_back_and_no_answer_is_asked_for_again(place: Place) -> None:
    with working(place.service):
        job = place.submit()
        until(place.is_waiting)
    back = place.service.jobs.get(job.id)
    assert (back.state, back.attempts) == (JobState.QUEUED, 0)
    place.go()
    with working(place.service_with()):
        place.done(job)
    assert place.calls == [*ASKED[:2], *ASKED[1:]]  # the call that was under way is made again, no other


def test_a_running_job_is_cancelled_and_goes_on_when_it_is_tried_again(place: Place) -> None:
    ended: list[JobInfo] = []
    with working(place.service, on_end=ended.append):
        job = place.submit()
        until(place.is_waiting)
        place.service.jobs.cancel(job.id)
        assert place.service.jobs.wait(job.id, LONGEST_S).state == JobState.CANCELLED
        until(lambda: ended)
        place.go()
        place.service.jobs.retry(job.id)
        place.done(job)
    assert place.calls == [*ASKED[:2], *ASKED[1:]]


@pytest.mark.parametrize("with_messages", [False, True])
def test_a_bug_of_a_job_is_logged_without_its_message(
    with_messages: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: JobTask) -> ProcessStatus:
        raise ValueError("the query open file")

    order = JobTask(Claim(1, 1, "one"), "sqlite:books.db", None, {}, ".", "jobs/1-1", with_messages)
    monkeypatch.setattr(sys, "stdin", StringIO(order.line + "\n"))
    monkeypatch.setattr(work, "_end_with_server", lambda: None)
    monkeypatch.setattr(work, "_done", fail)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(ValueError, match="open file") as raised:
        work.main()
    sys.excepthook(raised.type, raised.value, raised.tb)
    logged = capsys.readouterr().err
    assert ("open file" in logged) == with_messages
    assert "in fail" in logged
    assert "ValueError" in logged


def test_nothing_tells_of_a_job_while_it_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    telling: list[bool] = []
    finish = place.service.jobs.finish

    def finished(*given: Any) -> bool:
        telling.append("cranfield-progress" in {thread.name for thread in threading.enumerate()})
        return finish(*given)

    place.go()
    monkeypatch.setattr(place.service.jobs, "finish", finished)
    assert work_here(place.service, place.submit().id, place.folder / "jobs").state == JobState.DONE
    assert telling == [False]


def test_a_job_has_a_limit_of_time(place: Place) -> None:
    blocks = {"jobs": {"folder": str(place.folder / "jobs")}, "limits": {"job_s": 0.5}}
    with working(open_service(place.store, place.config, Workbench.model_validate(blocks))):
        job = place.service.jobs.wait(place.submit().id, LONGEST_S)
    assert [problem.code for problem in job.problems] == [ProblemCode.TIME_LIMIT]


def test_a_config_that_is_broken_meanwhile_is_a_problem_of_the_job(place: Place) -> None:
    job = place.submit()
    place.config.write_text("systems: 3\n")
    with working(place.service):
        failed = place.service.jobs.wait(job.id, LONGEST_S)
    assert failed.state == JobState.FAILED
    assert {problem.code for problem in failed.problems} == {ProblemCode.INPUT}


def test_folders_of_jobs_that_ended_long_ago_are_removed(place: Place) -> None:
    service = place.service_with(keep_days=1)
    job = place.submit()
    place.service.jobs.cancel(job.id)
    folders = [place.folder / "jobs" / name for name in (f"{job.id}-1-2", "99-1", "7-2", "notes")]
    for folder in folders:
        folder.mkdir(parents=True)
        if folder.name != "7-2":
            os.utime(folder, (1, 1))
    Worker(service)._tidy()
    assert [folder.exists() for folder in folders] == [False, False, True, True]


def test_the_end_of_a_job_whose_servers_died_is_announced(place: Place) -> None:
    now = [place.store.clock()]
    service = open_service(place.store, place.config, clock=lambda: now[0])
    job = place.submit()
    for _ in range(3):
        assert service.jobs.claim("a server that dies") is not None
        now[0] += 61_000
    ended: list[JobInfo] = []
    with working(service, on_end=ended.append):
        until(lambda: ended)
    assert [(each.id, [problem.code for problem in each.problems]) for each in ended] == [(job.id, [ProblemCode.DIED])]


def test_only_a_job_with_a_later_claim_is_that_of_another_server(place: Place) -> None:
    job, jobs = place.submit(), place.service.jobs
    claim = jobs.claim("one")
    assert claim is not None
    jobs.cancel(job.id)
    assert jobs.fail(claim, [])
    watched = _Watched(claim, child=cast("Any", None), started=time.monotonic(), renewed=0.0)
    worker = Worker(place.service)
    assert worker._reason_to_stop(watched) is None  # its own process has ended the job
    jobs.retry(job.id)
    assert jobs.claim("two") is not None
    assert worker._reason_to_stop(watched) is _Stop.LOST


# Two servers


@contextmanager
def server(place: Place, **jobs: object) -> Iterator[subprocess.Popen[str]]:
    """A real server on the place."""
    blocks = {"jobs": {"folder": str(place.folder / "jobs"), "lease_s": 2, **jobs}}
    operator = place.folder / "workbench.yaml"
    operator.write_text(json.dumps(blocks))
    argv = [
        sys.executable,
        "-m",
        "cranfield",
        "serve",
        str(place.config),
        "--workbench",
        str(operator),
        "--db",
        place.address,
    ]
    with subprocess.Popen([*argv, "--port", str(_free_port())], stdout=-1, text=True, cwd=place.folder) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Serving")
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
            process.wait(LONGEST_S)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _child_of(job: JobInfo) -> int:
    """The process of a job."""
    text = f"cranfield.workbench.service.work\0{job.id}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if text in path.read_bytes():
                return int(path.parent.name)
    raise AssertionError("the job has no process")


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    return False


@pytest.fixture
def shared(postgres_address: str, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "project", postgres_address)
    yield made
    made.store.close()


def test_two_servers_have_one_result_of_each_job_stalled_or_killed(shared: Place) -> None:
    service = shared.service
    with server(shared) as first:
        job = shared.submit()
        until(shared.is_waiting)
        child = _child_of(job)
        for pid in (first.pid, child):
            os.kill(pid, signal.SIGSTOP)
        shared.go()
        with server(shared) as second:  # with the same folder of jobs, which the stalled process has locked
            done = shared.done(job)
            for pid in (child, first.pid):
                os.kill(pid, signal.SIGCONT)
            until(lambda: not _is_alive(child))
            assert (done.fence, len(service.evaluations.all()), len(service.runs.all())) == (2, 1, 1)
            assert service.jobs.get(job.id) == done

            workers = {shared.done(each).worker for each in [shared.submit() for _ in range(4)]}
            assert (len(service.evaluations.all()), len(workers)) == (5, 2)

            for name in ("go", "calls.txt"):
                (shared.folder / name).unlink()
            job = shared.submit()
            until(shared.is_waiting)
            child, holder = _child_of(job), service.jobs.get(job.id).worker
            {f"{first.pid}": first, f"{second.pid}": second}[holder.rpartition(":")[2]].kill()
            until(lambda: not _is_alive(child))  # it ends with its server
            shared.go()
            done = shared.done(job)
    assert (done.attempts, done.fence, len(service.evaluations.all())) == (2, 2, 6)
    assert shared.calls.count(ASKED[0]) == 1  # an answer that was kept is not asked for again


def test_the_variables_of_postgresql_reach_the_job_and_no_system(
    postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGUSER", "owner")
    place = Place(tmp_path / "project", postgres_address.replace("owner@", ""))
    (place.folder / "search.sh").write_text("env >> variables.txt\necho p1\n")
    with closing(place.store), working(place.service):
        place.done(place.submit())
    assert "PGUSER" not in (place.folder / "variables.txt").read_text()
