"""Runs by name: where the path of a run would stand, the name of a system means the run that `cranfield run` saved last."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from cranfield.config import Config, load_config
from cranfield.errors import CranfieldError, UsageError, did_you_mean, shorten
from cranfield.project.named_testset import can_be_name, named_testset, project_config
from cranfield.project.rescoring import path_word
from cranfield.project.saved_runs import saved_run
from cranfield.words import and_list

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
            f"no test set is given for {and_list(systems)}, and the config has {len(self.config.testsets)}",
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
            expected="the path of a run, or a system that was run",
            hint="`cranfield run` asks the systems of the config and saves their runs",
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
        from cranfield.project.experiment import load_configured
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
