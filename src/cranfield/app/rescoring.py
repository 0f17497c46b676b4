"""The settings of a config as options of a command, and the command that scores the runs of `cranfield run` again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from cranfield.app.experiment import Experiment
from cranfield.app.loading import SetOverrides, options_of
from cranfield.app.saved_runs import from_here
from cranfield.config import Config
from cranfield.evaluation.absence import leaves_out
from cranfield.evaluation.options.blocks import SET_OPTIONS, CompareOptions, LatencyRule, Setting
from cranfield.evaluation.options.declaration import command_words
from cranfield.measures import parse
from cranfield.model import DEFAULT_CONVENTION, Convention, convention_named
from cranfield.systems.collect.collection import RUNS

Words = tuple[str, ...]
"""An option with its value, or a flag."""


def rescore_command(
    config: Config, experiment: Experiment, systems: Sequence[str], out: Path, *, allow_drift: bool = False
) -> str:
    """A command for a shell: `compare`, or `evaluate` for one system, with the runs and the settings of the config.

    As it is, it gives the figures of the run; with other measures after `-m` it scores them by these.

    Args:
        config: of the run.
        experiment: the test set, and its settings.
        systems: names of the systems whose runs were written.
        out: folder of the runs of this test set.
        allow_drift: the option of the run.
    """
    baseline = config.baseline if config.baseline in systems else None
    if len(systems) > 2 and baseline is not None:
        systems = [baseline, *(name for name in systems if name != baseline)]
    chosen = config.sets[experiment.name]
    words = ["cranfield", "compare" if len(systems) > 1 else "evaluate", path_word(config.folder / chosen.path)]
    words += [path_word(out / RUNS / f"{name}.jsonl") for name in systems]
    measures = experiment.measures or [str(experiment.primary)]
    for pair in (
        *(("-m", measure) for measure in measures),
        *_testset_options(config, experiment.name, experiment.given, allow_drift=allow_drift),
        *_scoring(config),
    ):
        words += pair
    if len(systems) > 1:
        for pair in _comparison(measures[0], str(experiment.primary), experiment.declared, many=len(systems) > 2):
            words += pair
    if len(systems) > 2 and baseline is None:
        words.append("--baseline-less")
    return shlex.join(words)


def testset_words(config: Config, name: str) -> list[Words]:
    """The options of a test set of a config, as a command takes them; the number of results that are read is none."""
    given = options_of(config.sets[name].options, config.folder)
    return list(_testset_options(config, name, SetOverrides(given.options)))


def scoring_words(config: Config, name: str, *, many: bool = False) -> list[Words]:
    """Everything that a config says of scoring and comparing runs on one of its test sets, as `compare` takes it.

    Args:
        config: from `load_config`.
        name: of the test set.
        many: of three runs or more.
    """
    chosen = config.sets[name]
    measures = [str(parse(measure)) for measure in chosen.measures or ()]
    primary = str(parse(chosen.primary)) if chosen.primary is not None else measures[0] if measures else None
    given = options_of(chosen.options, config.folder)
    return [
        *(("-m", measure) for measure in measures),
        *_testset_options(config, name, given),
        *_scoring(config),
        *(("--confusion", f"{field}={stratum}") for field, stratum in config.scoring().confusion.items()),
        *_comparison(measures[0] if measures else None, primary, config.comparing(chosen), many=many),
    ]


def _testset_options(config: Config, name: str, given: SetOverrides, *, allow_drift: bool = False) -> Iterator[Words]:
    """The repository and the options of a test set."""
    chosen = config.sets[name]
    if chosen.repo is not None:
        yield "--repo", path_word(config.folder / chosen.repo)
        yield ("--allow-dirty",)
        if allow_drift:
            yield ("--allow-drift",)
    for key, option in SET_OPTIONS.items():
        value = given.depth if key == "depth" else getattr(given.options, key)
        if value is None or value is False:
            continue
        if value is True:
            yield (option.flag,)
        elif isinstance(value, Mapping):
            for part, place in value.items():
                yield option.flag, f"{part}={place}"
        else:
            for part in value if isinstance(value, tuple | list) else (value,):
                yield option.flag, path_word(part) if isinstance(part, Path) else str(part)


def _scoring(config: Config) -> Iterator[Words]:
    """The convention, and the evidence checks that differ from their table."""
    scoring = config.scoring()
    if scoring.convention_name != DEFAULT_CONVENTION:
        yield "--convention", scoring.convention_name
        yield from _counting(convention_named(scoring.convention))
    yield from _evidence(scoring.limits.evidence)
    yield from _latency(scoring.latency)


def _counting(convention: Convention) -> Iterator[Words]:
    """That queries without an answer count as 0, where the convention leaves them out."""
    if leaves_out(convention):
        yield "--failed", "zero"
    if convention.missing == "skip":
        yield "--missing", "zero"


def _comparison(first: str | None, primary: str | None, declared: CompareOptions, *, many: bool) -> Iterator[Words]:
    """Options of `compare`, where they differ from its defaults.

    Args:
        first: of the measures; None: the first of the default list.
        primary: the measure that decides; None: the first.
        declared: everything else.
        many: of three runs or more.
    """
    if primary is not None and (first is None or parse(primary) != parse(first)):
        yield "--primary", primary  # else it is the first of the measures, whatever these become
    yield from command_words(declared, without={"primary"} if many else {"primary", "adjust"})
    limits = declared.limits
    if limits.max_failed_share is None:
        limits = replace(
            limits, max_failed_share=1.0
        )  # `compare` has no spelling for no limit, and 1 is never exceeded
    yield from command_words(limits)


def _evidence(settings: Mapping[str, Setting]) -> Iterator[Words]:
    for name, setting in settings.items():
        if setting.consequence is not None:
            yield "--evidence", f"{name}={setting.consequence}"
        if setting.threshold is not None:
            yield "--evidence", f"{name}={setting.threshold}"


def _latency(rule: LatencyRule) -> Iterator[Words]:
    usual = LatencyRule()
    for name, value in asdict(rule).items():
        if value != getattr(usual, name):
            yield "--latency", f"{name}={value:g}"


def path_word(path: Path) -> str:
    """A path relative to the working directory where it is inside, as a command takes it."""
    shown = str(from_here(path))
    return f"./{shown}" if shown.startswith("-") else shown
