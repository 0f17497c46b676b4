"""The dashboard of Grafana."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.unit.workbench.service.metrics.observations import HOUSE

from cranfield.workbench.service.metrics.alerts import dashboard
from cranfield.workbench.service.metrics.families import FAMILIES, Naming

WHOLE = {"type": "integer", "minimum": 0}
SOURCE = {
    "type": "object",
    "properties": {"type": {"const": "prometheus"}, "uid": {"const": "${datasource}"}},
    "required": ["type", "uid"],
}
MODEL = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time"],
    "additionalProperties": False,
    "properties": {
        "uid": {"type": "string", "minLength": 8, "maxLength": 40},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "timezone": {"type": "string"},
        "editable": {"type": "boolean"},
        "graphTooltip": {"enum": [0, 1, 2]},
        "time": {"type": "object", "required": ["from", "to"]},
        "refresh": {"type": "string"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "version": WHOLE,
        "links": {"type": "array"},
        "annotations": {"type": "object", "properties": {"list": {"type": "array"}}},
        "templating": {
            "type": "object",
            "properties": {
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "name", "hide", "query"],
                        "properties": {
                            "type": {"enum": ["query", "datasource"]},
                            "name": {"type": "string"},
                            "hide": {"enum": [0, 1, 2]},
                            "query": {"type": ["string", "object"]},
                            "datasource": SOURCE,
                        },
                    },
                }
            },
        },
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos", "targets", "datasource", "fieldConfig", "options"],
                "additionalProperties": False,
                "properties": {
                    "id": WHOLE,
                    "type": {"enum": ["timeseries", "stat", "heatmap", "bargauge"]},
                    "title": {"type": "string"},
                    "datasource": SOURCE,
                    "gridPos": {
                        "type": "object",
                        "required": ["x", "y", "w", "h"],
                        "properties": {"x": {"type": "integer", "minimum": 0, "exclusiveMaximum": 24}, "y": WHOLE},
                    },
                    "fieldConfig": {"type": "object", "required": ["defaults", "overrides"]},
                    "options": {"type": "object"},
                    "targets": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["refId", "expr", "datasource"],
                            "properties": {"refId": {"pattern": "^[A-Z]$"}, "datasource": SOURCE},
                        },
                    },
                },
            },
        },
    },
}
"""The part of Grafana's model of a dashboard that is used (its published kind `dashboard`)."""
NAMINGS = pytest.mark.parametrize("naming", [Naming(), Naming(HOUSE)], ids=["default", "own names"])


@NAMINGS
def test_the_dashboard_is_of_the_model_of_grafana(naming: Naming) -> None:
    jsonschema.validate(dashboard(naming), MODEL)


@NAMINGS
def test_panels_do_not_overlap_and_have_all_that_grafana_requires(naming: Naming) -> None:
    made = dashboard(naming)
    panels = made["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert {panel["type"] for panel in panels} <= {"timeseries", "stat", "heatmap", "bargauge"}
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels)
    assert all(target["expr"] and target["legendFormat"] for panel in panels for target in panel["targets"])


@NAMINGS
def test_every_variable_of_a_query_is_defined(naming: Naming) -> None:
    made = dashboard(naming)
    used = {
        name
        for panel in made["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\$(\w+)", target["expr"])
    }
    defined = [variable["name"] for variable in made["templating"]["list"]]
    assert defined[0] == "datasource"
    assert used <= set(defined)


def test_without_the_label_stratum_there_is_no_panel_by_stratum() -> None:
    titles = [panel["title"] for panel in dashboard(Naming())["panels"]]
    assert "Measures by stratum" in titles
    assert "Measures by stratum" not in [panel["title"] for panel in dashboard(Naming(HOUSE))["panels"]]


def test_measures_with_names_of_their_own_are_drawn_too() -> None:
    first = dashboard(Naming(HOUSE))["panels"][0]["targets"][0]["expr"]
    assert first == '{__name__=~"medicalkg_retrieval_measure|medicalkg_retrieval_recall_at_k"}'


@pytest.mark.slow
@NAMINGS
def test_promtool_reads_every_query(naming: Naming, tmp_path: Path, promtool: Callable[..., str]) -> None:
    queries = [target["expr"] for panel in dashboard(naming)["panels"] for target in panel["targets"]]
    queries = [query.replace("$", "") for query in queries]  # Grafana fills variables in
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", tmp_path / "rules.yml")


def test_most_families_are_drawn() -> None:
    hidden = {name for name, family in FAMILIES.items() if not family.panels}
    assert hidden == {
        "measure_ci_low",
        "measure_queries",
        "evaluation_timestamp_seconds",
        "evaluation_age_seconds",
        "measure_timestamp_seconds",
        "queries",
        "series_left_out",
        "build_info",
    }
