"""What the tools read and make: stored results of a database, and a temporary database for what is not to be stored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, UnknownNameError, UsageError
from cranfield.reporting.sections.subject import Subject
from cranfield.workbench.mcp import answers
from cranfield.workbench.mcp.answers import untrusted
from cranfield.workbench.mcp.results import FoundResult, next_offset
from cranfield.workbench.service.responses import JobKind, JobState, Trigger
from cranfield.workbench.service.results import check_two, compare_evaluations, compare_lists
from cranfield.workbench.service.service import Service, open_service
from cranfield.workbench.service.values import EvaluationFilter, EvaluationInfo, JobInfo
from cranfield.workbench.service.worker import working

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cranfield.books.store.store import Store
    from cranfield.config import Config
    from cranfield.evaluation.difference import RunDifference
    from cranfield.model import Run, TestSet
    from cranfield.workbench.service.requests import CompareRequest, DiffOptions, EvaluateRequest, JobRequest
    from cranfield.workbench.service.results import Comparisons, Evaluations

    Report = Callable[[int, int], Awaitable[None]]

KEPT = 20
"""Comparisons that are made and not stored."""
KEPT_RECORDS = 4
"""Records that were read, with their queries."""
MAX_FILES = 5_000
"""Files that are looked at for runs."""
RUN_SUFFIXES = frozenset({".jsonl", ".trec", ".run", ".txt", ".parquet", ".tsv", ".csv", ".gz", ".zst", ".res"})
SECONDS_TO_WAIT = 50
"""For a job: agents give up after a minute. Its result can be read later."""
TEMPORARY = "temporary/"
"""Begins the references of results that end with this program."""
_REF = re.compile(rf"({TEMPORARY})?(evaluation|comparison|job)/([1-9]\d{{0,17}})")


class McpEvidence:
    """Systems and test sets of a config, and results.

    Args:
        stored: of a server's database; None: there is none.
        scratch: of a temporary database, which takes what is computed; None: the server's database does.
        allowed: systems that may be asked; None: all of the config.

    Raises:
        UnknownNameError: the config has no such system.
    """

    def __init__(self, stored: Service | None, scratch: Service | None, allowed: frozenset[str] | None = None) -> None:
        made = scratch or stored
        if made is None:
            raise UsageError("nothing to serve")
        self._stored, self._scratch, self._made, self._allowed = stored, scratch, made, allowed
        self._compared: dict[str, FoundResult] = {}
        self._read = lru_cache(maxsize=KEPT_RECORDS)(self._subject)
        config = made.config()
        known = {} if config is None else config.systems
        for name in sorted(allowed or ()):
            if name not in known:
                raise UnknownNameError.among("system", name, known)

    @property
    def writes(self) -> bool:
        """Whether what is computed is stored in the database of a server."""
        return self._scratch is None

    @property
    def folders(self) -> list[Path]:
        """Whose paths no message shows."""
        config = self._made.config()
        database = self._made.store.database.path
        return [each for each in (config and config.folder.resolve(), database and database.parent.resolve()) if each]

    def systems(self) -> list[answers.SystemRow]:
        """The systems of the config."""
        config = self._made.config()
        return [
            answers.SystemRow(name=name, kind=system.kind, allowed=self._allowed is None or name in self._allowed)
            for name, system in (config.systems if config is not None else {}).items()
        ]

    def testsets(self) -> list[answers.TestSetRow]:
        """The latest version of each, and those of the config."""
        return [answers.TestSetRow.model_validate(each) for each in (self._stored or self._made).testsets.names()]

    def runs(self, offset: int, limit: int) -> answers.RunPage:
        """Stored runs, the latest first; without a database, run files in the folder of the config and below it."""
        if self._stored is not None:
            rows = [
                answers.RunRow(run=str(each.id), name=untrusted(each.name), n_queries=each.n_queries)
                for each in self._stored.runs.all(offset + limit + 1)
            ]
        else:
            folder = self._folder()
            names = (path.relative_to(folder).as_posix() for path in _run_files(folder))
            rows = [answers.RunRow(run=name, name=untrusted(Path(name).stem), n_queries=None) for name in names]
        page = rows[offset : offset + limit]
        return answers.RunPage(runs=page, next_offset=next_offset(len(page), offset, len(rows)))

    def evaluations(
        self, testset: str | None, system: str | None, before: int | None, limit: int
    ) -> tuple[list[FoundResult], int | None]:
        """Stored evaluations, the latest first, and where the next page begins."""
        service = self._stored or self._made
        chosen = EvaluationFilter(testset=testset, system=system, before=before, limit=limit)
        found = service.evaluations.all(chosen)
        page = [self._evaluation(service, each) for each in found]
        return page, found[-1].id if len(found) == limit else None

    def get(self, ref: str) -> FoundResult:
        """A result by its reference; of a job its first.

        Raises:
            UnknownNameError: there is none.
            CranfieldError: the job failed, or has not ended.
        """
        if ref in self._compared:
            return self._compared[ref]
        service, kind, number = self._place(ref)
        if kind == "evaluation":
            return self._evaluation(service, service.evaluations.get(number))
        if kind == "comparison":
            info = service.comparisons.get(number)
            void = tuple(dict.fromkeys((*info.baseline.void, *info.candidate.void)))
            read = partial(self._read, service.comparisons, number)
            return FoundResult(ref, read, void, is_stored=service is self._stored)
        return self._of_job(service, service.jobs.get(number))

    def _place(self, ref: str) -> tuple[Service, str, int]:
        """Where a reference leads."""
        parts = _REF.fullmatch(ref)
        service = None if parts is None else self._scratch if parts[1] else self._stored
        if parts is None or service is None:
            raise UnknownNameError(f"result {ref[:100]!r} not found", expected="`result` of an earlier answer")
        return service, parts[2], int(parts[3])

    def _ref(self, service: Service, kind: str, number: int) -> str:
        return f"{TEMPORARY if service is self._scratch else ''}{kind}/{number}"

    def _evaluation(self, service: Service, info: EvaluationInfo) -> FoundResult:
        ref, is_stored = self._ref(service, "evaluation", info.id), service is self._stored
        read = partial(self._read, service.evaluations, info.id)
        if info.book_id is not None:  # grades of a book change
            read = partial(service.evaluations.subject, info.id)
        return FoundResult(ref, read, info.void, info, is_stored)

    @staticmethod
    def _subject(stored: Evaluations | Comparisons, number: int) -> Subject:
        return stored.subject(number)

    async def evaluate(self, request: EvaluateRequest, run: str | None, report: Report) -> FoundResult:
        """Evaluate the system of a request, which is asked every query now, or a run.

        Raises:
            CranfieldError: test set, run, measures or system, with all their problems.
        """
        from anyio import to_thread

        return await self._done(await to_thread.run_sync(self._prepared, request, run), report)

    def _prepared(self, request: EvaluateRequest, run: str | None) -> EvaluateRequest:
        """The request with the number of the run, and a test set that is where the results go.

        Raises:
            UsageError: not one of system and run; k with a run; a system that the operator does not allow.
        """
        if bool(request.systems) == bool(run):
            raise UsageError("name a system or a run", expected="exactly one of the two")
        if run and request.k is not None:
            raise UsageError("k applies to systems only; the results of a run are fixed", hint="leave k out")
        config = self._made.config()
        for name in request.systems:
            if self._allowed is not None and name not in self._allowed and config and name in config.systems:
                raise UsageError(
                    f"the operator does not allow queries to {name}",
                    expected=", ".join(sorted(self._allowed)),
                    hint="evaluate one of its runs; `list_runs` lists them",
                )
        stored, made = self._stored, self._made
        changes: dict[str, object] = {"runs": (self._run_id(run),)} if run else {}
        if stored is not None and not self.writes and made.testsets.config_key(request.testset) is None:
            name = request.testset.replace("@", " version ")
            changes["testset"] = made.testsets.keep(name, stored.testsets.load(request.testset)).ref
        return request.model_copy(update=changes)

    def _run_id(self, run: str) -> int:
        """The number of a run where the results go.

        Raises:
            UsageError: there is none: the answer is the same for a file outside of the folder.
        """
        if self._stored is None:
            path = self._run_file(run)
            return self._made.runs.add(path.stem, path).id
        number = self._stored_number(run)
        if self.writes:
            return number
        with self._stored.runs.file(number) as (info, path):
            return self._made.runs.add(info.name, path, format_name=info.format).id

    @staticmethod
    def _stored_number(run: str) -> int:
        """The number that `list_runs` gave.

        Raises:
            UnknownNameError: it is none.
        """
        if not run.isdecimal() or len(run) > 18:
            raise UnknownNameError(f"stored run {run!r} not found", expected="`run` of `list_runs`")
        return int(run)

    def _folder(self) -> Path:
        config: Config | None = self._made.config()
        if config is None:
            raise UsageError("this server has no config", expected="a config with test sets and systems")
        return config.folder.resolve()

    def _run_file(self, name: str) -> Path:
        """A run file of this name under the folder, wherever links lead. Other files are not opened: messages quote their first line."""
        folder = self._folder()
        try:
            path = (folder / name).resolve()
            if path.is_relative_to(folder) and _may_be_run(path.relative_to(folder)) and path.is_file():
                return path
        except (OSError, ValueError):  # a name that is too long, or has U+0000
            pass
        raise UsageError("run file not found in the folder of the config", expected="`run` of `list_runs`")

    async def compare(self, baseline: str, candidate: str, request: CompareRequest, report: Report) -> FoundResult:
        """Compare two evaluations; as a job where results are stored.

        Raises:
            UsageError: they do not belong together.
        """
        from anyio import to_thread

        if self.writes:
            ids = dict(
                zip(("baseline", "candidate"), (self._place(each)[2] for each in (baseline, candidate)), strict=True)
            )
            return await self._done(request.model_copy(update=ids), report)
        return await to_thread.run_sync(self._compare, (baseline, candidate), request, abandon_on_cancel=True)

    def _compare(self, refs: tuple[str, str], request: CompareRequest) -> FoundResult:
        places = [self._evaluation_place(ref) for ref in refs]
        declared = places[0][0].evaluations.settings(places[0][1]).compare
        sides = [service.evaluations.rescore(number) for service, number in places]
        compared = compare_evaluations(request, declared, sides, refs)
        self._n_compared += 1
        found = FoundResult(f"{TEMPORARY}comparison/{self._n_compared}", partial(Subject.of, compared))
        self._compared[found.ref] = found
        if len(self._compared) > KEPT:
            del self._compared[next(iter(self._compared))]
        return found

    def _evaluation_place(self, ref: str) -> tuple[Service, int]:
        """Where a reference to an evaluation leads; that of a job leads to its first.

        Raises:
            UnknownNameError: there is none.
            UsageError: it is a comparison.
        """
        found = self.get(ref)
        if found.info is None:
            raise UsageError(f"{ref} is a comparison", expected="an evaluation")
        return self._place(found.ref)[0], found.info.id

    def difference(self, baseline: str, candidate: str, options: DiffOptions) -> RunDifference:
        """Compare the results of two evaluations, or runs, without judgments; nothing is queried or stored.

        Raises:
            UsageError: both are one; or a run file that is not in the folder of the config.
            UnknownNameError: there is no such result or run.
        """
        refs = (baseline, candidate)
        check_two(*refs)
        sides = [self._answers(ref) for ref in refs]
        return compare_lists(
            options, [run for _, run in sides], refs, next((each for each, _ in sides[::-1] if each), None)
        )

    def _answers(self, ref: str) -> tuple[TestSet | None, Run]:
        """The results of an evaluation with its test set, or of a run."""
        if _REF.fullmatch(ref):
            service, kind, number = self._place(ref)
            if kind != "evaluation":
                raise UsageError(f"{ref} is a {kind}", expected="an evaluation, or `run` of `list_runs`")
            return service.evaluations.answers(number)
        if self._stored is None:
            from cranfield.ranking.collected import read_run_file

            return None, read_run_file(self._run_file(ref))
        return None, self._stored.runs.lists(self._stored_number(ref))

    _n_compared = 0

    async def _done(self, request: JobRequest, report: Report) -> FoundResult:
        """Put a request into the queue, and wait; a cancelled call cancels the job."""
        import anyio
        from anyio import to_thread

        jobs = self._made.jobs
        job = await to_thread.run_sync(partial(jobs.submit, request, trigger=Trigger.AGENT))
        try:
            with anyio.move_on_after(SECONDS_TO_WAIT):
                while not job.has_ended:
                    job = await to_thread.run_sync(jobs.wait, job.id, 1.0, abandon_on_cancel=True)
                    await report(job.n_done, job.n_all)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(jobs.cancel, job.id)
            raise
        return await to_thread.run_sync(self._of_job, self._made, job)

    def _of_job(self, service: Service, job: JobInfo) -> FoundResult:
        if job.state == JobState.FAILED:
            raise CranfieldError([each.problem for each in job.problems])
        if job.state != JobState.DONE or not job.results:
            at = f"{job.n_done} of {job.n_all} answers" if job.n_all else f"{job.ahead} jobs ahead of it"
            hint = None if job.has_ended else f"read {self._ref(service, 'job', job.id)} later with `get_result`"
            raise UsageError(f"job {job.id} is {job.state.value}: {at}", hint=hint)
        return self.get(
            self._ref(service, "comparison" if job.kind == JobKind.COMPARE else "evaluation", job.results[0])
        )


def _run_files(folder: Path) -> Iterator[Path]:
    """Regular files that are runs, without links and hidden folders."""
    from cranfield.formats.sniff import sniff_run

    n = 0
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            n += 1
            if n > MAX_FILES:
                return
            path = Path(top) / name
            if _may_be_run(Path(name)) and not path.is_symlink() and path.is_file():
                try:
                    sniff_run(path)
                except CranfieldError:
                    continue  # another file
                yield path


def _may_be_run(path: Path) -> bool:
    """Whether a file below the folder has the name of a run, and is not hidden."""
    return path.suffix in RUN_SUFFIXES and not any(part.startswith(".") for part in path.parts)


@contextmanager
def open_evidence(
    store: Store | None, config: Path | None, allowed: frozenset[str] | None = None, *, writes: bool = False
) -> Iterator[McpEvidence]:
    """The evidence of a database, of a config or of both.

    Args:
        store: of a server; None: there is none.
        config: cranfield.yaml; None: no systems, and the stored test sets alone.
        allowed: systems that may be asked; None: all of the config.
        writes: whether what is computed is stored, by the jobs of a running server; otherwise it is kept for the time of the block.
    """
    from cranfield.books.store.store import open_store

    with ExitStack() as stack:
        stored = None if store is None else open_service(store, config)
        scratch = None
        if stored is None or not writes:
            folder = stack.enter_context(TemporaryDirectory(prefix="cranfield-mcp-"))
            scratch = open_service(stack.enter_context(closing(open_store(Path(folder) / "scratch.db"))), config)
            stack.enter_context(working(scratch))
        yield McpEvidence(stored, scratch, allowed)
