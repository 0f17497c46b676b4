"""Asking systems the queries of a test set: everything between a config and the runs, for whichever command needs them.

Nothing is loaded here and nothing is scored but the dry evaluation, which finds out beforehand what a test set allows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cranfield.config import Config, SetConfig
from cranfield.errors import UnknownNameError, UsageError
from cranfield.evaluation.compare import CompareOptions
from cranfield.evaluation.values import Evaluation, Limits
from cranfield.formats.io.files import refusal
from cranfield.measures import Measure, parse_all
from cranfield.model import Answer, Outcome, Run, TestSet
from cranfield.project.local import FOLDER, local_folder
from cranfield.project.recipe import evaluate, load, with_primary
from cranfield.project.testset_options import TestSetOptions
from cranfield.systems import CollectOptions, ConfiguredSystem, PassedCheck, Progress, collect_all, progress_on
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.fusion import FusionSystem

AT_A_TIME = 200
"""Systems that are collected side by side; more follow in groups of so many, because each holds a file open."""
FILES = ("results.json", "report.html", "report.md")
"""What is written into the folder of the results, beside the runs."""
ANSWERS = "answers"
"""Folder of the answers that are kept, in the folder of what is kept beside a config."""


@dataclass(frozen=True)
class Prepared:
    """A test set of a config, and what is declared about it before the numbers are seen."""

    testset: TestSet
    said: SetConfig
    k: int
    convention: str
    dry: Evaluation
    """What it would be if no system found anything."""
    options: CompareOptions

    def evaluated(self, run: Run, testset: TestSet | None = None) -> Evaluation:
        """A run, scored as the config says; on part of the test set where one is given."""
        scored = evaluate(testset or self.testset, run, measures=self.said.measures, convention=self.convention)
        return with_primary(scored, self.said.primary)


def prepared(config: Config, *, of: str | None = None, seed: int = 0, allow_drift: bool = False) -> Prepared:
    """The test set of a config, loaded and found to allow the measures.

    Args:
        config: what was loaded.
        of: which of its test sets, where it has several.
        seed: of everything random.
        allow_drift: go on with a test set that is no longer true of its repository.

    Raises:
        InputError: the test set, with all its problems.
        UsageError: which test set is not said, or there is none of that name.
    """
    said = _chosen(config, of)
    repo = None if said.repo is None else config.folder / said.repo
    testset = load(
        config.folder / said.path, options=TestSetOptions(repo=repo, allow_drift=allow_drift and repo is not None)
    )
    unanswered = Run("none", {query_id: Answer(Outcome.EMPTY) for query_id in testset.query_ids})
    dry = with_primary(
        evaluate(testset, unanswered, measures=said.measures, convention=config.convention), said.primary
    )
    primary: Measure = parse_all([said.primary])[0] if said.primary is not None else dry.measures[0]
    options = CompareOptions(
        primary=primary,
        test=config.test,
        alpha=config.alpha,
        margin=config.margin,
        seed=seed,
        limits=Limits(config.limits.max_failed_share, config.limits.min_judged_share),
    )
    return Prepared(testset, said, said.k or config.k, config.convention, dry, options)


def collect_options(config: Config, *, keep: bool = True, refresh: bool = False) -> CollectOptions:
    """How systems are asked, as the config says.

    Args:
        config: what was loaded.
        keep: use answers that were kept, and keep the new ones, in `.cranfield/` beside the config.
        refresh: use none that were kept.
    """
    said = config.collect
    kept = keep and said.cache_h != 0
    if kept:
        with suppress(UsageError):  # what is kept there can be read all the same; what is not written is said then
            local_folder(config.folder)
    return CollectOptions(
        warm_up=said.warm_up,
        repeats=said.repeats,
        seed=said.seed,
        cache_dir=config.folder / FOLDER / ANSWERS if kept else None,
        cache_h=said.cache_h,
        refresh=refresh,
    )


def ask(  # noqa: PLR0913 - each is a choice, and is typed by name
    testset: TestSet,
    systems: Sequence[ConfiguredSystem],
    config: Config,
    out_dir: Path,
    *,
    k: int | None = None,
    pilot: bool = False,
    options: CollectOptions | None = None,
    held: Sequence[PassedCheck] | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, Run], tuple[PassedCheck, ...]]:
    """Check the systems, ask them every query, and end what they started.

    Args:
        testset: whose queries are asked.
        systems: what is measured; names differ.
        config: says how systems are asked.
        out_dir: folder of `runs/`.
        k: results asked for; None is the config's.
        pilot: stamp the runs as not for the record.
        options: how they are asked; None is as the config says.
        held: what a preflight before has found; None makes it now.
        progress: told of each answer; on stderr by default.

    Returns:
        System name to run, in the order of `systems`; and the checks that held.

    Raises:
        PreflightError: a check did not hold; no query was run.
        Interrupted: cut short; the same call goes on from there.
    """
    k = k or config.k
    options = options or collect_options(config)
    progress = progress or progress_on(sys.stderr)
    try:
        checks = tuple(held) if held is not None else preflight(each_once(systems), k=k)
        runs: dict[str, Run] = {}
        for start in range(0, len(systems), AT_A_TIME):
            group = systems[start : start + AT_A_TIME]
            runs |= collect_all(testset, group, out_dir=out_dir, k=k, pilot=pilot, options=options, progress=progress)
        return runs, checks
    finally:
        for system in systems:
            system.close()


def each_once(systems: Sequence[ConfiguredSystem]) -> list[ConfiguredSystem]:
    """Those to be checked beforehand: a fusion whose parts are all checked with another has nothing else to check."""
    found: list[ConfiguredSystem] = []
    parts: set[int] = set()
    for system in systems:
        own = {id(part) for part in system.active_parts.values()} if isinstance(system, FusionSystem) else set()
        if not own or not own <= parts:
            found.append(system)
        parts |= own
    return found


def require_folder(out: Path) -> None:
    """Refuse, before anything is asked, an output folder that can never be one.

    Raises:
        UsageError: a file is in the way.
    """
    try:
        in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    if in_the_way is not None:
        raise UsageError("this is a file", path=str(in_the_way), expected="a folder for the results, --out")


def _chosen(config: Config, of: str | None) -> SetConfig:
    sets = config.sets
    if config.testsets is None:
        if of is not None:
            raise UsageError(f"--testset is {of}", expected="none: the config has one test set")
        return sets[""]
    if of is None:
        raise UsageError(f"the config has {len(sets)} test sets", expected=f"--testset with one of {', '.join(sets)}")
    if of not in sets:
        raise UnknownNameError.among("test set", of, sets)
    return sets[of]
