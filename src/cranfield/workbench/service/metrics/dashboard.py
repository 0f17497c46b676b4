"""A dashboard of Grafana from the table of families."""

from __future__ import annotations

from typing import Any

from cranfield.workbench.service.metrics.families import FAMILIES, Family, Panel
from cranfield.workbench.service.metrics.naming import ALL, Naming

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
