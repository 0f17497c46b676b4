"""From the settings of the pytest marker (a test set and a system, or a config) to an evaluation; anything missing is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cranfield.config import Config, load_config
from cranfield.errors import Problem, SystemUnderTestError, UsageError, shorten
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.values import Evaluation
from cranfield.model import DEFAULT_CONVENTION, TestSet
from cranfield.options.declaration import declared
from cranfield.options.limits import Limits
from cranfield.project.experiment import ZERO, Experiment, prepare
from cranfield.project.loading import load
from cranfield.systems import ConfiguredSystem
from cranfield.words import first_of

K = 10
SHOWN_REASONS = 3
"""Failed queries that a message names."""


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """What is to be scored. With a config and no more, what the config says."""

    testset: str | Path | TestSet | None = None
    """A test-set file, or one that is loaded; with a system of the config, the name of one of its several test sets."""
    system: str | Callable[..., Any] | None = None
    """`module:function`; a function; or the name of a system of the config."""
    run: str | Path | None = None
    """A run file in place of a system."""
    k: int | None = None
    """Results requested; 10, or as the config says."""
    convention: str | None = None
    """Scoring convention."""
    max_failed_share: float | None = None
    """More queries that fail, and there are no scores; 0.1, or as the config says."""
    evidence: Mapping[str, Any] | None = None
    """Evidence checks that differ from their table, by name; those of the config where there is one."""


def measure(settings: MarkerSettings, *, folder: Path, config_path: Path) -> Evaluation:
    """Collect, or read, and evaluate.

    Args:
        settings: what is to be scored.
        folder: what files and modules are relative to.
        config_path: the config, read where a system of it is named.

    Raises:
        InputError: a file that is missing or wrong.
        PreflightError: the system would not have worked.
        SystemUnderTestError: it failed on more queries than allowed.
        UsageError: the settings do not fit together.
    """
    is_file_or_function = callable(settings.system) or (isinstance(settings.system, str) and ":" in settings.system)
    if settings.run is not None or is_file_or_function:
        experiment = _of_function(settings, folder)
    else:
        experiment = _of_config(settings, load_config(config_path))
    if settings.run is not None:
        evaluation = experiment.evaluate(folder / settings.run)
    else:
        (run,) = experiment.collect().values()
        evaluation = experiment.evaluate(run)
    limits = {name: value for name in declared(Limits) if (value := getattr(settings, name, None)) is not None}
    evaluation = replace(evaluation, limits=replace(evaluation.limits, **limits))
    _require_evidence(evaluation)
    return evaluation


def _of_function(settings: MarkerSettings, folder: Path) -> Experiment:
    """A function, or nothing where a run file is scored, on a test set that is named or loaded."""
    if settings.testset is None:
        raise UsageError("a system or a run without a test set", expected="testset=, the path of one")
    if settings.run is not None and settings.system is not None:
        raise UsageError("a run and a system", expected="one of the two")
    testset = settings.testset if isinstance(settings.testset, TestSet) else load(folder / settings.testset)
    systems = () if settings.run is not None else (_function_system(settings.system, folder),)
    k = K if settings.k is None else settings.k
    scoring = replace(ZERO, convention=settings.convention or DEFAULT_CONVENTION)
    return Experiment(testset, systems, k=k, scoring=scoring)


def _function_system(function: object, folder: Path) -> ConfiguredSystem:
    from cranfield.systems.kinds.python import PythonSystem

    if isinstance(function, str):
        name = "".join(letter if letter.isalnum() or letter in "._-" else "." for letter in function)
        return PythonSystem.of(name, folder=folder, python=function)
    if not callable(function):
        raise UsageError(f"a system is {shorten(function)}", expected="a function, or module:function")
    name = getattr(function, "__name__", type(function).__name__)
    return PythonSystem.calling(name if name.isidentifier() else "function", function)


def _of_config(settings: MarkerSettings, config: Config) -> Experiment:
    name = config.set_name(None if settings.testset is None else str(settings.testset))
    system = settings.system if isinstance(settings.system, str) else _only_system(config)
    experiment = prepare(config, name, [system], cache="off", isolated=False)
    convention = settings.convention or experiment.scoring.convention
    scoring = replace(experiment.scoring, convention=convention)
    return replace(experiment, k=settings.k or experiment.k, scoring=scoring)


def _only_system(config: Config) -> str:
    name = (config.gate.system if config.gate is not None else None) or config.candidate
    if name is None and len(config.systems) == 1:
        (name,) = config.systems
    if name is None:
        raise UsageError("the config has several systems", expected=f"system=, one of {', '.join(config.systems)}")
    return name


def _require_evidence(evaluation: Evaluation) -> None:
    """Refuse scores that do not count: the zeros of a system that failed would look like answers."""
    broken = void_sentences(evaluation.evidence)
    if broken:
        reasons = [
            f"{query_id}: {outcome}, {reason}" for query_id, outcome, reason in evaluation.failures[:SHOWN_REASONS]
        ]
        if not reasons:
            run = evaluation.run
            missing = [query for query in evaluation.query_ids if run is not None and query not in run.answers]
            reasons = [f"no answer to {first_of(missing)}"] if missing else []
        raise SystemUnderTestError([Problem(sentence, hint="; ".join(reasons) or None) for sentence in broken])
