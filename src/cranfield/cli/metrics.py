"""`cranfield metrics`: results as Prometheus metrics, for a job that ends before it is scraped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.errors import MissingExtraError
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.service.metrics.naming import Naming

ResultsArgument = Annotated[
    Path,
    typer.Argument(metavar="RESULTS", help="A results.json of `cranfield run`, or a gate.json of `cranfield gate`."),
]
NamesOption = Annotated[
    Path | None,
    typer.Option(
        "--workbench",
        metavar="FILE",
        envvar="CRANFIELD_WORKBENCH",
        help="Operator's file, whose block `metrics:` has the names of the metrics.",
    ),
]


def naming_of(workbench: Path | None) -> Naming:
    """The names of metrics in the operator's file; the defaults without one."""
    from cranfield.config.workbench import load_workbench
    from cranfield.service.metrics import families
    from cranfield.service.metrics.naming import Naming

    return Naming() if workbench is None else families.naming_of(load_workbench(workbench).metrics)


def metrics_command(
    results: ResultsArgument,
    *,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile", metavar="FILE", help="Write this file (.prom) for the textfile collector of node_exporter."
        ),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option("--push", metavar="URL", help="Push to this Pushgateway, such as http://127.0.0.1:9091."),
    ] = None,
    job: Annotated[str, typer.Option("--job", metavar="NAME", help="Label `job` of what is pushed.")] = "cranfield",
    instance: Annotated[
        str | None, typer.Option("--instance", metavar="NAME", help="Label `instance` of what is pushed.")
    ] = None,
    testset: Annotated[
        str | None,
        typer.Option("--testset", metavar="NAME", help="Name of the test set in the metrics; default: its own."),
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
    from cranfield.service.metrics import one_shot

    naming = naming_of(workbench)
    observations = one_shot.read_observations(results, testset=testset)
    one_shot.require_written(observations, naming)
    text = one_shot.exposition(observations, naming).text()
    if textfile is not None:
        one_shot.write_textfile(textfile, text)
        typer.echo(f"wrote {textfile}", err=True)
    if push is not None:
        groups = one_shot.push(push, job, observations, naming, instance=instance)
        typer.echo(f"pushed {n_of(groups, 'groups')} of the job {job}", err=True)
    if textfile is None and push is None:
        typer.echo(text.decode(), nl=False)
