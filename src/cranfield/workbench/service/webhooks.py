"""Messages to web servers when a job ends badly, for those without Prometheus.

A message is sent once, by the server whose end of the job was accepted, in the background. One that cannot be delivered is
logged as an error. Neither addresses nor keys are in the log: both may be secrets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cranfield.base.errors import Problem, UsageError
from cranfield.base.words import count_noun, inert, printable
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind
from cranfield.judging.documents.web import AddressGuard, Resolver, pinned, system_resolver
from cranfield.workbench.config import VARIABLE, Event, Webhook
from cranfield.workbench.service.responses import BenefitOutcome, EvaluationState, JobKind, JobState

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, JobInfo

LOG = logging.getLogger("cranfield.workbench.service.webhooks")
SIGNATURE = "X-Cranfield-Signature"
DELIVERY = "X-Cranfield-Delivery"
FIRST_PAUSE_S = 1.0
AT_ONCE = 4
SECONDS_AT_END = 5.0
"""For messages that are on their way when the server stops."""
_MARKUP = re.compile(r"[\[\]*~`]|<(?=[^\s\d=])")
_LIKENESS = {
    "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
    "[": "\N{FULLWIDTH LEFT SQUARE BRACKET}",
    "]": "\N{FULLWIDTH RIGHT SQUARE BRACKET}",
    "*": "\N{ASTERISK OPERATOR}",
    "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
    "~": "\N{TILDE OPERATOR}",
}
"""Sign of markup to one that looks like it: chat programs differ in how, and whether, a sign is escaped."""
TRIED_AGAIN = frozenset({408, 425, 429})
"""Statuses under 500 after which another attempt may succeed."""
NEXT: Mapping[Event, str] = {
    "worse": "Inspect the queries with the largest losses before a release.",
    "gate-failed": "Inspect its worst queries.",
    "void": "Its figures are invalid, and the metrics are unchanged: fix the listed problems, and evaluate again.",
    "waiting-for-grades": "Its measures follow the grades of the book.",
    "job-failed": "Nothing was evaluated: fix the listed problems, and retry the job.",
}
"""What to do, after the verdict."""


@dataclass(frozen=True)
class WebhookMessage:
    """What is sent of one event."""

    event: Event
    text: str
    """For people: the field that chat programs show; what others named is in it."""
    job: int
    number: int
    """Number of the event among those of the job."""
    path: str
    """Page of the server that shows more."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def delivery(self) -> str:
        """The same for each attempt, so that a receiver can ignore a second one."""
        return f"job-{self.job}-{self.number}-{self.event}"

    def body(self, public: str) -> bytes:
        """The message as JSON; without a link where the address of the server is not known."""
        link = {"url": public + self.path} if public else {}
        sentence = inert(_MARKUP.sub(lambda found: _LIKENESS[found[0]], printable(self.text.rstrip("."))))
        text = " ".join(filter(None, (f"{sentence}. {NEXT[self.event]}", link.get("url"))))
        record = {"event": self.event, "text": text, "job": self.job, **link, **self.facts}
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def messages(service: Service, job: JobInfo) -> Iterator[WebhookMessage]:
    """The events of a job that ended; none of pilots, and none where all is well."""
    if job.state is JobState.FAILED:
        reasons = [problem.message for problem in job.problems]
        text = f"Job {job.id} failed: {reasons[0] if reasons else 'no reason is known'}"
        yield WebhookMessage("job-failed", text, job.id, 0, f"/jobs/{job.id}", {"reasons": reasons})
    if job.state is not JobState.DONE:
        return
    if job.kind is JobKind.COMPARE:
        found = service.comparisons.for_job(job.id)
        if found is not None:
            yield from _of_comparison(found, job)
        return
    if job.outcome is not None:
        yield from _of_experiment(job.outcome, job)
    for number, info in enumerate(service.evaluations.for_job(job.id)):
        if not info.pilot:
            yield from _of_evaluation(info, job, number)


def _of_evaluation(info: EvaluationInfo, job: JobInfo, number: int) -> Iterator[WebhookMessage]:
    facts = {"evaluation": info.id, "testset": info.testset_name, "system": info.system}
    facts |= {"variant": info.variant} if info.variant else {}
    facts |= {"components": info.components} if info.components else {}
    place, what = f"/evaluations/{info.id}", f"{info.label} on {info.testset_name}"
    broken = list(info.broken_rules)
    if info.void:
        text = f"The evaluation of {what} is void: {info.void[0]}"
        yield WebhookMessage("void", text, job.id, number, place, {**facts, "reasons": list(info.void)})
    elif info.state is EvaluationState.WAITING:
        text = f"{what} waits for grades of {count_noun(info.n_waiting, 'results')} in its book"
        yield WebhookMessage("waiting-for-grades", text, job.id, number, place, {**facts, "results": info.n_waiting})
    elif broken:
        text = f"{what} breaks {len(broken)} of {len(info.facts.gate or {})} rules of the gate: {'; '.join(broken)}"
        yield WebhookMessage("gate-failed", text, job.id, number, place, {**facts, "rules": broken})


def _of_experiment(outcome: BenefitOutcome, job: JobInfo) -> Iterator[WebhookMessage]:
    place, facts = f"/jobs/{job.id}", {"result": outcome.file}
    if outcome.void:
        yield WebhookMessage("void", outcome.sentence, job.id, 0, place, {**facts, "reasons": outcome.void})
    elif outcome.failed_rules:
        text = f"{outcome.file} breaks rules of the gate: {'; '.join(outcome.failed_rules)}"
        yield WebhookMessage("gate-failed", text, job.id, 0, place, {**facts, "rules": outcome.failed_rules})


def _of_comparison(info: ComparisonInfo, job: JobInfo) -> Iterator[WebhookMessage]:
    facts = {"comparison": info.id, "verdict": info.record.verdict, "testset": info.candidate.testset_name}
    facts |= {"baseline": info.baseline.label, "candidate": info.candidate.label}
    is_void = info.is_of_record and info.record.verdict is VerdictCode.INVALID
    if is_void or info.is_regression:
        event: Event = "void" if is_void else "worse"
        yield WebhookMessage(event, info.record.verdict_sentence, job.id, 0, f"/comparisons/{info.id}", facts)


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """A webhook with its secrets."""

    config: Webhook
    number: int
    """Position in the operator's file, from 1 on: its name in the log."""
    url: str
    key: bytes | None

    def headers(self, body: bytes, delivery: str, now: int) -> dict[str, str]:
        """The headers of an attempt; the signature is over its time too, so that an old message cannot be sent again."""
        headers = {"Content-Type": "application/json", DELIVERY: delivery}
        if self.key is not None:
            signed = hmac.new(self.key, f"{now}.".encode() + body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"t={now},v1={signed}"
        return headers


def targets(webhooks: Sequence[Webhook], environment: Mapping[str, str] = os.environ) -> list[WebhookTarget]:
    """The webhooks of the operator's file, with what their variables hold.

    Raises:
        UsageError: with every variable that is not set, and every one that holds no address.
    """
    problems: list[Problem] = []
    found = []
    for number, config in enumerate(webhooks, 1):
        url, key = (_value(text, environment) for text in (config.url, config.secret))
        for text, value in ((config.url, url), (config.secret, key)):
            if text is not None and not value:
                problems.append(Problem(f"webhook {number}: the variable {text.removeprefix(VARIABLE)} is not set"))
        if url and urlsplit(url).scheme not in {"http", "https"}:
            problems.append(Problem(f"webhook {number}: the variable of its url does not contain an address"))
        found.append(WebhookTarget(config, number, url or "", key.encode() if key else None))
    if problems:
        raise UsageError(problems)
    return found


def _value(text: str | None, environment: Mapping[str, str]) -> str | None:
    if text is None or not text.startswith(VARIABLE):
        return text
    return environment.get(text.removeprefix(VARIABLE), "").strip()


class Webhooks:
    """Sends messages in the background."""

    def __init__(
        self,
        service: Service,
        chosen: Sequence[WebhookTarget],
        public: str,
        *,
        resolver: Resolver = system_resolver,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        """Initialise.

        Args:
            service: has the results of jobs.
            chosen: where messages go.
            public: address of the server, for links.
            resolver: of host names.
            first_pause_s: seconds before the second attempt; each pause after it is twice as long.
        """
        self._service, self._targets, self._public = service, chosen, public.rstrip("/")
        self._resolver, self._pause_s = resolver, first_pause_s
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")
        self._sent: set[Future[None]] = set()

    def job_ended(self, job: JobInfo) -> None:
        """Queue the messages about a job."""
        if not self._targets:
            return
        for message in messages(self._service, job):
            for target in self._targets:
                if message.event in target.config.on:
                    sent = self._pool.submit(self._deliver, target, message)
                    self._sent.add(sent)
                    sent.add_done_callback(self._sent.discard)

    def close(self, seconds: float | None = SECONDS_AT_END) -> None:
        """Wait for messages that are on their way; those that wait for another attempt are given up, and logged.

        Args:
            seconds: to wait; None: until each is delivered, or has failed as often as it may.
        """
        if seconds is not None:
            self._stopping.set()
        left = wait(set(self._sent), timeout=seconds).not_done
        self._pool.shutdown(wait=False, cancel_futures=True)
        if left:
            LOG.error(
                "webhooks not delivered", extra={"fields": {"messages": len(left), "reason": "the server stopped"}}
            )

    def _deliver(self, target: WebhookTarget, message: WebhookMessage) -> None:
        body = message.body(self._public)
        result, pause_s = "", self._pause_s
        for attempt in range(1, target.config.tries + 1):
            result, is_final = self._attempt(target, message, body)
            if not result:
                LOG.info("webhook delivered", extra=_fields(target, message, attempts=attempt))
                return
            if is_final or attempt == target.config.tries or self._stopping.wait(pause_s):
                break
            pause_s *= 2
        LOG.error("webhook not delivered", extra=_fields(target, message, attempts=attempt, reason=result))

    def _attempt(self, target: WebhookTarget, message: WebhookMessage, body: bytes) -> tuple[str, bool]:
        """Why it failed, empty where it did not; and whether another attempt would fail too."""
        import httpx2

        now = self._service.clock() // 1000
        try:
            status = self._post(target, body, target.headers(body, message.delivery, now))
        except DocumentError as error:
            kind = error.problem.kind
            return f"address {kind}", kind is DocumentFailureKind.REFUSED
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            return type(error).__name__, False
        if 200 <= status < 300:
            return "", True
        return f"status {status}", status < 500 and status not in TRIED_AGAIN

    def _post(self, target: WebhookTarget, body: bytes, headers: Mapping[str, str]) -> int:
        """Send to an address that was checked; redirects are not followed, and nothing of the answer is read."""
        import httpx2

        from cranfield.base.certificates import trusted_certificates

        place = AddressGuard(target.config.allow, self._resolver).checked(target.url)
        with (
            httpx2.Client(verify=trusted_certificates(), trust_env=False, timeout=target.config.timeout_s) as client,
            client.stream("POST", content=body, **pinned(target.url, *place, headers)) as response,
        ):
            return response.status_code


def _fields(target: WebhookTarget, message: WebhookMessage, **other: object) -> dict[str, object]:
    return {"fields": {"webhook": target.number, "kind": message.event, "job": message.job, **other}}


@contextmanager
def sending(service: Service, public: str, *, to_the_end: bool = False) -> Iterator[Callable[[JobInfo], None]]:
    """Give what is to be called when a job has ended; the end of the block waits for messages that are on their way.

    Args:
        service: has the results of jobs, and the operator's webhooks.
        public: address of the server, for links; empty: none.
        to_the_end: wait also for attempts that are made later.

    Raises:
        UsageError: variables of the operator's webhooks are not set.
    """
    webhooks = Webhooks(service, targets(service.workbench.webhooks), public)
    try:
        yield webhooks.job_ended
    finally:
        webhooks.close(None if to_the_end else SECONDS_AT_END)
