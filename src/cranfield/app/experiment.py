"""An experiment: the test set, systems and options of a config, collected, scored and compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from cranfield.app.evaluate import evaluate_with_options, with_measure
from cranfield.app.history import FOLDER, check_local, local_folder
from cranfield.app.loading import NO_OVERRIDES, SetOverrides, load_file, options_of
from cranfield.app.runs_by_name import read_for
from cranfield.base.errors import InputError, PreflightError, TestSetError, UsageError
from cranfield.config import Config
from cranfield.config.models import SetConfig
from cranfield.evaluation.classes import deciding_key
from cranfield.evaluation.options.blocks import CollectOptions, CompareOptions, ScoringOptions
from cranfield.evaluation.testset.split import evaluated_part
from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure, parse
from cranfield.model import Answer, Outcome, Query, Run, Scalar, TestSet
from cranfield.systems import ConfiguredSystem, PassedCheck, Progress, build_systems, progress_on
from cranfield.systems.collect.collection import collect, collected
from cranfield.systems.collect.collector import is_queried, require_texts
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.build import systems_to_check
from cranfield.systems.kinds.run_file import run_file_systems

ANSWERS = "answers"
"""Folder of the answer cache, in `.cranfield/` next to the config."""
ZERO = ScoringOptions(missing="zero", failed="zero")
AnswerCache = Literal["use", "refresh", "off"]
"""Answers of earlier runs are used; replaced by new ones; or neither used nor kept."""


@dataclass(frozen=True)
class Experiment:
    """Systems under test on one test set: ready to be collected from and scored."""

    testset: TestSet
    systems: Sequence[ConfiguredSystem]
    k: int = 10
    """Results requested for each query."""
    measures: Sequence[str] | None = None
    """None is the default list."""
    scoring: ScoringOptions = ZERO
    """How runs are scored. A query without an answer counts as 0, whatever the convention: a system must not gain by not
    answering."""
    given: SetOverrides = NO_OVERRIDES
    """Options of the test set, and of the call."""
    declared: CompareOptions = field(default_factory=CompareOptions)
    """What is declared before the numbers are seen; without a primary measure, the first one is."""
    collecting: CollectOptions = field(default_factory=CollectOptions)
    name: str = ""
    """Name of the test set in a config with several."""
    params: Mapping[str, Scalar] = field(default_factory=dict)
    """Sent to the systems with every query."""

    @cached_property
    def dry(self) -> Evaluation:
        """The evaluation of a run without results: shows which measures the test set allows."""
        return replace(self, scoring=replace(self.scoring, missing="zero", failed="zero")).evaluate(
            Run("none", {query_id: Answer(Outcome.EMPTY) for query_id in self.testset.query_ids})
        )

    @cached_property
    def options(self) -> CompareOptions:
        """What is declared before the numbers are seen."""
        return replace(self.declared, primary=self.primary.canonical)

    @cached_property
    def primary(self) -> Measure:
        """The measure that decides.

        Raises:
            TestSetError: no measure has a value, because no query is judged.
        """
        if self.declared.primary is not None:
            return parse(self.declared.primary)
        if not self.dry.measures:
            raise TestSetError(
                f"no measure has a value on the test set {self.testset.name}: {'; '.join(self.dry.warnings)}",
                expected="a query with a judgment",
            )
        return self.dry.measures[0]

    def check(self) -> None:
        """Refuse what the test set does not allow.

        Raises:
            InputError: no query is judged, or strata that it does not have.
            UsageError: a measure that no query allows.
        """
        _ = self.dry
        deciding_key(self.testset, self.declared, self.primary)

    @cached_property
    def checks(self) -> tuple[PassedCheck, ...]:
        """The preflight checks of the systems, run once.

        Raises:
            PreflightError: with every check that failed.
            TestSetError: queries have no text to send.
        """
        if any(map(is_queried, self.systems)):
            require_texts(self.testset)
        note = progress_on(sys.stderr).note
        return preflight(systems_to_check(self.systems), k=self.k, sample=self.sample, note=note)

    @property
    def sample(self) -> Query | None:
        """The first query: sent where a rule on answers has no probe to be checked on."""
        return next(iter(self.testset.queries), None)

    @property
    def check_rows(self) -> list[tuple[str, str, str]]:
        """System, check and finding, as reports list them."""
        return [(check.system, check.check, check.found) for check in self.checks]

    def collect(
        self, out: Path | None = None, *, pilot: bool = False, progress: Progress | None = None
    ) -> dict[str, Run]:
        """As `collected`, where the runs are all that is wanted.

        Args:
            out: as of `collected`; None keeps the runs in memory.
            pilot: as of `collected`.
            progress: as of `collected`.
        """
        if out is not None:
            with self.collected(out, pilot=pilot, progress=progress) as runs:
                return runs
        try:
            _ = self.checks
            return {system.name: collect(self.testset, system, k=self.k) for system in self.systems}
        finally:
            self.close()

    @contextmanager
    def collected(
        self, out: Path, *, root: Path | None = None, pilot: bool = False, progress: Progress | None = None
    ) -> Iterator[dict[str, Run]]:
        """Check the systems, send them every query, and close them; the answers are kept until the block has ended.

        Args:
            out: output folder, for `runs/` and what an interrupted call continues from.
            root: the folder that the user named, where the output folder is in it.
            pilot: mark the runs as not for the record.
            progress: None shows it on stderr.

        Yields:
            System name to run, in the order of `systems`.

        Raises:
            PreflightError: a check failed; no query was sent.
            Interrupted: the same call continues where it stopped.
        """
        with ExitStack() as stack:
            try:
                _ = self.checks
                if self.collecting.cache_dir is not None:
                    with suppress(UsageError):  # a cache that cannot be written can be read; what is not kept is noted
                        local_folder(self.collecting.cache_dir.parents[1])
                collection = collected(
                    self.testset,
                    self.systems,
                    out_dir=out,
                    root=root,
                    k=self.k,
                    pilot=pilot,
                    options=self.collecting,
                    progress=progress or progress_on(sys.stderr),
                )
                runs = stack.enter_context(collection)
            finally:
                self.close()
            yield runs

    def evaluate(
        self,
        run: Run | Path,
        testset: TestSet | None = None,
        *,
        run_format: str | None = None,
        name: str | None = None,
    ) -> Evaluation:
        """Score a run; on a part of the test set where one is given.

        Args:
            run: answers, or a file.
            testset: the part; None: all queries.
            run_format: of a file; None: detected from the content.
            name: of the system; None: that of the run.
        """
        scoring = replace(self.scoring, run_format=run_format, name=name)
        scored = evaluate_with_options(testset or self.testset, run, self.measures, scoring)
        return with_measure(scored, self.declared.primary)

    def close(self) -> None:
        """Stop what the systems started."""
        for system in self.systems:
            system.close()


def prepare(  # noqa: PLR0913 - each is an option of a command, and is typed by name
    config: Config,
    name: str,
    systems: Sequence[str],
    *,
    seed: int = 0,
    allow_drift: bool = False,
    cache: AnswerCache = "use",
    overrides: SetOverrides = NO_OVERRIDES,
    isolated: bool = True,
    judged: bool = True,
) -> Experiment:
    """Load a test set of a config, build systems for it, and check that it allows the measures.

    Args:
        config: from `load_config`.
        name: of the test set; empty where the config has one.
        systems: their names, in the order they are reported.
        seed: of everything random.
        allow_drift: accept a test set that no longer matches its repository.
        cache: what is done with the answers of earlier runs.
        overrides: what the call gives in place of the block `options`.
        isolated: functions are called in processes of their own, which cannot end or change this one.
        judged: False where nothing is scored: a list of queries without judgments is a test set too.

    Raises:
        InputError: the test set, with all its problems.
        UnknownNameError: there is no such system.
    """
    chosen = config.sets[name]
    check_local(config.folder)
    given = options_of(chosen.options, config.folder, overrides)
    testset = load_configured(config, name, given, allow_drift=allow_drift, judged=judged)
    built = experiment_on(testset, config, chosen, systems, seed=seed, cache=cache, isolated=isolated)
    scoring = replace(built.scoring, depth=given.depth)
    experiment = replace(built, name=name, given=given, scoring=scoring, measures=given.measures or built.measures)
    if given.measures:
        experiment = replace(experiment, k=config.results_requested(chosen, given.measures))
    if given.keep_going:
        experiment = replace(experiment, collecting=replace(experiment.collecting, keep_going=True))
    if judged:
        experiment.check()
    return experiment


def experiment_on(
    testset: TestSet,
    config: Config,
    chosen: SetConfig,
    systems: Sequence[str],
    *,
    seed: int = 0,
    cache: AnswerCache = "use",
    isolated: bool = True,
) -> Experiment:
    """Build systems for a test set that is loaded, whether the config has it or not.

    Args:
        testset: with its options applied.
        config: from `load_config`.
        chosen: settings of the test set.
        systems: as of `prepare`.
        seed: as of `prepare`.
        cache: as of `prepare`.
        isolated: as of `prepare`.
    """
    built = {system.name: system for system in build_systems(config, systems, chosen.params, isolated=isolated)}
    for stored in run_file_systems(built.values()):
        stored.read = partial(read_for, testset, config.scoring().convention_name)
    return Experiment(
        testset,
        [built[system] for system in systems],
        k=config.results_requested(chosen),
        measures=chosen.measures,
        scoring=replace(config.scoring(), missing="zero", failed="zero"),
        declared=config.comparing(chosen, seed=seed),
        collecting=collect_options(config, cache),
        params=chosen.params,
    )


def load_configured(
    config: Config, name: str, given: SetOverrides | None = None, *, allow_drift: bool, judged: bool = True
) -> TestSet:
    """A test set of a config, with its repository and its options; of a stored split the evaluated part.

    Args:
        config: from `load_config`.
        name: of the test set; empty where the config has one.
        given: its options; None: those of the config.
        allow_drift: accept a test set that no longer matches its repository.
        judged: as of `prepare`.
    """
    chosen = config.sets[name]
    given = options_of(chosen.options, config.folder) if given is None else given
    repo = None if chosen.repo is None else config.folder / chosen.repo
    # A config names no repository that must be committed: uncommitted changes are the first caveat of its results.
    with_repo = repo is not None
    options = replace(given.options, repo=repo, allow_drift=allow_drift and with_repo, allow_dirty=with_repo)
    mapping = None if options.map else chosen.mapping
    testset = load_file(config.folder / chosen.path, options=options, mapping=mapping, judged=judged)
    return testset if options.part is not None else evaluated_part(testset)


def require_one_set(config: Config, overrides: SetOverrides) -> None:
    """Refuse options that are about one test set where the config has several.

    Raises:
        UsageError: other judgments or texts for several test sets.
    """
    names = [name for name in ("qrels", "queries") if getattr(overrides.options, name) is not None]
    if names and len(config.sets) > 1:
        options = ", ".join(f"{{{name}}}" for name in names)
        hint = "name it in the config, in the block `options` of the test set."
        message = f"{options} applies to one test set, but the config has {len(config.sets)}"
        raise UsageError(message, hint=hint, parameters=tuple(names))


@contextmanager
def prepare_all(
    prepare_set: Callable[[str], Experiment], names: Iterable[str], check: Callable[[Experiment], object]
) -> Iterator[list[Experiment]]:
    """Prepare an experiment for each test set, and close them all at the end.

    Args:
        prepare_set: from the name of a test set to its experiment.
        names: of the test sets.
        check: further checks of an experiment.

    Raises:
        InputError: with the problems of every test set.
        PreflightError: with every failed check, where nothing else is wrong.
    """
    experiments: list[Experiment] = []
    errors: list[InputError | PreflightError] = []
    try:
        for name in names:
            try:
                experiments.append(prepare_set(name))
                check(experiments[-1])
            except (InputError, PreflightError) as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            kind = PreflightError if all(isinstance(error, PreflightError) for error in errors) else TestSetError
            raise kind(list(dict.fromkeys(problem for error in errors for problem in error.problems)))
        yield experiments
    finally:
        for experiment in experiments:
            experiment.close()


def collect_options(config: Config, cache: AnswerCache = "use") -> CollectOptions:
    """How systems are queried, as the config says."""
    settings = config.collecting()
    is_kept = cache != "off" and settings.cache_h > 0
    folder = config.folder / FOLDER / ANSWERS if is_kept else None
    return replace(settings, cache_dir=folder, cache_root=config.folder, refresh=cache == "refresh")
