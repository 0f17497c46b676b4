"""From what a test suite names (a test set and a system, or a config) to scores; anything missing is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.config import load_config
from cranfield.errors import Problem, SystemUnderTestError, UnknownNameError, UsageError, shorten
from cranfield.evaluation.values import Evaluation, Limits
from cranfield.evaluation.verdict import broken_limits
from cranfield.model import DEFAULT_CONVENTION, TestSet
from cranfield.project.recipe import evaluate, load
from cranfield.project.rules import check_rules
from cranfield.project.scores import Shared
from cranfield.project.testset_options import TestSetOptions
from cranfield.systems import ConfiguredSystem, build_systems
from cranfield.systems.collect.collection import collect
from cranfield.systems.collect.preflight import preflight
from cranfield.words import first_of

K = 10
REASONS = 3
"""Failed queries that a message names."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be scored. With a config and no more, what the config says."""

    testset: str | Path | TestSet | None = None
    """A test-set file, or one that is loaded; with a system of the config, the name of one of its several test sets."""
    system: str | Callable[..., Any] | None = None
    """`module:function`; a function at hand; or the name of a system of the config."""
    run: str | Path | None = None
    """A run file in place of a system."""
    k: int | None = None
    """Results asked for; 10, or as the config says."""
    convention: str | None = None
    """Whose choices score it."""
    max_failed_share: float | None = None
    """More queries that fail, and there are no scores; 0.1, or as the config says."""


def scored(asked: Asked, *, folder: Path, config: Path) -> Shared:
    """Collect, or read, and evaluate.

    Args:
        asked: what.
        folder: what files and modules are relative to.
        config: the config file, read where a system of it is asked for.

    Raises:
        InputError: a file that is missing or wrong.
        PreflightError: the system would not have worked.
        SystemUnderTestError: it failed on more queries than may be.
        UsageError: what is asked for does not fit together.
    """
    by_hand = callable(asked.system) or (isinstance(asked.system, str) and ":" in asked.system)
    if asked.run is not None or by_hand:
        return _by_hand(asked, folder)
    return _of_config(asked, config)


def _by_hand(asked: Asked, folder: Path) -> Shared:
    if asked.testset is None:
        raise UsageError("a system or a run without a test set", expected="testset=, the path of one")
    if asked.run is not None and asked.system is not None:
        raise UsageError("a run and a system", expected="one of the two")
    testset = asked.testset if isinstance(asked.testset, TestSet) else load(folder / asked.testset)
    convention = asked.convention or DEFAULT_CONVENTION
    limits = Limits(Limits().max_failed_share if asked.max_failed_share is None else asked.max_failed_share)
    if asked.run is not None:
        return _sound(evaluate(testset, folder / asked.run, convention=convention), limits)
    k = K if asked.k is None else asked.k
    with_answers = _collected(_function(asked.system, folder), k)
    return _sound(evaluate(testset, with_answers(testset), convention=convention), limits)


def _function(named: object, folder: Path) -> ConfiguredSystem:
    from cranfield.systems.kinds.python import PythonSystem

    if isinstance(named, str):
        name = "".join(letter if letter.isalnum() or letter in "._-" else "." for letter in named)
        return PythonSystem.of(name, folder=folder, python=named)
    if not callable(named):
        raise UsageError(f"a system is {shorten(named)}", expected="a function, or module:function")
    name = getattr(named, "__name__", type(named).__name__)
    return PythonSystem.calling(name if name.isidentifier() else "function", named)


def _collected(system: ConfiguredSystem, k: int) -> Callable[..., Any]:
    def ask(testset: Any) -> Any:
        try:
            preflight([system], k=k)
            return collect(testset, system, k=k)
        finally:
            system.close()

    return ask


def _of_config(asked: Asked, path: Path) -> Shared:
    config = load_config(path, also=check_rules)
    names = list(config.sets)
    chosen = str(asked.testset) if asked.testset is not None else names[0]
    if asked.testset is not None and chosen not in names:
        raise UnknownNameError.among("test set of the config", chosen, [name for name in names if name])
    if asked.testset is None and len(names) > 1:
        raise UsageError("the config has several test sets", expected=f"testset=, one of {', '.join(names)}")
    one = config.sets[chosen]
    system = asked.system if isinstance(asked.system, str) else _only_system(config)
    repo = None if one.repo is None else config.folder / one.repo
    testset = load(config.folder / one.path, options=TestSetOptions(repo=repo))
    (adapter,) = build_systems(config, [system], one.params)
    run = _collected(adapter, asked.k or one.k or config.k)(testset)
    convention = asked.convention or config.convention
    share = config.limits.max_failed_share if asked.max_failed_share is None else asked.max_failed_share
    return _sound(evaluate(testset, run, measures=one.measures, convention=convention), Limits(share))


def _only_system(config: Any) -> str:
    gate = getattr(config, "gate", None)
    named = (gate.system if gate is not None else None) or config.candidate
    if named is None and len(config.systems) == 1:
        (named,) = config.systems
    if named is None:
        raise UsageError("the config has several systems", expected=f"system=, one of {', '.join(config.systems)}")
    return str(named)


def _sound(evaluation: Evaluation, limits: Limits) -> Shared:
    """Scores, but of a system that failed: its zeros would be taken for answers."""
    broken = broken_limits([evaluation], evaluation.measures[0], Limits(limits.max_failed_share))
    if broken:
        reasons = [f"{query_id}: {outcome}, {reason}" for query_id, outcome, reason in evaluation.failures[:REASONS]]
        if not reasons:
            run = evaluation.run
            missing = [one for one in evaluation.query_ids if run is not None and one not in run.answers]
            reasons = [f"no answer to {first_of(missing)}"]
        raise SystemUnderTestError([Problem(sentence, hint="; ".join(reasons)) for sentence in broken])
    return Shared(evaluation)
