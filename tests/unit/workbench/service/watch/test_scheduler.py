"""Schedules: each time is one job, missed times are one job, a run that still runs is not started twice."""

import logging
from datetime import UTC, datetime, timedelta

from cranfield.workbench.service.watch.scheduler import Schedule, watch_states
from cranfield.workbench.watch_config import Watch


def test_a_time_is_one_job_however_many_servers_there_are(desk):
    one, other = desk(), desk()
    assert one.at("2026-11-24T01:59:59") == []
    assert one.at("2026-11-24T02:00") == ["watch:nightly:2026-11-24T02:00Z"]
    assert other.at("2026-11-24T02:00:03") == []
    (job,) = one.service.jobs.all()
    assert (job.trigger, job.request.systems, job.request.tags) == ("watch", ("new",), ("watch:nightly",))


def test_two_servers_at_the_same_moment(desk):
    one, other = desk(), desk()
    time = datetime(2026, 11, 24, 2, tzinfo=UTC)
    jobs = [each.scheduler.start(each.scheduler.schedule("nightly"), time) for each in (one, other)]
    assert jobs[0].id == jobs[1].id


def test_a_schedule_that_never_ran_begins_at_the_next_time(desk):
    assert desk(start="2026-11-23T12:00").at("2026-11-23T12:00") == []


def test_times_that_were_missed_are_one_job(desk):
    server = desk()
    server.at("2026-11-24T02:00")
    server.finish("2026-11-24T02:03")
    server.restart()
    assert server.at("2026-11-27T09:00") == ["watch:nightly:2026-11-27T02:00Z"]
    server.finish("2026-11-27T09:03")
    assert server.at("2026-11-27T09:04") == []
    assert server.at("2026-11-28T02:00") == ["watch:nightly:2026-11-28T02:00Z"]


def test_a_run_that_still_runs_is_not_started_twice_and_the_times_are_counted(desk, caplog):
    server = desk("often: {cron: '*/10 * * * *', testset: clinic, systems: [new]}")
    caplog.set_level(logging.WARNING, "cranfield.watch")
    assert len(server.at("2026-11-23T12:10")) == 1
    assert server.at("2026-11-23T12:20") == server.at("2026-11-23T12:35") == server.at("2026-11-23T12:36") == []
    assert [record.getMessage() for record in caplog.records] == [
        "schedule often: skipped 1 time: job 1 still runs",
        "schedule often: skipped 2 times: job 1 still runs",
    ]
    assert watch_states(server.service)[0].n_skipped == 2
    server.finish("2026-11-23T12:41")
    assert watch_states(server.service)[0].n_skipped == 3
    assert server.at("2026-11-23T12:42") == []  # 12:40 was skipped, and is not made up for
    assert server.at("2026-11-23T12:50") == ["watch:often:2026-11-23T12:50Z"]


def test_the_jitter_is_that_of_name_time_and_database():
    watch = Watch(cron="0 * * * *", testset="x", jitter_s=600)
    times = list(zip(range(50), watch.times(datetime(2026, 11, 23, tzinfo=UTC)), strict=False))
    delays = {where: [Schedule("a", watch, where).due(time) - time for _, time in times] for where in ("x", "y")}
    assert all(timedelta() <= delay <= timedelta(minutes=10) for delay in delays["x"])
    assert len(set(delays["x"])) > 30
    assert delays["x"] != delays["y"]
    assert delays["x"] == [Schedule("a", watch, "x").due(time) - time for _, time in times]


def test_a_delayed_time_starts_when_its_delay_is_over(desk):
    server = desk("a: {cron: '0 2 * * *', testset: clinic, systems: [new], jitter_s: 3600}")
    schedule = server.scheduler.schedule("a")
    due = schedule.due(datetime(2026, 11, 24, 2, tzinfo=UTC))
    assert server.at((due - timedelta(seconds=1)).isoformat()[:19]) == []
    assert server.at(due.isoformat()[:19]) == ["watch:a:2026-11-24T02:00Z"]
    server.finish((due + timedelta(seconds=5)).isoformat()[:19])
    assert server.at((due + timedelta(seconds=10)).isoformat()[:19]) == []


def test_a_day_on_which_the_clock_is_put_back_has_one_run(desk):
    server = desk("a: {cron: '30 2 * * *', zone: Europe/Berlin, testset: clinic, systems: [new]}", "2026-10-24T12:00")
    assert server.at("2026-10-25T00:30") == ["watch:a:2026-10-25T00:30Z"]
    server.finish("2026-10-25T00:35")
    assert server.at("2026-10-25T01:30") == []  # the second 02:30
    assert server.at("2026-10-26T01:30") == ["watch:a:2026-10-26T01:30Z"]


def test_each_run_is_compared_with_the_pinned_baseline(desk):
    server = desk()
    server.at("2026-11-24T02:00")
    first = server.service.evaluations.for_job(server.finish("2026-11-24T02:03").id)[0]
    assert server.at("2026-11-24T02:04") == []
    assert watch_states(server.service)[0].uncompared == "not_pinned"
    server.service.evaluations.pin(first.id)
    server.at("2026-11-25T02:00")
    second = server.service.evaluations.for_job(server.finish("2026-11-25T02:03").id)[0]
    (key,) = server.at("2026-11-25T02:04")
    assert watch_states(server.service)[0].last.result == "gate_failed"
    server.restart()
    assert server.at("2026-11-25T02:05") == []
    request = server.service.jobs.scheduled(key)[0].request
    assert (request.baseline, request.candidate) == (first.id, second.id)
    server.finish("2026-11-25T02:06")
    (state,) = watch_states(server.service)
    assert ([each.record.verdict for each in state.last.comparisons], state.uncompared) == (["worse"], None)
    assert state.last.broken_rules == ("nDCG@10 at least 0.6",)
    assert state.last.result == "worse"


def test_a_baseline_of_another_version_is_compared_on_the_newest(desk):
    server = desk()
    server.at("2026-11-24T02:00")
    first = server.service.evaluations.for_job(server.finish("2026-11-24T02:03").id)[0]
    server.service.evaluations.pin(first.id)
    server.rewrite("clinic.yaml", "{s1: 2}", "{s1: 2, s2: 1}")
    server.at("2026-11-25T02:00")
    second = server.service.evaluations.for_job(server.finish("2026-11-25T02:03").id)[0]
    assert first.testset_digest != second.testset_digest
    (key,) = server.at("2026-11-25T02:04")
    assert server.at("2026-11-25T02:05") == []
    jobs = server.service.jobs
    (compare,) = jobs.scheduled(key)
    (score,) = (jobs.get(number) for number in compare.request.jobs)
    assert (score.request.runs, score.request.testset) == (
        (first.run_id, second.run_id),
        f"clinic@{second.testset_id}",
    )
    assert watch_states(server.service)[0].uncompared is None


def test_a_baseline_with_other_queries_is_compared_with_nothing(desk):
    server = desk()
    server.at("2026-11-24T02:00")
    first = server.service.evaluations.for_job(server.finish("2026-11-24T02:03").id)[0]
    server.service.evaluations.pin(first.id)
    server.rewrite("clinic.yaml", "dose of aspirin", "aspirin dose")
    server.rewrite("clinic.yaml", "side effects of statins", "statins side effects")
    server.at("2026-11-25T02:00")
    server.finish("2026-11-25T02:03")
    assert server.at("2026-11-25T02:04") == []
    assert watch_states(server.service)[0].uncompared == "other_version"


def test_each_run_is_compared_with_the_one_before_that_is_not_void(desk):
    server = desk("a: {cron: '0 2 * * *', testset: clinic, systems: [new, old], compare: {with: previous, alpha: 0.1}}")
    made = []
    for day, void in ((24, ()), (25, ("too many failed",)), (26, ())):
        server.at(f"2026-11-{day}T02:00")
        made.append(server.service.evaluations.for_job(server.finish(f"2026-11-{day}T02:03", void=void).id))
        for _ in server.at(f"2026-11-{day}T02:04"):
            server.finish(f"2026-11-{day}T02:05")
    pairs = [(each.baseline.id, each.candidate.id) for each in server.service.comparisons.all()]
    first, void, last = ([each.id for each in evaluations] for evaluations in made)
    assert sorted(pairs) == sorted([*zip(first, void, strict=True), *zip(first, last, strict=True)])
    assert server.service.jobs.scheduled("compare:a:")[0].request.alpha == 0.1


def test_an_overdue_refresh_is_in_the_list_and_in_the_result(desk):
    server = desk()  # made on 1 September, every 60 days: due on 31 October
    server.at("2026-11-24T02:00")
    (evaluation,) = server.service.evaluations.for_job(server.finish("2026-11-24T02:03").id)
    assert evaluation.note == "The refresh of test set clinic (version v1) is overdue by 24 days."
    assert evaluation.note in watch_states(server.service)[0].notes()
    server.rewrite("clinic.yaml", "2026-09-01", "2026-11-24")
    assert evaluation.note in watch_states(server.service)[0].notes()  # of the version that was used
    assert watch_states(server.service, as_it_stands=True)[0].overdue == ""


def test_what_a_run_came_to(desk):
    server = desk("a: {cron: '0 * * * *', testset: clinic, systems: [new], compare: {with: previous}}")
    results = []
    for hour, (mean, void) in enumerate([(0.7, ()), (0.5, ()), (0.7, ("too many failed",))], start=13):
        server.at(f"2026-11-23T{hour}:00")
        server.finish(f"2026-11-23T{hour}:01", mean, void=void)
        results.append(watch_states(server.service)[0].last.result)
        server.at(f"2026-11-23T{hour}:02")
        results.append(watch_states(server.service)[0].last.result)
        for job in server.service.jobs.all("queued"):
            server.service.jobs.cancel(job.id)
        results.append(watch_states(server.service)[0].last.result)
    assert results == [*("passed",) * 3, "gate_failed", "gate_failed", "failed", *("void",) * 3]
    server.at("2026-11-23T16:00")
    (state,) = watch_states(server.service)
    assert (state.running.id, state.last.job.id) == (state.last.job.id + 2, state.last.job.id)
    assert "VOID: too many failed" in "".join(state.last.lines())


def test_a_schedule_that_cannot_run_says_why_once(desk, caplog):
    server = desk("a: {cron: '* * * * *', testset: clinc, systems: [newer]}")
    for minute in (1, 2, 3):
        assert server.at(f"2026-11-23T12:0{minute}") == []
    assert len(caplog.records) == 1
    assert "clinc" in caplog.text
    (state,) = watch_states(server.service)
    assert [problem.message for problem in state.problems] == ["unknown system 'newer'", "unknown test set 'clinc'"]
    assert len(state.upcoming) == 3


def test_old_queries_are_deleted_at_the_start_and_every_hour(desk):
    server = desk()
    record = server.service.queries.record
    record("a", {("2026-08-01", "x"): 1, ("2026-08-25", "y"): 1})
    server.at("2026-11-23T12:00")
    assert [found.text for found in server.service.queries.top()] == ["y"]
    record("a", {("2026-08-01", "x"): 1})
    server.at("2026-11-23T12:59")
    assert len(server.service.queries.top()) == 2
    server.at("2026-11-23T13:00")
    assert len(server.service.queries.top()) == 1
