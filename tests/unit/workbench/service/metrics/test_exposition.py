"""Metrics of evaluations in the text format, under the names that the operator chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import ValidationError
from tests.unit.workbench.service.metrics.observations import HOUSE, measured, numbers, observed, written

from cranfield.base.errors import UsageError
from cranfield.workbench.config import MetricsConfig
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.families import FAMILIES, RESULTS, Naming, naming_of
from cranfield.workbench.service.metrics.observed import (
    MeasuredSubject,
    MetricsSnapshot,
    Observation,
    ScheduleState,
    with_earlier,
)
from cranfield.workbench.service.watch.scheduler import Result

WHO = 'system="fusion",testset="clinical"'


def test_the_line_with_15_minutes_is_written_literally() -> None:
    assert 'medicalkg_retrieval_recall_at_k{k="10"} 0.82' in written(observed(measured()), config=HOUSE)


def test_every_measure_is_written_by_stratum_with_its_interval() -> None:
    lines = written(observed(measured()))
    assert f'cranfield_measure{{k="10",measure="R",stratum="all",{WHO}}} 0.82' in lines
    assert f'cranfield_measure{{k="10",measure="R",stratum="query_type=paraphrase",{WHO}}} 0.78' in lines
    assert f'cranfield_measure_ci_low{{k="10",measure="R",stratum="all",{WHO}}} 0.77' in lines
    assert f'cranfield_measure_queries{{k="10",measure="R",stratum="query_type=paraphrase",{WHO}}} 20.0' in lines
    assert f'cranfield_measure{{measure="RR",stratum="all",{WHO}}} 0.85' in lines


def test_the_last_value_of_a_measure_of_a_class_is_written_also_where_an_earlier_evaluation_has_it_for_all() -> None:
    quiet = {"class": {"N": {"Silence": numbers(0.9, 18)}}}
    earlier = measured(measures={"Silence": numbers(0.2)}, strata={"class": {"N": {"Silence": numbers(0.1, 18)}}})
    lines = written(observed(with_earlier(measured(strata=quiet), earlier)))
    assert f'cranfield_measure{{measure="Silence",stratum="class=N",{WHO}}} 0.9' in lines
    assert f'cranfield_measure{{measure="Silence",stratum="all",{WHO}}} 0.2' in lines


@pytest.mark.parametrize(
    "line",
    [
        "cranfield_evaluation_age_seconds{WHO} 60.0",
        "cranfield_evaluation_timestamp_seconds{WHO} 1000.0",
        "cranfield_evaluation_void{WHO} 0.0",
        'cranfield_evaluation_info{convention="trec",depth="10",digest="0123456789ab",WHO,version="2"} 1.0',
        'cranfield_failed_queries{kind="timeout",WHO} 2.0',
        'cranfield_failed_queries{kind="error",WHO} 0.0',
        'cranfield_judged_share{k="10",WHO} 0.9',
        'cranfield_latency_seconds_bucket{le="0.01",WHO} 3.0',
        'cranfield_latency_seconds_bucket{le="+Inf",WHO} 50.0',
        "cranfield_latency_seconds_count{WHO} 50.0",
        "cranfield_latency_seconds_sum{WHO} 1.5",
        'cranfield_latency_percentile_seconds{percentile="95",WHO} 0.08',
        'cranfield_gate_rule_passed{rule="R@10 is at least 0.75",WHO} 1.0',
        'cranfield_jobs{state="failed"} 1.0',
        'cranfield_testset_overdue_seconds{testset="clinical"} 259200.0',
        'cranfield_schedule_next_timestamp_seconds{schedule="nightly"} 5000.0',
        'cranfield_schedule_ended_timestamp_seconds{schedule="nightly"} 900.0',
        'cranfield_schedule_result{result="failed",schedule="nightly"} 1.0',
        'cranfield_schedule_result{result="passed",schedule="nightly"} 0.0',
        'cranfield_schedule_failed_runs{schedule="nightly"} 2.0',
        'cranfield_build_info{version="1.2.3"} 1.0',
    ],
)
def test_what_else_is_written(line: str) -> None:
    nightly = ScheduleState("nightly", 5_000.0, 900.0, "failed", 2)
    lines = written(observed(measured()), jobs={"failed": 1}, overdue_days={"clinical": 3}, schedules=[nightly])
    assert line.replace("{WHO}", f"{{{WHO}}}").replace("WHO", WHO) in lines


def test_a_void_evaluation_changes_no_measure_and_says_that_it_is_void() -> None:
    before = measured(0.82, at=1_000.0)
    void = measured(0.10, at=1_050.0, failures={"timeout": 40}, void=("40 of 50 queries failed",))
    lines = written(observed(void, before))
    assert f'cranfield_measure{{k="10",measure="R",stratum="all",{WHO}}} 0.82' in lines
    assert f"cranfield_evaluation_void{{{WHO}}} 1.0" in lines
    assert f"cranfield_evaluation_age_seconds{{{WHO}}} 60.0" in lines  # of the figures, 1060 - 1000
    assert f"cranfield_evaluation_timestamp_seconds{{{WHO}}} 1050.0" in lines
    assert f'cranfield_failed_queries{{kind="timeout",{WHO}}} 40.0' in lines  # the fact itself, for its alert


def test_a_system_whose_every_evaluation_was_void_has_no_measure() -> None:
    void = measured(0.10, void=("void",))
    lines = written(Observation(MeasuredSubject("clinical", "fusion"), void, None))
    assert not [line for line in lines if line.startswith(("cranfield_measure", "cranfield_evaluation_valid"))]
    assert f"cranfield_evaluation_void{{{WHO}}} 1.0" in lines


def test_what_is_not_known_is_not_written_as_0() -> None:
    given = measured(measures={"R@10": numbers(None, 0)}, strata={}, latency_ms=None, gate=None)
    unjudged = replace(given.scores, judged=replace(given.scores.judged, mean=None))
    lines = written(observed(replace(given, scores=unjudged)))
    assert not [line for line in lines if "latency" in line or "judged" in line or "gate" in line]
    assert [line for line in lines if line.startswith("cranfield_measure")] == [
        f'cranfield_measure_queries{{k="10",measure="R",stratum="all",{WHO}}} 0.0'
    ]


def test_a_mean_is_the_number_that_the_gate_compares() -> None:
    """7 of 10 queries: 0.7 in the gate's fractions, 0.6999999999999998 as a sum of floats."""
    lines = written(observed(measured(0.6999999999999998)))
    assert f'cranfield_measure{{k="10",measure="R",stratum="all",{WHO}}} 0.7' in lines


def test_without_its_label_only_what_is_whole_is_written() -> None:
    config = MetricsConfig(labels=["system", "testset"])
    lines = written(observed(measured()), observed(measured(0.3), variant="boosted"), config=config)
    assert [line for line in lines if line.startswith('cranfield_measure{k="10",measure="R"')] == [
        f'cranfield_measure{{k="10",measure="R",{WHO}}} 0.82'
    ]


def test_a_variant_and_components_are_series_of_their_own() -> None:
    lines = written(observed(measured()), observed(measured(0.3), variant="boosted", components="bm25"))
    assert f'cranfield_queries{{components="bm25",{WHO},variant="boosted"}} 50.0' in lines


def test_beyond_the_limit_the_oldest_are_left_out_and_counted() -> None:
    old, new = measured(at=1.0), measured(at=2.0)
    lines = written(observed(old, system="old"), observed(new, system="new"), config=MetricsConfig(max_series=100))
    assert 'cranfield_queries{system="new",testset="clinical"} 50.0' in lines
    assert not [line for line in lines if 'system="old"' in line]
    assert "cranfield_series_left_out 1.0" in lines


def test_no_two_series_are_the_same() -> None:
    lines = written(
        observed(measured()), observed(measured(), system="bm25"), config=MetricsConfig(measures={"R@10": "r"})
    )
    names = [line.rpartition(" ")[0] for line in lines]
    assert len(set(names)) == len(names)


def test_every_family_of_the_table_is_written_with_its_help() -> None:
    other = {"jobs": {"done": 1}, "overdue_days": {"a": 0}, "schedules": [ScheduleState("a", 1.0, 1.0, "passed")]}
    other |= {"spans": {"taken": 3}, "pooled": {"added": 2}}
    snapshot = MetricsSnapshot([observed(measured())], "1", now=2_000.0, **other)
    text = Exposition(snapshot).text().decode()
    missing = [
        family.name for family in FAMILIES.values() if f"# HELP cranfield_{family.name} {family.help}\n" not in text
    ]
    assert missing == []


def test_a_quote_in_a_name_is_escaped() -> None:
    assert 'cranfield_queries{system="a\\"b\\\\\\n",testset="clinical"} 50.0' in written(
        observed(measured(), system='a"b\\\n')
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": ["testset"]}, "no label system, and systems does not name exactly one"),
        ({"labels": ["system"], "testsets": ["a", "b"]}, "no label testset"),
        ({"prefix": "9_"}, "String should match pattern"),
        ({"measures": {"Recal@10": "x"}}, "unknown measure"),
        ({"measures": {"R": "x", "nDCG": "x"}}, "x is also the name of R"),
    ],
)
def test_names_that_would_not_identify_a_series_are_refused(given: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MetricsConfig(**given)


@pytest.mark.parametrize("name", ["queries", "measure_ci_low", "build_info"])
def test_the_name_of_a_family_is_refused_for_a_measure(name: str) -> None:
    with pytest.raises(UsageError, match=f"cranfield_{name}, which another metric already has"):
        naming_of(MetricsConfig(measures={"R": name}))


@pytest.mark.slow
@pytest.mark.parametrize("config", [None, HOUSE], ids=["default", "own names"])
def test_promtool_finds_nothing_in_the_exposition(config: MetricsConfig | None, promtool: Callable[..., str]) -> None:
    void = replace(measured(), void=("void",))
    other = {"jobs": {"done": 3}, "overdue_days": {"a": 3}, "schedules": [ScheduleState("a", 1.0, 1.0, "passed")]}
    other |= {"spans": {"taken": 3}, "pooled": {"added": 2}}
    snapshot = MetricsSnapshot(
        [observed(measured()), observed(void, measured(), system="bm25")], "1", now=2_000.0, **other
    )
    text = Exposition(snapshot, Naming(config)).text().decode()
    assert [family for family in FAMILIES.values() if family.help not in text] == []  # all of them are checked
    promtool("check", "metrics", given=text)


def test_a_schedule_that_never_ran_has_its_next_time_alone() -> None:
    lines = written(schedules=[ScheduleState("nightly", 5_000.0)])
    assert [line for line in lines if "schedule_" in line and not line.endswith(" 0.0")] == [
        'cranfield_schedule_next_timestamp_seconds{schedule="nightly"} 5000.0'
    ]
    assert not [line for line in lines if "schedule_result" in line or "schedule_ended" in line]


def test_the_results_of_schedules_are_those_of_the_list() -> None:
    assert tuple(Result) == RESULTS


def test_measured_counts_its_values() -> None:
    assert measured().n_values() == 4  # 3 measures over all queries, 1 in a stratum
    assert measured(measures={}, strata={}).n_values() == 0
