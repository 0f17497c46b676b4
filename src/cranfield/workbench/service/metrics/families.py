"""The table of metric families: `/metrics`, files, alerts, the dashboard and the documentation are read from it.

Names are without the prefix. A value that is not known has no sample: it is never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Literal

from cranfield.base.errors import CranfieldError, UsageError
from cranfield.workbench.config import SUBJECT_LABELS, MetricsConfig, spelled
from cranfield.workbench.service.metrics.observed import (
    FAILURES,
    Measured,
    MeasuredSubject,
    MetricsSnapshot,
    Observation,
    ScheduleState,
)

ALL = "all"
"""Value of the label `stratum` over all queries."""
MEASURE = "measure"
"""Part of the name of a family of measures in whose place a measure has its own name."""
Conditions = Mapping[str, str]
"""Label to operator and value: `{"system": '="fusion"'}`."""


class Naming:
    """Gives families and measures their names."""

    def __init__(self, config: MetricsConfig | None = None) -> None:
        self.config = config or MetricsConfig()
        self._own = {_spelled(measure): name for measure, name in self.config.measures.items()}

    def name(self, family: str, measure: str = "") -> str:
        """Name of the metric of a family, or of one of its measures."""
        own = self._own_name(measure) if measure else None
        return self.config.prefix + (family if own is None else family.replace(MEASURE, own, 1))

    def measure_labels(self, measure: str) -> dict[str, str]:
        """`measure` and `k` of a measure; only `k` where it has a metric of its own."""
        spelling = _spelled(measure)
        whole, _, cutoff = spelling.partition("@")
        return ({"k": cutoff} if cutoff else {}) | ({} if self._own_name(spelling) else {MEASURE: whole})

    def is_written(self, subject: MeasuredSubject, stratum: str = ALL) -> bool:
        """Whether a series of a subject is written: with the labels that are left out, it could not be identified."""
        config = self.config
        if config.systems is not None and subject.system not in config.systems:
            return False
        if config.testsets is not None and subject.testset not in config.testsets:
            return False
        plain = {"variant": not subject.variant, "components": not subject.components, "stratum": stratum == ALL}
        return all(is_plain or self.has(label) for label, is_plain in plain.items())

    def subject_labels(self, subject: MeasuredSubject) -> dict[str, str]:
        """Labels of a subject, those that are not empty."""
        return {label: value for label, value in asdict(subject).items() if value and self.has(label)}

    def has(self, label: str) -> bool:
        """Whether a label of subjects is written."""
        return label in self.config.labels

    def select(self, family: str, conditions: Conditions, measure: str = "", *, suffix: str = "") -> str:
        """A selector in PromQL; conditions on labels that are not written are left out.

        Args:
            family: a name of the table of families.
            conditions: label to operator and value.
            measure: of one measure; empty: of all of them.
            suffix: of a histogram.
        """
        kept = {label: text for label, text in conditions.items() if label not in SUBJECT_LABELS or self.has(label)}
        if measure:
            kept = {label: f"={quoted(value)}" for label, value in self.measure_labels(measure).items()} | kept
        name = self.name(family, measure) + suffix
        if not measure and family.startswith(MEASURE) and self._own:
            pattern = "|".join(dict.fromkeys(self.name(family, each) for each in ("", *self._own)))
            name, kept = "", {"__name__": f"=~{quoted(pattern)}"} | kept
        inner = ",".join(f"{label}{text}" for label, text in kept.items())
        return f"{name}{{{inner}}}" if inner else name

    def _own_name(self, measure: str) -> str | None:
        spelling = _spelled(measure)
        return self._own.get(spelling, self._own.get(spelling.partition("@")[0]))


@cache
def _spelled(measure: str) -> str:
    """A measure as results spell it: `R@10` for `Recall@10`."""
    try:
        return spelled(measure)
    except CranfieldError:  # of a plugin that is not installed here, in a stored result
        return measure


def quoted(value: str) -> str:
    r"""A string of PromQL.

    Example:
        >>> quoted('a"b')
        '"a\\"b"'
    """
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def escaped(value: str) -> str:
    """A value as a regular expression of RE2."""
    return re.sub(r"([.\\+*?()|\[\]{}^$])", r"\\\1", value)


DECIMALS = 12
"""Decimals of a value: the mean of 7 of 10 is 0.7, so that an alert `< 0.7` and the gate agree."""
PERCENTILES = (50, 95, 99)
DAY_S = 86_400
RESULTS = ("failed", "void", "worse", "gate_failed", "passed")
"""What a run of a schedule can come to: `cranfield.workbench.service.watch.scheduler.Result`."""
WHO = "{{system}} {{variant}} {{components}} {{testset}}"
WHAT = "{{__name__}} {{measure}} {{k}}"
CHOSEN = {"testset": '=~"$testset"', "system": '=~"$system"'}
"""Conditions of the variables of the dashboard."""
OVERALL = {**CHOSEN, "stratum": f'="{ALL}"'}
STRATA = {**CHOSEN, "measure": '=~"$measure"', "stratum": '=~"$stratum"'}
"""One measure can be chosen: with nine classes there are nine bars of each."""


@dataclass(frozen=True, slots=True)
class MetricSample:
    """A value with its labels; one that is not known is not written."""

    value: float | None
    labels: Mapping[str, str] = field(default_factory=dict)
    subject: MeasuredSubject | None = None
    stratum: str = ALL
    measure: str = ""
    """Spelling, of a value of a measure."""
    suffix: str = ""
    """Suffix of a series of a histogram: `_bucket`, `_sum`, `_count`."""


Samples = Callable[[MetricsSnapshot], Iterable[MetricSample]]
Values = Iterable[tuple[float | None, Mapping[str, str]]]
"""Each with its labels."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the dashboard, with the series of its family."""

    title: str
    legend: str
    unit: Literal["none", "percentunit", "s"] = "none"
    """As Grafana names it."""
    kind: Literal["timeseries", "stat", "heatmap", "bargauge"] = "timeseries"
    """As Grafana names it."""
    expr: str = "{}"
    """What is around the selector."""
    conditions: Mapping[str, str] = field(default_factory=lambda: CHOSEN)
    """On the labels, where the family is of subjects."""
    by: str | None = None
    """Label without which there is no such panel."""
    also: tuple[str, ...] = ()
    """Further families that it has the series of."""


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table."""

    name: str
    help: str
    samples: Samples
    labels: tuple[str, ...] = ()
    """Its own, beside those of the subject."""
    of_subject: bool = True
    of_measure: bool = False
    """Whether it has the labels `measure`, `k` and `stratum`."""
    kind: Literal["gauge", "histogram"] = "gauge"
    panels: tuple[Panel, ...] = ()


def _means(key: str) -> Samples:
    """The samples of one number of each measure, over all queries and in each stratum."""

    def samples(snapshot: MetricsSnapshot) -> Iterator[MetricSample]:
        for each, valid in _valid(snapshot):
            by_stratum = {f"{stratum.key}={stratum.value}": stratum.measures for stratum in valid.scores.by_stratum}
            for stratum, measures in ({ALL: valid.scores.measures} | by_stratum).items():
                for measure, summary in measures.items():
                    yield MetricSample(getattr(summary, key), {}, each.subject, stratum, measure.canonical)

    return samples


def _valid(snapshot: MetricsSnapshot) -> Iterator[tuple[Observation, Measured]]:
    return ((each, each.valid) for each in snapshot.observations if each.valid is not None)


def _of_last(values: Callable[[Measured], Values]) -> Samples:
    """The samples of the last evaluation of each subject."""
    return lambda snapshot: (
        MetricSample(*value, each.subject) for each in snapshot.observations for value in values(each.last)
    )


def _of_valid(values: Callable[[Measured], Values]) -> Samples:
    """The samples of the last evaluation of each subject whose figures count."""
    return lambda snapshot: (
        MetricSample(*value, each.subject) for each, valid in _valid(snapshot) for value in values(valid)
    )


def _ages(snapshot: MetricsSnapshot) -> Iterator[MetricSample]:
    for each, valid in _valid(snapshot):
        if snapshot.now is not None and valid.at is not None:
            yield MetricSample(max(0.0, snapshot.now - valid.at), {}, each.subject)


def _times(snapshot: MetricsSnapshot) -> Iterator[MetricSample]:
    for each, valid in _valid(snapshot):
        for measure, summary in valid.scores.measures.items():
            if summary.mean is not None:
                yield MetricSample(valid.times.get(measure, valid.at), {}, each.subject, ALL, measure.canonical)


def _terms(valid: Measured) -> Values:
    labels = {"version": valid.testset.version, "digest": valid.testset.digest.removeprefix("sha256:")[:12]}
    yield 1, labels | {"convention": valid.convention, "depth": str(valid.facts.k or "")}


def _percentiles(valid: Measured) -> Values:
    if (latency := valid.facts.latency_ms) is not None:
        yield from ((latency[f"p{percentile}"] / 1000, {"percentile": str(percentile)}) for percentile in PERCENTILES)


def _histogram(snapshot: MetricsSnapshot) -> Iterator[MetricSample]:
    for each, valid in _valid(snapshot):
        if (latency := valid.facts.latency_ms) is not None:
            for bound, count in latency["buckets"]:
                end = "+Inf" if bound is None else f"{bound / 1000:g}"
                yield MetricSample(count, {"le": end}, each.subject, suffix="_bucket")
            yield MetricSample(latency["n"], {}, each.subject, suffix="_count")
            yield MetricSample(latency["sum"] / 1000, {}, each.subject, suffix="_sum")


def _of_schedules(values: Callable[[ScheduleState], Values]) -> Samples:
    return lambda snapshot: (
        MetricSample(value, {"schedule": each.name, **labels})
        for each in snapshot.schedules
        for value, labels in values(each)
    )


def _numbers(label: str, numbers: Callable[[MetricsSnapshot], Mapping[str, int]]) -> Samples:
    return lambda snapshot: (MetricSample(n, {label: name}) for name, n in numbers(snapshot).items())


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "measure",
            'Mean of a measure in the last valid evaluation; stratum="all" is over all queries.',
            _means("mean"),
            of_measure=True,
            panels=(
                Panel("Measures, over all queries", f"{WHAT} {WHO}", conditions=OVERALL),
                Panel(
                    "Measures by stratum",
                    f"{{{{stratum}}}} {WHAT} {WHO}",
                    kind="bargauge",
                    conditions=STRATA,
                    by="stratum",
                ),
            ),
        ),
        Family(
            "measure_ci_low", "Lower end of the confidence interval of the mean.", _means("ci_low"), of_measure=True
        ),
        Family(
            "measure_ci_high",
            "Upper end of the confidence interval of the mean.",
            _means("ci_high"),
            of_measure=True,
            panels=(
                Panel(
                    "Confidence intervals, over all queries",
                    f"{WHAT} {WHO}",
                    conditions=OVERALL,
                    also=("measure_ci_low",),
                ),
            ),
        ),
        Family("measure_queries", "Number of queries in the mean.", _means("n"), of_measure=True),
        Family(
            "measure_timestamp_seconds",
            "Time of the evaluation of the mean; earlier than the last evaluation if that did not compute the measure.",
            _times,
            of_measure=True,
        ),
        Family(
            "evaluation_timestamp_seconds",
            "Time of the last evaluation, void or not.",
            _of_last(lambda last: [(last.at, {})]),
        ),
        Family(
            "evaluation_valid_timestamp_seconds",
            "Time of the last valid evaluation, which gives the values of the measures.",
            _of_valid(lambda valid: [(valid.at, {})]),
            panels=(Panel("Age of the figures", WHO, "s", "stat", expr="time() - {}"),),
        ),
        Family(
            "evaluation_age_seconds",
            "Seconds since the last valid evaluation; only if a server is scraped.",
            _ages,
        ),
        Family(
            "evaluation_void",
            "1 if the last evaluation is void; the measures are then from the previous one.",
            _of_last(lambda last: [(bool(last.void), {})]),
            panels=(Panel("Void evaluations", WHO, kind="stat"),),
        ),
        Family(
            "evaluation_info",
            (
                "Settings that the figures depend on besides the system: version and digest of the test set, "
                "convention, depth."
            ),
            _of_valid(_terms),
            ("version", "digest", "convention", "depth"),
            panels=(Panel("Test set and convention", "{{version}} {{digest}} {{convention}} {{depth}} " + WHO),),
        ),
        Family("queries", "Queries of the last evaluation.", _of_last(lambda last: [(last.scores.n_queries, {})])),
        Family(
            "failed_queries",
            "Queries of the last evaluation that failed, or have no answer (missing), by kind of failure.",
            _of_last(lambda last: [(last.facts.failures.get(kind, 0), {"kind": kind}) for kind in FAILURES]),
            ("kind",),
            panels=(Panel("Failed queries", "{{kind}} " + WHO),),
        ),
        Family(
            "judged_share",
            "Share of the first k results that are judged, in the last evaluation.",
            _of_last(lambda last: [(last.scores.judged.mean, {"k": str(last.scores.judged.measure.depth)})]),
            ("k",),
            panels=(Panel("Judged share", WHO, "percentunit"),),
        ),
        Family(
            "latency_seconds",
            (
                "Latencies of the last valid evaluation, as a histogram. Not a counter: use histogram_quantile() "
                "without rate()."
            ),
            _histogram,
            ("le",),
            kind="histogram",
            panels=(Panel("Latencies of the last evaluation", "{{le}}", "s", "heatmap", "sum by (le) ({})"),),
        ),
        Family(
            "latency_percentile_seconds",
            "Percentiles of the latencies of the last valid evaluation.",
            _of_valid(_percentiles),
            ("percentile",),
            panels=(Panel("Latency", "p{{percentile}} " + WHO, "s"),),
        ),
        Family(
            "gate_rule_passed",
            (
                "1 if a rule of the gate holds, 0 if it is broken. An undecided rule has no value (a rule on a "
                "baseline requires a pinned evaluation); a broken rule stays 0 until an evaluation decides it."
            ),
            _of_valid(lambda valid: [(kept, {"rule": rule}) for rule, kept in (valid.facts.gate or {}).items()]),
            ("rule",),
            panels=(Panel("Gate", "{{rule}} " + WHO, kind="stat"),),
        ),
        Family(
            "jobs",
            "Jobs of the server by state.",
            _numbers("state", lambda snapshot: snapshot.jobs),
            ("state",),
            of_subject=False,
            panels=(Panel("Jobs", "{{state}}"),),
        ),
        Family(
            "trace_spans",
            "Spans of applications that came since the server was started, by what became of them.",
            _numbers("fate", lambda snapshot: snapshot.spans),
            ("fate",),
            of_subject=False,
            panels=(Panel("Spans of applications", "{{fate}}"),),
        ),
        Family(
            "trace_documents",
            "Documents in such spans: added to the book, or dropped, with the reason.",
            _numbers("fate", lambda snapshot: snapshot.pooled),
            ("fate",),
            of_subject=False,
            panels=(Panel("Documents of spans", "{{fate}}"),),
        ),
        Family(
            "testset_overdue_seconds",
            "Time by which the refresh of a test set is overdue, in whole days; 0: not overdue.",
            _numbers("testset", lambda snapshot: {name: n * DAY_S for name, n in snapshot.overdue_days.items()}),
            ("testset",),
            of_subject=False,
            panels=(Panel("Overdue refreshes", "{{testset}}", "s", "stat"),),
        ),
        Family(
            "schedule_next_timestamp_seconds",
            "Time of the next run of a schedule.",
            _of_schedules(lambda each: [(each.next, {})]),
            ("schedule",),
            of_subject=False,
            panels=(Panel("Time until the next run of a schedule", "{{schedule}}", "s", "stat", expr="{} - time()"),),
        ),
        Family(
            "schedule_ended_timestamp_seconds",
            "End time of the last run of a schedule; its age is time() minus this value.",
            _of_schedules(lambda each: [(each.ended, {})]),
            ("schedule",),
            of_subject=False,
            panels=(Panel("Time since the last run of a schedule", "{{schedule}}", "s", "stat", expr="time() - {}"),),
        ),
        Family(
            "schedule_result",
            f"1 for the result of the last run of a schedule, 0 for the others: {', '.join(RESULTS)}.",
            _of_schedules(lambda each: [(each.result == name, {"result": name}) for name in RESULTS if each.result]),
            ("schedule", "result"),
            of_subject=False,
            panels=(Panel("Results of schedules", "{{schedule}} {{result}}", kind="stat", expr="{} == 1"),),
        ),
        Family(
            "schedule_failed_runs",
            "Number of failed or cancelled runs of a schedule since its last successful run.",
            _of_schedules(lambda each: [(each.n_failed, {})]),
            ("schedule",),
            of_subject=False,
            panels=(Panel("Failed runs of schedules", "{{schedule}}"),),
        ),
        Family(
            "series_left_out",
            "Systems on test sets without series, because max_series is reached.",
            lambda snapshot: [MetricSample(snapshot.left_out)],
            of_subject=False,
        ),
        Family(
            "build_info",
            "Version of Cranfield.",
            lambda snapshot: [MetricSample(1, {"version": snapshot.version})],
            ("version",),
            of_subject=False,
        ),
    )
}
"""Name to family, in the order in which they are written."""


def naming_of(config: MetricsConfig) -> Naming:
    """The names that the operator chose.

    Raises:
        UsageError: a measure would have the name of other metrics.
    """
    naming = Naming(config)
    taken = {naming.name(family) for family in FAMILIES}
    for measure, name in config.measures.items():
        if clash := next((each for each in _names(naming, measure) if each in taken), None):
            raise UsageError(
                f"metrics.measures: {name} for {measure} gives the name {clash}, which another metric already has",
                hint="use another name",
            )
    return naming


def _names(naming: Naming, measure: str) -> list[str]:
    return [naming.name(family.name, measure) for family in FAMILIES.values() if family.of_measure]
