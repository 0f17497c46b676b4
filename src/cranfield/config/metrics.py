"""The blocks `metrics:` and `webhooks:` of workbench.yaml: names of Prometheus metrics, and web servers that get messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field

from cranfield.config.hosts import Host, Seconds
from cranfield.config.strict import Finding, Strict, checked
from cranfield.errors import CranfieldError, Problem, shorten
from cranfield.model.kinds import Text

SubjectLabel = Literal["system", "testset", "stratum", "variant", "components"]
Trigger = Literal["api", "page", "watch", "agent"]
SUBJECT_LABELS: tuple[SubjectLabel, ...] = ("system", "testset", "stratum", "variant", "components")
_NAME = r"^[a-zA-Z_][a-zA-Z0-9_]*$"


MetricName = Annotated[str, Field(pattern=_NAME, max_length=100)]


def spelled(measure: str) -> str:
    """A measure, or one without the cutoff that it needs, as results spell it.

    Raises:
        MeasureError: no measure is spelled so.

    Example:
        >>> spelled("Recall@10"), spelled("Recall")
        ('R@10', 'R')
    """
    from cranfield.measures import parse

    try:
        return parse(measure).canonical
    except CranfieldError:
        if "@" in measure:
            raise
        try:
            return parse(f"{measure}@10").canonical.partition("@")[0]
        except CranfieldError:
            parse(measure)
            raise


def _check_spelling(measure: str) -> Iterator[Finding]:
    try:
        spelled(measure)
    except CranfieldError as error:
        yield from (((), problem) for problem in error.problems)


MeasureKey = Annotated[str, checked(_check_spelling)]


class MetricsConfig(Strict):
    """Metrics for Prometheus."""

    anonymous: bool = False
    """Whether `/metrics` is open to everyone who reaches the server; default: to tokens of the scope `read`."""
    prefix: Annotated[str, Field(pattern=_NAME, max_length=100)] = "cranfield_"
    """First part of the name of every metric."""
    measures: dict[MeasureKey, MetricName] = Field(default_factory=dict)
    """Measure to a metric of its own, instead of a label: `{R@10: recall_at_k}` gives `PREFIXrecall_at_k{k="10"}`. A measure
    without its cutoff (`R`) stands for all of its cutoffs."""
    labels: list[SubjectLabel] = Field(default_factory=lambda: list(SUBJECT_LABELS))
    """Labels that are written. Without `system` or `testset`, `systems` or `testsets` names one; without `stratum`, `variant`
    or `components`, only what is over all queries, of no variant, of the whole system is written."""
    systems: Annotated[list[Text], Field(min_length=1)] | None = None
    """Systems that have metrics; default: all."""
    testsets: Annotated[list[Text], Field(min_length=1)] | None = None
    """Test sets that have metrics; default: all."""
    triggers: Annotated[list[Trigger], Field(min_length=1)] = Field(default_factory=lambda: list(get_args(Trigger)))
    """What may have asked for an evaluation that has metrics; `[watch]`: the schedules alone."""
    keep_days: Annotated[int, Field(ge=1, le=3_650)] = 90
    """Days after which a system that is no longer evaluated on a test set has no metrics."""
    max_series: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    """Largest number of series of evaluations. What is beyond it is left out and counted: variants and
    components first, then the oldest."""
    cache_s: Annotated[float, Field(ge=0, le=3_600)] = 5.0
    """Seconds for which the database is not read again."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Two series with the same labels."""
        for label, key in (("system", "systems"), ("testset", "testsets")):
            names = getattr(self, key)
            if label not in self.labels and (names is None or len(names) != 1):
                hint = f"name the one whose metrics these are, as {key}: [NAME]."
                yield ("labels",), Problem(f"no label {label}, and {key} names not exactly one", hint=hint)
        yield from self._name_problems()

    def _name_problems(self) -> Iterator[Finding]:
        by_name: dict[str, str] = {}
        for measure, name in self.measures.items():
            whole = spelled(measure).partition("@")[0]
            other = by_name.setdefault(name, whole)
            if other != whole:
                yield ("measures", measure), Problem(f"{name} is the name of {other} too", hint="use another name.")


VARIABLE = "env:"
"""Before the name of an environment variable that holds the value."""
Event = Literal["worse", "gate-failed", "void", "waiting-for-grades", "job-failed"]
EVENTS: Mapping[Event, str] = {
    "worse": "a comparison whose verdict is worse or mixed; none of a pilot, nor of components with the whole system",
    "gate-failed": "an evaluation of a whole system that breaks a rule of the gate",
    "void": "an evaluation whose figures do not count, or a comparison whose verdict is invalid",
    "waiting-for-grades": "an evaluation whose results wait for grades in a book",
    "job-failed": "a job that failed",
}
"""What a webhook is sent for."""


def _check_address(text: str) -> Iterator[Finding]:
    if re.fullmatch(rf"{VARIABLE}[A-Za-z_][A-Za-z0-9_]*", text):
        return
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        yield (), Problem("not an address", expected="https://... or env:NAME of a variable", got=shorten(text))
    elif "@" in parts.netloc:
        yield (), Problem("user and password in an address", hint="put the address into a variable: url: env:NAME.")


class Webhook(Strict):
    """A web server that gets a message when a job ends."""

    url: Annotated[str, checked(_check_address)]
    """Address; `env:NAME` reads it from a variable, for an address that is a secret itself."""
    on: Annotated[list[Event], Field(min_length=1)] = Field(default_factory=lambda: list(EVENTS))
    """Events: `worse`, `gate-failed`, `void`, `waiting-for-grades`, `job-failed`; default: all."""
    secret: Annotated[str, Field(pattern=r"^env:[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """`env:NAME` of the variable with the key that signs messages (HMAC-SHA256); default: they are not signed."""
    allow: list[Host] = Field(default_factory=list)
    """Hosts and networks that are requested though their addresses are private: `chat.intern`, `127.0.0.1`, `10.1.0.0/16`."""
    timeout_s: Seconds = 10.0
    """Seconds for an attempt."""
    tries: Annotated[int, Field(ge=1, le=10)] = 5
    """Attempts; the wait between them doubles from one second on."""
