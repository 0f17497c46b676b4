"""The command that scores the runs of `cranfield run` again, by other measures, without asking a system."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from cranfield.config import Config
from cranfield.evaluation.absence import leaves_out
from cranfield.evaluation.evidence.values import Setting
from cranfield.evaluation.latency_rule import LatencyRule
from cranfield.evaluation.verdict import CompareOptions
from cranfield.measures import parse
from cranfield.model import DEFAULT_CONVENTION, Convention, convention_named
from cranfield.model.testset_options import config_options
from cranfield.project.experiment import Experiment
from cranfield.project.loading import SetOverrides
from cranfield.systems.collect.collection import RUNS

_USUAL = CompareOptions()
_USUAL_LATENCY = LatencyRule()


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
    words = ["cranfield", "compare" if len(systems) > 1 else "evaluate", _shown(config.folder / chosen.path)]
    words += [_shown(out / RUNS / f"{name}.jsonl") for name in systems]
    for measure in experiment.measures or [str(experiment.primary)]:
        words += ["-m", measure]
    if chosen.repo is not None:
        words += ["--repo", _shown(config.folder / chosen.repo), *(["--allow-drift"] if allow_drift else [])]
    if chosen.ids is not None:
        words += ["--ids", chosen.ids]
    words += _options(experiment.given)
    if experiment.convention != DEFAULT_CONVENTION:
        words += ["--convention", experiment.convention, *_counting(convention_named(experiment.convention))]
    words += _evidence(config.evidence)
    words += _latency(experiment.latency)
    if len(systems) > 1:
        words += _comparison(experiment)
    if len(systems) > 2 and baseline is None:
        words.append("--baseline-less")
    return shlex.join(words)


def _options(given: SetOverrides) -> Iterator[str]:
    """The options of the test set."""
    for name, row in config_options().items():
        value = given.depth if name == "depth" else getattr(given.options, name)
        if value is None or value is False:
            continue
        if row.kind == "flag":
            yield row.spelling(name)
        elif isinstance(value, Mapping):
            for key, place in value.items():
                yield from (row.spelling(name), f"{key}={place}")
        else:
            for part in value if isinstance(value, tuple | list) else (value,):
                yield from (row.spelling(name), _shown(part) if isinstance(part, Path) else str(part))


def _counting(convention: Convention) -> Iterator[str]:
    """That queries without an answer count as 0, where the convention leaves them out."""
    if leaves_out(convention):
        yield from ("--failed", "zero")
    if convention.missing == "skip":
        yield from ("--missing", "zero")


def _comparison(experiment: Experiment) -> Iterator[str]:
    """Options of `compare`, where they differ from its defaults."""
    declared = experiment.declared
    first = parse((experiment.measures or [str(experiment.primary)])[0])
    if experiment.primary != first:  # else it is the first of the measures, whatever these become
        yield from ("--primary", str(experiment.primary))
    values: dict[str, tuple[object, object]] = {
        "--test": (declared.test, _USUAL.test),
        "--margin": (declared.margin, _USUAL.margin),
        "--alpha": (declared.alpha, _USUAL.alpha),
        "--seed": (declared.seed, _USUAL.seed),
        # `compare` has no spelling for no limit: a share of 1 is never exceeded
        "--max-failed": (
            1.0 if (most := declared.limits.max_failed_share) is None else most,
            _USUAL.limits.max_failed_share,
        ),
        "--min-judged": (declared.limits.min_judged_share, _USUAL.limits.min_judged_share),
    }
    for option, (value, usual) in values.items():
        if value != usual:
            yield from (option, str(value))


def _evidence(settings: Mapping[str, Setting]) -> Iterator[str]:
    for name, setting in settings.items():
        if setting.consequence is not None:
            yield from ("--evidence", f"{name}={setting.consequence}")
        if setting.threshold is not None:
            yield from ("--evidence", f"{name}={setting.threshold}")


def _latency(rule: LatencyRule) -> Iterator[str]:
    for name, value in asdict(rule).items():
        if value != getattr(_USUAL_LATENCY, name):
            yield from ("--latency", f"{name}={value:g}")


def _shown(path: Path) -> str:
    """A path relative to the working directory where it is inside, as a command takes it."""
    absolute = Path(os.path.normpath(path.absolute()))
    shown = str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute)
    return f"./{shown}" if shown.startswith("-") else shown
