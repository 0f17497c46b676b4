"""Grids of parameters, and the contribution of the components of a hybrid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.app.experiment import AnswerCache, Experiment, prepare
from cranfield.app.loading import NO_OVERRIDES, SetOverrides, with_held_out
from cranfield.app.run import REPORT_FILES, require_folder
from cranfield.base.errors import Problem, UnknownNameError, UsageError, unknown_name
from cranfield.base.words import count_noun
from cranfield.config import Config, SystemConfig, load_config
from cranfield.config.grid import Point, grid_points, with_systems
from cranfield.config.models import HELD_OUT, GridConfig
from cranfield.config.systems import FusionConfig
from cranfield.evaluation.contribution import Contributions, contributions
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.grid import GridResult, ScoredPoint, choose_point
from cranfield.evaluation.latency import calls_of
from cranfield.evaluation.result import evaluations_of
from cranfield.evaluation.testset.split import check_keys, only, part, split, stratum
from cranfield.model import Run, Scalar, TestSet, is_in_stratum
from cranfield.reporting import Document, save_reports
from cranfield.reporting.documents.comparison import contribution_document
from cranfield.reporting.documents.grid import grid_document


@dataclass(frozen=True)
class ComponentVariants:
    """The systems that a system with components is measured as."""

    systems: Mapping[str, SystemConfig]
    """Name to config; each is called once."""
    whole: str
    alone: Mapping[str, str]
    """Component to the name of the variant with nothing else."""
    without: Mapping[str, str]
    """Component to the name of the variant with all the others."""


@dataclass(frozen=True)
class ComponentsJob:
    """What `run_components` made."""

    document: Document
    result: Contributions
    void_reasons: tuple[str, ...]
    """Why the result of the whole system is void; empty where it is not."""
    written: tuple[Path, ...]


def run_components(
    name: str,
    config_path: Path,
    *,
    out: Path,
    testset: str | None = None,
    seed: int = 0,
    pilot: bool = False,
    cache: AnswerCache = "use",
    overrides: SetOverrides = NO_OVERRIDES,
) -> ComponentsJob:
    """Collect and score all components, each alone, and all but each; write the report into `out`.

    Args:
        name: of a system with `components`, or of a fusion.
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`.
        testset: which one, where the config has several.
        seed: of everything random.
        pilot: mark everything made as not for the record.
        cache: what is done with the answers of earlier runs.
        overrides: options of the test set, in place of those of the config.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: the system has no components.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = load_config(config_path)
    variants = variants_of(config, name)
    require_folder(out)
    varied, chosen = with_systems(config, variants.systems), config.set_name(testset)
    experiment = prepare(varied, chosen, list(variants.systems), seed=seed, cache=cache, overrides=overrides)
    _require_free(variants, experiment)
    with experiment.collected(out, pilot=pilot) as runs:
        scored = {variant: experiment.evaluate(run) for variant, run in runs.items()}
        result = contributions(
            name,
            scored[variants.whole],
            {component: scored[variant] for component, variant in variants.alone.items()},
            {component: scored[variant] for component, variant in variants.without.items()},
            experiment.options,
        )
        evaluations, checked = tuple(scored.values()), experiment.check_rows
        document = contribution_document(result, lambda: calls_of(evaluations, preflight=checked))
        written = save_reports(document, out, REPORT_FILES)
        broken = void_sentences(inspect_systems([scored[variants.whole]], result.primary, experiment.options.limits))
        return ComponentsJob(document, result, broken, written)


def variants_of(config: Config, name: str) -> ComponentVariants:
    """All components, each alone, and all but each; of two components, alone and all but one are the same.

    The components of a fusion are its parts: a variant has weight 0 for the others.

    Raises:
        UnknownNameError: there is no such system.
        UsageError: it has no components, or fewer than two.
    """
    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    system = config.systems[name]
    components = components_of(system)
    if len(components) < 2:
        raise UsageError(
            f"system {name} has no components",
            expected="a fusion of two parts with a weight, or a system that lists its `components`",
        )
    alone = {component: f"{name}.only-{component}" for component in components}
    if len(components) == 2:
        without = {first: alone[other] for first, other in (components, components[::-1])}
    else:
        without = {component: f"{name}.without-{component}" for component in components}
    systems = {f"{name}.all": system}
    systems |= {alone[part]: with_only(system, [part]) for part in components}
    systems |= {
        without[part]: with_only(system, [other for other in components if other != part]) for part in components
    }
    return ComponentVariants(systems, f"{name}.all", alone, without)


def components_of(system: SystemConfig) -> list[str]:
    """Names of the components of a system: of a fusion, the parts with a weight; empty where it has none."""
    if isinstance(system, FusionConfig):
        return [part for part in system.fusion.of if system.fusion.weights.get(part, 1.0) > 0]
    return list(dict.fromkeys(system.components or []))


def with_only(system: SystemConfig, on: Collection[str]) -> SystemConfig:
    """The same system with some components on and the others off."""
    components = components_of(system)
    if isinstance(system, FusionConfig):
        off = dict.fromkeys((part for part in components if part not in on), 0.0)
        fusion = system.fusion.model_copy(update={"weights": {**system.fusion.weights, **off}})
        return system.model_copy(update={"fusion": fusion})
    switches: dict[str, Scalar] = {"components": ",".join(part for part in components if part in on)}
    switches |= {part: part in on for part in components}
    return system.model_copy(update={"params": {**system.params, **switches}})


def _require_free(variants: ComponentVariants, experiment: Experiment) -> None:
    """Refuse parameters that would switch components."""
    whole = variants.systems[variants.whole]
    if isinstance(whole, FusionConfig):
        return
    switches = {"components", *variants.alone}
    given = {
        "the system": whole.params,
        "the test set": experiment.params,
        **{f"query {query.id}": query.params for query in experiment.testset.queries},
    }
    problems = [
        Problem(
            f"{giver} sets the parameter {name}, which switches a component on or off", hint="rename the parameter."
        )
        for giver, params in given.items()
        for name in sorted(switches & set(params))
    ]
    if problems:
        raise UsageError(problems)


@dataclass(frozen=True)
class Halves:
    """A test set parted in two, and how."""

    tuning: TestSet
    held_out: TestSet
    sentence: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GridJob:
    """What `run_grid` made."""

    document: Document
    result: GridResult
    void_reasons: tuple[str, ...]
    """Why the result of the winner, or of the config as written, is void on the held-out queries; empty where neither
    is."""
    written: tuple[Path, ...]


def run_grid(
    config_path: Path,
    *,
    out: Path,
    testset: str | None = None,
    seed: int = 0,
    pilot: bool = False,
    cache: AnswerCache = "use",
    overrides: SetOverrides = NO_OVERRIDES,
) -> GridJob:
    """Collect and score every point of a grid, choose the best of them, and write the report into `out`.

    Args:
        config_path: cranfield.yaml with a `grid:` block.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`.
        testset: which one, where the config has several.
        seed: of the tests; the draw of the held-out queries has its own, in the config.
        pilot: mark everything made as not for the record.
        cache: what is done with the answers of earlier runs.
        overrides: options of the test set, in place of those of the config.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: there is no grid, or nothing that can be held out.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = load_config(config_path)
    if config.grid is None:
        raise UsageError(
            "the config has no grid",
            path=str(config_path),
            hint="write `grid: {system: NAME, over: {PLACE: [VALUES]}}`.",
        )
    grid = config.grid
    require_folder(out)
    points = grid_points(config, grid)
    configs = {grid.system: config.systems[grid.system]} | {point.name: point.system for point in points}
    name = config.set_name(testset)
    every = with_held_out(config.sets[name].options, overrides)
    experiment = prepare(with_systems(config, configs), name, list(configs), seed=seed, cache=cache, overrides=every)
    halves = halves_of(experiment.testset, grid)
    with experiment.collected(out, pilot=pilot) as runs:
        scored = [_scored(point, runs[point.name], experiment, halves) for point in points]
        as_written = next((point for point in scored if point.name == grid.system), None)
        if as_written is None:  # the settings of the config are not a point of the grid
            as_written = _scored(
                Point(grid.system, {}, config.systems[grid.system]), runs[grid.system], experiment, halves
            )
        choice = choose_point(
            grid.system,
            scored,
            as_written,
            experiment.options,
            split=halves.sentence,
            keys=tuple(grid.over),
            notes=(*halves.notes, *_about_same(points)),
        )
        document = grid_document(choice, preflight=experiment.check_rows)
        written = save_reports(document, out, REPORT_FILES)
        broken = void_sentences(
            inspect_systems(evaluations_of(choice.judged), choice.result.primary, experiment.options.limits)
        )
        return GridJob(document, choice.result, broken, written)


def halves_of(testset: TestSet, grid: GridConfig) -> Halves:
    """Part a test set: by a stratum that is named, else as it is stored, else by a seeded draw within the strata.

    Raises:
        UsageError: one of the parts would be empty, or no query has the stratum.
    """
    stored = testset.meta.split
    notes: tuple[str, ...] = ()
    if isinstance(grid.held_out, str):
        key, _, value = (part.strip() for part in grid.held_out.partition("="))
        check_keys(testset, [key])
        values = {str(found) for query in testset.queries if (found := stratum(query, key)) is not None}
        held_out = {query.id for query in testset.queries if is_in_stratum(query, key, value)}
        if not held_out:
            raise UsageError(unknown_name(f"value of {key} in grid.held_out", value, values))
        how = f"those of stratum {key}={value}"
        if stored is not None and set(stored.held_out) - held_out:
            n = len(set(stored.held_out) - held_out)
            notes = (f"{count_noun(n, 'queries')} that the test set holds out were used for the choice",)
    elif stored is not None:
        held_out = set(part(testset, "held-out").query_ids)
        how = "the held-out queries of the test set"
    else:
        share = HELD_OUT if grid.held_out is None else grid.held_out
        drawn = split(testset, share=share, seed=grid.seed)
        held_out = set(drawn.held_out)
        within = f" within {', '.join(drawn.by)}" if drawn.by else ""
        how = f"drawn{within}, share {share:g}, seed {grid.seed}"
    tuning = set(testset.query_ids) - held_out
    if not tuning or not held_out:
        raise UsageError(
            f"{count_noun(len(held_out), 'queries')} held out of {len(testset.queries)}",
            expected="at least one query in each part",
        )
    sentence = f"chosen on {count_noun(len(tuning), 'queries')}, judged on the {len(held_out)} others ({how}); no query is in both"
    return Halves(_named(testset, tuning, "tuning"), _named(testset, held_out, "held out"), sentence, notes)


def _named(testset: TestSet, query_ids: Collection[str], name: str) -> TestSet:
    return replace(only(testset, query_ids), name=f"{testset.name} ({name})")


def _scored(point: Point, run: Run, experiment: Experiment, halves: Halves) -> ScoredPoint:
    """A point with its run scored on both parts."""
    tuning, held_out = (experiment.evaluate(_on(run, part), part) for part in (halves.tuning, halves.held_out))
    return ScoredPoint(point.name, point.settings, tuning, held_out, point.same)


def _on(run: Run, testset: TestSet) -> Run:
    """The answers to the queries of one part."""
    ids = testset.query_ids
    return replace(
        run,
        answers={query_id: run.answers[query_id] for query_id in ids},
        logs={query_id: run.logs[query_id] for query_id in ids if query_id in run.logs},
        testset_digest=testset.digest,
    )


def _about_same(points: list[Point]) -> tuple[str, ...]:
    n = sum(len(point.same) for point in points)
    if not n:
        return ()
    return (
        (
            f"{count_noun(n, 'points')} of {n + len(points)} are equivalent to another point, and are not run again: "
            "rrf_k has no effect on sum, normalise has none on rrf, and neither has an effect on a single part"
        ),
    )
