"""A server's database with results: test sets, evaluations that count and one that does not, a comparison, jobs of each end."""

from __future__ import annotations

import random
from pathlib import Path

from cranfield.app.experiment import Experiment
from cranfield.app.loading import load
from cranfield.evaluation.latency import calls_of
from cranfield.evaluation.result import result_of
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest, Settings
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.scoring import facts_of, record_of, score, void_of
from cranfield.workbench.service.service import Service
from cranfield.workbench.service.values import JobProblem, NewComparison, NewEvaluation

WORDS = ("wool", "socks", "blue", "shirt", "rain", "coat", "boots", "winter", "hat", "shoes", "red", "scarf")
KINDS = ("name", "task", "question")


PAGES = {
    "home": "/",
    "test sets": "/testsets",
    "test set": "/testsets/shop",
    "older version": "/testsets/shop?version=1&find=wool&page=9",
    "query of a test set": "/testsets/shop/queries/q3",
    "versions": "/testsets/shop/diff?old=1&new=2",
    "evaluations": "/evaluations",
    "evaluations chosen": "/evaluations?testset=shop&tag=nightly&since=2026-01-01&system=old&pinned=true",
    "history": "/evaluations?testset=shop",
    "evaluation": "/evaluations/{new}",
    "void evaluation": "/evaluations/{void}",
    "queries": "/evaluations/{new}/queries",
    "query": "/evaluations/{new}/queries/q3",
    "compare": "/comparisons",
    "compare two": "/comparisons?baseline={old}&candidate={second}",
    "difference": "/diff?baseline={old}&candidate={new}",
    "comparison": "/comparisons/{comparison}",
    "query of a comparison": "/comparisons/{comparison}/queries/q3",
    "jobs": "/jobs",
    "failed jobs": "/jobs?state=failed",
    "failed job": "/jobs/{failed}",
    "queued job": "/jobs/{queued}",
    "settings": "/settings",
    "measures": "/measures",
    "books": "/books",
}
"""Every page of the workbench. Whoever adds a page adds it here: the browser test opens each at two widths."""


def write_testset(
    path: Path, n_queries: int, *, version: str = "1", made: str = "2026-03-01", changed: int = 0
) -> Path:
    """Queries in three strata with four relevant documents each; `changed` of them have other judgments."""
    lines = [
        "cranfield_testset: 1",
        "name: shop",
        f"version: '{version}'",
        f"meta: {{made: {made}, refresh_days: 90}}",
        "queries:",
    ]
    for place in range(n_queries):
        text = f"{WORDS[place % 12]} {WORDS[place * 7 % 11]} {place}"
        grade = 1 if place < changed else 2
        lines.append(f"  - id: q{place}")
        lines.append(f"    text: {text}")
        lines.append(f"    strata: {{kind: {KINDS[place % 3]}}}")
        lines.append(
            f"    judgments: {{q{place}-d0: {grade}, q{place}-d1: 1, q{place}-d2: 1, q{place}-d3: 2, q{place}-d9: 0}}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_run(path: Path, n_queries: int, skill: float, *, seed: int, depth: int = 10) -> Path:
    """Results of which the better ones are higher with more skill."""
    draw = random.Random(seed)
    lines = []
    for place in range(n_queries):
        docs = [f"q{place}-d{number}" for number in range(depth + 4)]
        docs.sort(key=lambda doc: int(doc.rpartition("d")[2]) * skill + draw.random() * 8)
        lines += [f"q{place} Q0 {doc} {rank} {100 - rank} run" for rank, doc in enumerate(docs[:depth], 1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def evaluate(
    service: Service,
    testset: str,
    run: Path,
    system: str,
    *,
    void: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    measures: tuple[str, ...] | None = None,
    configured: bool = True,
    pilot: bool = False,
) -> int:
    """Do the work of a job in this process; the id of the evaluation."""
    info = service.runs.add(system, run)
    made = service.testsets.get(testset)
    service.jobs.submit(EvaluateRequest(testset=testset, runs=(info.id,), tags=tags), trigger=Trigger.PAGE)
    claim = service.jobs.claim("test:1")
    assert claim is not None
    loaded = service.testsets.load(made.ref)
    experiment = Experiment(loaded, (), k=10, measures=measures)
    settings = Settings.of(experiment, name=system, pilot=pilot)
    found = score(settings, loaded, run, info.format)
    new = NewEvaluation(
        *(made.id or 0, info.id, system, settings, record_of(found), calls_of((found,)), facts_of(found)),
        void=void or void_of(found, settings),
        tags=tags,
        configured=configured,
    )
    assert service.jobs.finish(claim, [new])
    return service.evaluations.for_job(claim.job)[0].id


def compare(service: Service, baseline: int, candidate: int) -> int:
    """Compare two evaluations in this process; the id of the comparison."""
    request = CompareRequest(baseline=baseline, candidate=candidate)
    service.jobs.submit(request, trigger=Trigger.PAGE)
    claim = service.jobs.claim("test:1")
    assert claim is not None
    found = service.comparisons.compare(request)
    new = NewComparison(request, result_of(found, with_answers=True), calls_of(found.evaluations, found))
    assert service.jobs.finish(claim, [new])
    return service.comparisons.for_job(claim.job).id


def fill(service: Service, folder: Path, n_queries: int = 30) -> dict[str, int]:
    """Fill a database; the ids by name."""
    shop = write_testset(folder / "shop.yaml", n_queries)
    service.testsets.keep("shop", load(shop))
    runs = {
        name: write_run(folder / f"{name}.run", n_queries, skill, seed=place)
        for place, (name, skill) in enumerate({"old": 0.3, "new": 1.2}.items())
    }
    ids = {name: evaluate(service, "shop", run, name, tags=("nightly",)) for name, run in runs.items()}
    service.evaluations.pin(ids["old"], pinned=True)
    ids["void"] = evaluate(service, "shop", runs["old"], "broken", void=("every query returned the same results",))
    ids["comparison"] = compare(service, ids["old"], ids["new"])
    service.testsets.keep("shop", load(write_testset(folder / "shop2.yaml", n_queries + 2, version="2", changed=3)))
    ids["second"] = evaluate(service, "shop", write_run(folder / "next.run", n_queries + 2, 1.0, seed=9), "new")
    service.jobs.submit(EvaluateRequest(testset="shop", runs=(1,)), trigger=Trigger.WATCH)
    claim = service.jobs.claim("test:1")
    assert claim is not None
    ids["failed"] = claim.job
    problem = JobProblem(
        message="the search did not start: no such file",
        where="search",
        hint="check `command` of the system",
        code="system",
    )
    service.jobs.fail(claim, [problem])
    ids["queued"] = service.jobs.submit(EvaluateRequest(testset="shop", runs=(1,)), trigger=Trigger.API).id
    return ids
