"""The whole job behind `cranfield grid`: every point collected, the best chosen on some queries and judged on the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.config import load_config
from cranfield.config.grid import Point, grid_points, with_systems
from cranfield.config.models import HELD_OUT, GridConfig
from cranfield.errors import UsageError, unknown_name
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.grid import GridResult, ScoredPoint, choose_point
from cranfield.evaluation.result import evaluations_of
from cranfield.model import Run, TestSet, is_in_stratum
from cranfield.project.experiment import AnswerCache, Experiment, prepare
from cranfield.project.loading import NO_OVERRIDES, SetOverrides, with_held_out
from cranfield.project.output_folder import REPORT_FILES, require_folder
from cranfield.reporting import Document, save_reports
from cranfield.reporting.documents.grid import grid_document
from cranfield.testsets.drawing import check_keys, stratum
from cranfield.testsets.split import only, part, split
from cranfield.words import n_of


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
    """Of the winner and of the config as written, on the held-out queries."""
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
    """Collect and score every point of a grid, choose_point the best of them, and write the report into `out`.

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
            "the config has no grid", path=str(config_path), hint="say `grid: {system: NAME, over: {PLACE: [VALUES]}}`."
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
            notes = (f"{n_of(n, 'queries')} that the test set holds back had a say in the choice",)
    elif stored is not None:
        held_out = set(part(testset, "held-out").query_ids)
        how = "those that the test set holds back"
    else:
        share = HELD_OUT if grid.held_out is None else grid.held_out
        drawn = split(testset, share=share, seed=grid.seed)
        held_out = set(drawn.held_out)
        within = f" within {', '.join(drawn.by)}" if drawn.by else ""
        how = f"drawn{within}, share {share:g}, seed {grid.seed}"
    tuning = set(testset.query_ids) - held_out
    if not tuning or not held_out:
        raise UsageError(
            f"{n_of(len(held_out), 'queries')} held out of {len(testset.queries)}",
            expected="at least one query in either part",
        )
    sentence = (
        f"chosen on {n_of(len(tuning), 'queries')}, judged on the {len(held_out)} others ({how}); no query is in both"
    )
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
            f"{n_of(n, 'points')} of {n + len(points)} come to the same system as another, and are not asked again: "
            "rrf_k says nothing to sum, normalise nothing to rrf, and neither to one part alone"
        ),
    )
