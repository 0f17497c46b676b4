"""Two runs, or two systems of a config, compared without judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from cranfield.app.experiment import AnswerCache, experiment_on, prepare
from cranfield.app.history import local_folder
from cranfield.app.loading import load_file, read_stored
from cranfield.base.errors import CranfieldError, Problem, UsageError
from cranfield.config import Config, load_config
from cranfield.evaluation.difference import BoundKind, RunDifference, difference_of
from cranfield.evaluation.options.blocks import DifferenceOptions
from cranfield.evaluation.options.declaration import check
from cranfield.formats.runs.files import log_notes
from cranfield.model import Run, TestSet
from cranfield.ranking.collected import read_run_file

FOLDER = "diff"
"""Folder of the collected runs, in `.cranfield/` next to the config."""


def difference(
    baseline: Run, candidate: Run, options: DifferenceOptions, testset: TestSet | None = None
) -> RunDifference:
    """Compare two runs.

    Args:
        baseline: a run, the results of each query best first.
        candidate: another one.
        options: how, and the bounds.
        testset: as of `difference_of`.

    Raises:
        UsageError: options that cannot be.
        NoCommonQueryError: no query has an answer on both sides.
    """
    check(options)
    given = {kind: getattr(options, kind.value.replace("-", "_")) for kind in BoundKind}
    bounds = {kind: bound for kind, bound in given.items() if bound is not None}
    return difference_of(baseline, candidate, testset=testset, k=options.k, p=options.persistence, bounds=bounds)


def difference_of_files(
    baseline: Path,
    candidate: Path,
    options: DifferenceOptions,
    *,
    queries: Path | None = None,
    queries_format: str | None = None,
) -> RunDifference:
    """Compare two run files.

    Args:
        baseline: a run.
        candidate: another one.
        options: how, and the bounds.
        queries: a test set or a list of queries that both should answer; None: all queries of either run.
        queries_format: its format, where the content does not tell.

    Raises:
        UsageError: with the problems of the options and of every file.
        NoCommonQueryError: no query has an answer on both sides.
    """
    problems: list[Problem] = []
    testset, runs = None, []
    try:
        check(options)
    except UsageError as error:
        problems += error.problems
    try:
        testset = None if queries is None else read_stored(queries, queries_format, judged=False)
    except CranfieldError as error:
        problems += error.problems
    for path in (baseline, candidate):
        try:
            runs.append(read_run_file(path, testset))
            log_notes(runs[-1])
        except CranfieldError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return difference(runs[0], runs[1], options, testset)


def difference_of_systems(
    config_path: Path,
    given: DifferenceOptions,
    *,
    systems: Sequence[str] = (),
    testset: str | None = None,
    queries: Path | None = None,
    queries_format: str | None = None,
    cache: AnswerCache = "use",
) -> RunDifference:
    """Send every query to two systems of a config, and compare their results.

    Args:
        config_path: cranfield.yaml; its test set may be a list of queries, and its block `diff` has options and bounds.
        given: options of the call; those that differ from their defaults take precedence.
        systems: baseline and candidate; none: those of the config.
        testset: name of the test set, where the config has several.
        queries: a test set or a list of queries that is sent in place of the test set.
        queries_format: its format, where the content does not tell.
        cache: what is done with the answers of earlier runs.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: not two systems, or options that cannot be.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = load_config(config_path)
    usual = DifferenceOptions()
    called = {each.name: getattr(given, each.name) for each in fields(given)}
    options = replace(
        config.differing(), **{name: value for name, value in called.items() if value != getattr(usual, name)}
    )
    check(options)
    name = config.set_name(testset)
    pair = _pair(config, systems)
    if queries is None:
        experiment = prepare(config, name, pair, cache=cache, judged=False)
    else:
        listed = load_file(queries, queries_format, judged=False)
        experiment = experiment_on(listed, config, config.sets[name], pair, cache=cache)
    experiment = replace(experiment, k=max(experiment.k, options.k))
    folder = local_folder(config.folder) / FOLDER / name
    with experiment.collected(folder, root=config.folder) as runs:
        baseline, candidate = runs.values()
        return difference(baseline, candidate, options, experiment.testset)


def _pair(config: Config, systems: Sequence[str]) -> tuple[str, ...]:
    """Names of baseline and candidate."""
    pair = tuple(systems) or config.pair
    if pair is None or len(pair) != 2 or pair[0] == pair[1]:
        raise UsageError(
            f"{len(set(pair)) if pair else len(config.systems)} systems are compared",
            expected="two systems of the config, baseline first",
            got=", ".join(pair or config.systems),
            hint="name them: {systems=BASELINE} {systems=CANDIDATE}",
            parameters=("systems",),
        )
    return pair
