"""`cranfield dashboard`: a dashboard of Grafana for the metrics of Cranfield."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cranfield.evaluation.options.declaration import Option
from cranfield.workbench.commands.alerts import deliver_text
from cranfield.workbench.commands.metrics import NamesOption, naming_of


def dashboard_command(
    *,
    out: Annotated[Path | None, Option("Write this file instead of stdout.", metavar="FILE")] = None,
    workbench: NamesOption = None,
) -> None:
    """Write a dashboard for Grafana.

    Import the JSON, and choose the Prometheus data source.
    """
    from cranfield.workbench.service.metrics.dashboard import dashboard

    deliver_text(json.dumps(dashboard(naming_of(workbench)), indent=2) + "\n", out)
