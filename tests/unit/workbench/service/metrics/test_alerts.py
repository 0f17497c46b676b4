"""Alert rules from the rules of a gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.unit.workbench.service.metrics.observations import HOUSE

from cranfield.base.errors import UsageError
from cranfield.gate.use_cases.plan import planned
from cranfield.workbench.config import MetricsConfig
from cranfield.workbench.service.metrics.alerts import AlertRule, gate_alerts, gated_systems, rules_text, seconds
from cranfield.workbench.service.metrics.families import Naming

SYSTEM = 'testset="clinical",system="fusion",variant="",components=""'
FAILED = f"sum without (kind) (max without (instance, pod) (last_over_time(cranfield_failed_queries{{{SYSTEM}}}[45m])))"
HEAD = "testsets: {clinical: {path: t.yaml}}\nsystems: {fusion: {run: r.trec}}\nmeasures: [R@10, nDCG@10]\n"


def alerts_of(folder: Path, *rules: str, head: str = HEAD, config: MetricsConfig | None = None) -> list[AlertRule]:
    for name in ("t.yaml", "l.yaml", "r.trec"):
        (folder / name).touch()
    path = folder / "cranfield.yaml"
    path.write_text(head + "gate:\n  rules:\n" + "".join(f"    - {{{rule}}}\n" for rule in rules))
    return gate_alerts(gated_systems(planned(path)), Naming(config), stale_after="2d")


@pytest.mark.parametrize(
    ("rule", "expressions"),
    [
        (
            "floor: {measure: R@10, at_least: 0.75}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_measure{{k="10",measure="R",{SYSTEM},stratum="all"}}[45m])) < 0.75'
            ],
        ),
        (
            "floor: {measure: Recall@10, above: 0, by: query_type}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_measure{{k="10",measure="R",{SYSTEM},stratum=~"query_type=.*"}}[45m])) <= 0'
            ],
        ),
        (
            "floor: {measure: R@10, at_least: 0.5, where: {query_type: a.b}}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_measure{{k="10",measure="R",{SYSTEM},stratum="query_type=a.b"}}[45m])) < 0.5'
            ],
        ),
        (
            "floor: {measure: R@10, at_least: 0.5, where: {a: x, b: y}}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="R@10 is at least 0.5 of a: x, b: y"}}[45m])) == 0'
            ],
        ),
        (  # not among the measures of the config: it has no series
            "floor: {measure: P@1, at_least: 0.5}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="P@1 is at least 0.5"}}[45m])) == 0'
            ],
        ),
        (
            "floor: {measure: R@10, every_query: 0.1}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="R@10 is 0.1 or better on every query"}}[45m])) == 0'
            ],
        ),
        (
            "judged: {at_least: 80 %}",
            [f'min without (instance, pod) (last_over_time(cranfield_judged_share{{{SYSTEM},k="10"}}[45m])) < 0.8'],
        ),
        (  # the series is of the depth of the primary measure, which is 10
            "judged: {k: 5, at_least: 0.8}",
            [
                f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="Judged@5 is at least 0.8"}}[45m])) == 0'
            ],
        ),
        (
            "failures: {at_most: 3}",
            [f"{FAILED} > 3"],
        ),
        (
            "failures: {at_most: 2.5 %}",
            [
                f"{FAILED} / min without (instance, pod) (last_over_time(cranfield_queries{{{SYSTEM}}}[45m])) > 0.025",
            ],
        ),
        (
            "latency: {p50_ms: 12.5, p99_ms: 2000}",
            [
                f'max without (instance, pod) (last_over_time(cranfield_latency_percentile_seconds{{{SYSTEM},percentile="50"}}[45m])) > 0.0125',
                f'max without (instance, pod) (last_over_time(cranfield_latency_percentile_seconds{{{SYSTEM},percentile="99"}}[45m])) > 2',
            ],
        ),
        (
            "every_answer: mode = semantic",
            [
                f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="every answer: mode = semantic"}}[45m])) == 0'
            ],
        ),
    ],
)
def test_each_rule_has_its_expression(tmp_path: Path, rule: str, expressions: list[str]) -> None:
    rules = alerts_of(tmp_path, rule)
    assert [each.expr for each in rules if "rule" in each.labels] == expressions


def test_the_alert_with_15_minutes(tmp_path: Path) -> None:
    rule = "floor: {measure: R@10, at_least: 0.75}, for: 15m, severity: critical"
    first = alerts_of(tmp_path, rule, config=HOUSE)[0]
    assert first.entry() == {
        "alert": "CranfieldFloor",
        "expr": 'min without (instance, pod) (last_over_time(medicalkg_retrieval_recall_at_k{k="10"}[45m])) < 0.75',
        "for": "15m",
        "labels": {
            "severity": "critical",
            "system": "fusion",
            "testset": "clinical",
            "rule": "R@10 is at least 0.75",
        },
        "annotations": {
            "summary": "fusion on clinical breaks the rule: R@10 is at least 0.75",
            "description": "The value is {{ $value }}{{ with $labels.stratum }} ({{ . }}){{ end }}; it must not be < 0.75. "
            "The page of the last evaluation lists the worst queries.",
        },
    }


def test_a_rule_that_needs_a_baseline_is_an_alert_on_the_gate_of_the_server(tmp_path: Path) -> None:
    rules = [
        "drop: {measure: R@10, at_most: 5 %}",
        "no_worse: {measure: R@10}",
        "ratchet: {measure: RR, queries: [q1]}",
    ]
    found = [each for each in alerts_of(tmp_path, *rules) if "rule" in each.labels]
    assert [each.alert for each in found] == ["CranfieldDrop", "CranfieldNoWorse", "CranfieldRatchet"]
    assert found[0].expr == (
        f'min without (instance, pod) (last_over_time(cranfield_gate_rule_passed{{{SYSTEM},rule="R@10 drops by at most 5 %"}}[45m]))'
        " == 0"
    )


def test_an_alert_has_a_link_where_the_address_is_known(tmp_path: Path) -> None:
    path = tmp_path / "cranfield.yaml"
    alerts_of(tmp_path, "failures: {at_most: 0}")
    made = gate_alerts(gated_systems(planned(path)), Naming(), stale_after="2d", url="https://s.example.org/")
    first = made[0].entry()["annotations"]
    assert first["link"] == "https://s.example.org/evaluations?system=fusion&testset=clinical"


def test_void_old_and_missing_figures_have_alerts(tmp_path: Path) -> None:
    found = {each.summary: each.expr for each in alerts_of(tmp_path, "failures: {at_most: 0}")}
    valid = f"cranfield_evaluation_valid_timestamp_seconds{{{SYSTEM}}}"
    evaluated = f"absent(last_over_time(cranfield_evaluation_timestamp_seconds{{{SYSTEM}}}[15m]))"
    server = "absent(last_over_time(cranfield_build_info[15m]))"
    failed = f"absent(last_over_time(cranfield_failed_queries{{{SYSTEM}}}[15m]))"
    assert found["The last evaluation of fusion on clinical is void"] == (
        f"max without (instance, pod) (last_over_time(cranfield_evaluation_void{{{SYSTEM}}}[45m])) == 1"
    )
    assert (
        found["fusion on clinical has no new figures"]
        == f"time() - max without (instance, pod) (last_over_time({valid}[45m])) > 172800"
    )
    assert found["No metrics of fusion on clinical"] == f"{evaluated} unless on () {server}"
    assert found["A metric series of fusion on clinical is missing"] == f"{failed} unless on () {evaluated}"
    assert found["No metrics of Cranfield"] == server


def test_a_rule_of_one_test_set_has_no_alert_on_another(tmp_path: Path) -> None:
    head = HEAD.replace("{clinical: {path: t.yaml}}", "{clinical: {path: t.yaml}, legal: {path: l.yaml}}")
    alerts = alerts_of(tmp_path, "failures: {at_most: 0}, testsets: [legal]", "judged: {at_least: 0.5}", head=head)
    of = [(each.alert, each.labels["testset"]) for each in alerts if "rule" in each.labels]
    assert of == [("CranfieldJudged", "clinical"), ("CranfieldFailures", "legal"), ("CranfieldJudged", "legal")]


def test_the_only_test_set_has_the_name_of_its_file(tmp_path: Path) -> None:
    alerts = alerts_of(
        tmp_path, "failures: {at_most: 0}", head=HEAD.replace("testsets: {clinical: {path: t.yaml}}", "testset: t.yaml")
    )
    assert alerts[0].labels["testset"] == "t"


def test_alerts_on_a_system_that_has_no_metrics_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"metrics\.systems of the workbench file does not include fusion"):
        alerts_of(tmp_path, "failures: {at_most: 0}", config=MetricsConfig(systems=["bm25"]))


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("1h30m", 5_400), ("2d", 172_800), ("1w", 604_800)])
def test_seconds_of_a_duration(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.slow
@pytest.mark.parametrize("config", [None, HOUSE], ids=["default", "own names"])
def test_promtool_reads_every_kind_of_rule(
    tmp_path: Path, config: MetricsConfig | None, promtool: Callable[..., str]
) -> None:
    from cranfield.gate.rules import RULES

    head = (
        HEAD.replace("{clinical: {path: t.yaml}}", "{clinical: {path: t.yaml}, legal: {path: l.yaml}}")
        if config is None
        else HEAD
    )
    examples = [example for spec in RULES.values() for example in spec.examples]
    (tmp_path / "rules.yml").write_text(rules_text(alerts_of(tmp_path, *examples, head=head, config=config)))
    assert "SUCCESS" in promtool("check", "rules", tmp_path / "rules.yml")


RECALL = 'medicalkg_retrieval_recall_at_k{k="10"}'


@pytest.mark.slow
def test_the_alert_fires_after_15_minutes_and_a_restart_does_not_resolve_it(
    tmp_path: Path, promtool: Callable[..., str]
) -> None:
    """Recall falls under 0.75 at 10 minutes. From 30 to 40 minutes the server is down. At 60 minutes recall is back."""
    rule = "floor: {measure: R@10, at_least: 0.75}, for: 15m, severity: critical"
    (tmp_path / "rules.yml").write_text(rules_text(alerts_of(tmp_path, rule, config=HOUSE)))
    labels = {
        "severity": "critical",
        "system": "fusion",
        "testset": "clinical",
        "rule": "R@10 is at least 0.75",
        "k": "10",
    }
    annotations = {
        "summary": "fusion on clinical breaks the rule: R@10 is at least 0.75",
        "description": "The value is 0.71; it must not be < 0.75. The page of the last evaluation lists the worst queries.",
    }
    fired = [{"exp_labels": labels, "exp_annotations": annotations}]
    expected = {"9m": [], "24m": [], "26m": fired, "35m": fired, "59m": fired, "61m": []}
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": RECALL, "values": "0.82x9 0.71x19 stale _x9 0.71x19 0.82x20"}],
                "alert_rule_test": [
                    {"eval_time": time, "alertname": "CranfieldFloor", "exp_alerts": alerts}
                    for time, alerts in expected.items()
                ],
            },
            {  # nothing is scraped
                "interval": "1m",
                "alert_rule_test": [
                    {
                        "eval_time": "16m",
                        "alertname": "CranfieldMetricsAbsent",
                        "exp_alerts": [
                            {
                                "exp_labels": {"severity": "warning"},
                                "exp_annotations": {
                                    "summary": "No metrics of Cranfield",
                                    "description": "No alert on it can fire. Possible reasons: the server is not scraped or its database is unavailable; it was never evaluated; its name has changed; no baseline is pinned, for a rule on a baseline.",
                                },
                            }
                        ],
                    }
                ],
            },
        ],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


@pytest.mark.slow
def test_a_broken_rule_whose_series_ends_is_reported_as_missing_before_its_alert_is_resolved(
    tmp_path: Path, promtool: Callable[..., str]
) -> None:
    """The rule is broken. From 10 minutes on its series is gone, while the server is scraped: no minute is without an alert."""
    (tmp_path / "rules.yml").write_text(rules_text(alerts_of(tmp_path, "every_answer: mode = semantic")))
    who = 'testset="clinical",system="fusion"'
    kept = {
        "cranfield_build_info": "1x90",
        f"cranfield_evaluation_timestamp_seconds{{{who}}}": "0x90",
        f'cranfield_gate_rule_passed{{{who},rule="every answer: mode = semantic"}}': "0x9 stale",
    }
    firing = {"CranfieldEveryAnswer": range(1, 54), "CranfieldMetricsAbsent": range(42, 90)}
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": series, "values": values} for series, values in kept.items()],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                        "eval_time": f"{minute}m",
                        "exp_samples": [{"value": 1}],
                    }
                    for name, minutes in firing.items()
                    for minute in minutes
                ],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")
