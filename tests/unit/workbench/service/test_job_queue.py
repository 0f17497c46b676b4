"""The queue: one job a key, leases with fences, exactly one result a job."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.workbench.records import CALLS, evaluation_record

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.result import result_from, without_queries
from cranfield.model import Query, TestSet
from cranfield.workbench.service.requests import CompareRequest, CompareResultsRequest, EvaluateRequest
from cranfield.workbench.service.responses import JobKind, JobState, StoredSource, Trigger
from cranfield.workbench.service.service import Service
from cranfield.workbench.service.store.jobs import KeyConflictError, ProblemCode, QueueFullError
from cranfield.workbench.service.values import Claim, JobInfo, JobProblem, NewEvaluation, NewRun

REQUEST = EvaluateRequest(testset="help")
RECORD = evaluation_record()
PROBLEM = JobProblem(message="no such file", where="help.yaml", hint="name another", code=ProblemCode.INPUT)


def add(service: Service, **given: object) -> JobInfo:
    return service.jobs.add(REQUEST, Trigger.API, **given)


def claimed(service: Service, worker: str = "one") -> Claim:
    claim = service.jobs.claim(worker)
    assert claim is not None
    return claim


def result(service: Service) -> NewEvaluation:
    testset = TestSet("help", (Query("q1", "open"),), {"q1": {"p1": 1.0}})
    info = service.testsets.keep("help", testset)
    run = NewRun("search", "sha256:0", b"answers", 1)
    return NewEvaluation(info.id or 0, run, "search", {"k": 10}, RECORD, CALLS)


def test_jobs_are_taken_in_order_and_once(bare: Service) -> None:
    first, second = add(bare), add(bare)
    assert [bare.jobs.get(second.id).ahead, first.ahead] == [1, 0]
    assert [claimed(bare).job, claimed(bare, "two").job] == [first.id, second.id]
    assert bare.jobs.claim("three") is None
    assert bare.jobs.counts() == {state: 2 * (state == JobState.RUNNING) for state in JobState}


def test_a_key_with_the_same_request_is_one_job_and_with_another_an_error(bare: Service) -> None:
    job = add(bare, key="k1")
    assert add(bare, key="k1").id == job.id
    bare.jobs.cancel(job.id)
    assert add(bare, key="k1").id == job.id  # whatever became of it
    with pytest.raises(KeyConflictError, match=f"job {job.id}"):
        bare.jobs.add(CompareRequest(baseline=1, candidate=2), Trigger.API, key="k1")
    assert len(bare.jobs.all()) == 1


def test_results_are_compared_once_their_jobs_have_ended(bare: Service, clock) -> None:
    first, second = add(bare).id, add(bare).id
    compare = bare.jobs.add(CompareResultsRequest(jobs=(first, second)), Trigger.PAGE)
    assert (compare.kind, compare.progress) == (JobKind.COMPARE, f"starts when jobs {first} and {second} have ended")
    claims = [bare.jobs.claim("a"), bare.jobs.claim("b")]
    assert [claim.job for claim in claims if claim] == [first, second]
    assert bare.jobs.claim("c") is None
    assert bare.jobs.fail(claims[0], [])
    assert bare.jobs.claim("c") is None  # the second one runs
    bare.jobs.release(claims[1])
    assert bare.jobs.claim("c").job == second
    assert bare.jobs.claim("d") is None
    bare.jobs.cancel(second)
    clock.pass_seconds(1_000)
    bare.jobs.claim("d")  # ends the job that was to stop
    claim = bare.jobs.claim("d")
    assert (claim.job, bare.jobs.get(compare.id).request) == (compare.id, CompareResultsRequest(jobs=(first, second)))
    assert bare.jobs.fail(claim, [])
    assert bare.jobs.retry(compare.id).progress == compare.progress


def test_the_last_change_is_that_of_any_job(bare: Service, clock) -> None:
    assert bare.jobs.last_change() == 0
    first = add(bare).id
    for _ in range(50):
        add(bare)
    before = bare.jobs.last_change()
    clock.pass_seconds(1)
    assert bare.jobs.cancel(first).changed_at == bare.jobs.last_change() > before


def test_an_account_has_a_limit_of_queued_jobs(bare: Service) -> None:
    account = bare.store.people.local().id
    add(bare, by=account, most_queued=1)
    with pytest.raises(QueueFullError, match="1 jobs of this account"):
        add(bare, by=account, most_queued=1)
    add(bare, most_queued=1)  # a schedule
    claimed(bare)
    add(bare, by=account, most_queued=1)


def test_an_account_with_many_jobs_does_not_keep_the_others_waiting(bare: Service) -> None:
    many, one = bare.store.people.local().id, bare.store.people.add("ann").id
    jobs = [add(bare, by=account).id for account in (many, many, many, one, None)]
    assert [bare.jobs.get(job).ahead for job in jobs] == [0, 3, 4, 1, 2]
    assert [claimed(bare).job for _ in jobs] == [jobs[0], jobs[3], jobs[4], jobs[1], jobs[2]]


def test_the_result_of_a_job_is_stored_once(bare: Service) -> None:
    job, claim = add(bare, by=bare.store.people.local().id), None
    claim = claimed(bare)
    assert bare.jobs.finish(claim, [result(bare)])
    assert not bare.jobs.finish(claim, [result(bare)])
    done = bare.jobs.get(job.id)
    (info,) = bare.evaluations.for_job(job.id)
    assert (done.state, done.results, info.system) == (JobState.DONE, (info.id,), "search")
    assert info.record == without_queries(RECORD)
    assert result_from(bare.evaluations.payload(info.id)) == RECORD
    assert (info.account, info.testset_name, bare.runs.get(info.run_id).source) == (
        done.account,
        "help",
        StoredSource.COLLECTED,
    )


def test_a_server_that_was_thought_dead_changes_nothing(bare: Service, clock) -> None:
    job = add(bare)
    stalled = claimed(bare)
    clock.pass_seconds(59)
    assert bare.jobs.claim("two") is None
    clock.pass_seconds(2)
    taken = claimed(bare, "two")
    assert taken.fence == stalled.fence + 1

    jobs, made = bare.jobs, result(bare)
    assert not any(
        (
            jobs.renew(stalled),
            jobs.progress(stalled, 1, 2, "late"),
            jobs.finish(stalled, [made]),
            jobs.fail(stalled, [PROBLEM]),
            jobs.stopped(stalled),
            jobs.release(stalled),
        )
    )
    now = jobs.get(job.id)
    assert (now.state, now.worker, now.progress, now.attempts) == (JobState.RUNNING, "two", "", 2)
    assert bare.evaluations.all() == ()
    assert bare.runs.all() == ()
    assert jobs.finish(taken, [made])
    assert len(bare.evaluations.all()) == 1


def test_a_lease_that_is_renewed_is_not_taken(bare: Service, clock) -> None:
    add(bare)
    claim = claimed(bare)
    for _ in range(3):
        clock.pass_seconds(50)
        assert bare.jobs.renew(claim)
    assert bare.jobs.claim("two") is None


def test_a_job_goes_back_to_the_queue_and_that_is_no_attempt(bare: Service) -> None:
    job = add(bare)
    for _ in range(5):
        assert bare.jobs.release(claimed(bare))
    assert (bare.jobs.get(job.id).state, bare.jobs.get(job.id).attempts) == (JobState.QUEUED, 0)


@pytest.mark.parametrize("how", ["the process", "the server"])
def test_a_job_that_ends_its_worker_each_time_has_failed(bare: Service, clock, how: str) -> None:
    job = add(bare)
    for _ in range(3):
        claim = claimed(bare)
        if how == "the process":
            assert bare.jobs.release(claim, is_failure=True)
        else:
            clock.pass_seconds(61)
    if how == "the server":
        claim = claimed(bare, "two")  # so that this server sends what follows the end of a job
    failed = bare.jobs.get(job.id)
    assert failed.fence == claim.fence
    assert (failed.state, [problem.code for problem in failed.problems]) == (JobState.FAILED, [ProblemCode.DIED])


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_is_told(bare: Service) -> None:
    first, second = add(bare), add(bare)
    assert bare.jobs.cancel(first.id).state == JobState.CANCELLED
    claim = claimed(bare)
    told = bare.jobs.cancel(second.id)
    assert (told.state, told.cancel) == (JobState.RUNNING, True)
    assert bare.jobs.stopped(claim)
    assert bare.jobs.cancel(second.id).state == JobState.CANCELLED


def test_a_cancelled_job_whose_server_died_is_not_done(bare: Service, clock) -> None:
    job = add(bare)
    claimed(bare)
    bare.jobs.cancel(job.id)
    clock.pass_seconds(61)
    assert bare.jobs.claim("two") is not None
    assert bare.jobs.get(job.id).state == JobState.CANCELLED
    assert bare.jobs.claim("two") is None


def test_a_failed_job_is_tried_again_with_its_key_and_number(bare: Service) -> None:
    job = add(bare, key="k")
    assert bare.jobs.fail(claimed(bare), [PROBLEM])
    assert bare.jobs.get(job.id).problems == (PROBLEM,)
    again = bare.jobs.retry(job.id)
    assert (again.id, again.key, again.state, again.problems) == (job.id, "k", JobState.QUEUED, ())
    with pytest.raises(UsageError, match="is queued"):
        bare.jobs.retry(job.id)
    assert bare.jobs.finish(claimed(bare), [result(bare)])


def test_lists_are_paged_and_selected(bare: Service) -> None:
    ids = [add(bare).id for _ in range(4)]
    assert bare.jobs.fail(claimed(bare), [PROBLEM])
    assert [job.id for job in bare.jobs.all(limit=2)] == ids[:1:-1]
    assert [job.id for job in bare.jobs.all(limit=2, before=ids[2])] == ids[1::-1]
    assert [job.id for job in bare.jobs.all(JobState.FAILED)] == ids[:1]
    with pytest.raises(UnknownNameError, match="job 99 not found"):
        bare.jobs.get(99)


def test_metrics_follow_what_is_configured_and_void_evaluations_hide_no_values(
    bare: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose figures count, then void ones, then one that is not as configured."""
    monkeypatch.setattr("cranfield.workbench.service.store.evaluations.MAX_FOLLOWED", 2)
    for void, configured in [("", True), *[("no answers", True)] * 3, ("", False)]:
        add(bare)
        made = replace(result(bare), void=(void,) * bool(void), configured=configured)
        bare.jobs.finish(claimed(bare), [made])
    found = bare.evaluations.followed(0, ["api"])
    assert [bool(info.void) for info in found] == [True, True, False]
    assert bare.evaluations.followed(found[0].at + 1, ["api"]) == bare.evaluations.followed(0, ["watch"]) == ()


def test_tags_notes_and_pins(bare: Service) -> None:
    add(bare), add(bare)
    for _ in range(2):
        bare.jobs.finish(claimed(bare), [result(bare)])
    second, first = bare.evaluations.all()
    bare.evaluations.change(first.id, tags=[" night ", "night", 'a"b'])
    assert bare.evaluations.change(first.id, note="as it was").note == "as it was"
    assert bare.evaluations.pin(first.id).pinned
    assert bare.evaluations.pin(second.id).pinned
    from cranfield.workbench.service.values import EvaluationFilter

    def ids(**chosen: object) -> list[int]:
        return [info.id for info in bare.evaluations.all(EvaluationFilter(**chosen))]

    assert ids(tag="night") == ids(tag='a"b') == [first.id]
    assert ids(tag="nigh") == ids(tag="a") == ids(variant="x") == []
    assert ids(pinned=True) == ids(before=second.id + 1, limit=1) == [second.id]
    assert ids(testset="help", system="search", components="") == [second.id, first.id]
    assert {name: info.id for name, info in bare.evaluations.last_of_systems().items()} == {"search": second.id}
    assert bare.evaluations.systems() == ("search",)
    with pytest.raises(UsageError, match="not a name"):
        bare.evaluations.change(first.id, tags=["a\nb"])


def test_a_job_that_is_claimed_while_it_is_read_has_none_ahead(bare: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    job = add(bare)
    monkeypatch.setattr("cranfield.workbench.service.store.jobs._turns", lambda _: [])
    assert bare.jobs.get(job.id).ahead == 0
