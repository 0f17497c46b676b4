"""Alert rules of Prometheus from the rules of a gate.

A rule on a mean, a share, failures or latencies becomes an alert on the series itself, with its bound; a rule that only the
gate can judge, such as one that needs a baseline, becomes an alert on `gate_rule_passed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from cranfield.base.errors import UsageError
from cranfield.config.amount import Amount
from cranfield.evaluation.absence import JUDGED_DEPTH
from cranfield.gate.config import Failures, Floor, JudgedShare, LatencyCeiling, Rule
from cranfield.gate.rules import rules_of, words
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.workbench.service.metrics.families import ALL, FAMILIES, Family, Naming, Panel, escaped, quoted

if TYPE_CHECKING:
    from cranfield.gate.use_cases.plan import GatePlan


KEPT = "45m"
"""A value holds for so long after the last scrape that had it: the restart of a server resolves no alert, and starts no wait anew.
It is longer than `MISSING` and `SILENT`: an alert on a series that is gone is resolved only after the one on its absence fires."""
MISSING = "15m"
"""How long a series has no value until it counts as missing."""
CHANGED = "1h"
"""A change of the test set or the convention is reported for so long."""
SILENT = "15m"
"""How long a series must be missing before the alert on its absence fires."""
DEFAULT_SEVERITY = "warning"


@dataclass(frozen=True, slots=True)
class GatedSystem:
    """The rules of a test set, and the system that they are about."""

    testset: str
    """Its name in metrics."""
    system: str
    rules: Sequence[Rule]
    measures: frozenset[str]
    """Those that an evaluation by the config has."""
    judged_k: int
    """Depth of the judged share that is written."""

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.system} on {self.testset}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of its alerts, also where its series do not have them."""
        return {"system": self.system, "testset": self.testset}


@dataclass(frozen=True)
class AlertRule:
    """A rule of Prometheus."""

    alert: str
    expr: str
    labels: Mapping[str, str]
    summary: str
    description: str
    wait: str = ""
    severity: str = DEFAULT_SEVERITY
    link: str = ""
    """To the evaluations that it is about."""

    def entry(self) -> dict[str, Any]:
        """As in a file of rules."""
        waits = {"for": self.wait} if self.wait else {}
        links = {"link": self.link} if self.link else {}
        return {
            "alert": self.alert,
            "expr": self.expr,
            **waits,
            "labels": {"severity": self.severity, **self.labels},
            "annotations": {"summary": self.summary, "description": self.description, **links},
        }


def rules_text(rules: Iterable[AlertRule], group: str = "cranfield") -> str:
    """A file of rules."""
    import yaml

    body = {"groups": [{"name": group, "rules": [rule.entry() for rule in rules]}]}
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=1_000)


@dataclass(frozen=True, slots=True)
class _Condition:
    """When a rule is broken: a selector, kept over missed scrapes, and what is wrong with its value."""

    selector: str
    broken: str
    """`< 0.75`: of several servers on one database, the value nearest to it counts."""
    whole: Callable[[str], str] = str
    """The expression of the kept selector."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What distinguishes it from the others of its rule."""

    @property
    def expr(self) -> str:
        return f"{self.whole(kept(self.selector, 'max' if self.broken.startswith('>') else 'min'))} {self.broken}"


def kept(selector: str, of_servers: str = "max") -> str:
    """A selector with the last value of the last minutes, also where the latest scrape failed.

    Servers on one database write the same series: they are one here, so that an alert comes once, and goes on where another
    server takes over.
    """
    return f"{of_servers} without (instance, pod) (last_over_time({selector}[{KEPT}]))"


def gated_systems(plan: GatePlan) -> list[GatedSystem]:
    """What the gate of a config is about: a system on each of its test sets."""
    found = []
    for key, settings in plan.config.sets.items():
        measures = [parse(each).canonical for each in settings.measures or DEFAULT_MEASURES]
        primary = parse(settings.primary).canonical if settings.primary else measures[0]
        rules = [rule for _, rule in rules_of(plan.gate, key)]
        depth = parse(primary).depth or JUDGED_DEPTH
        name = settings.stored_name(key)
        found.append(GatedSystem(name, plan.systems[key], rules, frozenset([*measures, primary]), depth))
    return found


def gate_alerts(gated: Sequence[GatedSystem], naming: Naming, *, stale_after: str, url: str = "") -> list[AlertRule]:
    """The alerts of the rules of a gate, and those on void, old, incomparable and missing figures.

    Args:
        gated: test sets with their rules.
        naming: of the series.
        stale_after: age of figures that is too much, `2d`.
        url: of the server, for links to its pages; empty: none.

    Raises:
        UsageError: the operator's file writes no metrics of a test set or system that is gated.
    """
    server = naming.select("build_info", {})
    rules: list[AlertRule] = []
    for each in gated:
        config = naming.config
        for name, kind, names in (
            (each.system, "systems", config.systems),
            (each.testset, "testsets", config.testsets),
        ):
            if names is not None and name not in names:
                raise UsageError(
                    f"metrics.{kind} of the workbench file does not include {name}, which the gate checks",
                    expected=name,
                    got=", ".join(names),
                    hint=f"add {name} to metrics.{kind}; an alert needs its series",
                )
        conditions = [(rule, condition) for rule in each.rules for condition in _conditions(rule, each, naming)]
        found = [_alert(rule, condition, each) for rule, condition in conditions]
        found += _state_alerts(each, naming, stale_after)
        evaluated = naming.select("evaluation_timestamp_seconds", _plain(each))
        found.append(_absent(evaluated, f"No metrics of {each.label}", each.labels, unless=server))
        for selector in dict.fromkeys(condition.selector for _, condition in conditions):
            labels = {**each.labels, "series": selector}
            found.append(_absent(selector, f"A metric series of {each.label} is missing", labels, unless=evaluated))
        link = f"{url.rstrip('/')}/evaluations?{urlencode(each.labels)}" if url else ""
        rules += [replace(rule, link=link) for rule in found]
    return [*rules, _absent(server, "No metrics of Cranfield", {})]


def _conditions(rule: Rule, each: GatedSystem, naming: Naming) -> Iterator[_Condition]:
    """When a rule is broken; several where it has several bounds."""
    terms, whole = rule.terms, _plain(each)
    match terms:
        case Floor() if (strata := _stratum(terms, each, naming)) is not None:
            selector = naming.select("measure", whole | {"stratum": strata}, terms.measure)
            yield _Condition(selector, _below(terms))
        case JudgedShare() if terms.where is None and terms.k == each.judged_k:
            selector = naming.select("judged_share", whole | {"k": f"={quoted(str(terms.k))}"})
            yield _Condition(selector, f"< {_number(terms.at_least, percent=True)}")
        case Failures():
            yield _failures(terms, whole, naming)
        case LatencyCeiling():
            for percentile, bound in terms.bounds.items():
                labels = {"percentile": str(percentile)}
                condition = {"percentile": f"={quoted(str(percentile))}"}
                selector = naming.select("latency_percentile_seconds", whole | condition)
                yield _Condition(selector, f"> {(bound / 1000).normalize():f}", labels=labels)
        case _:
            yield _Condition(naming.select("gate_rule_passed", whole | {"rule": f"={quoted(words(rule))}"}), "== 0")


def _plain(each: GatedSystem) -> dict[str, str]:
    """The system as the config has it: no variant, all of its components."""
    return {
        "testset": f"={quoted(each.testset)}",
        "system": f"={quoted(each.system)}",
        "variant": '=""',
        "components": '=""',
    }


def _stratum(terms: Floor, each: GatedSystem, naming: Naming) -> str | None:
    """The condition on the stratum; None where no series is of these queries."""
    where = dict(terms.where or {})
    if terms.every_query is not None or parse(terms.measure).canonical not in each.measures:
        return None
    if not where and terms.by is None:
        return f"={quoted(ALL)}"
    if not naming.has("stratum") or len(where) + (terms.by is not None) > 1:
        return None
    if terms.by is not None:
        return f"=~{quoted(escaped(terms.by) + '=.*')}"
    ((key, value),) = where.items()
    return f"={quoted(f'{key}={value}')}"


def _below(terms: Floor) -> str:
    """The values that break a bound."""
    if terms.at_most is not None:
        return f"> {terms.at_most:f}"
    return f"< {terms.at_least:f}" if terms.at_least is not None else f"<= {terms.above or Decimal(0):f}"


def _failures(terms: Failures, whole: Mapping[str, str], naming: Naming) -> _Condition:
    selector = naming.select("failed_queries", whole)
    if not terms.at_most.is_percent:
        return _Condition(selector, f"> {_number(terms.at_most)}", lambda kind: f"sum without (kind) ({kind})")
    queries = kept(naming.select("queries", whole), "min")
    share = _number(terms.at_most, percent=True)
    return _Condition(selector, f"> {share}", lambda kind: f"sum without (kind) ({kind}) / {queries}")


def _number(amount: Amount, *, percent: bool = False) -> str:
    """An amount in decimals; a share of one where it is one."""
    number = amount.number / 100 if percent and amount.is_percent else amount.number
    return f"{number.normalize():f}"


def _alert(rule: Rule, condition: _Condition, each: GatedSystem) -> AlertRule:
    text, description = (
        words(rule),
        "The last valid evaluation breaks this rule. Its page lists the queries and the figures.",
    )
    if condition.broken != "== 0":
        description = (
            f"The value is {{{{ $value }}}}{{{{ with $labels.stratum }}}} ({{{{ . }}}}){{{{ end }}}}; it must not be {condition.broken}. "
            "The page of the last evaluation lists the worst queries."
        )
    return AlertRule(
        alert=f"Cranfield{''.join(part.capitalize() for part in rule.kind.split('_'))}",
        expr=condition.expr,
        labels={**each.labels, "rule": text, **condition.labels},
        summary=f"{each.label} breaks the rule: {text}",
        description=description,
        wait=rule.wait or "",
        severity=rule.severity or DEFAULT_SEVERITY,
    )


def _state_alerts(each: GatedSystem, naming: Naming, stale_after: str) -> Iterator[AlertRule]:
    """Alerts on figures that do not count, or are old."""
    of, labels = each.label, each.labels
    void = kept(naming.select("evaluation_void", _plain(each)))
    yield AlertRule(
        "CranfieldEvaluationVoid",
        f"{void} == 1",
        labels,
        f"The last evaluation of {of} is void",
        (
            "Its figures are invalid; measures and alerts use the previous evaluation. The page of the "
            "evaluation gives the reason."
        ),
    )
    floors = [parse(rule.terms.measure).canonical for rule in each.rules if isinstance(rule.terms, Floor)]
    times = [naming.select("evaluation_valid_timestamp_seconds", _plain(each))]
    overall = _plain(each) | {"stratum": f"={quoted(ALL)}"}
    times += [
        naming.select("measure_timestamp_seconds", overall, each_measure) for each_measure in dict.fromkeys(floors)
    ]
    for number, selector in enumerate(times):
        yield AlertRule(
            "CranfieldEvaluationStale",
            f"time() - {kept(selector)} > {seconds(stale_after)}",
            {**labels, **({"series": selector} if number else {})},
            f"{of} has no new figures",
            (
                "They are {{ $value | humanizeDuration }} old, so alerts on them describe that time. Check "
                "whether its schedule runs, and whether its jobs fail."
            ),
        )
    terms = naming.select("evaluation_info", _plain(each))
    yield AlertRule(
        "CranfieldEvaluationChanged",
        f"count (count by (version, digest, convention, depth) (last_over_time({terms}[{CHANGED}]))) > 1",
        labels,
        f"The test set, the convention or the depth of {of} has changed",
        "Figures before and after the change are not comparable: it alone can make a rule fail or pass.",
        severity="info",
    )


def _absent(selector: str, summary: str, labels: Mapping[str, str], *, unless: str | None = None) -> AlertRule:
    """The alert on a series that is missing; not where `unless` is missing too, whose alert says more."""
    missing = _missing(selector)
    return AlertRule(
        "CranfieldMetricsAbsent",
        missing if unless is None else f"{missing} unless on () {_missing(unless)}",
        labels,
        summary,
        (
            "No alert on it can fire. Possible reasons: the server is not scraped or its database is "
            "unavailable; it was never evaluated; its name has changed; no baseline is pinned, for a rule on a baseline."
        ),
        SILENT,
    )


def _missing(selector: str) -> str:
    return f"absent(last_over_time({selector}[{MISSING}]))"


UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


def seconds(duration: str) -> int:
    """Seconds of a duration as Prometheus writes it.

    Example:
        >>> seconds("1d12h")
        129600
    """
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([wdhms])", duration))


WIDTH, HEIGHT = 12, 8
"""Width and height of a panel, in cells; a dashboard is 24 wide."""
SCHEMA_VERSION = 39
"""Schema version of dashboards, as Grafana 11 writes it; later versions read it."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNIQUE_ID = "cranfield-search-quality"
VARIABLES = ("testset", "system", "measure", "stratum")
"""Labels that the dashboard is filtered by, where they are written."""


def dashboard(naming: Naming) -> dict[str, Any]:
    """The model of the dashboard, as Grafana imports it."""
    panels = [(family, panel) for family in FAMILIES.values() for panel in family.panels]
    drawn = [(family, panel) for family, panel in panels if panel.by is None or naming.has(panel.by)]
    return {
        "uid": UNIQUE_ID,
        "title": "Search quality (Cranfield)",
        "description": "Made by `cranfield dashboard`.",
        "tags": ["cranfield"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-30d", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_datasource(), *_variables(naming)]},
        "panels": [_panel(*each, number, naming) for number, each in enumerate(drawn)],
    }


def _datasource() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "hide": 0,
        "multi": False,
        "includeAll": False,
        "options": [],
        "current": {},
    }


def _variables(naming: Naming) -> list[dict[str, Any]]:
    return [_variable(label, naming) for label in VARIABLES if label == "measure" or naming.has(label)]


def _variable(label: str, naming: Naming) -> dict[str, Any]:
    series = naming.select("measure", {label: f'!="{ALL}"'} if label == "stratum" else {})
    query = f"label_values({series}, {label})"
    return {
        "name": label,
        "label": {"testset": "Test set"}.get(label, label.capitalize()),
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{label}"},
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "hide": 0,
        "multi": True,
        "includeAll": True,
        "allValue": ".+" if label == "stratum" else ".*",
        "options": [],
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panel(family: Family, panel: Panel, number: int, naming: Naming) -> dict[str, Any]:
    options: dict[str, Any] = {"tooltip": {"mode": "multi", "sort": "none"}}
    if panel.kind == "stat":
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "value_and_name",
        }
    elif panel.kind == "bargauge":
        options = {"orientation": "horizontal", "displayMode": "basic", "reduceOptions": {"calcs": ["lastNotNull"]}}
    elif panel.kind == "timeseries":
        options["legend"] = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    suffix = "_bucket" if family.kind == "histogram" else ""
    conditions = panel.conditions if family.of_subject else {}
    form = {"format": "heatmap"} if panel.kind == "heatmap" else {}
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": DATASOURCE,
        "gridPos": {"x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": DATASOURCE,
                "expr": panel.expr.format(naming.select(name, conditions, suffix=suffix)),
                "legendFormat": panel.legend,
                **form,
            }
            for place, name in enumerate((*panel.also, family.name))
        ],
    }
