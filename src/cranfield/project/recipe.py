"""The functions behind the library's face and the command line: evaluate, compare, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cranfield.errors import UsageError
from cranfield.evaluation.columns import with_columns
from cranfield.evaluation.evaluate import evaluate_ranking
from cranfield.evaluation.evidence.inspection import refuse_unknown
from cranfield.evaluation.values import RATED_BY_SLOT, Comparison, Evaluation, among
from cranfield.formats.io.delimited import forget_notes
from cranfield.measures import DEFAULT_MEASURES, Measure, as_typed, deepest_cutoff, parse_typed
from cranfield.model import DEFAULT_CONVENTION, Convention, TestSet
from cranfield.model.convention import Ties
from cranfield.options.compare import CompareOptions, VerdictRule
from cranfield.options.limits import Limits
from cranfield.options.scoring import ScoringOptions
from cranfield.project.function import is_function, run_of_function
from cranfield.project.inputs import Judgments, RunLike, TestSetLike
from cranfield.project.loading import load
from cranfield.project.scoring import score
from cranfield.ranking import REPORTED_HITS, Duplicates, Missing
from cranfield.ranking.file import FileReading
from cranfield.words import and_list

if TYPE_CHECKING:
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.scale.values import ScaleSummary


def evaluate(  # noqa: PLR0913 - each is a choice that changes the numbers, and is typed by name
    testset: TestSetLike | Callable[..., Any],
    run: RunLike | TestSetLike | Callable[..., Any],
    *,
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
    k: int | None = None,
) -> Evaluation:
    """Score one run against a test set.

    Args:
        testset: a test set, or what `load` makes one of. A function, or a run before a `TestSet`, may stand first too.
        run: a collected `Run`; a file holding one, a TREC run file or a Parquet table; a mapping of query id to document
            ids in order, or to document ids with their scores (higher is better); a data frame with a row per result; or a
            function from a query to document ids, which is called for each query: a call that fails counts as 0.
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
    )
    return evaluate_with_options(testset, given, measures, options)


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
        from cranfield.project.scales import evaluate_on_scales

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
            from cranfield.project.orders import evaluate_in_orders

            evaluation = evaluate_in_orders(testset, run, chosen, options)
        if renamed:
            evaluation = replace(evaluation, warnings=(*evaluation.warnings, *renamed))
        if on_detail:
            evaluation = replace(evaluation, warnings=(*evaluation.warnings, _not_on_detail(on_detail, testset)))
    if evaluation.run is not None or options.confusion:
        from cranfield.evaluation.confusion import confusions_of

        tables, missing = confusions_of(evaluation, options.confusion)
        evaluation = replace(evaluation, confusions=tables, warnings=(*evaluation.warnings, *missing))
    return replace(evaluation, latency_rule=options.latency, limits=options.limits)


def _is_ungraded(testset: TestSet) -> bool:
    """Whether no document has a grade, as in a book before its first grade: there is nothing to be on a scale."""
    return not testset.targets and all(grade < 0 for judged in testset.grades.values() for grade in judged.values())


def _not_on_detail(spellings: Sequence[str], testset: TestSet) -> str:
    """Why measures of the detail scale are printed without their `(d)`."""
    why = f"the convention is not {RATED_BY_SLOT}" if testset.ratings else "the test set has no ratings"
    return f"{and_list(spellings)} computed on the grades as they are, not on the detail scale: {why}"


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
    measure = among(measure if evaluation.scales else replace(measure, on_detail=False), evaluation.measures)
    if measure in evaluation.measures and not evaluation.scales:
        return evaluation
    ranking, scales = evaluation.ranking, dict(evaluation.scales)
    if evaluation.scales:
        from cranfield.project.scales import on_its_scale

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
    result: Comparison | Evaluation | ManyComparison | ScaleSummary,
    path: str | Path | None = None,
    *,
    format: str = "text",  # noqa: A002
) -> str:
    """Render a comparison, of two or of many, or an evaluation, and save it where a path is given.

    Args:
        result: what `compare`, `compare_many`, `evaluate` or `evaluate_parquet` returned.
        path: where to write it too, in the form of its suffix: .html, .md, .json, .csv or .txt.
        format: of the text returned: text, brief (short Markdown), markdown, csv, json or html.
    """
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.reporting import comparison_document, evaluation_document, render, save_report

    if isinstance(result, Evaluation):
        document = evaluation_document([result], by_query=True)
    elif isinstance(result, Comparison | ManyComparison):
        document = comparison_document(result)
    else:
        from cranfield.reporting import scale_document

        document = scale_document(result)
    if path is not None:
        save_report(document, Path(path))
    return render(document, format)
