"""The block `watch:` of the operator's file: evaluations and experiments on a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, Tag

from cranfield.base.errors import Problem, did_you_mean, shorten
from cranfield.config.declared import ConventionName, MeanMeasureName, with_keys
from cranfield.config.strict import Finding, Strict, by_key, checked
from cranfield.config.systems import Name
from cranfield.evaluation.options.blocks import CompareOptions, ScoringOptions
from cranfield.evaluation.options.keys import at, key_of
from cranfield.model.kinds import Text

OF_CONFIG = "that of the config"
CRON_FIELDS = "minute, hour, day of month, month, day of week"
_COMPARED_TIMES = 50
"""Times whose distances are compared with the jitter."""


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name that was checked."""
    return ZoneInfo(name)


def cron_times(expression: str, after: datetime) -> Iterator[datetime]:
    """The times of a cron expression after a time, in its zone, each once, ascending.

    Where a clock is put forward, a fixed time in the hour that is left out is the first after it; where it is put back, a
    fixed time comes once, and `*` comes in both hours: the rules of Debian's cron.
    """
    from cronsim import CronSim

    last = after.astimezone(UTC)
    for time in CronSim(expression, after):
        instant = time.astimezone(UTC)
        if instant > last:
            last = instant
            yield time


def _check_cron(expression: str) -> Iterator[Finding]:
    from cronsim import CronSim, CronSimError

    if len(expression.split()) != len(CRON_FIELDS.split(", ")):
        yield (), Problem("not a cron expression", expected=f"five fields: {CRON_FIELDS}", got=shorten(expression))
        return
    try:
        CronSim(expression, datetime.now(UTC))
    except CronSimError as error:
        reason = str(error)[:1].lower() + str(error)[1:]
        yield (), Problem(f"not a cron expression: {reason}", expected=CRON_FIELDS, got=shorten(expression))


def _check_zone(name: str) -> Iterator[Finding]:
    try:
        zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        from zoneinfo import available_timezones

        known = sorted(available_timezones())
        hint = did_you_mean(name, known) if known else "this system has no time zone data: `pip install tzdata`"
        yield (), Problem("unknown time zone", expected="UTC, Europe/Berlin, …", got=shorten(name), hint=hint)


class Compare(Strict):
    """What each evaluation of a schedule is compared with, and how."""

    with_: Literal["baseline", "previous"] = Field(default="baseline", alias="with")
    """`baseline`: the pinned evaluation of the test set, of the same system if there is one; `previous`: the evaluation of the
    same system before, of any origin, that is not void."""
    measure: MeanMeasureName | None = None
    """Primary measure the verdict; default: the primary one."""


if not TYPE_CHECKING:
    Compare = with_keys(Compare, "Compare", at("schedule", CompareOptions), otherwise=OF_CONFIG)


class Timed(Strict):
    """What is run at the times of a cron expression."""

    cron: Annotated[str, checked(_check_cron)]
    """When: five fields, as in crontab: minute, hour, day of month, month, day of week."""
    zone: Annotated[str, checked(_check_zone)] = "UTC"
    """Time zone of `cron`, such as `Europe/Berlin`."""
    jitter_s: Annotated[int, Field(ge=0, le=86_400)] = 0
    """Each time is delayed by up to so many seconds; the delay follows from name, time and database."""

    def times(self, after: datetime) -> Iterator[datetime]:
        """The times of the schedule after a time, in its zone, without jitter."""
        return cron_times(self.cron, after.astimezone(zone_of(self.zone)))

    def times_before(self, now: datetime) -> Iterator[datetime]:
        """The times of the schedule before a time, the last one first."""
        from cronsim import CronSim

        return CronSim(self.cron, now.astimezone(zone_of(self.zone)) + timedelta(minutes=1), reverse=True)

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A jitter that would change the order of times."""
        if not self.jitter_s:
            return
        times = islice(self.times(datetime(2026, 1, 1, tzinfo=UTC)), _COMPARED_TIMES)
        closest = min((later - time for time, later in pairwise(t.astimezone(UTC) for t in times)), default=None)
        if closest is not None and timedelta(seconds=self.jitter_s) >= closest:
            seconds = int(closest.total_seconds())
            expected = f"less than {seconds}, the shortest time between two runs"
            yield ("jitter_s",), Problem("the jitter is too long", expected=expected, got=str(self.jitter_s))


class Watch(Timed):
    """An evaluation on a schedule. The rules of the config's gate are checked on each."""

    testset: Text
    """Name of a test set, of the config or uploaded: its latest version."""
    systems: list[Text] = Field(default_factory=list)
    """Names of systems in the config; default: its candidate, else its only system."""
    k: Annotated[int, Field(ge=1)] | None = None
    """Number of results requested; default: that of the config."""
    measures: Annotated[list[MeanMeasureName], Field(min_length=1)] | None = None
    """Measures; default: those of the config."""
    primary: MeanMeasureName | None = None
    """Primary measure; default: that of the config, else the first."""
    convention: Annotated[ConventionName | None, key_of(ScoringOptions, "convention", otherwise=OF_CONFIG)] = None
    seed: Annotated[int, Field(ge=0)] = 0
    """Random seed."""
    compare: Compare | None = Field(default_factory=Compare)
    """What each evaluation is compared with; null: nothing."""


class BenefitWatch(Timed):
    """An experiment on a schedule: whether a tool helps an agent. The default rules of `cranfield benefit gate` are checked."""

    benefit: Text
    """Plan of the experiment; paths are relative to the operator's file."""
    when: Literal["always", "changed"] = "always"
    """`changed`: only where the plan, its tasks, the commit or a tool is another than that of the last result."""
    runs: Text = "benefit-runs"
    """Folder of experiments."""
    results: Text = "benefit-results"
    """Folder of results, with their history."""


AnyWatch = Annotated[
    Annotated[Watch, Tag("testset")] | Annotated[BenefitWatch, Tag("benefit")], by_key("testset", "benefit")
]
Watches = dict[Annotated[Name, Field(max_length=100)], AnyWatch]
