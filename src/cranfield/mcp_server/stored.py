"""The evidence of a server's database: stored test sets, runs, evaluations and comparisons; with a config also its systems.

What is computed is kept in memory, unless writes are allowed: then it is a job, which a server of that database does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.errors import CranfieldError, UnknownNameError, UsageError
from cranfield.evaluation.verdict import CompareOptions
from cranfield.mcp_server import answers
from cranfield.mcp_server.answers import untrusted
from cranfield.mcp_server.evidence import MEMORY, Declared, FolderEvidence, Wanted, with_wanted
from cranfield.mcp_server.results import Found

if TYPE_CHECKING:
    from cranfield.mcp_server.collecting import Report
    from cranfield.service.service import Service
    from cranfield.service.values import EvaluationInfo, JobInfo

SECONDS_TO_WAIT = 50
"""For a job: agents give up after a minute. Its result can be read later."""
EVALUATION, COMPARISON, JOB = "evaluation", "comparison", "job"


class StoredEvidence(FolderEvidence):
    """A database, and a config where there is one."""

    def __init__(
        self, service: Service, config: Path | None, *, allowed: frozenset[str] | None = None, writes: bool = False
    ) -> None:
        super().__init__(config, allowed=allowed, writes=writes)
        self._service = service

    def testsets(self) -> list[answers.TestSetRow]:
        """The latest version of each, and those of the config."""
        return [
            answers.TestSetRow(
                name=each.name, version=each.version, n_queries=each.n_queries, n_judgments=each.n_judgments
            )
            for each in self._service.testsets.names()
        ]

    def runs(self, offset: int, limit: int) -> answers.RunPage:
        """Stored runs, the latest first."""
        found = self._service.runs.all(offset + limit + 1)[offset:]
        rows = [
            answers.RunRow(run=str(each.id), name=untrusted(each.name), n_queries=each.n_queries)
            for each in found[:limit]
        ]
        return answers.RunPage(runs=rows, next_offset=offset + limit if len(found) > limit else None)

    def stored_results(
        self, testset: str | None, system: str | None, before: int | None, limit: int
    ) -> answers.ResultPage:
        """Stored evaluations, the latest first."""
        from cranfield.service.values import EvaluationFilter

        chosen = EvaluationFilter(testset=testset, system=system, before=before, limit=limit)
        found = self._service.evaluations.all(chosen)
        return answers.ResultPage(
            results=[_row(each) for each in found], next_before=found[-1].id if len(found) == limit else None
        )

    def get(self, ref: str) -> Found:
        """A result: stored, in memory, or that of a job."""
        kind, _, number = ref.partition("/")
        if kind == MEMORY:
            return self.memory.get(ref)
        if kind not in {EVALUATION, COMPARISON, JOB} or not number.isdecimal() or len(number) > 18:
            expected = f"{EVALUATION}/ID, {COMPARISON}/ID, {JOB}/ID or {MEMORY}/ID"
            raise UnknownNameError(f"there is no result {ref[:100]}", expected=expected)
        if kind == EVALUATION:
            if (kept := self.memory.find(ref)) is not None:
                return kept
            info = self._service.evaluations.get(int(number))
            value = self._service.evaluations.rescore(info.id)
            options = replace(_options(self._service.evaluations.settings(info.id)), limits=value.limits)
            found = Found(ref, value, options, stored=True, void_stored=info.void)
            return found if info.book_id is not None else self.memory.add(found)  # grades of a book change
        if kind == COMPARISON:
            if (kept := self.memory.find(ref)) is not None:
                return kept
            compared = self._service.comparisons.get(int(number))
            void = tuple(dict.fromkeys((*compared.baseline.void, *compared.candidate.void)))
            rebuilt = self._service.comparisons.rebuild(compared.id)
            return self.memory.add(Found(ref, rebuilt, CompareOptions(), stored=True, void_stored=void))
        return self._of_job(self._service.jobs.get(int(number)))

    def _of_job(self, job: JobInfo) -> Found:
        """The first result of a job.

        Raises:
            CranfieldError: it failed, or has not ended.
        """
        from cranfield.service.store.schema import JobKind, JobState

        if job.state == JobState.FAILED:
            raise CranfieldError([each.problem for each in job.problems])
        if job.state != JobState.DONE or not job.results:
            at = f"{job.n_done} of {job.n_all} answers" if job.n_all else f"{job.ahead} jobs before it"
            hint = f"read {JOB}/{job.id} again later with `get_result`"
            raise UsageError(f"job {job.id} is {job.state.value}: {at}", hint=None if job.has_ended else hint)
        return self.get(f"{COMPARISON if job.kind == JobKind.COMPARE else EVALUATION}/{job.results[0]}")

    async def evaluate(self, wanted: Wanted, report: Report) -> Found:
        """Evaluate a stored run or a system; as a job where writes are allowed."""
        from cranfield.service.requests import EvaluateRequest

        wanted.check()
        if not self.writes:
            return await super().evaluate(wanted, report)
        if wanted.system is not None:
            self._check_allowed(wanted.system)
        request = EvaluateRequest(
            testset=wanted.testset,
            systems=(wanted.system,) if wanted.system else (),
            runs=(self._run_id(wanted),) if wanted.run else (),
            measures=wanted.measures,
            primary=wanted.primary,
            k=wanted.k,
        )
        return await self._as_job(request, report)

    def _check_allowed(self, system: str) -> None:
        if not self._may_ask(system):
            raise UsageError(f"the operator does not allow {system} to be asked")

    def _run_id(self, wanted: Wanted) -> int:
        name = wanted.run or ""
        if not name.isdecimal() or len(name) > 18:
            raise UnknownNameError(f"there is no stored run {name[:100]!r}", expected="a number of `list_runs`")
        return int(name)

    def evaluate_run(self, wanted: Wanted) -> Found:
        """Evaluate a stored run, and store nothing."""
        from cranfield.project.experiment import Experiment

        if wanted.testset in self._keys():
            experiment = self.experiment(wanted)
        else:
            experiment = with_wanted(Experiment(self._service.testsets.load(wanted.testset), ()), wanted)
        with self._service.runs.file(self._run_id(wanted)) as (info, path):
            evaluation = experiment.evaluate(path, run_format=info.format, name=info.name)
        return self.memory.keep(evaluation, experiment.options)

    async def compare(self, baseline: str, candidate: str, declared: Declared, report: Report) -> Found:
        """Compare two results; as a job where writes are allowed and both are stored."""
        from cranfield.service.requests import CompareRequest

        ids = [ref.partition("/")[2] for ref in (baseline, candidate) if ref.startswith(f"{EVALUATION}/")]
        if not self.writes or len(ids) < 2 or not all(each.isdecimal() and len(each) < 18 for each in ids):
            return await super().compare(baseline, candidate, declared, report)
        request = CompareRequest(
            baseline=int(ids[0]),
            candidate=int(ids[1]),
            measure=declared.measure,
            test=declared.test,
            alpha=declared.alpha,
            margin=declared.margin,
            strata=declared.strata,
        )
        return await self._as_job(request, report)

    async def _as_job(self, request: object, report: Report) -> Found:
        """Put a request into the queue, and wait; a cancelled call cancels the job."""
        import anyio
        from anyio import to_thread

        from cranfield.service.store.schema import Trigger

        jobs = self._service.jobs
        job = await to_thread.run_sync(lambda: jobs.submit(request, trigger=Trigger.AGENT))  # type: ignore[arg-type]
        try:
            with anyio.move_on_after(SECONDS_TO_WAIT):
                while not job.has_ended:
                    job = await to_thread.run_sync(jobs.wait, job.id, 1.0, abandon_on_cancel=True)
                    await report(job.n_done, job.n_all)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(jobs.cancel, job.id)
            raise
        return await to_thread.run_sync(self._of_job, job)


def _row(info: EvaluationInfo) -> answers.ResultRow:
    primary = info.figures.primary
    return answers.ResultRow(
        void=list(info.void),
        result=f"{EVALUATION}/{info.id}",
        system=info.label,
        testset=info.testset_name,
        at=datetime.fromtimestamp(info.at / 1000, UTC).isoformat(timespec="seconds"),
        primary=primary,
        mean=info.figures.measures[primary]["mean"] if primary else None,
        pilot=info.figures.pilot,
        pinned=info.pinned,
        tags=list(info.tags),
    )


def _options(settings: dict[str, object]) -> CompareOptions:
    """What an evaluation declared for comparisons."""
    from cranfield.measures import parse

    declared = settings["compare"]
    options = CompareOptions(**declared) if isinstance(declared, dict) else CompareOptions()
    return replace(options, primary=parse(str(settings["primary"])))
