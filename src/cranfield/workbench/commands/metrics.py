"""`cranfield metrics`: results as Prometheus metrics, for a job that ends before it is scraped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import note, say
from cranfield.base.errors import MissingExtraError
from cranfield.base.words import count_noun
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.workbench.service.metrics.naming import Naming

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
    from cranfield.workbench.service.metrics.naming import Naming

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
