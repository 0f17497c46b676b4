"""Evaluate and compare: the functions behind the library's face, the command line, REST and MCP.

People judge on one scale, and precision asks for another one than nDCG does: where a test set has ratings, each measure is
computed on the grades that a consensus makes of the ratings after these were mapped to the scale of the measure.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from cranfield.app.loading import Judgments, RunLike, TestSetLike, load
from cranfield.app.runs_by_name import ranked_by_name, with_ids
from cranfield.base.display import Displayed
from cranfield.base.errors import InternalError, NoCommonQueryError, UsageError
from cranfield.base.words import and_list, count_noun, join_first, shown_id
from cranfield.evaluation.absence import forced_zeros
from cranfield.evaluation.evaluate import evaluate_ranking
from cranfield.evaluation.evidence.inspection import refuse_unknown
from cranfield.evaluation.options.blocks import CompareOptions, LatencyRule, Limits, ScoringOptions, VerdictRule
from cranfield.evaluation.testset.consensus import rated_pairs, ratings_of, with_consensus
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.evaluation.values import (
    RATED_BY_SLOT,
    Comparison,
    Evaluation,
    find_measure,
    joined,
    scale_for,
    with_columns,
)
from cranfield.formats.io.delimited import forget_notes
from cranfield.formats.sniff import sniff_run
from cranfield.measures import DEFAULT_MEASURES, Measure, as_typed, deepest_cutoff, parse_all, parse_typed
from cranfield.measures.measure import by_convention
from cranfield.model import DEFAULT_CONVENTION, Convention, NoteKind, Rating, Run, TestSet, convention_named
from cranfield.model.arrays import DocumentIds, ResultArrays
from cranfield.model.convention import Ties
from cranfield.plugins import card_of
from cranfield.ranking import REPORTED_HITS, Duplicates, Missing, RankedRun, rank_file, rank_run
from cranfield.ranking.file import FileReading
from cranfield.ranking.join import no_common_query
from cranfield.ranking.value import Ranking, cut_at
from cranfield.stats.consensus import rule_named
from cranfield.stats.scale import LEVELS, Scale, scale_named, scale_of

if TYPE_CHECKING:
    from cranfield.evaluation.many import ManyComparison


def is_function(run: object) -> TypeGuard[Callable[..., Any]]:
    """Whether what is evaluated is a function to call, or a framework's retriever, and not a run."""
    if isinstance(run, str | Path | Mapping | Run | TestSet):
        return False
    from cranfield.systems.kinds.frameworks import is_retriever

    return callable(run) or is_retriever(run)


def run_of_function(testset: TestSet, function: Callable[..., Any], *, k: int, name: str | None = None) -> Run:
    """Call a function for every query and keep its answers; a call that fails is an answer with that outcome.

    Args:
        testset: its queries are asked.
        function: called as `function(query, k, **params)`, or as `function(query)` where it takes no more; plain or async. Or a
            retriever of LangChain or LlamaIndex, or a pipeline of Haystack.
        k: number of results requested.
        name: what to call the system; by default the name of the function.

    Raises:
        TestSetError: queries without a text.
        PreflightError: the function does not take a query.
    """
    from cranfield.evaluation.options.blocks import CollectOptions
    from cranfield.systems.collect.collection import collect
    from cranfield.systems.collect.collector import require_texts
    from cranfield.systems.collect.preflight import preflight
    from cranfield.systems.kinds.python import PythonSystem

    require_texts(testset)
    called: str = name or getattr(function, "__name__", None) or type(function).__name__
    system = PythonSystem.calling(called if called.isidentifier() else "function", _with_k(function))
    try:
        preflight([system], k=k)
        return collect(testset, system, k=k, options=CollectOptions(keep_going=True))
    finally:
        system.close()


def _with_k(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a system is called; one that takes a query alone gets no more."""
    from cranfield.systems.kinds.frameworks import is_retriever

    if is_retriever(function):
        return function
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C without a signature
        return function
    if _takes(signature, "query", 10) or not _takes(signature, "query"):
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def ask_async(query: str, k: int, **_: object) -> object:
            return _cut(await function(query), k)

        answer: Callable[..., Any] = ask_async
    else:

        @functools.wraps(function)
        def ask(query: str, k: int, **_: object) -> object:
            return _cut(function(query), k)

        answer = ask
    answer.__dict__.pop("__wrapped__")  # its signature is another
    return answer


def _cut(found: object, k: int) -> object:
    return found[:k] if isinstance(found, list | tuple) else found


def _takes(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


TIES = {
    "descending": "by document id, descending",
    "expected": "in every possible way, and values are means over these orders",
    "ascending": "by document id, ascending",
    "given": "as in the run",
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
        from cranfield.formats.runs.table import run_of_mapping

        run = run_of_mapping(run, given.name or "run")
    if not isinstance(run, Run | Mapping | FileReading | ResultArrays) and (found is None or found.name == "parquet"):
        from cranfield.ranking.memory import run_of_ranks

        run = run_of_ranks(run, given.columns, given.name) or run
    if isinstance(run, Run):
        return _score_collected(testset, run, measures, given, rules)
    given_run, trec_file = run, path if found is not None and found.name == "trec" else None
    by_name: tuple[str, ...] = ()
    try:
        ranked = _rank(testset, given_run, given, rules, trec_file=trec_file)
    except NoCommonQueryError as error:
        if isinstance(run, ResultArrays):
            raise
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
        text = f"the rank column disagrees with the order by score in {count_noun(len(ranked.misranked), 'queries')}"
        yield Caveat(f"{text} ({join_first(ranked.misranked)}); the score is used", CaveatKind.RANK_COLUMN)
    if ranked.n_tied:
        ties = f"{count_noun(ranked.n_tied, 'results')} {'ties' if ranked.n_tied == 1 else 'tie'}"
        text = f"{ties} with the previous result; ties are ordered {TIES[rules.ties]}"
        yield Caveat(text, CaveatKind.TIES, rules.ties)


def _with_narrow(evaluation: Evaluation, queries: Sequence[str], rank: Callable[[Convention], Ranking]) -> Evaluation:
    """The evaluation, with a caveat where scores that are equal at 32 bits alone matter."""
    if not queries:
        return evaluation
    from cranfield.evaluation.compare import narrow_caveat

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
    if isinstance(run, ResultArrays):
        from cranfield.ranking.arrays import rank_result_arrays

        return rank_result_arrays(testset, run, rules, missing=missing, duplicates=duplicates, depth=depth, keep=keep)
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
    warnings = [*run.notes, *by_name, *_extra_queries(extra), *_ordered_ties(run, rules)]
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
    from cranfield.evaluation.compare import narrow_queries

    return _with_narrow(evaluation, narrow_queries(run), lambda narrow: rank(convention=narrow))


def _ordered_ties(run: Run, rules: Convention) -> Iterable[str]:
    """Equal scores in lists whose order counts, where all orders of equal scores were asked for."""
    if run.order != "given" or rules.ties != "expected":
        return
    hits = [answer.hits for answer in run.answers.values()]
    n = sum(a.score is not None and a.score == b.score for some in hits for a, b in pairwise(some))
    if n:
        text = f"{n} results have the same score as the previous result, but these lists are ranked by position, so there are no ties"
        yield Caveat(f"{text}; ids with scores, as a mapping, are ranked by score", CaveatKind.TIES, rules.ties)


def _extra_queries(extra: Sequence[str]) -> Iterable[str]:
    if extra:
        ids = join_first(shown_id(each, quoted=False) for each in extra)
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


def evaluate_in_orders(
    testset: TestSet, run: RunLike, measures: Sequence[Measure] | None, options: ScoringOptions
) -> Evaluation:
    """Score one run, each measure on the order that its convention has for it.

    The ranking, hits and failures are those of the first measure. Raises as `score`.
    """
    _, rules = options.resolved()
    if measures is None:
        measures = score(testset, run, None, options).measures
    parts = [
        score(testset, run, group, replace(options, convention=convention))
        for convention, group in by_convention(measures, rules).items()
    ]
    if not parts:
        return score(testset, run, measures, options)
    return joined(measures, parts)


def scales_of(measures: Sequence[str | Measure]) -> dict[Measure, Scale | None]:
    """The scale of each measure: `binary` where relevant or not is all it asks, `graded` where gains count.

    `nDCG(d)@10` is nDCG@10 on the `detail` scale. A measure that only says how far others can be trusted, or that needs no
    grades, has none: it is computed beside the first measure that has one.

    Raises:
        MeasureError: a measure that is not there.

    Example:
        >>> scales_of(["nDCG@10", "P@5", "DCG(d)@10"])
        {nDCG@10: 'graded', P@5: 'binary', DCG(d)@10: 'detail'}
    """
    return {
        measure: "detail" if measure.on_detail else scale_for(measure)
        for measure in parse_all([str(measure) for measure in measures])
    }


def evaluate_on_scales(
    testset: TestSet,
    run: RunLike,
    measures: Sequence[str | Measure],
    options: ScoringOptions | None = None,
    *,
    rule: str | None = None,
    scale: str | None = None,
) -> Evaluation:
    """Score one run, each measure on its own scale, and put the values together.

    Args:
        testset: with ratings; a judgment of a document without a rating counts as the only rating of it.
        run: as `evaluate` takes it.
        measures: spellings; the first is the primary one, and the ranking, hits and failures are those of its scale.
        options: how the run is read and scored; None is the convention `searchtweak`.
        rule: how the mapped ratings become one grade; None is `searchtweak`: the majority on the binary scale, the mean on
            the others.
        scale: what the ratings are on; None is the set's scale, or else the smallest one that fits.

    Returns:
        One evaluation. Its warnings say on which scale each measure was computed, and on how many pairs the votes are even.

    Raises:
        TestSetError: there are no ratings.
        UsageError: a rating is not on its scale, or there is no map to the scale of a measure.
    """
    scales = scales_of(measures)
    if not scales:
        raise UsageError("no measure to compute", expected="one or more, such as nDCG@10")
    rule = rule_named(rule or RATED_BY_SLOT).name
    rated_pairs(testset)  # raises where there are no ratings
    bare = _all_ratings(testset)
    given = _given(bare, scale)
    first = next((scale for scale in scales.values() if scale is not None), given)
    by_scale: dict[Scale, list[Measure]] = {}
    for measure, own in scales.items():
        by_scale.setdefault(own or first, []).append(measure)
    parts: dict[Scale, Evaluation] = {}
    scale_notes: list[str] = []
    for to, group in by_scale.items():
        on_scale = with_consensus(bare, rule, to=to, scale=given)
        bare_scale = replace(on_scale, ratings={})  # its grades are all that this part is about
        parts[to] = score(bare_scale, run, group, options or ScoringOptions(convention=RATED_BY_SLOT))
        named = ", ".join(map(str, parts[to].measures))
        scale_notes.append(f"on the {to} scale: {named}; {'; '.join(map(str, on_scale.notes))}")
    if len({part.query_ids for part in parts.values()}) > 1:
        raise InternalError("the same run has other queries on another scale")
    found = joined(tuple(scales), tuple(parts.values()))
    # What was made of the ratings when the set was read is not what is scored here.
    notes = tuple(note for note in testset.notes if note.kind is not NoteKind.CONSENSUS)
    return replace(
        found,
        warnings=(*scale_notes, *found.warnings),
        testset=replace(testset, grades=found.testset.grades, notes=notes),
        scales={measure: own or first for measure, own in scales.items()},
        on_scales={to: part.ranking for to, part in parts.items()},
    )


def on_its_scale(evaluation: Evaluation, spelling: str | Measure) -> tuple[Ranking, str]:
    """The ranking that one measure more is computed on, and its scale; those of the measure where it is there already.

    Raises:
        UsageError: the run was not ranked on the scale of the measure, or the measure is there on another one.
    """
    ((measure, scale),) = scales_of([spelling]).items()
    there = evaluation.scales.get(measure)
    # One that is there may be written without its `(d)`.
    wanted = scale if scale == "detail" else there or scale or _main_scale(evaluation)
    ranking = evaluation.on_scales.get(wanted)
    if ranking is None or (there is not None and there != wanted):
        but = f"it was computed on the {there} scale" if there else f"the run was not ranked on the {wanted} scale"
        raise UsageError(
            f"{spelling} cannot be added: {but}", hint=f"request it together with the other measures: -m '{spelling}'"
        )
    return ranking, wanted


def _main_scale(evaluation: Evaluation) -> str:
    """The scale of the ranking that stands for all."""
    return next(scale for scale, ranking in evaluation.on_scales.items() if ranking is evaluation.ranking)


def _all_ratings(testset: TestSet) -> TestSet:
    """The set with ratings alone: a judgment of a document without a rating counts as the only rating of it."""
    ratings = {query_id: list(given) for query_id, given in ratings_of(testset).items()}
    for query_id, judged in testset.grades.items():
        rated = {rating.doc_id for rating in ratings.get(query_id, ())}
        alone = [Rating(doc_id, "judgment", grade) for doc_id, grade in judged.items() if doc_id not in rated]
        ratings.setdefault(query_id, []).extend(alone)
    all_ratings = {query_id: tuple(found) for query_id, found in ratings.items()}
    pooled = {q: {doc_id: g for doc_id, g in judged.items() if g < 0} for q, judged in testset.grades.items()}
    return replace(
        testset,
        grades={q: grades for q, grades in pooled.items() if grades},
        groups={},
        grouping=None,
        ratings=all_ratings,
        notes=(),
    )


def _given(testset: TestSet, scale: str | None) -> Scale:
    """The scale that the ratings are on."""
    grades = rated_pairs(testset).table.grade
    if scale is not None:
        return scale_named(scale)
    declared = next((name for name, levels in LEVELS.items() if testset.meta.scale == levels), None)
    found = declared or scale_of(grades) or (None if grades.size else "binary")  # of nothing, any scale is right
    if found is None:
        raise UsageError(
            "the ratings are not on a known scale",
            expected=", ".join(f"{name} ({levels[0]} to {levels[-1]})" for name, levels in LEVELS.items()),
            got=", ".join(f"{grade:g}" for grade in np.unique(grades)[:10].tolist()),
        )
    return found


def evaluate(  # noqa: PLR0913 - each is a choice that changes the numbers, and is typed by name
    testset: TestSetLike | Callable[..., Any],
    run: RunLike | TestSetLike | Callable[..., Any] | None = None,
    *,
    ids: Any = None,
    scores: Any = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    convention: str | Convention = DEFAULT_CONVENTION,
    missing: Missing | None = None,
    failed: Missing | None = None,
    ties: Ties | None = None,
    duplicates: Duplicates | None = None,
    run_format: str | None = None,
    name: str | None = None,
    depth: int | None = None,
    cache: bool = False,
    columns: Mapping[str, str] | None = None,
    keep: int = REPORTED_HITS,
    limits: Limits | None = None,
    confusion: Mapping[str, str] | None = None,
    latency: LatencyRule | None = None,
    k: int | None = None,
) -> Evaluation:
    """Score one run against a test set.

    Args:
        testset: a test set, or what `load` makes one of. A function, or a run before a `TestSet`, may stand first too.
        run: a collected `Run`; a file holding one, a TREC run file or a Parquet table; a mapping of query id to document
            ids in order, or to document ids with their scores (higher is better); a data frame with a row per result; or a
            function from a query to document ids, or a retriever of a framework, which is called for each query: a call that
            fails counts as 0.
        ids: instead of a run, int[N, K] of what has `__array__` or DLPack: a row per query, best first, -1 for padding.
        scores: float[N, K], larger is better; None: the order of the columns is that of the results.
        query_ids: N ids, of the rows of `ids`; None: the queries of the test set, in its order.
        doc_ids: D ids, of the documents whose positions `ids` holds, or `DocumentIds`, which are looked through once for many
            calls; None: `ids` holds the ids themselves.
        measures: spellings such as `nDCG@10`; None is the default list.
        convention: the choices that score it, or the name of a known convention.
        missing: a judged query without an answer counts as 0 ("zero") or is left out ("skip"); None: the convention's rule.
        failed: a query that failed, or has no result, counts as 0 or is left out; None: the convention's rule.
        ties: how equal scores count: by document id ("descending", "ascending"), as "given", or "expected", the mean over all
            of their orders; None: the convention's rule.
        duplicates: a document twice in a query of a TREC file is an error, or the first is kept; None: the convention's rule.
        run_format: `trec`, `jsonl`, `parquet` or `run-table`, instead of telling by content.
        name: what to call the system; by default the run's own name.
        depth: ranks kept per query before any measure looks; None keeps all.
        cache: keep what a large TREC file came down to, and use what was kept, by content; see `CRANFIELD_CACHE`.
        columns: what the columns of a run's frame or table are called, where the names are unusual.
        keep: hits per query of a file, mapping or table that are kept for reports; scores need none.
        limits: what makes scores void, and how evidence checks differ from their table.
        confusion: field of the answers to the stratum that it predicts, `{"routed": "task_type"}`; see `Evaluation.confusions`.
        latency: when a comparison with another run calls a system faster; None: by 1 ms and 5 %, or more.
        k: results requested of a function; None: as many as the deepest cutoff of the measures needs, 10 or more.

    Raises:
        InputError: a file that cannot be read, or shares no query with the test set.
        UsageError: an unknown measure or convention, or a measure that no query allows.

    Example:
        >>> from cranfield import Query, TestSet, evaluate
        >>> testset = TestSet("tiny", (Query("q1"),), {"q1": {"d1": 1, "d2": 1}})
        >>> tiny = evaluate(testset, {"q1": ["d1", "d3", "d2"]}, measures=["AP"])  # (1/1 + 2/3) / 2
        >>> round(tiny.value("AP", "q1"), 4), round(tiny.mean("map"), 4)
        (0.8333, 0.8333)
    """
    if ids is not None:
        if run is not None:
            raise UsageError("evaluate got a run and ids", expected="one of them")
        run = ResultArrays.of(ids, scores, query_ids=query_ids, doc_ids=doc_ids, name=name or "run")
    elif run is None or scores is not None or query_ids is not None or doc_ids is not None:
        raise UsageError(
            "evaluate got no run" if run is None else "evaluate got arrays without ids", expected="a run, or ids="
        )
    if is_function(testset) or (isinstance(run, TestSet) and not isinstance(testset, TestSet)):
        testset, run = cast("TestSetLike", run), cast("RunLike", testset)
    if is_function(testset) or isinstance(run, TestSet):
        kinds = "functions" if is_function(testset) else "test sets"
        raise UsageError(f"evaluate got two {kinds}", expected="a test set, and a run or a function")
    forget_notes()
    testset = testset if isinstance(testset, TestSet) else load(cast("Judgments", testset))
    if is_function(run) and k is None:
        k = deepest_cutoff([measures] if isinstance(measures, str | Measure) else measures or ())
    given = run_of_function(testset, run, k=k or 0, name=name) if is_function(run) else cast("RunLike", run)
    if given is not run:  # what a function does not answer counts
        missing, failed = missing or "zero", failed or "zero"
    options = ScoringOptions(
        convention=convention,
        missing=missing,
        failed=failed,
        ties=ties,
        duplicates=duplicates,
        run_format=run_format,
        name=name,
        depth=depth,
        cache=cache,
        columns=columns,
        keep=keep,
        limits=limits or Limits(),
        confusion=confusion or {},
        latency=latency or LatencyRule(),
    )
    return evaluate_with_options(testset, given, measures, options)


def evaluate_checkpoints(
    testset: TestSetLike,
    ids: Any,
    scores: Any = None,
    *,
    names: Sequence[str] | None = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    **options: Any,
) -> list[Evaluation]:
    """Score several systems, such as the checkpoints of a training, whose results are arrays of one shape.

    Args:
        testset: a test set, or what `load` makes one of.
        ids: int[M, N, K], as `evaluate` takes them for each of M systems; or M arrays int[N, K].
        scores: float[M, N, K], or None.
        names: M names; None: `checkpoint-1` and so on.
        query_ids: as `evaluate` takes them, of all systems.
        doc_ids: as `evaluate` takes them, of all systems.
        options: other arguments of `evaluate`: `measures`, `convention`, `duplicates` …

    Raises:
        UsageError: as many scores, or names, as systems are expected; otherwise as `evaluate`.

    Example:
        >>> from cranfield import evaluate_checkpoints
        >>> judged = {"1": {"7": 1}, "2": {"5": 1}}
        >>> found = evaluate_checkpoints(judged, [[[3, 7], [5, 9]], [[7, 3], [5, -1]]], measures=["RR"])
        >>> [each.mean("RR") for each in found]
        [0.75, 1.0]
    """
    n_systems = len(ids)
    called = [f"checkpoint-{number}" for number in range(1, n_systems + 1)] if names is None else list(names)
    values = [None] * n_systems if scores is None else scores
    for what, given in (("names", called), ("scores", values)):
        if len(given) != n_systems:
            raise UsageError(f"{what} and ids differ in length", expected=f"{n_systems}, as ids", got=str(len(given)))
    loaded = testset if isinstance(testset, TestSet) else load(testset)
    documents = None if doc_ids is None else DocumentIds.of(doc_ids)
    shared: dict[str, Any] = {"query_ids": query_ids, "doc_ids": documents, **options}
    return [evaluate(loaded, ids=ids[at], scores=values[at], name=called[at], **shared) for at in range(n_systems)]


def evaluate_with_options(
    testset: TestSet,
    run: RunLike | FileReading,
    measures: Sequence[str | Measure] | str | None,
    options: ScoringOptions,
) -> Evaluation:
    """Score one run; see `evaluate`."""
    refuse_unknown(options.limits)
    requested = [measures] if isinstance(measures, str | Measure) else measures
    options = options.keeping(str(requested[0]) if requested else None)
    by_slot = options.convention_name == RATED_BY_SLOT
    if by_slot and testset.ratings and not isinstance(run, FileReading):
        spelled = DEFAULT_MEASURES if requested is None else requested
        evaluation = evaluate_on_scales(testset, run, spelled, options, rule=testset.consensus or None)
    else:
        chosen, renamed = (None, []) if requested is None else parse_typed([str(measure) for measure in requested])
        one_scale = not (by_slot and options.keep_undefined and _is_ungraded(testset))
        on_detail = [str(measure) for measure in chosen or () if measure.on_detail and one_scale]
        if chosen is not None and one_scale:  # grades of one scale: there is no other one to be on
            chosen = tuple(dict.fromkeys(replace(measure, on_detail=False) for measure in chosen))
        if options.resolved()[1].orders == "one" or isinstance(run, FileReading):
            evaluation = score(testset, run, chosen, options)
        else:
            evaluation = evaluate_in_orders(testset, run, chosen, options)
        if renamed:
            evaluation = replace(evaluation, warnings=(*evaluation.warnings, *renamed))
        if on_detail:
            # Why measures of the detail scale are printed without their `(d)`.
            why = f"the convention is not {RATED_BY_SLOT}" if testset.ratings else "the test set has no ratings"
            evaluation = replace(
                evaluation,
                warnings=(
                    *evaluation.warnings,
                    (f"{and_list(on_detail)} computed on the unconverted grades, not on the detail scale: {why}"),
                ),
            )
    if evaluation.run is not None or options.confusion:
        from cranfield.evaluation.confusion import confusions_of

        tables, missing = confusions_of(evaluation, options.confusion)
        evaluation = replace(evaluation, confusions=tables, warnings=(*evaluation.warnings, *missing))
    return replace(evaluation, latency_rule=options.latency, limits=options.limits)


def _is_ungraded(testset: TestSet) -> bool:
    """Whether no document has a grade, as in a book before its first grade: there is nothing to be on a scale."""
    return not testset.targets and all(grade < 0 for judged in testset.grades.values() for grade in judged.values())


def compare(  # noqa: PLR0913 - each is a choice that changes the verdict, and is typed by name
    baseline: Evaluation,
    candidate: Evaluation,
    *,
    primary: str | Measure | None = None,
    test: str = "permutation",
    alpha: float = 0.05,
    margin: float | None = None,
    seed: int = 0,
    draws: int = 100_000,
    limits: Limits | None = None,
    verdict: VerdictRule = "classes",
    strata: str | None = None,
) -> Comparison:
    """Compare two evaluations of one test set, and reach a verdict on the candidate.

    Args:
        baseline: the current system.
        candidate: the system that would replace it.
        primary: measure of the verdict, declared beforehand; None is the first one evaluated.
        test: procedure of the verdict and its interval.
        alpha: significance level.
        margin: largest difference that does not matter; without one nothing is called equivalent.
        seed: of everything random; the same seed gives the same answer.
        draws: random sign patterns, where not all can be counted.
        limits: when a comparison does not count, and how evidence checks differ from their table; None: those of the
            evaluations.
        verdict: `classes`: where queries have classes, each class is tested, and the verdict follows from theirs; `pooled`: the
            mean over all queries decides.
        strata: key of the strata that are the classes; None is the query classes, where queries have them.

    Raises:
        UsageError: the two do not belong together, or an option is out of bounds.
    """
    if not isinstance(baseline, Evaluation) or not isinstance(candidate, Evaluation):
        raise UsageError("compare takes two evaluations", expected="what `evaluate` returns, for each of the two runs")
    from cranfield.evaluation.compare import compare as compare_evaluations

    options = CompareOptions(
        primary=None if primary is None else str(primary),
        test=test,
        alpha=alpha,
        margin=margin,
        seed=seed,
        draws=draws,
        limits=limits or _limits_of((baseline, candidate)),
        verdict=verdict,
        strata=strata,
    )
    return compare_evaluations(baseline, candidate, options)


def compare_many(  # noqa: PLR0913 - one keyword for each thing that is declared
    evaluations: Sequence[Evaluation],
    *,
    baseline: str | None = None,
    primary: str | Measure | None = None,
    test: str = "permutation",
    alpha: float = 0.05,
    margin: float | None = None,
    seed: int = 0,
    draws: int = 100_000,
    adjust: str | None = None,
    limits: Limits | None = None,
) -> ManyComparison:
    """Compare three evaluations or more of one test set, every pair of them, and say which systems are best.

    Args:
        evaluations: what `evaluate` returned for each run, under different names.
        baseline: name of the baseline system, if any: each of the others is also compared with it.
        primary: measure that decides, declared beforehand; None is the first one evaluated.
        test: procedure of every pair.
        alpha: significance level, over the whole family of pairs.
        margin: largest difference that does not matter; it is shown and decides nothing.
        seed: of everything random; the same seed gives the same answer.
        draws: random sign patterns, where not all can be counted.
        adjust: adjustment over all pairs: `max-t` or `holm`; None is max-t for the test permutation, else holm.
        limits: when a comparison does not count, and how evidence checks differ from their table; None: those of the
            evaluations.

    Raises:
        UsageError: the systems do not belong together, two have one name, or an option is out of bounds.
    """
    if not all(isinstance(evaluation, Evaluation) for evaluation in evaluations):
        raise UsageError("compare_many takes evaluations", expected="what `evaluate` returns, for each of the runs")
    from cranfield.evaluation.many import compare_many as compare_evaluations

    options = CompareOptions(
        primary=None if primary is None else str(primary),
        test=test,
        alpha=alpha,
        margin=margin,
        seed=seed,
        draws=draws,
        limits=limits or _limits_of(evaluations),
        adjust=adjust,
    )
    return compare_evaluations(evaluations, options, baseline=baseline)


def _limits_of(evaluations: Sequence[Evaluation]) -> Limits:
    """The limits that evaluations were made with: the first that are not the defaults."""
    return next((each.limits for each in evaluations if each.limits != Limits()), Limits())


def with_measure(evaluation: Evaluation, spelling: str | Measure | None) -> Evaluation:
    """The evaluation with one measure more; None adds nothing.

    Raises:
        UsageError: an unknown measure, or one that no query allows.
    """
    if spelling is None:
        return evaluation
    measure = as_typed(str(spelling))
    measure = find_measure(measure if evaluation.scales else replace(measure, on_detail=False), evaluation.measures)
    if measure in evaluation.measures and not evaluation.scales:
        return evaluation
    ranking, scales = evaluation.ranking, dict(evaluation.scales)
    if evaluation.scales:
        ranking, scales[measure] = on_its_scale(evaluation, measure)
    if measure in evaluation.measures:
        return evaluation
    more = evaluate_ranking(evaluation.testset, ranking, [measure], name=evaluation.name, run_digest="")
    warnings = [f"on the {scales[measure]} scale: {more.measures[0]}"] if scales else []
    return replace(
        with_columns(evaluation, {**dict.fromkeys(evaluation.measures, evaluation), more.measures[0]: more}),
        scales=scales,
        warnings=tuple(dict.fromkeys((*evaluation.warnings, *warnings, *more.warnings))),
    )


def report(
    result: Comparison | Evaluation | ManyComparison | Displayed,
    path: str | Path | None = None,
    *,
    format: str = "text",  # noqa: A002
) -> str:
    """Render a comparison, of two or of many, or an evaluation, and save it where a path is given.

    Args:
        result: what `compare`, `compare_many`, `evaluate` or `evaluate_parquet` returned.
        path: where to write it too, in the form of its suffix: .html, .md, .tex, .xlsx, .json, .csv or .txt.
        format: of the text returned: text, brief (short Markdown), markdown, latex, model-card, csv, json or html.
    """
    from cranfield.evaluation.many import ManyComparison
    from cranfield.reporting import comparison_document, evaluation_document, render, save_report

    if isinstance(result, Evaluation):
        document = evaluation_document([result], by_query=True)
    elif isinstance(result, Comparison | ManyComparison):
        document = comparison_document(result)
    else:
        document = card_of(type(result).__name__)(result)
    if path is not None:
        save_report(document, Path(path))
    return render(document, format)
