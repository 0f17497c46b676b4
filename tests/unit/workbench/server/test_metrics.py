"""`/metrics`: the figures of the database, for those who may read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.base.errors import UsageError
from cranfield.measures import parse
from cranfield.workbench.config import MetricsConfig, Workbench
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions
from cranfield.workbench.service.metrics.observed import MeasuredSubject
from cranfield.workbench.service.metrics.scrape import Scraper, observation
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.service import open_service

DAY_MS = 86_400_000


@pytest.fixture
def scraped(bench):
    """Lines of a scrape with a token of the scope read."""
    bench.team.app.state.scraper = Scraper(bench.service)
    raw = bench.team.store.people.add_token(bench.team.store.people.get("vic").id, "prometheus", "read", 1_000 * DAY_MS)

    def scrape() -> list[str]:
        with bench.team.new() as client:
            answer = client.get("/metrics", headers={"authorization": f"Bearer {raw}", "accept": "text/plain"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.text.splitlines()

    yield scrape
    bench.team.app.state.scraper = None


def of(lines: list[str], name: str, **labels: str) -> list[str]:
    """Samples of a metric with these labels."""
    found = [line for line in lines if line.startswith((f"cranfield_{name}{{", f"cranfield_{name} "))]
    return [line for line in found if all(f'{label}="{value}"' in line for label, value in labels.items())]


def test_the_last_evaluation_of_each_system_is_written(scraped, bench) -> None:
    lines = scraped()
    scores = bench.service.evaluations.get(bench.ids["second"]).scores
    [line] = of(lines, "measure", measure="nDCG", k="10", system="new", stratum="all")
    assert float(line.split()[-1]) == pytest.approx(scores.measures[parse("nDCG@10")].mean)
    assert len(of(lines, "measure", measure="nDCG", k="10", system="new")) == 1 + 3  # and its strata
    assert of(lines, "evaluation_info", system="new", version="2")
    assert of(lines, "jobs", state="failed") == ['cranfield_jobs{state="failed"} 1.0']
    assert of(lines, "testset_overdue_seconds", testset="shop")


def test_a_system_with_void_evaluations_alone_has_no_measures(scraped) -> None:
    lines = scraped()
    assert of(lines, "measure", system="broken") == []
    assert of(lines, "evaluation_void") == [
        'cranfield_evaluation_void{system="broken",testset="shop"} 1.0',
        'cranfield_evaluation_void{system="new",testset="shop"} 0.0',
        'cranfield_evaluation_void{system="old",testset="shop"} 0.0',
    ]


def test_a_void_evaluation_leaves_the_measures_as_they_were(scraped, bench, workbench_books, tmp_path: Path) -> None:
    before = of(scraped(), "measure", system="old")
    bench.team.now[0] += 60_000
    bench.service.jobs.cancel(bench.ids["queued"])
    bad = workbench_books.write_run(tmp_path / "bad.run", 30, -1.0, seed=3)
    workbench_books.evaluate(bench.service, "shop", bad, "old", void=("half of the queries failed",))
    lines = scraped()
    assert of(lines, "measure", system="old") == before
    assert of(lines, "evaluation_void", system="old")[0].endswith(" 1.0")
    assert of(lines, "evaluation_age_seconds", system="old")[0].endswith(" 60.0")


def test_a_new_evaluation_is_written_when_the_cache_has_ended(scraped, bench, workbench_books, tmp_path: Path) -> None:
    before = of(scraped(), "measure", system="old", measure="nDCG", stratum="all")
    bench.service.jobs.cancel(bench.ids["queued"])
    run = workbench_books.write_run(tmp_path / "better.run", 32, 2.0, seed=5)
    workbench_books.evaluate(bench.service, "shop", run, "old")
    assert of(scraped(), "measure", system="old", measure="nDCG", stratum="all") == before
    bench.team.now[0] += 5_000
    assert of(scraped(), "measure", system="old", measure="nDCG", stratum="all") != before


def test_what_is_no_live_answer_as_configured_changes_nothing(scraped, bench, workbench_books, tmp_path: Path) -> None:
    """An uploaded run with the name of the system, a try, a pilot: none may raise an alert, or end one."""
    before = scraped()
    bench.service.jobs.cancel(bench.ids["queued"])
    run = workbench_books.write_run(tmp_path / "worse.run", 32, -2.0, seed=5)
    workbench_books.evaluate(bench.service, "shop", run, "old", configured=False)
    bench.team.app.state.scraper = Scraper(bench.service)
    assert of(scraped(), "measure") == of(before, "measure")
    assert of(scraped(), "evaluation_timestamp_seconds") == of(before, "evaluation_timestamp_seconds")


def test_a_measure_that_was_not_computed_keeps_its_value_and_its_time(
    scraped, bench, workbench_books, tmp_path: Path
) -> None:
    ndcg = {"measure": "nDCG", "k": "10", "system": "new"}
    before, at = of(scraped(), "measure", **ndcg), of(scraped(), "measure_timestamp_seconds", **ndcg)
    bench.service.jobs.cancel(bench.ids["queued"])
    bench.team.now[0] += 60_000
    run = workbench_books.write_run(tmp_path / "next.run", 32, 2.0, seed=5)
    workbench_books.evaluate(bench.service, "shop", run, "new", measures=("P@1",))
    lines = scraped()
    assert (of(lines, "measure", **ndcg), of(lines, "measure_timestamp_seconds", **ndcg)) == (before, at)
    [new] = of(lines, "measure_timestamp_seconds", measure="P", k="1", system="new")
    assert float(new.split()[-1]) == float(at[0].split()[-1]) + 60


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([False], False),
        ([None, False], False),
        ([None, None, False, True], False),
        ([True, False], True),
        ([None, True, False], None),
        ([None], None),
    ],
    ids=str,
)
def test_a_broken_rule_is_broken_until_an_evaluation_decides_it(
    bench, states: list[bool | None], expected: bool | None
) -> None:
    """States of one rule, the latest first: an evaluation that could not decide it must not end its alert."""
    info = bench.service.evaluations.get(bench.ids["second"])
    infos = [replace(info, facts=replace(info.facts, gate={"rule": state})) for state in states]
    infos.insert(1, replace(info, facts=replace(info.facts, gate={"gone": False})))
    valid = observation(MeasuredSubject("shop", "new"), infos).valid
    assert valid is not None
    assert valid.facts.gate == {"rule": expected}


def test_schedules_are_written(bench, tmp_path: Path) -> None:
    operator = {"watch": {"hourly": {"cron": "0 * * * *", "testset": "shop", "compare": None}}}
    service = open_service(bench.team.store, None, Workbench.model_validate(operator))
    service.jobs.cancel(bench.ids["queued"])

    def values() -> dict[str, float]:
        """Name and labels to value, of the metrics of schedules."""
        found = (line.rpartition(" ") for line in Scraper(service).exposition().text().decode().splitlines())
        return {
            name.removeprefix("cranfield_schedule_").replace('schedule="hourly"', ""): float(value)
            for name, _, value in found
            if name.startswith("cranfield_schedule_")
        }

    now = bench.team.now[0] // 1000
    following = now // 3600 * 3600 + 3600
    assert values() == {"next_timestamp_seconds{}": following, "failed_runs{}": 0}
    for number in range(2):
        request = EvaluateRequest(testset="shop", systems=("gone",))
        job = service.jobs.add(request, Trigger.WATCH, key=f"watch:hourly:{number}")
        claim = service.jobs.claim("test")
        assert claim is not None
        assert claim.job == job.id
        assert service.jobs.fail(claim, [])
    results = dict.fromkeys(("void", "worse", "gate_failed", "passed"), 0) | {"failed": 1}
    assert values() == {
        "next_timestamp_seconds{}": following,
        "ended_timestamp_seconds{}": now,
        "failed_runs{}": 2,
        **{f'result{{result="{name}",}}': value for name, value in results.items()},
    }


def test_triggers_may_be_restricted_to_schedules(bench) -> None:
    service = open_service(bench.team.store, None, Workbench(metrics=MetricsConfig(triggers=["watch"])))
    assert "cranfield_measure" not in Scraper(service).exposition().text().decode()


def test_a_restart_changes_nothing(scraped, bench) -> None:
    before = scraped()
    bench.team.app.state.scraper = Scraper(open_service(bench.team.store))
    assert scraped() == before


def test_a_system_that_is_no_longer_evaluated_has_no_series_after_90_days(scraped, bench) -> None:
    bench.team.now[0] += 90 * DAY_MS
    assert of(scraped(), "queries", system="new")
    bench.team.now[0] += DAY_MS
    assert of(scraped(), "queries") == []


@pytest.mark.parametrize(("who", "status"), [("lee", 200), ("vic", 200), ("ann", 403), ("nobody", 401)])
def test_who_may_read_metrics(bench, who: str, status: int) -> None:
    client = bench.team.new() if who == "nobody" else bench.team.browser(who)
    assert client.get("/metrics", headers={"accept": "text/plain"}).status_code == status


def test_metrics_may_be_open_to_all(bench) -> None:
    bench.team.app.state.open_metrics = True
    try:
        with bench.team.new() as client:
            assert client.get("/metrics", headers={"accept": "text/plain"}).status_code == 200
            assert client.get("/v1/evaluations", headers={"accept": "application/json"}).status_code == 401
    finally:
        bench.team.app.state.open_metrics = False


def test_a_database_that_is_away_is_no_scrape(scraped, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` is then 0; an answer without the series would end alerts."""
    from sqlalchemy.exc import OperationalError

    def away(*_: object) -> None:
        raise OperationalError("select", {}, Exception("no answer"))

    monkeypatch.setattr(bench.service.evaluations, "followed", away)
    answer = bench.team.browser("lee").get("/metrics", headers={"accept": "text/plain"})
    assert answer.status_code == 503
    assert "cranfield_" not in answer.text


def test_a_server_of_books_alone_writes_its_version(team) -> None:
    answer = team.browser("lee").get("/metrics")
    assert "cranfield_build_info{" in answer.text


def test_two_metrics_of_one_name_stop_the_start(bench) -> None:
    workbench = Workbench(metrics=MetricsConfig(measures={"R": "queries"}))
    with pytest.raises(UsageError, match="which another metric already has"):
        create_app(bench.team.store, ServerOptions(port=1), service=open_service(bench.team.store, None, workbench))
