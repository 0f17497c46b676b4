"""A job in a process of its own: `python -P -m cranfield.workbench.service.work`, started by a server, which writes it a line of JSON.

The line says which job, on which database and with which files; no secret is in the arguments or the environment. The process
ends with the server: its standard input then ends. What it writes of the job is refused where another server has taken it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from cranfield.base.errors import CranfieldError, InputError, InternalError, Problem, SystemUnderTestError
from cranfield.formats.io.files import path_lock
from cranfield.systems.collect.progress import Silent
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.children import JobTask, ProcessStatus
from cranfield.workbench.service.evaluating import compared, evaluated
from cranfield.workbench.service.experiments import run_experiment_job
from cranfield.workbench.service.requests import BenefitRequest, EvaluateRequest
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.store.jobs import ProblemCode, job_problem
from cranfield.workbench.service.values import Claim, JobProblem, Result

if TYPE_CHECKING:
    from cranfield.model import Answer, CallLog, Query

REPORT_S = 1.0
"""Between two reports of progress."""


class JobProgress(Silent):
    """Counts answers, and tells the job now and then; a thread of its own writes, so that no call waits for the database.

    Nothing goes to stderr, which is for the log of the server: that has no text of a query.
    """

    def __init__(self, service: Service, claim: Claim) -> None:
        self._jobs, self._claim = service.jobs, claim
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._text = "reading the test set"
        self._step: tuple[int, int, str] | None = None
        self._written: tuple[int, int, str] | None = None
        self.is_refused = False

    def start(self, system: str, total: int, done: int) -> None:
        """Begin counting."""
        self._totals[system], self._done[system] = total, done

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        """Count an answer."""
        del query, answer, log
        self._done[system] += 1

    def finish(self) -> None:
        """Every system was asked."""
        self._text = "scoring"

    def say(self, text: str, done: int, total: int) -> None:
        """What is done now, and how much of it: of a job that asks no systems."""
        self._step = done, total, text

    def tell(self) -> bool:
        """Write where the job is, if that has changed; False where another server has the job."""
        done, total = sum(self._done.values()), sum(self._totals.values())
        waiting = ", ".join(name for name, n in self._totals.items() if self._done[name] < n)
        now = self._step or (done, total, f"asking {waiting}" if waiting else self._text)
        if now == self._written:
            return True
        accepted = self._jobs.progress(self._claim, *now)
        self._written = now
        return accepted

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell the job each second; this process is interrupted where another server has the job."""
        ended = threading.Event()

        def tell() -> None:
            while not self.is_refused:
                with suppress(Exception):  # the database may be away for a moment: the answers are kept in files
                    self.is_refused = not self.tell()
                if self.is_refused:
                    signal.raise_signal(signal.SIGINT)
                if ended.wait(REPORT_S):
                    return

        thread = threading.Thread(target=tell, name="cranfield-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def work_on(service: Service, claim: Claim, folder: Path) -> ProcessStatus:
    """Do a job that is claimed, in this process.

    Raises:
        Interrupted: the answers so far are kept in the folder.
    """
    job = service.jobs.get(claim.job)
    progress = JobProgress(service, claim)
    try:
        with ExitStack() as kept:
            with progress.telling():  # it ends before the job: it would take a job that is done for another server's
                if isinstance(job.request, EvaluateRequest):
                    made: Sequence[Result] = kept.enter_context(
                        evaluated(service, job.request, job.trigger, folder, progress)
                    )
                elif isinstance(job.request, BenefitRequest):
                    made = [run_experiment_job(service, job.request, folder, progress.say)]
                else:
                    made = [compared(service, job.request)]
            progress.tell()
            accepted = service.jobs.finish(claim, made)
    except CranfieldError as error:
        accepted = service.jobs.fail(claim, problems_of(error))
    except KeyboardInterrupt:
        if progress.is_refused:
            return ProcessStatus.REFUSED
        raise
    return ProcessStatus.ENDED if accepted else ProcessStatus.REFUSED


def problems_of(error: CranfieldError) -> list[JobProblem]:
    """The problems of an error, as a job keeps them."""
    kinds = {
        InputError: ProblemCode.INPUT,
        SystemUnderTestError: ProblemCode.SYSTEM,
        InternalError: ProblemCode.INTERNAL,
    }
    code = next((code for kind, code in kinds.items() if isinstance(error, kind)), ProblemCode.USAGE)
    return [job_problem(problem, code) for problem in error.problems]


def main() -> ProcessStatus:
    """Do the job of the order on stdin; a bug fails it, and its reason is for the log of the server."""
    order = JobTask.read(sys.stdin)
    for name, value in order.database_variables.items():
        os.putenv(name, value)  # for the library alone: `os.environ`, which systems get, has them not
    threading.Thread(target=_end_with_server, name="cranfield-server", daemon=True).start()
    sys.excepthook = order.log_error
    try:
        return _done(order)
    except KeyboardInterrupt:
        return ProcessStatus.INTERRUPTED


def _done(order: JobTask) -> ProcessStatus:
    from cranfield.books.store.store import open_store

    with closing(open_store(order.database, create=False)) as store:
        config = None if order.config is None else Path(order.config)
        try:
            workbench = Workbench.model_validate(order.workbench)
            workbench.set_base_dir(Path(order.workbench_folder))
            service = open_service(store, config, workbench)
        except CranfieldError as error:  # the config was broken meanwhile
            jobs = open_service(store).jobs
            return ProcessStatus.ENDED if jobs.fail(order.claim, problems_of(error)) else ProcessStatus.REFUSED
        folder = _free_folder(Path(order.folder), order.claim)
        try:
            status = work_on(service, order.claim, folder)
        except DBAPIError:  # the job is tried again, with the answers that it has
            raise
        except Exception:
            problem = Problem("an unexpected error", hint="the server log has the reason")
            service.jobs.fail(order.claim, [job_problem(problem, ProblemCode.INTERNAL)])
            raise
        if status == ProcessStatus.ENDED and not service.jobs.get(order.claim.job).problems:
            shutil.rmtree(folder, ignore_errors=True)
        return status


def _free_folder(folder: Path, claim: Claim) -> Path:
    """The folder of a job; another where the process of a stalled server still has it, whose answers are asked for again."""
    with suppress(BlockingIOError), path_lock(folder, wait=False):
        return folder
    return folder.with_name(f"{folder.name}-{claim.fence}")


def _end_with_server() -> None:
    """End this process when the server has ended, however it ended."""
    with suppress(OSError):
        while os.read(0, 1):  # not by `sys.stdin`, whose lock would be held at the end of the process
            pass
    os._exit(ProcessStatus.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
