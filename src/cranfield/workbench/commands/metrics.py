"""`cranfield metrics`: results as Prometheus metrics, for a job that ends before it is scraped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import note, say
from cranfield.base.errors import MissingExtraError
from cranfield.base.words import count_noun
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.workbench.service.metrics.families import Naming


ResultsArgument = Annotated[
    Path,
    Argument("A results.json of `cranfield run`, or a gate.json of `cranfield gate`.", metavar="RESULTS"),
]
NamesOption = Annotated[
    Path | None,
    Option(
        "Operator's file; its block `metrics:` defines the names of the metrics.",
        flag="--workbench",
        metavar="FILE",
        env="CRANFIELD_WORKBENCH",
    ),
]


def naming_of(workbench: Path | None) -> Naming:
    """The names of metrics in the operator's file; the defaults without one."""
    from cranfield.workbench.config import load_workbench
    from cranfield.workbench.service.metrics import families
    from cranfield.workbench.service.metrics.families import Naming

    return Naming() if workbench is None else families.naming_of(load_workbench(workbench).metrics)


def metrics_command(
    results: ResultsArgument,
    *,
    textfile: Annotated[
        Path | None,
        Option("Write this file (.prom) for the textfile collector of node_exporter.", metavar="FILE"),
    ] = None,
    push: Annotated[
        str | None,
        Option("Push to this Pushgateway, such as http://127.0.0.1:9091.", metavar="URL"),
    ] = None,
    job: Annotated[str, Option("Label `job` of the pushed metrics.", metavar="NAME")] = "cranfield",
    instance: Annotated[str | None, Option("Label `instance` of the pushed metrics.", metavar="NAME")] = None,
    testset: Annotated[
        str | None,
        Option("Name of the test set in the metrics; default: the name in the file.", metavar="NAME"),
    ] = None,
    workbench: NamesOption = None,
) -> None:
    """Write results as Prometheus metrics.

    To stdout, a file, or a Pushgateway.

    Each system on each test set is a group of its own in the Pushgateway. Metrics of the same name in its group are
    replaced; nothing is deleted. CRANFIELD_PUSH_AUTH is USER:PASSWORD, where the Pushgateway wants one.
    """
    try:
        import prometheus_client  # noqa: F401 - there, or the command cannot work
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("Prometheus metrics", "web") from None
    from cranfield.workbench.service.metrics import one_shot

    naming = naming_of(workbench)
    observations = one_shot.read_observations(results, testset=testset)
    one_shot.require_written(observations, naming)
    text = one_shot.exposition(observations, naming).text()
    if textfile is not None:
        one_shot.write_textfile(textfile, text)
        note(f"wrote {textfile}")
    if push is not None:
        groups = one_shot.push(push, job, observations, naming, instance=instance)
        note(f"pushed {count_noun(groups, 'groups')} of the job {job}")
    if textfile is None and push is None:
        say(text.decode(), end="")


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


def dashboard_command(
    *,
    out: Annotated[Path | None, Option("Write this file instead of stdout.", metavar="FILE")] = None,
    workbench: NamesOption = None,
) -> None:
    """Write a dashboard for Grafana.

    Import the JSON, and choose the Prometheus data source.
    """
    from cranfield.workbench.service.metrics.alerts import dashboard

    deliver_text(json.dumps(dashboard(naming_of(workbench)), indent=2) + "\n", out)
