"""`cranfield alerts`: the rules of a gate as alert rules of Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import note, say
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.workbench.commands.metrics import NamesOption, naming_of


def _check_duration(value: str) -> str:
    from cranfield.config.services import is_duration

    if not is_duration(value):
        raise ValueError("a duration such as 36h or 2d")
    return value


def alerts_command(
    config: Annotated[Path, Argument("Configuration file with a gate.", metavar="CONFIG")] = Path("cranfield.yaml"),
    *,
    stale_after: Annotated[
        str,
        Option("Alert when the last valid figures are older than this.", metavar="DURATION", parse=_check_duration),
    ] = "2d",
    group: Annotated[str, Option("Name of the group of rules.", metavar="NAME")] = "cranfield",
    out: Annotated[Path | None, Option("Write this file instead of stdout.", metavar="FILE")] = None,
    workbench: NamesOption = None,
) -> None:
    """Write the rules of the gate as alert rules of Prometheus.

    A rule fires when it has been broken for its `for`, with its `severity`. Void, old, missing and
    incomparable figures have alerts too.
    Where the operator's file has the address of the server, each alert has a link to the evaluations.
    """
    from cranfield.gate.use_cases.plan import planned
    from cranfield.workbench.config import load_workbench
    from cranfield.workbench.service.metrics.alerts import gate_alerts, gated_systems, rules_text

    url = load_workbench(workbench).server.url if workbench else ""
    rules = gate_alerts(gated_systems(planned(config)), naming_of(workbench), stale_after=stale_after, url=url)
    deliver_text(rules_text(rules, group), out)


def deliver_text(text: str, out: Path | None) -> None:
    """Print a text, or replace a file by it."""
    from cranfield.formats.io.files import write_text

    if out is None:
        say(text, end="")
    else:
        write_text(out, [text])
        note(f"wrote {out}")
