"""A report that is missing beside its results, made again from the saved runs: no system is asked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.config import Config, load_config
from cranfield.errors import CranfieldError, UsageError
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Run
from cranfield.project.experiment import Experiment, prepare
from cranfield.project.job import Extras, compared
from cranfield.project.viewing.results import REPORT, read_record
from cranfield.reporting import save_reports
from cranfield.systems.collect.collection import RUNS

CONFIG = "cranfield.yaml"


def rebuilt_report(results: Path) -> Path:
    """Write the report of results: from the runs beside them, and the config in whose folder they were made.

    Args:
        results: `results.json` of a run.

    Returns:
        The report, beside the results.

    Raises:
        UsageError: a run, the config or the test set is missing or is another one by now; with the command that makes a
            report.
    """
    record = read_record(results)
    runs = _runs(results, record)
    found = next(_experiments(results, record), None) if runs else None
    if found is None:
        raise UsageError(
            f"these results have no {REPORT} beside them, and the config and the test set that made them are not found",
            path=str(results),
            expected=f"a {REPORT}, or {RUNS}/ beside the results and a {CONFIG} with the same test set",
            hint=_hint(results, runs, record),
        )
    config, experiment = found
    evaluations = tuple(experiment.evaluate(run) for run in runs.values())
    document, *_ = compared(config, experiment, evaluations, Extras())
    save_reports(document, results.parent, (REPORT,))
    return results.with_name(REPORT)


def _runs(results: Path, record: Mapping[str, Any]) -> dict[str, Run]:
    """Name to run, in the order of the results; empty where one is missing or is another one."""
    runs: dict[str, Run] = {}
    for system in record["systems"]:
        path = results.parent / RUNS / f"{system.get('name')}.jsonl"
        try:
            run = read_run(path)
        except (OSError, CranfieldError):
            return {}
        if run.digest != system.get("digest"):
            return {}
        runs[run.name] = run
    return runs


def _experiments(results: Path, record: Mapping[str, Any]) -> Iterator[tuple[Config, Experiment]]:
    """Of every config that may have made the results, the test set of the same content."""
    names = [system["name"] for system in record["systems"]]
    folders = dict.fromkeys((*results.absolute().parents[:3], Path.cwd()))
    for path in (folder / CONFIG for folder in folders):
        try:
            config = load_config(path)
        except (OSError, CranfieldError):
            continue
        for name in config.sets if set(names) <= set(config.systems) else ():
            try:
                experiment = prepare(config, name, names, seed=_seed(record), allow_drift=True)
            except CranfieldError:
                continue
            if experiment.testset.digest == record["testset"].get("digest"):
                yield config, experiment


def _seed(record: Mapping[str, Any]) -> int:
    seed = record.get("seed")
    return seed if isinstance(seed, int) else 0


def _hint(results: Path, runs: Mapping[str, Run], record: Mapping[str, Any]) -> str:
    command = "compare" if len(record["systems"]) > 1 else "evaluate"
    paths = [str(results.parent / RUNS / f"{name}.jsonl") for name in runs]
    words = shlex.join(["cranfield", command, "TESTSET", *paths, "--html", str(results.with_name(REPORT))])
    return words if runs else "`cranfield run` makes results and their report."
