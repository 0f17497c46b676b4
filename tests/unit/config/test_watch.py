"""The blocks `watch:` and `intake:` of the operator's file: what they accept, what they report, when schedules fire."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from cranfield.base.errors import ConfigError
from cranfield.workbench.config import load_workbench
from cranfield.workbench.watch_config import Watch, cron_times


@pytest.fixture
def load(tmp_path):
    def loaded(text):
        path = tmp_path / "workbench.yaml"
        path.write_text(text)
        return load_workbench(path)

    return loaded


def test_a_schedule_has_defaults(load):
    watch = load("watch: {nightly: {cron: '0 2 * * *', testset: clinic}}").watch["nightly"]
    assert (watch.zone, watch.jitter_s, watch.systems, watch.compare.with_) == ("UTC", 0, [], "baseline")
    assert (
        load("watch: {nightly: {cron: '0 2 * * *', testset: clinic, compare: null}}").watch["nightly"].compare is None
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("cron: '0 25 * * *'", "2:14: watch.a.cron: not a cron expression: bad hour"),
        ("cron: '0 2 * *'", "2:14: watch.a.cron: not a cron expression; expected five fields"),
        ("cron: '0 0 2 * * *'", "expected five fields"),
        ("cron: '0 0 30 2 *'", "not a cron expression: bad day-of-month"),
        ("cron: '0 2 * * *', zone: Europe/Berln", "zone: unknown time zone"),
        ("cron: '0 2 * * *', zone: ../etc/passwd", "zone: unknown time zone"),
        ("cron: '0 2 * * *', measures: [nDGC@10]", "unknown measure"),
        ("cron: '0 2 * * *', compare: {with: last}", "compare.with"),
        ("cron: '*/5 * * * *', jitter_s: 300", "the jitter is too long; expected less than 300"),
        ("crn: '0 2 * * *'", "crn"),
    ],
)
def test_what_is_wrong_is_reported_at_its_place(load, fields, message):
    with pytest.raises(ConfigError, match=message):
        load(f"watch:\n  a: {{ {fields}, testset: x}}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("patterns: {kd: 'K*'}", "matches the empty string"),
        ("patterns: {KD: 'K'}", "intake.patterns.KD"),
        ("patterns: {kd: '('}", "is not a regular expression"),
        ("logs: {a: {pattern: 'x'}}", "has no named group for the query"),
        ("logs: {a: {pattern: '(?P<query>x)', time: '%H:%M'}}", "does not contain the day"),
        ("redact: [mail]", "intake.redact"),
        ("keep_days: 0", "keep_days"),
    ],
)
def test_what_is_wrong_with_an_intake_is_reported_at_its_place(load, fields, message):
    with pytest.raises(ConfigError, match=message):
        load(f"intake: {{{fields}}}")


BERLIN = ZoneInfo("Europe/Berlin")


def after(*numbers, fold=0):
    return datetime(*numbers, tzinfo=BERLIN, fold=fold)


@pytest.mark.parametrize(
    ("cron", "start", "times"),
    [
        # 2026-03-29: 02:00 becomes 03:00 (+01:00 to +02:00).
        ("30 2 * * *", after(2026, 3, 28, 12), ["03-29T01:00Z", "03-30T00:30Z"]),
        ("0 * * * *", after(2026, 3, 29, 0, 30), ["03-29T00:00Z", "03-29T01:00Z", "03-29T02:00Z"]),
        ("0 2,3 * * *", after(2026, 3, 28, 12), ["03-29T01:00Z", "03-30T00:00Z"]),  # both are 03:00: once
        # 2026-10-25: 03:00 becomes 02:00 (+02:00 to +01:00).
        ("30 2 * * *", after(2026, 10, 24, 12), ["10-25T00:30Z", "10-26T01:30Z"]),
        ("30 2 * * *", after(2026, 10, 25, 2, 15, fold=1), ["10-26T01:30Z"]),  # the second 02:15: it has been
        ("*/30 * * * *", after(2026, 10, 25, 2, 10), ["10-25T00:30Z", "10-25T01:00Z", "10-25T01:30Z"]),
    ],
)
def test_days_on_which_the_clock_changes(cron, start, times):
    found = [time.astimezone(UTC) for time in islice(cron_times(cron, start), len(times))]
    assert [f"{time:%m-%dT%H:%MZ}" for time in found] == times


def test_times_are_those_of_the_zone():
    watch = Watch(cron="0 2 * * *", zone="Europe/Berlin", testset="x")
    assert next(watch.times(datetime(2026, 7, 1, 12, tzinfo=UTC))).astimezone(UTC) == datetime(2026, 7, 2, tzinfo=UTC)
