"""Runs of systems by their names, and versions of test sets scored by them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from cranfield.app.evaluate import evaluate
from cranfield.app.loading import can_be_name, named_testset, project_config
from cranfield.app.rescoring import path_word
from cranfield.app.saved_runs import saved_run
from cranfield.base.errors import ConfigError, CranfieldError, Problem, UsageError, did_you_mean, shorten
from cranfield.base.words import and_list
from cranfield.config import Config, load_config
from cranfield.evaluation.testset.check_judgments import Answers
from cranfield.formats.io.files import is_there
from cranfield.model import DEFAULT_CONVENTION, Hit, TestSet, convention_named

_HEADER_BYTES = 1024 * 1024


class Project:
    """A config whose systems and test sets are known by name."""

    def __init__(self, path: Path) -> None:
        """Read the config where it is needed."""
        self.path = path

    @classmethod
    def find(cls, config: Path | None = None) -> Project | None:
        """The project of a config that is given, or of the folder; None where there is none."""
        path = project_config(config)
        return None if path is None else cls(path)

    @cached_property
    def config(self) -> Config:
        """The config.

        Raises:
            ConfigError: with everything that is wrong with it.
        """
        return load_config(self.path)

    def look_up(self, names: Sequence[str]) -> None:
        """Read the config for what is no file, and can be the name of a system.

        Raises:
            ConfigError: the config is wrong; the names come first, of which none is a file.
        """
        try:
            self.config  # noqa: B018 - it is kept
        except ConfigError as error:
            why = f"no such file; systems cannot be looked up by name, because {self.path.name} is invalid"
            raise ConfigError([*(Problem(why, path=name) for name in names), *error.problems]) from None

    def is_system(self, given: Path | str) -> bool:
        """Whether it is the name of a system, and no path that exists."""
        return can_be_name(Path(given)) and str(given) in self.config.systems

    def is_testset(self, given: Path) -> bool:
        """Whether it is the path or the name of a test set."""
        if not can_be_name(given):
            return True
        try:
            return named_testset(given, self.path) != given
        except UsageError:
            return False

    def only_set(self, systems: Sequence[str]) -> str:
        """Name of the test set that runs are of, where none is given: the only one.

        Raises:
            UsageError: there are several.
        """
        if self.config.testsets is None:
            return ""
        if len(self.config.testsets) == 1:
            return next(iter(self.config.testsets))
        raise UsageError(
            f"no test set is given for {and_list(systems)}, but the config has {len(self.config.testsets)}",
            path=str(self.path),
            expected="a test set first: one of " + ", ".join(self.config.testsets),
        )

    def path_of(self, testset: str) -> str:
        """The path of a test set of the config, as a command takes it."""
        return path_word(self.config.folder / self.config.sets[testset].path)

    def sets_of(self, testset: Path | None) -> list[str]:
        """Names of the test sets of the config that a path is of; all of them where it is of none."""
        names = list(self.config.sets)
        if testset is None:
            return names
        own = [name for name in names if _is_same(self.config.folder / self.config.sets[name].path, testset)]
        return own or names

    def run_of(self, system: str, testset: Path | None = None) -> tuple[str, Path]:
        """The test set and the path of the saved run of a system.

        Args:
            system: its name.
            testset: the file that the call scores it on; None: not known.

        Raises:
            UsageError: there is none, or one of each of several test sets.
        """
        names = self.sets_of(testset)
        found = {name: path for name in names if (path := saved_run(self.config.folder, name, system)) is not None}
        if len(found) == 1:
            return next(iter(found.items()))
        if found:
            raise UsageError(
                f"system {system} has a saved run on several test sets",
                expected="the path of one of them",
                got=", ".join(map(str, found.values())),
            )
        raise UsageError(
            f"system {system} has no saved run",
            path=str(self.path),
            expected="the path of a run, or a system with a saved run",
            hint="`cranfield run` queries the systems of the config and saves their runs",
        )

    def unknown(self, given: Path) -> UsageError:
        """The error of a name that is neither a path nor that of a system."""
        systems = list(self.config.systems)
        return UsageError(
            f"no run {shorten(str(given))}",
            expected=f"a path, or a system of {self.path}: {', '.join(systems)}",
            hint=did_you_mean(str(given), systems),
        )

    def stale(self, system: str, name: str, path: Path) -> Iterator[str]:
        """What changed in the config since a run of it was saved; where a part cannot be read, the command says so itself."""
        from cranfield.app.experiment import load_configured
        from cranfield.systems import build_systems

        header, chosen = _header(path), self.config.sets[name]
        with suppress(CranfieldError):
            (built,) = build_systems(self.config, [system], chosen.params, isolated=True)
            if header.get("config_digest") != built.config_digest:
                yield f"the settings of {system}"
        if header.get("depth") != (self.config.results_requested(chosen)):
            yield "k"
        with suppress(CranfieldError):
            if header.get("testset_digest") != load_configured(self.config, name, allow_drift=True).digest:
                yield "the test set"


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False


def _header(path: Path) -> dict[str, Any]:
    """The first line of a saved run; nothing where it is none."""
    with suppress(OSError, ValueError), path.open("rb") as stream:
        found = json.loads(stream.readline(_HEADER_BYTES))
        if isinstance(found, dict):
            return found
    return {}


ALL_RESULTS = sys.maxsize
"""A depth that no list of results reaches."""


def answers_of(testset: TestSet, run: Path, depth: int = ALL_RESULTS) -> tuple[str, Answers]:
    """Name of a run, and the results of each query that the test set has; the first ones where a depth is given.

    Raises:
        InputError: the run cannot be read, or shares no query with the test set.
    """
    evaluation = evaluate(testset, run, keep=depth)
    if evaluation.run is not None:
        from cranfield.ranking.collected import order_hits

        collected, convention = evaluation.run, convention_named(DEFAULT_CONVENTION)
        answers = {
            query_id: order_hits(query_id, answer, collected, convention)[:depth]
            for query_id, answer in collected.answers.items()
            if query_id in testset.by_id and not answer.outcome.is_failure
        }
        return evaluation.name, answers
    top = evaluation.ranking.top
    return evaluation.name, {
        query_id: [Hit(hit.id, hit.score, hit.title, hit.span) for hit in top.get(query_id, ())]
        for query_id in evaluation.query_ids
    }


def named_runs(runs: Sequence[str]) -> dict[str, Path]:
    """`NAME=RUN`, or `RUN` under the name of its file, as a mapping.

    Raises:
        UsageError: a name that stands twice.
    """
    found: dict[str, Path] = {}
    for text in runs:
        name, equals, place = text.partition("=")
        is_named = equals and not is_there(Path(text))
        path = Path(place) if is_named else Path(text)
        name = name if is_named else path.stem
        if name in found:
            raise UsageError(f"two runs are called {name!r}", hint="name them: {runs=NAME=FILE}", parameters=("runs",))
        found[name] = path
    return found
