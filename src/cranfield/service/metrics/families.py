"""The table of metric families: `/metrics`, files, alerts, the dashboard and the documentation are read from it.

Names are without the prefix. A value that is not known has no sample: it is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cranfield.config.metrics import MetricsConfig
from cranfield.errors import UsageError
from cranfield.evaluation.judged import JUDGED_DEPTH
from cranfield.service.metrics.naming import ALL, Naming
from cranfield.service.metrics.observed import FAILURES, Json, Measured, Observation, Snapshot, Subject

DECIMALS = 12
"""Of a value: the mean of 7 of 10 is 0.7, so that an alert `< 0.7` and the gate agree."""


class Kind(StrEnum):
    """Type of a family, as Prometheus names it."""

    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Unit(StrEnum):
    """Unit of a panel, as Grafana names it."""

    NUMBER = "none"
    SHARE = "percentunit"
    SECONDS = "s"
    DAYS = "d"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value with its labels."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    subject: Subject | None = None
    stratum: str = ALL
    measure: str = ""
    """Spelling, of a value of a measure."""
    suffix: str = ""
    """Of a histogram: `_bucket`, `_sum`, `_count`."""


Query = Callable[[Naming], str]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the dashboard."""

    title: str
    queries: Sequence[tuple[Query, str]]
    """Each with the legend of its series."""
    unit: Unit = Unit.NUMBER
    kind: str = "timeseries"
    """Type of the panel in Grafana."""
    by: str | None = None
    """Label without which there is no such panel."""


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table."""

    name: str
    help: str
    samples: Callable[[Snapshot], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    """Its own, beside those of the subject."""
    of_subject: bool = True
    of_measure: bool = False
    """Whether it has the labels `measure`, `k` and `stratum`."""
    kind: Kind = Kind.GAUGE
    panels: tuple[Panel, ...] = ()


def _means(key: str) -> Callable[[Snapshot], Iterator[Sample]]:
    """The samples of one number of each measure, over all queries and in each stratum."""

    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        for each in snapshot.observations:
            if each.valid is not None:
                for stratum, measures in _groups(each.valid):
                    for spelling, numbers in measures.items():
                        if (value := numbers.get(key)) is not None:
                            yield Sample(value, {}, each.subject, stratum, spelling)

    return samples


def _groups(measured: Measured) -> Iterator[tuple[str, Mapping[str, Json]]]:
    yield ALL, measured.measures
    for key, values in measured.strata.items():
        for value, measures in values.items():
            yield f"{key}={value}", measures


def _of_last(value: Callable[[Observation], float | None]) -> Callable[[Snapshot], Iterator[Sample]]:
    """The samples of one number of each subject."""

    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        for each in snapshot.observations:
            if (found := value(each)) is not None:
                yield Sample(found, {}, each.subject)

    return samples


def _ages(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        if snapshot.now is not None and each.valid is not None and each.valid.at is not None:
            yield Sample(max(0.0, snapshot.now - each.valid.at), {}, each.subject)


def _times(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        if (valid := each.valid) is not None:
            for spelling, numbers in valid.measures.items():
                at = valid.times.get(spelling, valid.at)
                if at is not None and numbers.get("mean") is not None:
                    yield Sample(at, {}, each.subject, ALL, spelling)


def _terms(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        if (valid := each.valid) is not None:
            labels = {"version": valid.version, "digest": valid.digest.removeprefix("sha256:")[:12]}
            labels |= {"convention": valid.convention, "depth": str(valid.depth or "")}
            yield Sample(1, labels, each.subject)


def _failures(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        for kind in FAILURES:
            yield Sample(each.last.failures.get(kind, 0), {"kind": kind}, each.subject)


def _judged(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        share, k = each.last.judged.get("mean"), each.last.judged.get("k")
        if share is not None:
            yield Sample(share, {"k": str(k or JUDGED_DEPTH)}, each.subject)


PERCENTILES = (50, 95, 99)


def _percentiles(snapshot: Snapshot) -> Iterator[Sample]:
    for each, latency in _latencies(snapshot):
        for percentile in PERCENTILES:
            yield Sample(latency[f"p{percentile}"] / 1000, {"percentile": str(percentile)}, each.subject)


def _histogram(snapshot: Snapshot) -> Iterator[Sample]:
    for each, latency in _latencies(snapshot):
        for bound, count in latency["buckets"]:
            end = "+Inf" if bound is None else f"{bound / 1000:g}"
            yield Sample(count, {"le": end}, each.subject, suffix="_bucket")
        yield Sample(latency["n"], {}, each.subject, suffix="_count")
        yield Sample(latency["sum"] / 1000, {}, each.subject, suffix="_sum")


def _latencies(snapshot: Snapshot) -> Iterator[tuple[Observation, Json]]:
    for each in snapshot.observations:
        if each.valid is not None and each.valid.latency_ms is not None:
            yield each, each.valid.latency_ms


def _rules(snapshot: Snapshot) -> Iterator[Sample]:
    for each in snapshot.observations:
        for rule, is_kept in ((each.valid and each.valid.gate) or {}).items():
            if is_kept is not None:
                yield Sample(float(is_kept), {"rule": rule}, each.subject)


def _numbers(label: str, numbers: Callable[[Snapshot], Mapping[str, int]]) -> Callable[[Snapshot], Iterator[Sample]]:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        for name, n in numbers(snapshot).items():
            yield Sample(n, {label: name})

    return samples


def _build(snapshot: Snapshot) -> Iterator[Sample]:
    yield Sample(1, {"version": snapshot.version})


def _left_out(snapshot: Snapshot) -> Iterator[Sample]:
    yield Sample(snapshot.left_out)


WHO = "{{system}} {{variant}} {{components}} {{testset}}"
WHAT = "{{__name__}} {{measure}} {{k}}"
CHOSEN = {"testset": '=~"$testset"', "system": '=~"$system"'}
"""Conditions of the variables of the dashboard."""
OVERALL = {**CHOSEN, "stratum": f'="{ALL}"'}
STRATA = {**CHOSEN, "measure": '=~"$measure"', "stratum": '=~"$stratum"'}
"""One measure can be chosen: with nine classes there are nine bars of each."""


def _select(family: str, conditions: Mapping[str, str] = CHOSEN, before: str = "") -> Query:
    return lambda naming: before + naming.select(family, conditions)


def _buckets(naming: Naming) -> str:
    return f"sum by (le) ({naming.select('latency_seconds', CHOSEN, suffix='_bucket')})"


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "measure",
            'Mean of a measure in the last evaluation whose figures count; stratum="all" is over all queries.',
            _means("mean"),
            of_measure=True,
            panels=(
                Panel("Measures, over all queries", [(_select("measure", OVERALL), f"{WHAT} {WHO}")]),
                Panel(
                    "Measures by stratum",
                    [(_select("measure", STRATA), f"{{{{stratum}}}} {WHAT} {WHO}")],
                    kind="bargauge",
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
                    [
                        (_select("measure_ci_low", OVERALL), f"{WHAT} {WHO} low"),
                        (_select("measure_ci_high", OVERALL), f"{WHAT} {WHO} high"),
                    ],
                ),
            ),
        ),
        Family("measure_queries", "Queries that the mean is over.", _means("n"), of_measure=True),
        Family(
            "measure_timestamp_seconds",
            "Time of the evaluation that the mean is of: earlier than the last where that did not compute the measure.",
            _times,
            of_measure=True,
        ),
        Family(
            "evaluation_timestamp_seconds",
            "Time of the last evaluation, void or not.",
            _of_last(lambda each: each.last.at),
        ),
        Family(
            "evaluation_valid_timestamp_seconds",
            "Time of the last evaluation whose figures count, which the measures are of.",
            _of_last(lambda each: each.valid.at if each.valid else None),
            panels=(
                Panel(
                    "Age of the figures",
                    [(_select("evaluation_valid_timestamp_seconds", before="time() - "), WHO)],
                    Unit.SECONDS,
                    "stat",
                ),
            ),
        ),
        Family(
            "evaluation_age_seconds",
            "Seconds since the last evaluation whose figures count; only where a server is scraped.",
            _ages,
        ),
        Family(
            "evaluation_void",
            "1 where the figures of the last evaluation do not count; the measures are then of the one before.",
            _of_last(lambda each: float(bool(each.last.void))),
            panels=(Panel("Void evaluations", [(_select("evaluation_void"), WHO)], kind="stat"),),
        ),
        Family(
            "evaluation_info",
            "What the figures depend on besides the system: version and digest of the test set, convention, depth.",
            _terms,
            ("version", "digest", "convention", "depth"),
            panels=(
                Panel(
                    "Test set and convention",
                    [(_select("evaluation_info"), "{{version}} {{digest}} {{convention}} {{depth}} " + WHO)],
                ),
            ),
        ),
        Family("queries", "Queries of the last evaluation.", _of_last(lambda each: each.last.n_queries)),
        Family(
            "failed_queries",
            "Queries of the last evaluation that failed, or have no answer (missing), by kind of failure.",
            _failures,
            ("kind",),
            panels=(Panel("Failed queries", [(_select("failed_queries"), "{{kind}} " + WHO)]),),
        ),
        Family(
            "judged_share",
            "Share of the first k results that are judged, in the last evaluation.",
            _judged,
            ("k",),
            panels=(Panel("Judged share", [(_select("judged_share"), WHO)], Unit.SHARE),),
        ),
        Family(
            "latency_seconds",
            "Latencies of the last evaluation whose figures count, as a histogram. It is no counter: "
            "use histogram_quantile() without rate().",
            _histogram,
            ("le",),
            kind=Kind.HISTOGRAM,
            panels=(
                Panel(
                    "Latencies of the last evaluation",
                    [(_buckets, "{{le}}")],
                    Unit.SECONDS,
                    "heatmap",
                ),
            ),
        ),
        Family(
            "latency_percentile_seconds",
            "Percentiles of the latencies of the last evaluation whose figures count.",
            _percentiles,
            ("percentile",),
            panels=(
                Panel("Latency", [(_select("latency_percentile_seconds"), "p{{percentile}} " + WHO)], Unit.SECONDS),
            ),
        ),
        Family(
            "gate_rule_passed",
            "1 where a rule of the gate holds, 0 where it is broken. A rule that could not be decided has no value: a rule on a "
            "baseline needs a pinned evaluation.",
            _rules,
            ("rule",),
            panels=(Panel("Gate", [(_select("gate_rule_passed"), "{{rule}} " + WHO)], kind="stat"),),
        ),
        Family(
            "jobs",
            "Jobs of the server by state.",
            _numbers("state", lambda snapshot: snapshot.jobs),
            ("state",),
            of_subject=False,
            panels=(Panel("Jobs", [(_select("jobs", {}), "{{state}}")]),),
        ),
        Family(
            "testset_overdue_days",
            "Days by which the refresh of a test set is overdue; 0: it is not.",
            _numbers("testset", lambda snapshot: snapshot.overdue_days),
            ("testset",),
            of_subject=False,
            panels=(
                Panel("Overdue refreshes", [(_select("testset_overdue_days", {}), "{{testset}}")], Unit.DAYS, "stat"),
            ),
        ),
        Family(
            "series_left_out",
            "Systems on test sets that have no series, because there would be more than max_series.",
            _left_out,
            of_subject=False,
        ),
        Family("build_info", "Version of Cranfield.", _build, ("version",), of_subject=False),
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
                f"metrics.measures: {name} for {measure} gives the name {clash}, which other metrics have",
                hint="use another name",
            )
    return naming


def _names(naming: Naming, measure: str) -> list[str]:
    return [naming.name(family.name, measure) for family in FAMILIES.values() if family.of_measure]
