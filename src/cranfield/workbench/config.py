"""The operator's file, `workbench.yaml`: how the server runs, what its users may do, and where it reads the texts of documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Discriminator, Field, Tag

from cranfield.base.errors import ConfigError, CranfieldError, Problem, ProblemList, shorten
from cranfield.base.redaction import MIN_DIGITS, PLACEHOLDER_NAME, REDACTION_NAMES, RedactionName
from cranfield.config.documents import TextSources, missing_files
from cranfield.config.load import null_characters, placed
from cranfield.config.reading import ExpressionError, compile_regex, compiles
from cranfield.config.services import Host, Seconds
from cranfield.config.strict import Finding, Strict, checked
from cranfield.config.systems import Name
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import load_located
from cranfield.formats.io.validation import validate
from cranfield.model.kinds import PlainScalar, Text
from cranfield.workbench.watch_config import BenefitWatch, Watches


class JobsConfig(Strict):
    """How the server works on jobs: evaluations and comparisons."""

    workers: Annotated[int, Field(ge=0, le=64)] = 1
    """Jobs that this server works on at a time; with 0 it takes none, and others on the same database do."""
    folder: str | None = None
    """Folder of answers that were collected and are not stored yet, so that an interrupted job goes on where it stopped.
    Default: `.cranfield/jobs` next to the file of SQLite; with PostgreSQL, in the working directory."""
    lease_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    """Seconds after which another server takes the job of one that no longer answers."""
    keep_days: Annotated[float, Field(ge=0)] = 7.0
    """Days for which the answers of a failed or cancelled job are kept, so that a retry continues with them. Results in the
    database are never deleted."""


class LimitsConfig(Strict):
    """Limits on what is sent to the server."""

    upload_mb: Annotated[int, Field(ge=1, le=4096)] = 100
    """Largest upload of a test set or a run, in megabytes, when it is no longer compressed."""
    rows: Annotated[int, Field(ge=1)] = 2_000_000
    """Most lines of an upload: judgments of a test set, results of a run."""
    queries: Annotated[int, Field(ge=1)] = 20_000
    """Most queries of an uploaded test set."""
    upload_s: Annotated[float, Field(gt=0)] = 60.0
    """Longest time that reading an upload may take, in seconds."""
    upload_memory_mb: Annotated[int, Field(ge=256)] = 2048
    """Most memory of the process that reads an upload, in megabytes."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 600
    """Most requests of an account to the REST API in a minute; 0: any number."""
    k: Annotated[int, Field(ge=1)] = 1000
    """Most results that a request may ask systems for."""
    job_s: Annotated[float, Field(gt=0)] = 7200.0
    """Longest time of a job in seconds, from its start on one server; then it has failed."""
    queued_per_account: Annotated[int, Field(ge=1)] = 50
    """Most jobs of one account that wait in the queue."""


Number = int | float


class Range(Strict):
    """Numbers from `min` to `max`."""

    min: Number
    """Smallest value that may be set."""
    max: Number
    """Largest value that may be set."""
    step: Annotated[Number, Field(gt=0)] | None = None
    """Distance of the values from each other, from `min` on. Default: whole numbers where `min` and `max` are whole as
    written, else any number."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A range without numbers."""
        if self.max <= self.min:
            yield (
                ("max",),
                Problem("the range ends before it begins", expected=f"more than {self.min:g}", got=f"{self.max:g}"),
            )

    @property
    def distance(self) -> Number | None:
        """Distance of the values; None: any number."""
        is_whole = isinstance(self.min, int) and isinstance(self.max, int)
        return self.step if self.step is not None else 1 if is_whole else None


def _kind(value: Any) -> str:
    return "range" if isinstance(value, Mapping | Strict) else "list"


def _check_places(places: Mapping[str, Any]) -> Iterator[Finding]:
    for place in places:
        if place.partition(".")[0] == "env":
            hint = "open params instead"
            yield (place,), Problem("env holds secrets, but settings made on a page are visible to all", hint=hint)


Allowed = Annotated[
    Annotated[Range, Tag("range")] | Annotated[list[PlainScalar], Field(min_length=1), Tag("list")],
    Discriminator(_kind),
]
Tunable = dict[Text, Annotated[dict[Text, Allowed], Field(min_length=1), checked(_check_places)]]
"""System to place in it, with dots as in `grid:` (`params.boost`, `fusion.weights.bm25`), to a range or a list of values."""

COMBINED = r'^\S+ \S+ \S+ \[(?P<time>[^\]]+)\] "(?:GET|POST) (?P<url>[^ "]+)'


def compile_line_pattern(text: str) -> re.Pattern[str]:
    """Compile the pattern of a log: it has a group `query` or `url`."""
    pattern = compile_regex(text)
    if not {"query", "url"} & set(pattern.groupindex):
        raise ExpressionError(
            "has no named group for the query", "name the group (?P<query>...), or (?P<url>...) for an address."
        )
    return pattern


def compile_redaction(text: str) -> re.Pattern[str]:
    """Compile a pattern of what is removed; refuse one that matches the empty text."""
    pattern = compile_regex(text)
    if pattern.search(""):
        raise ExpressionError("matches the empty string, so it would remove nothing")
    return pattern


def _check_time_format(text: str) -> Iterator[Finding]:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    try:
        day = datetime.strptime(now.strftime(text), text).date()  # noqa: DTZ007  its date alone is used
    except ValueError:
        day = None
    if day != now.date():
        expected = "strptime codes for year, month and day, such as %d/%b/%Y:%H:%M:%S %z"
        yield (), Problem("the time format does not contain the day", expected=expected, got=shorten(text))


class LogFormat(Strict):
    """How the lines of a log are read."""

    pattern: Annotated[str, compiles(compile_line_pattern)] = COMBINED
    """Regular expression searched in each line, with a group `query`, or `url` whose parameter is the query; a group `time` is
    when it was asked. Other lines are dropped and counted. Default: the access log of Apache and nginx, common and combined."""
    parameter: Annotated[str, Field(min_length=1)] = "q"
    """Parameter of the address that holds the query."""
    time: Annotated[str, checked(_check_time_format)] = "%d/%b/%Y:%H:%M:%S %z"
    """Format of the time, in codes of strptime."""


SOURCE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Name of a source of production queries."""


class Intake(Strict):
    """Production queries: what is removed from them, and how long they are kept."""

    keep_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days that a query is kept."""
    redact: list[RedactionName] = Field(default_factory=lambda: list(REDACTION_NAMES))
    """What is replaced by its name, such as `<email>`, before anything is stored; default: all."""
    min_digits: Annotated[int, Field(ge=4, le=30)] = MIN_DIGITS
    """`digits` are so many digits in a row, or more."""
    patterns: dict[
        Annotated[str, Field(pattern=f"^{PLACEHOLDER_NAME}$")], Annotated[str, compiles(compile_redaction)]
    ] = Field(default_factory=dict, json_schema_extra={"additionalProperties": {"type": "string"}})
    """Further patterns by name: regular expressions, applied before the others."""
    longest: Annotated[int, Field(ge=10, le=10_000)] = 500
    """Characters of the longest query; longer ones are dropped and counted."""
    logs: dict[Name, LogFormat] = Field(default_factory=dict)
    """Formats of logs by name, besides `combined`."""


class TracesConfig(Strict):
    """Spans that applications send to `/v1/traces` (OTLP over HTTP): their queries go through the intake, and what was retrieved
    may go into a book.
    """

    source: Annotated[str, Field(pattern=SOURCE_PATTERN)] = "traces"
    """Name of the source of the queries."""
    names: Annotated[list[Text], Field(min_length=1)] = Field(default_factory=lambda: ["*"])
    """Names of the spans of retrievers and rerankers that are taken; `*` stands for any text."""
    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of traces that are taken, by the digest of the trace's id: the same ones on every server."""
    book: str = ""
    """Name of the book that gets the documents, to be judged; it is made where there is none. Default: documents are not kept."""
    depth: Annotated[int, Field(ge=1, le=1000)] = 10
    """First documents of each list that go into the book."""
    most_documents: Annotated[int, Field(ge=1)] = 20_000
    """Documents that the book may have; further ones are dropped and counted."""
    body_mb: Annotated[float, Field(gt=0, le=256)] = 16.0
    """Largest request in megabytes, unpacked."""


LogForm = Literal["auto", "json", "text"]
_PASSWORD = re.compile(r"(://[^:/@]*):.*@")
DEFAULT_CONNECTIONS = 500
"""With the files of the database fewer than the 1,024 handles that a process usually may have."""
Port = Annotated[int, Field(ge=1, le=65_535)]


class ServerConfig(Strict):
    """How the server runs. An option of `cranfield serve` precedes its environment variable, and that this file."""

    db: Text = "cranfield-books.db"
    """Database: a path, relative to the working directory, `sqlite:PATH` or `postgresql://...`."""
    accounts: bool = False
    """Whether people sign in. Without it one user of this machine does."""
    host: Text = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8734
    """Port to listen on."""
    url: str = ""
    """Address that browsers use, `https://judge.example.org`; default: host and port."""
    trust_proxy: list[Text] = Field(default_factory=list)
    """Addresses of proxies whose `X-Forwarded` headers are believed."""
    allow_hosts: list[Text] = Field(default_factory=list)
    """Further names of this server, with a port or without, that requests may use: `10.0.0.5`, `cranfield.internal:8734`. Only
    programs with a token use them; the pages are at `url`."""
    connections: Annotated[int, Field(ge=10, le=100_000)] = DEFAULT_CONNECTIONS
    """Connections at a time. Beyond it the oldest one that waits for its client is closed for a new one; three quarters of them
    may be requests in work, further ones are answered with 503."""
    log: LogForm = "auto"
    """Form of the log: `json`, one object a line, or `text`; `auto` is `text` on a terminal, and `json` elsewhere."""
    drain_s: Annotated[float, Field(ge=0, le=600)] = 0.0
    """Seconds in which the server goes on after the signal to stop, and `/readyz` fails, so that a load balancer takes it out."""
    stop_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Seconds that running requests have to finish when the server stops."""


class SettingOrigin(StrEnum):
    """Where a value comes from; the first of these decides."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of the server."""

    name: str
    value: object
    origin: SettingOrigin


def resolve_settings(
    given: Mapping[str, tuple[object, SettingOrigin]], file: ServerConfig
) -> tuple[ServerSetting, ...]:
    """Every setting with its value, and where that comes from.

    Args:
        given: name to value, of options and environment variables; those of the origin `default` are not looked at.
        file: the block of the operator's file.
    """
    found = []
    for name in ServerConfig.model_fields:
        value, origin = given.get(name, (None, SettingOrigin.DEFAULT))
        if origin is SettingOrigin.DEFAULT:
            origin = SettingOrigin.FILE if name in file.model_fields_set else SettingOrigin.DEFAULT
            value = getattr(file, name)
        found.append(ServerSetting(name, value, origin))
    return tuple(found)


def shown_settings(settings: Iterable[ServerSetting]) -> list[tuple[str, str, str]]:
    """Name, value and origin of each setting, for people: no password, and no parameters of an address."""
    return [(each.name, _shown(each.value), each.origin.value) for each in settings]


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "none"
    text = str("none" if value == "" else value)
    if "://" not in text:
        return text
    return _PASSWORD.sub(r"\1:***@", text).partition("?")[0]


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
                hint = f"name the only one to write metrics for, as {key}: [NAME]."
                yield ("labels",), Problem(f"no label {label}, and {key} does not name exactly one", hint=hint)
        yield from self._name_problems()

    def _name_problems(self) -> Iterator[Finding]:
        by_name: dict[str, str] = {}
        for measure, name in self.measures.items():
            whole = spelled(measure).partition("@")[0]
            other = by_name.setdefault(name, whole)
            if other != whole:
                yield ("measures", measure), Problem(f"{name} is also the name of {other}", hint="use another name.")


VARIABLE = "env:"
"""Before the name of an environment variable that holds the value."""
Event = Literal["worse", "gate-failed", "void", "waiting-for-grades", "job-failed"]
EVENTS: Mapping[Event, str] = {
    "worse": "a comparison whose verdict is worse or mixed, except for pilots and comparisons of components with the whole system",
    "gate-failed": "an evaluation of a whole system that breaks a rule of the gate",
    "void": "an evaluation with invalid figures, or a comparison whose verdict is invalid",
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
        yield (
            (),
            Problem(
                "user and password in an address", hint="put the address into an environment variable: url: env:NAME."
            ),
        )


class Webhook(Strict):
    """A web server that gets a message when a job ends."""

    url: Annotated[str, checked(_check_address)]
    """Address; `env:NAME` reads it from a variable, for an address that is a secret itself."""
    on: Annotated[list[Event], Field(min_length=1)] = Field(default_factory=lambda: list(EVENTS))
    """Events: `worse`, `gate-failed`, `void`, `waiting-for-grades`, `job-failed`; default: all."""
    secret: Annotated[str, Field(pattern=r"^env:[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """`env:NAME` of the variable with the key that signs messages (HMAC-SHA256); default: they are not signed."""
    allow: list[Host] = Field(default_factory=list)
    """Hosts and networks that may be requested although their addresses are private: `chat.intern`, `127.0.0.1`, `10.1.0.0/16`."""
    timeout_s: Seconds = 10.0
    """Seconds for an attempt."""
    tries: Annotated[int, Field(ge=1, le=10)] = 5
    """Attempts; the wait between them doubles from one second on."""


class Workbench(TextSources):
    """The operator's file, `workbench.yaml`."""

    server: ServerConfig = Field(default_factory=ServerConfig)
    """How `cranfield serve` runs."""
    tunable: Tunable = Field(default_factory=dict)
    """System to parameters that leads may set on its page, each to a range or a list of values. All others are refused."""
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    """Names of the Prometheus metrics, and who may read them."""
    webhooks: list[Webhook] = Field(default_factory=list)
    """Web servers that get a message when a job ends badly."""
    watch: Watches = Field(default_factory=dict)
    """Scheduled evaluations and experiments, by name."""
    intake: Intake = Field(default_factory=Intake)
    """What is done to production queries before they are stored."""
    traces: TracesConfig = Field(default_factory=TracesConfig)
    """What is taken of the spans that applications send."""
    jobs: JobsConfig = Field(default_factory=JobsConfig)
    """How the server works on jobs."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """Limits of uploads, requests and jobs."""


def load_workbench(path: Path | str) -> Workbench:
    """Read the operator's file.

    Raises:
        ConfigError: with everything that is wrong, in the order of the lines.
    """
    path = Path(path)
    if not path.exists():
        raise ConfigError("no such file", path=shown(path), hint="name another file, or write this one.")
    located = load_located(path, ConfigError)
    problems = ProblemList(ConfigError)
    config = validate(located, Workbench, problems, context=located.sourced)
    if config is not None:
        problems.problems += [placed(located, finding) for finding in null_characters(located.sourced)]
        if not problems.problems:
            problems.problems += [placed(located, finding) for finding in _missing(config, path.absolute().parent)]
    problems.raise_if_any()
    if config is None:
        raise ConfigError("not a workbench file", path=shown(path))
    config.set_base_dir(path.absolute().parent)
    return config


def _missing(config: Workbench, folder: Path) -> Iterator[Finding]:
    """Files and folders that are not there: of sources, and plans of experiments."""
    yield from missing_files(config.documents, folder)
    for schedule, watch in config.watch.items():
        if isinstance(watch, BenefitWatch) and not (folder / watch.benefit).is_file():
            yield ("watch", schedule, "benefit"), Problem("no such file", got=shorten(watch.benefit))
