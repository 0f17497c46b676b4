"""The evidence of a folder: cranfield.yaml, its test sets and systems, and run files under the folder. Nothing is written."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cranfield.errors import CranfieldError, UnknownNameError, UsageError
from cranfield.evaluation.verdict import CompareOptions
from cranfield.mcp_server import answers
from cranfield.mcp_server.answers import untrusted
from cranfield.mcp_server.results import Found, next_offset

if TYPE_CHECKING:
    from cranfield.config import Config
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.mcp_server.collecting import Report
    from cranfield.project.experiment import Experiment

KEPT = 20
"""Results that are kept in memory."""
MOST_FILES = 5_000
"""Files that are looked at for runs."""
RUN_SUFFIXES = frozenset({".jsonl", ".trec", ".run", ".txt", ".parquet", ".tsv", ".csv", ".gz", ".zst", ".res"})
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An evaluation that is wanted: of a system or of a run."""

    testset: str
    system: str | None = None
    run: str | None = None
    measures: tuple[str, ...] | None = None
    primary: str | None = None
    k: int | None = None

    def check(self) -> None:
        """Refuse both or neither, and a depth that a run does not have any more.

        Raises:
            UsageError: not exactly one of system and run is named; or k is given with a run.
        """
        if (self.system is None) == (self.run is None):
            raise UsageError("name a system or a run", expected="exactly one of the two")
        if self.run is not None and self.k is not None:
            raise UsageError("k is for a system that is asked; a run has the results that it has", hint="leave k out")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a comparison declares; None: as the evaluation of the baseline."""

    measure: str | None = None
    test: str | None = None
    alpha: float | None = None
    margin: float | None = None
    strata: str | None = None

    def given(self) -> dict[str, object]:
        """What is not left out, as fields of `CompareOptions`."""
        names = ("test", "alpha", "margin", "strata")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class Memory:
    """The last results that were computed here, by reference."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Found] = OrderedDict()
        self._n = 0

    def keep(self, value: Evaluation | Comparison, options: CompareOptions) -> Found:
        """Keep a result under a new reference."""
        self._n += 1
        return self.add(Found(f"{MEMORY}/{self._n}", value, options))

    def add(self, found: Found) -> Found:
        """Keep a result under its reference."""
        self._kept[found.ref] = found
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def find(self, ref: str) -> Found | None:
        """A result that is kept."""
        return self._kept.get(ref)

    def get(self, ref: str) -> Found:
        """A result.

        Raises:
            UnknownNameError: there is none, or no longer.
        """
        if ref not in self._kept:
            raise UnknownNameError(
                f"there is no result {ref}",
                expected=", ".join(self._kept) or "a result that was computed before",
                hint=f"the last {KEPT} are kept while the server runs: evaluate or compare again",
            )
        return self._kept[ref]


class FolderEvidence:
    """A config and run files.

    Args:
        config: cranfield.yaml; None: no systems and no test sets.
        allowed: systems that may be asked; None: all of the config.
        writes: whether answers of systems are kept in the answer cache next to the config.
    """

    def __init__(self, config: Path | None, *, allowed: frozenset[str] | None = None, writes: bool = False) -> None:
        self._path = config
        self._allowed = allowed
        self.writes = writes
        self.memory = Memory()
        if config is not None:
            unknown = sorted((allowed or frozenset()) - set(self.config().systems))
            if unknown:
                raise UnknownNameError.among("system", unknown[0], self.config().systems)

    def config(self) -> Config:
        """The config as its file stands.

        Raises:
            ConfigError: with everything that is wrong.
            UsageError: there is none.
        """
        from cranfield.config import load_config

        if self._path is None:
            raise UsageError("this server has no config", hint="start it with `cranfield mcp CONFIG`")
        return load_config(self._path)

    def systems(self) -> list[answers.SystemRow]:
        """The systems of the config."""
        if self._path is None:
            return []
        return [
            answers.SystemRow(name=name, kind=system.kind, allowed=self._may_ask(name))
            for name, system in self.config().systems.items()
        ]

    def _may_ask(self, name: str) -> bool:
        return self._allowed is None or name in self._allowed

    def testsets(self) -> list[answers.TestSetRow]:
        """The test sets of the config."""
        return [answers.TestSetRow(name=name, version="", n_queries=None, n_judgments=None) for name in self._keys()]

    def _keys(self) -> Mapping[str, str]:
        """Name of each test set to its key in the config."""
        if self._path is None:
            return {}
        return {key or Path(chosen.path).stem: key for key, chosen in self.config().sets.items()}

    def runs(self, offset: int, limit: int) -> answers.RunPage:
        """Run files in the folder of the config, and in the folders below it."""
        from cranfield.formats.sniff import sniff_run

        if self._path is None:
            return answers.RunPage(runs=[], next_offset=None)
        found = []
        for path in self._files():
            try:
                sniff_run(path)
            except CranfieldError:
                continue  # another file
            name = path.relative_to(self._folder).as_posix()
            found.append(answers.RunRow(run=name, name=untrusted(path.stem), n_queries=None))
        rows = found[offset : offset + limit]
        return answers.RunPage(runs=rows, next_offset=next_offset(len(rows), offset, len(found)))

    @property
    def _folder(self) -> Path:
        return self.config().folder.resolve()

    def _files(self) -> Iterator[Path]:
        """Regular files that may be runs, without links and hidden folders."""
        n = 0
        for top, folders, names in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                n += 1
                if n > MOST_FILES:
                    return
                path = Path(top) / name
                if _may_be_run(Path(name)) and not path.is_symlink() and path.is_file():
                    yield path

    def _run_file(self, name: str) -> Path:
        """A run file of this name under the folder, wherever links lead. Other files are not opened: messages quote their first line.

        Raises:
            UsageError: there is none: the answer is the same for one outside of the folder.
        """
        folder = self._folder
        try:
            path = (folder / name).resolve()
            if path.is_relative_to(folder) and _may_be_run(path.relative_to(folder)) and path.is_file():
                return path
        except (OSError, ValueError):  # a name that is too long, or has U+0000
            pass
        raise UsageError(
            f"there is no run file {name[:200]!r} in the folder of the config",
            expected="a relative path as `list_runs` has it",
        )

    def experiment(self, wanted: Wanted) -> Experiment:
        """The test set of an evaluation, with its measures and its convention.

        Raises:
            UnknownNameError: there is no such test set.
            InputError: the test set, with all its problems.
        """
        from cranfield.project.experiment import prepare

        keys = self._keys()
        if wanted.testset not in keys:
            raise UnknownNameError.among("test set", wanted.testset, keys)
        return with_wanted(prepare(self.config(), keys[wanted.testset], [], cache="off"), wanted)

    async def evaluate(self, wanted: Wanted, report: Report) -> Found:
        """Evaluate a system, which is asked every query now, or a run file.

        Raises:
            CranfieldError: test set, run, measures or system, with all their problems.
        """
        from anyio import to_thread

        wanted.check()
        if wanted.system is None:
            return await to_thread.run_sync(self.evaluate_run, wanted, abandon_on_cancel=True)
        await to_thread.run_sync(self._check_system, wanted)
        with TemporaryDirectory(prefix="cranfield-mcp-") as folder:
            path = await self._ask(wanted, folder, report)
            return await to_thread.run_sync(self._score, self.experiment(wanted), path)

    def _check_system(self, wanted: Wanted) -> None:
        """Refuse before anything is asked.

        Raises:
            UnknownNameError: there is no such system.
            UsageError: it may not be asked.
        """
        known = self.config().systems
        if wanted.system not in known:
            raise UnknownNameError.among("system", wanted.system or "", known)
        if not self._may_ask(wanted.system):
            raise UsageError(
                f"the operator does not allow {wanted.system} to be asked",
                expected=", ".join(sorted(self._allowed or ())),
                hint="evaluate one of its runs: `list_runs` has them",
            )
        _ = self.experiment(wanted).dry  # refuses measures that the test set does not allow

    async def _ask(self, wanted: Wanted, folder: str, report: Report) -> Path:
        from cranfield.mcp_server.collecting import Request, ask_system

        key = self._keys()[wanted.testset]
        request = Request(str(self._path), key, wanted.system or "", wanted.k, folder, self.writes)
        return await ask_system(request, report)

    def evaluate_run(self, wanted: Wanted) -> Found:
        """Evaluate a run file.

        Raises:
            CranfieldError: test set, run or measures, with all their problems.
        """
        return self._score(self.experiment(wanted), self._run_file(wanted.run or ""))

    def _score(self, experiment: Experiment, path: Path) -> Found:
        return self.memory.keep(experiment.evaluate(path), experiment.options)

    def get(self, ref: str) -> Found:
        """A result by its reference.

        Raises:
            UnknownNameError: there is none.
        """
        return self.memory.get(ref)

    async def compare(self, baseline: str, candidate: str, declared: Declared, report: Report) -> Found:  # noqa: ARG002
        """Compare two evaluations.

        Raises:
            UsageError: they do not belong together.
        """
        from anyio import to_thread

        return await to_thread.run_sync(self._compare, baseline, candidate, declared, abandon_on_cancel=True)

    def _compare(self, baseline: str, candidate: str, declared: Declared) -> Found:
        from cranfield.evaluation.compare import compare
        from cranfield.measures import parse
        from cranfield.project.recipe import with_measure

        sides = [self.get(ref) for ref in (baseline, candidate)]
        first, second = (with_measure(side.evaluation, declared.measure) for side in sides)
        if first.name == second.name:
            first, second = (
                replace(each, name=f"{each.name} ({ref})") for each, ref in ((first, baseline), (second, candidate))
            )
        primary = parse(declared.measure) if declared.measure else sides[0].primary
        options = replace(sides[0].options, primary=primary, **declared.given())  # type: ignore[arg-type]
        return self.memory.keep(compare(first, second, options), options)


def _may_be_run(path: Path) -> bool:
    """Whether a file below the folder has the name of a run, and is not hidden."""
    return path.suffix in RUN_SUFFIXES and not any(part.startswith(".") for part in path.parts)


def with_wanted(experiment: Experiment, wanted: Wanted) -> Experiment:
    """The experiment with the measures of a call; the first is the primary one, unless another is named."""
    measures: Sequence[str] | None = wanted.measures or experiment.measures
    primary = wanted.primary or (wanted.measures[0] if wanted.measures else experiment.primary_spelling)
    return replace(experiment, measures=measures, primary_spelling=primary, k=wanted.k or experiment.k)
