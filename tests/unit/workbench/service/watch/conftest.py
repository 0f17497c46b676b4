"""A service with a config of two systems, on a database of its own; the time is set by hand."""

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from tests.unit.workbench.records import CALLS, comparison_record, evaluation_record

from cranfield.books.store.store import open_store
from cranfield.evaluation.options.blocks import CompareOptions, ScoringOptions
from cranfield.workbench.config import load_workbench
from cranfield.workbench.service.requests import Settings
from cranfield.workbench.service.service import open_service
from cranfield.workbench.service.values import EvaluationFacts, NewComparison, NewEvaluation, NewRun
from cranfield.workbench.service.watch.scheduler import Scheduler

CONFIG = """
testset: clinic.yaml
systems:
  old: {command: [sh, old.sh, '{query}'], extract: {regex: '^(\\S+)'}}
  new: {command: [sh, new.sh, '{query}'], extract: {regex: '^(\\S+)'}}
"""
CLINIC = """
cranfield_testset: 1
name: clinic
version: v1
meta: {scale: [0, 1, 2, 3], made: 2026-09-01, refresh_days: 60}
queries:
  - {id: q1, text: dose of aspirin, judgments: {a1: 3, a2: 1}}
  - {id: q2, text: side effects of statins, judgments: {s1: 2}}
"""
NIGHTLY = "nightly: {cron: '0 2 * * *', testset: clinic, systems: [new]}"


def ms(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@dataclass
class Desk:
    """A service, and what a server does with it."""

    service: object
    now: list
    scheduler: Scheduler = None
    made: list = field(default_factory=list)

    def at(self, time):
        """The jobs that a tick at a time starts, by key."""
        self.now[0] = ms(time)
        self.scheduler = self.scheduler or Scheduler(self.service)
        return [job.key for job in self.scheduler.tick()]

    def restart(self):
        self.scheduler = None

    def rewrite(self, name, old, new):
        path = self.service.store.database.path.parent / name
        path.write_text(path.read_text().replace(old, new))

    def finish(self, time, mean=0.5, *, void=()):
        """The oldest job that waits is done at a time."""
        self.now[0] = ms(time)
        jobs = self.service.jobs
        claim = jobs.claim("test")
        job = jobs.get(claim.job)
        if job.kind == "compare":
            results = [NewComparison(job.request, comparison_record("worse"), CALLS)]
        else:
            testset = self.service.testsets.get(job.request.testset)
            results = [
                NewEvaluation(
                    testset.id,
                    NewRun(name, f"sha256:{job.id}{name}", b"run", 2),
                    name,
                    Settings(k=10, scoring=ScoringOptions(), compare=CompareOptions(primary="nDCG@10")),
                    evaluation_record(mean),
                    CALLS,
                    EvaluationFacts(gate={"nDCG@10 at least 0.6": mean >= 0.6}),
                    void=void,
                    tags=job.request.tags,
                    note=job.request.note,
                )
                for name in job.request.systems
            ]
        assert jobs.finish(claim, results)
        return jobs.get(claim.job)


@pytest.fixture
def desk(tmp_path, empty_database):
    """A service with schedules of its own; closed at the end."""
    stores = []

    def make(watch=NIGHTLY, start="2026-11-23T12:00"):
        for name, text in {
            "cranfield.yaml": CONFIG,
            "clinic.yaml": CLINIC,
            "workbench.yaml": f"watch:\n  {watch}",
        }.items():
            (tmp_path / name).write_text(text)
        now = [ms(start)]
        if not (tmp_path / "books.db").exists():
            shutil.copy(empty_database, tmp_path / "books.db")
        store = open_store(tmp_path / "books.db", clock=lambda: now[0])
        stores.append(store)
        service = open_service(store, tmp_path / "cranfield.yaml", load_workbench(tmp_path / "workbench.yaml"))
        return Desk(service, now, Scheduler(service))

    yield make
    for store in stores:
        store.close()
