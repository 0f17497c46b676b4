"""Messages to web servers when a job ends badly."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.receiver import Receiver, receiving
from tests.unit.workbench.records import with_scores

from cranfield.base.errors import UsageError
from cranfield.base.words import HIDDEN
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.workbench.config import EVENTS, Webhook
from cranfield.workbench.service.values import ComparisonInfo
from cranfield.workbench.service.webhooks import (
    DELIVERY,
    SIGNATURE,
    WebhookMessage,
    Webhooks,
    _of_comparison,
    _of_evaluation,
    messages,
    targets,
)

PUBLIC = "https://search.example.org"
PATH = "/hooks/T0P-SECRET"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def send(bench, receiver: Receiver, job: int, **given: Any) -> None:
    config = Webhook(**{"url": receiver.url + PATH, "allow": ["127.0.0.1"], **given})
    webhooks = Webhooks(bench.service, targets([config], {"KEY": "k3y"}), PUBLIC, first_pause_s=0.001)
    webhooks.job_ended(bench.service.jobs.get(job))
    for sent in list(webhooks._sent):
        sent.result(60)
    webhooks.close()


def job_of(bench, name: str) -> int:
    return bench.service.evaluations.get(bench.ids[name]).job_id


def test_a_void_evaluation(bench, receiver: Receiver) -> None:
    send(bench, receiver, job_of(bench, "void"))
    [(path, headers, body)] = receiver.got
    job = job_of(bench, "void")
    assert path == PATH
    assert headers[DELIVERY] == f"job-{job}-0-void"
    assert SIGNATURE not in headers
    assert json.loads(body) == {
        "event": "void",
        "text": f"The evaluation of broken on shop is void: every query returned the same results. Its figures are invalid, and the metrics are unchanged: fix the listed problems, and evaluate again. {PUBLIC}/evaluations/{bench.ids['void']}",
        "job": job,
        "url": f"{PUBLIC}/evaluations/{bench.ids['void']}",
        "evaluation": bench.ids["void"],
        "testset": "shop",
        "system": "broken",
        "reasons": ["every query returned the same results"],
    }


def test_a_pilot_is_no_event(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.service.jobs.get(job_of(bench, "void"))
    (info,) = bench.service.evaluations.for_job(job.id)
    assert [message.event for message in messages(bench.service, job)] == ["void"]
    pilot = replace(info, record=with_scores(info.record, pilot=True))
    monkeypatch.setattr(bench.service.evaluations, "for_job", lambda _: (pilot,))
    assert list(messages(bench.service, job)) == []


def test_a_failed_job(bench, receiver: Receiver) -> None:
    send(bench, receiver, bench.ids["failed"])
    body = json.loads(receiver.got[0][2])
    assert body["event"] == "job-failed"
    assert "failed: the search did not start: no such file. Nothing was evaluated" in body["text"]


def test_a_comparison_that_is_worse(bench, receiver: Receiver, workbench_books) -> None:
    bench.service.jobs.cancel(bench.ids["queued"])
    worse = workbench_books.compare(bench.service, bench.ids["new"], bench.ids["old"])
    info = bench.service.comparisons.get(worse)
    assert info.record.verdict == "worse"
    assert info.candidate.pinned  # the baseline did not get worse: the other one is better
    assert list(messages(bench.service, bench.service.jobs.get(info.job_id))) == []
    bench.service.evaluations.pin(bench.ids["old"], pinned=False)
    send(bench, receiver, info.job_id)
    body = json.loads(receiver.got[0][2])
    assert (body["event"], body["candidate"]) == ("worse", "old")
    assert body["text"].startswith(info.record.verdict_sentence)  # the verdict first, the link last
    assert body["text"].endswith(f" {PUBLIC}/comparisons/{worse}")


def test_a_pilot_and_a_part_of_a_system_are_no_regression(bench) -> None:
    info = bench.service.comparisons.get(bench.ids["comparison"])

    def with_verdict(code: str) -> ComparisonInfo:
        return replace(info, record=replace(info.record, verdict=VerdictCode(code)))

    lost = with_verdict("mixed")
    assert lost.is_regression
    assert not info.is_regression
    pilot = replace(lost.candidate, record=with_scores(lost.candidate.record, pilot=True))
    part = replace(lost.candidate, components="bm25")
    job = bench.service.jobs.get(info.job_id)
    for candidate in (pilot, part):
        for verdict in ("mixed", "invalid"):
            assert list(_of_comparison(replace(with_verdict(verdict), candidate=candidate), job)) == []
    assert [message.event for message in _of_comparison(with_verdict("invalid"), job)] == ["void"]
    both = replace(lost, candidate=part, baseline=replace(lost.baseline, components="bm25"))
    assert [message.event for message in _of_comparison(both, job)] == ["worse"]


def test_a_broken_rule_of_the_gate(bench, receiver: Receiver) -> None:
    info = bench.service.evaluations.get(bench.ids["new"])
    gate = {"R@10 is at least 0.75": False, "Judged@10 is at least 0.5": True}
    info = replace(info, facts=replace(info.facts, gate=gate))
    [message] = _of_evaluation(info, bench.service.jobs.get(info.job_id), 0)
    assert message.event == "gate-failed"
    assert message.text == "new on shop breaks 1 of 2 rules of the gate: R@10 is at least 0.75"
    assert message.facts["rules"] == ["R@10 is at least 0.75"]


@pytest.mark.parametrize("name", ["old", "new"])
def test_nothing_is_sent_where_all_is_well(bench, name: str) -> None:
    assert list(messages(bench.service, bench.service.jobs.get(job_of(bench, name)))) == []


def test_a_comparison_that_is_better_is_not_sent(bench) -> None:
    info = bench.service.comparisons.get(bench.ids["comparison"])
    assert list(messages(bench.service, bench.service.jobs.get(info.job_id))) == []


def test_other_events_are_not_sent(bench, receiver: Receiver) -> None:
    send(bench, receiver, job_of(bench, "void"), on=["job-failed", "worse"])
    assert receiver.got == []


def test_the_signature_is_of_time_and_body(bench, receiver: Receiver) -> None:
    send(bench, receiver, job_of(bench, "void"), secret="env:KEY")
    [(_, headers, body)] = receiver.got
    time, _, signature = headers[SIGNATURE].removeprefix("t=").partition(",v1=")
    assert signature == hmac.new(b"k3y", f"{time}.".encode() + body, hashlib.sha256).hexdigest()
    assert int(time) == bench.team.now[0] // 1000


def test_a_server_that_is_busy_is_tried_again_with_the_same_delivery(bench, receiver: Receiver) -> None:
    receiver.statuses = [503, 429, 500]
    send(bench, receiver, job_of(bench, "void"))
    assert len(receiver.got) == 4
    assert len({headers[DELIVERY] for _, headers, _ in receiver.got}) == 1


@pytest.mark.parametrize("status", [302, 400, 404])
def test_a_refusal_is_final_and_redirects_are_not_followed(
    bench, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [status]
    send(bench, receiver, job_of(bench, "void"))
    assert [path for path, _, _ in receiver.got] == [PATH]
    assert caplog.records[-1].fields["reason"] == f"status {status}"


def test_after_the_last_attempt_it_is_logged_without_secrets(
    bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [500] * 9
    send(bench, receiver, job_of(bench, "void"), tries=3, secret="env:KEY")
    [record] = [record for record in caplog.records if record.name == "cranfield.workbench.service.webhooks"]
    assert len(receiver.got) == 3
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "webhook not delivered")
    assert record.fields == {
        "webhook": 1,
        "kind": "void",
        "job": job_of(bench, "void"),
        "attempts": 3,
        "reason": "status 500",
    }


def test_a_private_address_is_not_requested_unless_it_is_allowed(
    bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    send(bench, receiver, job_of(bench, "void"), allow=[])
    assert receiver.got == []
    assert caplog.records[-1].fields["reason"] == "address refused"


def test_every_variable_that_is_not_set_is_named() -> None:
    webhooks = [Webhook(url="env:HOOK"), Webhook(url="https://example.org/x", secret="env:KEY"), Webhook(url="env:BAD")]
    with pytest.raises(UsageError) as raised:
        targets(webhooks, {"BAD": "ftp://x"})
    assert [problem.message for problem in raised.value.problems] == [
        "webhook 1: the variable HOOK is not set",
        "webhook 2: the variable KEY is not set",
        "webhook 3: the variable of its url does not contain an address",
    ]


def test_the_end_of_the_server_gives_up_what_waits_and_logs_it(
    bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [500] * 9
    config = Webhook(url=receiver.url + PATH, allow=["127.0.0.1"])
    webhooks = Webhooks(bench.service, targets([config], {}), PUBLIC, first_pause_s=3_600)
    webhooks.job_ended(bench.service.jobs.get(job_of(bench, "void")))
    webhooks.close(seconds=60)
    assert caplog.records[-1].getMessage() == "webhook not delivered"


def test_a_command_waits_for_every_attempt(bench, receiver: Receiver) -> None:
    receiver.statuses = [500, 500]
    config = Webhook(url=receiver.url + PATH, allow=["127.0.0.1"])
    webhooks = Webhooks(bench.service, targets([config], {}), "", first_pause_s=0.001)
    webhooks.job_ended(bench.service.jobs.get(job_of(bench, "void")))
    webhooks.close(None)
    assert len(receiver.got) == 3
    assert "url" not in json.loads(receiver.got[0][2])  # the address of the server is not known


def test_what_others_named_calls_nobody_and_links_nowhere() -> None:
    text = "@everyone <!channel> [x](https://a.org) *b* `c` www.a.org me@a.org #12 fell, p < 0.05, nDCG@10 >= 0.5"
    shown = json.loads(WebhookMessage("void", text, 1, 0, "/jobs/1").body(PUBLIC))["text"]
    assert shown.endswith(f" {PUBLIC}/jobs/1")
    sentence = shown.removesuffix(f" {PUBLIC}/jobs/1")
    assert "fell, p < 0.05, nDCG@10 >= 0.5. Its figures" in sentence
    for active in ("@everyone", "<!", "https://", "www.", "@a.org", "#12", *"[]*`~"):
        assert active not in sentence
    assert "@everyone" in sentence.replace(HIDDEN, "")  # it looks as before


def test_every_event_has_a_meaning() -> None:
    assert list(EVENTS) == Webhook(url="https://example.org").on
