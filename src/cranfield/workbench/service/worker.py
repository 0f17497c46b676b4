"""The worker of a server: threads that take jobs from the queue, each in a child process that it watches.

A job whose server stops goes back to the queue; one whose server dies is taken by another when its lease has ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError, exit_reason
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import Problem, UnknownNameError, UsageError
from cranfield.formats.io.files import refusal
from cranfield.workbench.service.children import JobTask, ProcessStatus, child_command, system_environment
from cranfield.workbench.service.store.jobs import ProblemCode, job_problem
from cranfield.workbench.service.values import Claim, JobInfo

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service

LOG = logging.getLogger("cranfield.jobs")
POLL_S = 1.0
"""Between two looks at the queue, and at a job that runs: whether it is to stop."""
DB_RETRY_S = 3.0
"""Wait after the database did not answer."""
STOP_S = 10.0
"""An interrupted job has this time to end its calls; what it has collected is kept in any case."""
RENEWALS = 3
"""Renewals in the time of a lease."""
CLEAN_UP_S = 3600.0
FOLDERS = Path(".cranfield", "jobs")
_FOLDER_NAME = re.compile(r"\d{1,18}-\d+(-\d+)?")
OnEnd = Callable[[JobInfo], object]


class _Stop(Enum):
    """Why a job is interrupted."""

    CANCELLED = auto()
    SERVER = auto()
    TIME = auto()
    LOST = auto()
    """Another server has it."""


@dataclass
class _Watched:
    """A job and its process."""

    claim: Claim
    child: ChildProcess
    started: float
    renewed: float
    stop: _Stop | None = None


class Worker:
    """Takes jobs until it is stopped."""

    def __init__(
        self,
        service: Service,
        *,
        n: int | None = None,
        on_end: OnEnd | None = None,
        only: int | None = None,
        with_messages: bool = False,
    ) -> None:
        """Prepare; `start` begins.

        Args:
            service: of the database.
            n: jobs at a time; None: as the operator's file says.
            on_end: called once with each job that ended here: done, failed, or cancelled while it ran.
            only: take this job alone.
            with_messages: whether the log has the messages of unexpected errors, which may quote anything.

        Raises:
            UsageError: the folder of jobs cannot be made.
        """
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.folder = jobs_folder(service)
        self._service, self._jobs = service, service.jobs
        self._settings, self._limits = service.workbench.jobs, service.workbench.limits
        self._n = self._settings.workers if n is None else n
        self._on_end, self._only, self._with_messages = on_end, only, with_messages
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._tidied = 0.0

    def start(self) -> None:
        """Begin to take jobs."""
        self._service.worker_problem = self.problem
        for number in range(1, self._n + 1):
            self._threads.append(threading.Thread(target=self._run, name=f"cranfield-job-{number}", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Interrupt the jobs that run, put them back into the queue, and wait until that is done."""
        self._stopping.set()
        self._jobs.submitted.set()
        for thread in self._threads:
            thread.join()

    def problem(self) -> str:
        """Why no jobs are taken; empty where they are."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        return f"{', '.join(dead)} has ended" if dead and not self._stopping.is_set() else ""

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                claim = self._jobs.claim(self.name, self._only)
                if claim is not None:
                    self._work(claim)
                    continue
                self._tidy()
                self._jobs.submitted.wait(POLL_S)
                self._jobs.submitted.clear()
            except DBAPIError as error:
                is_sqlite = self._service.store.database.is_sqlite  # of a server, the message may name its address
                LOG.warning("no database: %s", error.orig if is_sqlite else type(error.orig).__name__)
                self._stopping.wait(DB_RETRY_S)
            except Exception:
                LOG.exception("a job could not be processed")
                self._stopping.wait(DB_RETRY_S)

    def _work(self, claim: Claim) -> None:
        """Do a job in a child process."""
        job = self._jobs.get(claim.job)
        if job.has_ended:  # with this claim
            self._ended(claim)
            return
        folder = self.folder / _folder_name(job)
        LOG.info("job %d starts, attempt %d", job.id, job.attempts)
        env = system_environment(self._service.workbench, self._service.config())
        argv = child_command("cranfield.workbench.service.work", str(job.id))
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            child = event_loop().run(ChildProcess.start(argv, cwd=Path.cwd(), env=env, stdin=True))
        except (NotStartedError, OSError) as error:
            LOG.warning("the process of job %d could not be started: %s", job.id, error)
            self._jobs.release(claim, is_failure=True)
            self._ended(claim)
            self._stopping.wait(DB_RETRY_S)
            return
        now = time.monotonic()
        watched = _Watched(claim, child, now, now)
        try:
            order = JobTask.of(self._service, claim, folder, with_messages=self._with_messages)
            with suppress(OSError):  # it has ended already: its exit status says so
                event_loop().run(child.write_line(order.line))
            self._watch(watched)
        finally:
            event_loop().run(child.end())
        self._close(watched)

    def _watch(self, watched: _Watched) -> None:
        """Wait for the end of the process; renew the lease meanwhile, and interrupt it where it is to stop."""
        interrupted: float | None = None
        while not watched.child.has_ended:
            event_loop().run(_wait(watched.child, POLL_S))
            if interrupted is None:
                with suppress(DBAPIError):  # the lease may end meanwhile: the fence sees to what follows
                    watched.stop = self._reason_to_stop(watched)
                if watched.stop is not None:
                    interrupted = time.monotonic()
                    with suppress(ProcessLookupError):
                        os.kill(watched.child.pid, signal.SIGINT)
            elif time.monotonic() - interrupted > STOP_S:
                return

    def _reason_to_stop(self, watched: _Watched) -> _Stop | None:
        now = time.monotonic()
        if self._stopping.is_set():
            return _Stop.SERVER
        if now - watched.started > self._limits.job_s:
            return _Stop.TIME
        job = self._jobs.get(watched.claim.job)
        if job.fence != watched.claim.fence:
            return _Stop.LOST
        if now - watched.renewed > self._settings.lease_s / RENEWALS and self._jobs.renew(watched.claim):
            watched.renewed = now
        return _Stop.CANCELLED if job.cancel and not job.has_ended else None

    def _close(self, watched: _Watched) -> None:
        """Bring the job to what its process came to; where the process ended the job itself, that stays."""
        claim, status = watched.claim, watched.child.returncode
        if status == ProcessStatus.REFUSED or watched.stop is _Stop.LOST:
            LOG.warning("job %d was taken over by another server: this server wrote nothing", claim.job)
        elif status == ProcessStatus.ENDED:
            pass
        elif watched.stop is _Stop.CANCELLED:
            self._jobs.stopped(claim)
        elif watched.stop is _Stop.TIME:
            text = f"not finished within {self._limits.job_s:g} seconds"
            hint = "retry it: it continues with the stored answers (the limit: limits.job_s)"
            self._jobs.fail(claim, [job_problem(Problem(text, hint=hint), ProblemCode.TIME_LIMIT)])
        elif watched.stop is _Stop.SERVER:
            if self._jobs.release(claim):
                LOG.info("job %d goes back to the queue", claim.job)
        else:
            output = watched.child.stderr_from(0)[-4000:]
            LOG.error(
                "the process of job %d ended: %s%s", claim.job, exit_reason(status or 0), output and f"\n{output}"
            )
            self._jobs.release(claim, is_failure=True)
        self._ended(claim)

    def _ended(self, claim: Claim) -> None:
        job = self._jobs.get(claim.job)
        if not job.has_ended or job.fence != claim.fence:
            return
        LOG.info("job %d: %s", job.id, job.state)
        if self._on_end is not None:
            try:
                self._on_end(job)
            except Exception:
                LOG.exception("the follow-up of job %d failed", job.id)

    def _tidy(self) -> None:
        """Remove the folders of jobs that ended long ago."""
        now = time.time()
        if now - self._tidied < CLEAN_UP_S:
            return
        self._tidied = now
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if not _FOLDER_NAME.fullmatch(folder.name) or folder.is_symlink():
                continue
            number = int(folder.name.partition("-")[0])
            with suppress(FileNotFoundError):  # another thread or server was faster
                if now - folder.stat().st_mtime > self._settings.keep_days * 86_400 and self._has_ended(number):
                    shutil.rmtree(folder, ignore_errors=True)

    def _has_ended(self, job_id: int) -> bool:
        try:
            return self._jobs.get(job_id).has_ended
        except UnknownNameError:
            return True


def jobs_folder(service: Service) -> Path:
    """The folder of the answers of jobs; made where it is not there.

    Raises:
        UsageError: it cannot be made.
    """
    given, database = service.workbench.jobs.folder, service.store.database.path
    if given is not None:
        folder = service.workbench.folder / given
    else:
        folder = (Path.cwd() if database is None else database.absolute().parent) / FOLDERS
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(refusal(folder, error)) from error
    return folder.absolute()


def run_job_inline(service: Service, job_id: int) -> JobInfo:
    """Do one job as a server does, without a server, and wait for its end; Ctrl-C puts it back into the queue."""
    worker = Worker(service, n=1, only=job_id)
    worker.start()
    try:
        while not (job := service.jobs.wait(job_id, POLL_S)).has_ended:
            pass
        return job
    finally:
        worker.stop()


@contextmanager
def working(service: Service, *, on_end: OnEnd | None = None, with_messages: bool = False) -> Iterator[None]:
    """Take jobs for the time of the block."""
    worker = Worker(service, on_end=on_end, with_messages=with_messages)
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def _folder_name(job: JobInfo) -> str:
    """Folder name of the job's number and time: the same number in a new database is another job."""
    return f"{job.id}-{job.created_at}"


async def _wait(child: ChildProcess, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await child.run()
