"""Files of pools: runs in every format that is scored, under the ids of a test set; and the test set a book's pool was made over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.errors import InputError, Problem, UsageError
from cranfield.formats.io.files import stem
from cranfield.model import Run, TestSet, convention_named
from cranfield.project.runs_by_name import with_ids
from cranfield.ranking.stored import read_first_results, without_identical_ids

if TYPE_CHECKING:
    from cranfield.judging.pools.build import BuiltPool
    from cranfield.judging.pools.request import PoolRequest
    from cranfield.judging.pools.results import SystemResults


def named_file(spec: str) -> tuple[str, Path]:
    """Name and path of `NAME=FILE`; an empty name where the text is a path.

    Raises:
        UsageError: there is no name before the `=`.
    """
    name, equals, place = spec.partition("=")
    if not equals or Path(spec).exists():
        return "", Path(spec)
    if not name.strip() or not place:
        raise UsageError("a run without a name or a file", got=repr(spec), expected="NAME=FILE")
    return name.strip(), Path(place)


def read_systems(
    specs: Sequence[str], testset: TestSet | None = None, convention: str = "trec", depth: int | None = None
) -> tuple[SystemResults, ...]:
    """Read runs, all of their queries, each under a name of its own.

    Args:
        specs: `FILE` or `NAME=FILE`.
        testset: under whose ids queries are named, where a run names them by another rule; None: as in the run.
        convention: order of a file, ties and duplicates.
        depth: ranks that are needed of each query; None: all.

    Raises:
        InputError: with the problems of all files.
        UsageError: a name is missing, or given twice.
    """
    from cranfield.judging.pools.results import with_names
    from cranfield.judging.pools.rule_view import named_by_place

    convention_named(convention)
    if [spec for _, spec in map(named_file, specs)].count(Path("-")) > 1:
        raise UsageError("standard input (-) is named more than once", expected="at most one of the files to be -")
    runs: list[tuple[str, str, Run, str]] = []
    problems: list[Problem] = []
    for name, path in map(named_file, specs):
        try:
            deeper = depth is not None and testset is not None and testset.matching.ignore_identical_ids
            run, digest = read_first_results(path, None, convention, depth + 1 if deeper and depth else depth)
            if testset is not None:  # a rule is asked about results as they are
                run = named_by_place(replace(testset, targets={}), with_ids(testset, run)[0])
                if testset.matching.ignore_identical_ids:
                    run = without_identical_ids(run)
            runs.append((name, stem(path), run, digest))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return with_names(runs)


def earlier_set(source: Mapping[str, object]) -> TestSet | None:
    """The test set that a book's pool was made over, as its file is now; None where no file is noted, or it is not there.

    Raises:
        TestSetError: the file cannot be read as one.
    """
    from cranfield.options.testset import TestSetOptions
    from cranfield.project.loading import load

    file, queries = (str(source.get(key) or "") for key in ("testset_file", "queries_file"))
    if not file or not Path(file).exists():
        return None
    return load(file, options=TestSetOptions(queries=Path(queries) if queries else None))


def pool_of(specs: Sequence[str], testset: TestSet | None, request: PoolRequest, convention: str = "trec") -> BuiltPool:
    """A pool of run files; see `build_pool`. What a rule of the test set matches is graded by the rater `rule`.

    Args:
        specs: `FILE` or `NAME=FILE`.
        testset: queries, and what is judged of them; None: the queries of the runs.
        request: depth, samples, budget.
        convention: order of a file, ties and duplicates.
    """
    from cranfield.judging.pools.build import build_pool
    from cranfield.judging.pools.rule_view import rule_view

    systems = read_systems(specs, testset, convention, request.last)
    if testset is None or not testset.targets:
        return build_pool(systems, testset, request)
    view = rule_view(testset, [system.run for system in systems])
    named = [
        replace(system, run=run, given_digest=system.digest) for system, run in zip(systems, view.runs, strict=True)
    ]
    return build_pool(named, testset, request, view.prefilled)
