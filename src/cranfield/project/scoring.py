"""Rank one run of any kind against a test set and score it: the path that every evaluation takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from cranfield.errors import NoCommonQueryError
from cranfield.evaluation.absence import forced_zeros
from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.evaluate import evaluate_ranking
from cranfield.evaluation.values import Evaluation
from cranfield.formats.sniff import sniff_run
from cranfield.measures import Measure
from cranfield.model import Convention, Run, TestSet, convention_named
from cranfield.options.scoring import ScoringOptions
from cranfield.project.inputs import RunLike
from cranfield.project.runs_by_name import ranked_by_name, with_ids
from cranfield.ranking import RankedRun, rank_file, rank_run
from cranfield.ranking.collected import cut_at
from cranfield.ranking.file import FileReading
from cranfield.ranking.join import no_common_query
from cranfield.ranking.value import Ranking
from cranfield.words import first_of, n_of, shown_id

TIES = {
    "descending": "to the larger document id",
    "expected": "in every order, and values are the means over them",
    "ascending": "to the smaller document id",
    "given": "as they stand in the run",
}
"""Where ties fall, for each rule of a convention."""


def score(
    testset: TestSet,
    run: RunLike | FileReading,
    measures: Sequence[Measure] | None = None,
    options: ScoringOptions | None = None,
) -> Evaluation:
    """Rank a run and compute the measures; None computes the default list.

    Raises:
        InputError: a file that cannot be read, or shares no query with the test set.
        UsageError: an unknown convention, or a measure that no query allows.
    """
    given, rules = (options or ScoringOptions()).resolved()
    path = Path(run) if isinstance(run, str | Path) else None
    found = None if path is None else sniff_run(path, given.run_format)
    if path is not None and found is not None and found.read is not None:
        from cranfield.formats.runs.files import read_whole

        run = read_whole(found, path)
    if isinstance(run, Mapping) and not _has_scores(run):
        from cranfield.formats.runs.mapping import run_of_mapping

        run = run_of_mapping(run, given.name or "run")
    if not isinstance(run, Run | Mapping | FileReading) and (found is None or found.name == "parquet"):
        from cranfield.ranking.memory import run_of_ranks

        run = run_of_ranks(run, given.columns, given.name) or run
    if isinstance(run, Run):
        return _score_collected(testset, run, measures, given, rules)
    given_run, trec_file = run, path if found is not None and found.name == "trec" else None
    by_name: tuple[str, ...] = ()
    try:
        ranked = _rank(testset, given_run, given, rules, trec_file=trec_file)
    except NoCommonQueryError as error:
        trec_file = run.path if isinstance(run, FileReading) else trec_file
        again = trec_file or given_run
        ranked, by_name = ranked_by_name(
            testset, lambda named: _rank(named, again, given, rules, trec_file=trec_file), error
        )
    ranked = replace(ranked, ranking=cut_at(ranked.ranking, given.depth))
    warnings = [*by_name, *_reader_caveats(ranked, rules)]
    evaluation = evaluate_ranking(
        testset,
        ranked.ranking,
        measures,
        name=given.name or ranked.name,
        run_digest=ranked.digest,
        extra_queries=ranked.extra_queries,
        warnings=warnings,
        reading=_reading(given),
        keep_undefined=given.keep_undefined,
    )
    trec_file = run.path if isinstance(run, FileReading) else trec_file
    if not ranked.narrow or by_name or trec_file is None or not trec_file.is_file():
        return evaluation
    rank = partial(_rank, testset, trec_file, replace(given, keep=0), trec_file=trec_file)
    return _with_narrow(evaluation, ranked.narrow, lambda narrow: rank(rules=narrow).ranking)


def _reader_caveats(ranked: RankedRun, rules: Convention) -> Iterable[str]:
    """Caveats of a run file or table."""
    yield from _extra_queries(ranked.extra_queries)
    if ranked.misranked:
        text = f"the rank column disagrees with the order by score in {n_of(len(ranked.misranked), 'queries')}"
        yield Caveat(f"{text} ({first_of(ranked.misranked)}); the score counts", CaveatKind.RANK_COLUMN)
    if ranked.n_tied:
        ties = f"{n_of(ranked.n_tied, 'results')} {'ties' if ranked.n_tied == 1 else 'tie'}"
        text = f"{ties} with the one before; ties fall {TIES[rules.ties]}"
        yield Caveat(text, CaveatKind.TIES, rules.ties)


def _with_narrow(evaluation: Evaluation, queries: Sequence[str], rank: Callable[[Convention], Ranking]) -> Evaluation:
    """The evaluation, with a caveat where scores that are equal at 32 bits alone matter."""
    if not queries:
        return evaluation
    from cranfield.evaluation.narrow import narrow_caveat

    return replace(evaluation, warnings=(*evaluation.warnings, *narrow_caveat(evaluation, rank)))


def _rank(
    testset: TestSet, run: RunLike | FileReading, given: ScoringOptions, rules: Convention, *, trec_file: Path | None
) -> RankedRun:
    """A run with scores in its order: a TREC file (maybe begun), a mapping, a data frame or a Parquet file."""
    if isinstance(run, FileReading):
        return run.result()
    missing, duplicates, depth, keep = given.missing or "zero", given.duplicates or "error", given.depth, given.keep
    if trec_file is not None:
        return rank_file(
            testset, trec_file, rules, missing=missing, duplicates=duplicates, depth=depth, cache=given.cache, keep=keep
        )
    from cranfield.ranking.memory import rank_frame, rank_mapping

    if isinstance(run, Mapping) and _has_scores(run):
        name = given.name or "run"
        return rank_mapping(testset, run, rules, missing=missing, depth=depth, keep=keep, name=name)
    return rank_frame(
        testset,
        run,
        rules,
        columns=given.columns,
        missing=missing,
        duplicates=duplicates,
        depth=depth,
        keep=keep,
        name=given.name,
    )


def _score_collected(
    testset: TestSet, run: Run, measures: Sequence[Measure] | None, given: ScoringOptions, rules: Convention
) -> Evaluation:
    digest = run.digest
    run, by_name = with_ids(testset, run)
    extra = [query_id for query_id in run.answers if query_id not in testset.by_id]
    if extra and len(extra) == len(run.answers):
        raise no_common_query(testset.name, testset.query_ids, extra)
    extra += run.extra_queries
    warnings = [*by_name, *_extra_queries(extra), *_ordered_ties(run, rules)]
    if run.testset_digest is not None and run.testset_digest != testset.digest:
        warnings.append("the run was collected on another version of this test set (the digests differ)")
    rank = partial(rank_run, testset, run, missing=given.missing or "zero", depth=given.depth, keep=given.keep)
    ranking = rank(convention=rules)
    if given.failed == "zero":
        warnings += forced_zeros(convention_named(given.convention), ranking)
    evaluation = evaluate_ranking(
        testset,
        ranking,
        measures,
        name=given.name or run.name,
        run_digest=digest,
        run=run,
        extra_queries=extra,
        warnings=warnings,
        reading=_reading(given),
        keep_undefined=given.keep_undefined,
    )
    if run.order == "given":
        return evaluation
    from cranfield.evaluation.narrow import narrow_queries

    return _with_narrow(evaluation, narrow_queries(run), lambda narrow: rank(convention=narrow))


def _ordered_ties(run: Run, rules: Convention) -> Iterable[str]:
    """Equal scores in lists whose order counts, where all orders of equal scores were asked for."""
    if run.order != "given" or rules.ties != "expected":
        return
    hits = [answer.hits for answer in run.answers.values()]
    n = sum(a.score is not None and a.score == b.score for some in hits for a, b in pairwise(some))
    if n:
        text = (
            f"{n} results have the score of the one before, in lists whose own order counts: there are no ties in them"
        )
        yield Caveat(f"{text}; ids with scores, as a mapping, are ranked by score", CaveatKind.TIES, rules.ties)


def _extra_queries(extra: Sequence[str]) -> Iterable[str]:
    if extra:
        ids = first_of(shown_id(each, quoted=False) for each in extra)
        text = f"queries of the run that are not in the test set, ignored: {len(extra)} ({ids})"
        yield Caveat(text, CaveatKind.EXTRA_QUERIES)


def _reading(given: ScoringOptions) -> dict[str, str | int | None]:
    """The options that an evaluation records."""
    rules = convention_named(given.convention)
    is_default = given.failed is None or {rules.failed, rules.empty} == {given.failed}
    failed = {} if is_default else {"failed": given.failed}
    ties = {} if given.ties in (None, rules.ties) else {"ties": given.ties}
    return {"depth": given.depth, "missing": given.missing, "duplicates": given.duplicates, **failed, **ties}


def _has_scores(run: Mapping[str, Any]) -> TypeGuard[Mapping[str, Mapping[str, float]]]:
    """Whether every answer of a run is a mapping to scores."""
    return bool(run) and all(isinstance(answer, Mapping) for answer in run.values())
