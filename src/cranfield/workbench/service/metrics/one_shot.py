"""Metrics of a file of results or of a gate, for a job that ends before it is scraped: a file for node_exporter, or a Pushgateway."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cranfield.base.errors import InputError, UsageError
from cranfield.base.version import __version__
from cranfield.formats.io.files import shown, write_bytes
from cranfield.formats.io.located import load_any
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.families import Naming
from cranfield.workbench.service.metrics.observed import MetricsSnapshot, Observation, from_results

AUTH_VARIABLE = "CRANFIELD_PUSH_AUTH"
"""Variable with `USER:PASSWORD` of a Pushgateway."""
PUSH_SECONDS = 30


def read_observations(path: Path, *, testset: str | None = None) -> list[Observation]:
    """The evaluations of a `results.json` or a `gate.json`; their time is that of the file.

    Args:
        path: of the file.
        testset: name of the test set in the metrics; None: its own.

    Raises:
        InputError: it cannot be read, is another file, or is of a pilot.
        UsageError: one name for several test sets.
    """
    payload = load_any(path, InputError, is_json=True).sourced
    try:
        found = from_results(payload, path.stat().st_mtime)
        is_pilot = any(system["pilot"] for system in payload.get("systems", ()))
    except (KeyError, TypeError, AttributeError, ValueError):
        hint = "`cranfield run`, `cranfield gate` and `cranfield compare … --format json` write such a file."
        expected = "results.json or gate.json"
        raise InputError("not a file of results", path=shown(path), expected=expected, hint=hint) from None
    if is_pilot:
        raise InputError("the results are from a pilot", path=shown(path), hint="run it again without --pilot.")
    if testset is None:
        return found
    if len(names := dict.fromkeys(each.subject.testset for each in found)) > 1:
        raise UsageError(f"--testset names one test set, and the file has {len(names)}", got=", ".join(names))
    return [replace(each, subject=replace(each.subject, testset=testset)) for each in found]


def require_written(observations: Sequence[Observation], naming: Naming) -> None:
    """Refuse results of which the operator's file leaves out all.

    Raises:
        UsageError: it does.
    """
    if not any(naming.is_written(each.subject) for each in observations):
        raise UsageError(
            "the block metrics: of the operator's file excludes all of these results",
            got=", ".join(f"{each.subject.system} on {each.subject.testset}" for each in observations),
            hint="add them to metrics.systems and metrics.testsets, or give the test set its name with --testset",
        )


def exposition(observations: Sequence[Observation], naming: Naming) -> Exposition:
    """The metrics of observations, without what only a server knows."""
    return Exposition(MetricsSnapshot(observations, __version__), naming)


def write_textfile(path: Path, text: bytes) -> None:
    """Write a file for the textfile collector of node_exporter, which sees the old one or the new one.

    Raises:
        UsageError: its name does not end in `.prom`.
    """
    if path.suffix != ".prom":
        raise UsageError(
            "node_exporter reads only files whose names end in .prom", path=str(path), expected="cranfield.prom"
        )
    write_bytes(path, [text])


def push(
    url: str,
    job: str,
    observations: Sequence[Observation],
    naming: Naming,
    *,
    instance: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Push metrics to a Pushgateway: a group for each system on each test set, so that no push replaces another system's.

    Args:
        url: of the Pushgateway.
        job: the label `job`.
        observations: what to push.
        naming: of the series.
        instance: the label `instance`, where several machines push the same job.
        environment: has the password.

    Returns:
        The number of groups.

    Raises:
        UsageError: it is not there, or refuses them.
    """
    from prometheus_client import pushadd_to_gateway

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        hint = f"put USER:PASSWORD into the variable {AUTH_VARIABLE}." if "@" in parts.netloc else None
        raise UsageError("--push is not an address of a Pushgateway", expected="http://HOST:9091", hint=hint)
    own = {} if instance is None else {"instance": instance}
    written = [each for each in observations if naming.is_written(each.subject)]
    for each in written:
        group = own | naming.subject_labels(each.subject)
        try:
            pushadd_to_gateway(
                url,
                job=job,
                registry=exposition([each], naming),
                grouping_key=group,
                timeout=PUSH_SECONDS,
                handler=_handler(environment.get(AUTH_VARIABLE)),
            )
        except OSError as error:  # an HTTP status is one too
            raise UsageError(f"the Pushgateway rejected the metrics: {_reason(error)}", path=parts.netloc) from None
    return len(written)


def _handler(auth: str | None) -> Any:
    from prometheus_client.exposition import basic_auth_handler, default_handler

    if auth is None:
        return default_handler
    user, _, password = auth.partition(":")
    return partial(basic_auth_handler, username=user, password=password)


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or error
    status = getattr(error, "code", None)
    return f"{status} {reason}" if status else str(reason)
