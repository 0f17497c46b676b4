"""What judging needs of runs: pools, holes, alternatives, model raters and the sensitivity to a book's raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from cranfield.app.evaluate import evaluate_with_options
from cranfield.app.loading import RunLike
from cranfield.app.read_ahead import evaluate_files
from cranfield.app.runs_by_name import with_ids
from cranfield.base.errors import CranfieldError, InputError, Problem, RunFormatError, UsageError
from cranfield.base.words import and_list, count_noun
from cranfield.books.store.store import Store
from cranfield.evaluation.compare import compare
from cranfield.evaluation.options.blocks import CompareOptions, ScoringOptions
from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS, Family, Sensitivity, Variation
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.formats.io.files import is_there, opened, stem
from cranfield.formats.runs.files import log_notes
from cranfield.judging.book.freeze import persons_table
from cranfield.judging.book.grades import (
    BookContents,
    BookSensitivity,
    BothMeans,
    RatedBook,
    contents_of,
    people_grades,
    rated_book,
)
from cranfield.judging.models.compare import (
    Corrected,
    Grades,
    ModelReport,
    SystemOrder,
    compare_model,
    complete_queries,
    corrected_grade,
    graded_testset,
    model_grades,
    scale_of,
    shared_testsets,
)
from cranfield.judging.pools.holes import FoundHoles, find_holes
from cranfield.judging.pools.results import (
    BothScores,
    SystemResults,
    WithAndWithout,
    alternatives_of,
    without_alternatives,
)
from cranfield.judging.pools.rule_view import Grades as RuleGrades
from cranfield.judging.pools.rule_view import rule_view
from cranfield.measures import DEFAULT_MEASURES, parse
from cranfield.model import Run, TestSet, convention_named
from cranfield.model.results import TestSetRecord
from cranfield.ranking.collected import read_first_results, without_identical_ids
from cranfield.stats.consensus import CONSENSUS
from cranfield.stats.ppi import corrected_mean
from cranfield.stats.rank_correlation import kendall_tau

if TYPE_CHECKING:
    from cranfield.judging.pools.build import BuiltPool, PoolRequest


def named_file(spec: str) -> tuple[str, Path]:
    """Name and path of `NAME=FILE`; an empty name where the text is a path.

    Raises:
        UsageError: there is no name before the `=`.
    """
    name, equals, place = spec.partition("=")
    if not equals or is_there(Path(spec)):
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
        raise UsageError("standard input (-) is named more than once", expected="at most one file named -")
    runs: list[tuple[str, str, Run, str]] = []
    problems: list[Problem] = []
    for name, path in map(named_file, specs):
        try:
            deeper = depth is not None and testset is not None and testset.matching.ignore_identical_ids
            run, digest = read_first_results(path, None, convention, depth + 1 if deeper and depth else depth)
            log_notes(run)
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
    from cranfield.app.loading import load
    from cranfield.evaluation.options.blocks import TestSetOptions

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


def holes_of_files(
    testset: TestSet,
    specs: Sequence[str],
    declared: CompareOptions,
    *,
    scoring: ScoringOptions | None = None,
    people: RuleGrades | None = None,
    n_turns: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> FoundHoles:
    """Read two runs and find the holes of their comparison.

    Args:
        testset: of graded ids, or of targets: then in the view of `rule_view`.
        specs: baseline and candidate, `FILE` or `NAME=FILE`.
        declared: as for a comparison; the primary measure alone is computed, nDCG@10 by default.
        scoring: how the runs are scored.
        people: grades of persons, which take the place of the test set's.
        n_turns: first holes that are tested one by one for turning the verdict.
        progress: called with the queries bounded and their number.
    """
    given = scoring or ScoringOptions()
    systems = read_systems(specs, testset, given.convention_name)
    primary = parse(declared.primary or DEFAULT_MEASURES[0])
    declared = replace(declared, primary=primary.canonical)

    def compared(judged: TestSet, runs: Sequence[Run]) -> Comparison:
        deepest = max((len(answer.hits) for run in runs for answer in run.answers.values()), default=1)
        options = replace(given, keep=primary.depth or deepest)
        sides: list[Evaluation] = [
            evaluate_with_options(judged, run, [primary], replace(options, name=run.name)) for run in runs
        ]
        return compare(sides[0], sides[1], declared)

    if not people:
        _require_judged(testset)
    view = rule_view(testset, [system.run for system in systems], people=people)
    return FoundHoles(
        find_holes(compared(view.testset, view.runs), n_turns=n_turns, progress=progress),
        testset,
        view,
        tuple(SystemResults(system.name, run) for system, run in zip(systems, view.runs, strict=True)),
        compared(testset, [system.run for system in systems]) if view.is_rule else None,
        people,
    )


def _require_judged(testset: TestSet) -> None:
    if not testset.targets and not any(grade >= 0 for docs in testset.grades.values() for grade in docs.values()):
        raise UsageError(
            f"the test set {testset.name!r} has no judgments, so there is no verdict yet",
            hint="`cranfield pool` creates a first pool to judge",
        )


def with_and_without(
    testset: TestSet, runs: Sequence[Path], measures: Sequence[str] | None, options: ScoringOptions
) -> WithAndWithout:
    """Score run files twice.

    Raises:
        UsageError: the test set has no alternatives.
    """
    alternatives = alternatives_of(testset)
    if not alternatives:
        hint = "`cranfield pool accept TESTSET POOL --book NAME --out FILE` adds them"
        raise UsageError(f"the test set {testset.name!r} has no alternatives", hint=hint)
    names = tuple(measures or DEFAULT_MEASURES)
    first = evaluate_files(without_alternatives(testset), runs, names, options)
    second = evaluate_files(testset, runs, names, options)
    scores = []
    for a, b in zip(first, second, strict=True):
        for name in names:
            without, with_them = a.mean(name), b.mean(name)
            change = None if without is None or with_them is None else with_them - without
            scores.append(BothScores(a.name, name, without, with_them, change))
    return WithAndWithout(testset=TestSetRecord.of(testset), alternatives=alternatives, scores=tuple(scores))


MIN_RATERS = 2
"""With one, leaving him or her out leaves nothing."""


def book_sensitivity(
    contents: BookContents,
    runs: tuple[RunLike, RunLike],
    *,
    primary: str = "nDCG@10",
    rule: str | None = None,
    to: str | None = None,
    options: CompareOptions | None = None,
    scoring: ScoringOptions | None = None,
    models: bool = False,
) -> BookSensitivity:
    """Compare two runs on the grades of a book, and again under each rule and without each rater.

    Args:
        contents: the book.
        runs: baseline and candidate.
        primary: the measure that decides.
        rule: the declared consensus rule; None is that of the book.
        to: scale or map that each rating is mapped to first.
        options: the test, its level and seed; None: as `compare`.
        scoring: how the runs are read and scored.
        models: whether a model's grade counts where nothing else gives one.

    Raises:
        InputError: a run cannot be read.
        UsageError: nothing is graded, or there is no such measure or rule.
    """
    declared = options or CompareOptions(draws=SENSITIVITY_DRAWS)
    kept = scoring or ScoringOptions()

    def compared(testset: TestSet) -> Comparison:
        first, second = (evaluate_with_options(testset, run, [primary], kept) for run in runs)
        return compare(first, second, declared)

    made = partial(rated_book, contents, to=to, models=models)
    rated = made(rule=rule)
    comparison = compared(rated.testset)
    found = list(_repeated(contents, compared, rated.testset.consensus, made))
    means = tuple(item[1] for item in found if not isinstance(item, str))
    variations = tuple(item[0] for item in found if not isinstance(item, str))
    left_out = tuple(item for item in found if isinstance(item, str))
    varied = Sensitivity(comparison.verdict.code, variations, left_out, comparison.options.test, comparison.n_draws)
    return BookSensitivity(
        testset=TestSetRecord.of(rated.testset),
        rule=rated.testset.consensus,
        baseline=comparison.baseline.name,
        candidate=comparison.candidate.name,
        measure=comparison.primary,
        verdict=comparison.verdict.code,
        sentence=comparison.verdict.sentence,
        line=_line(varied),
        n_unchanged=varied.n_agree,
        sensitivity=varied,
        means=means,
        differences=rated.differences,
    )


def _line(found: Sensitivity) -> str:
    kinds: dict[Family, str] = {
        "consensus rule": "consensus rules",
        "adjudication": "without adjudication",
        "without a rater": "without one of the raters",
    }
    counts = {family: sum(row.family == family for row in found.variations) for family in kinds}
    parts = [
        count_noun(n, kinds[family]) if family == "consensus rule" else f"{n} {kinds[family]}"
        for family, n in counts.items()
        if n
    ]
    out = f"; {len(found.left_out)} not applicable" if found.left_out else ""
    if not parts:
        return f"No alternative analysis is possible{out}"
    return f"Verdict unchanged under {found.n_agree} of {len(found.variations)} ({and_list(parts)}){out}"


def _repeated(
    contents: BookContents,
    compared: Callable[[TestSet], Comparison],
    declared: str,
    made: Callable[..., RatedBook],
) -> Iterator[tuple[Variation, BothMeans] | str]:
    """Each alternative, or why it is not applicable."""
    for family, name, changes in _alternatives(contents, declared, persons_table(contents).raters):
        try:
            rated = made(**changes)
            changed = compared(rated.testset) if rated.decided_by else None
        except CranfieldError as error:  # a scale without a map for the rule
            yield f"{family} {name}: {str(error).splitlines()[0]}"
            continue
        if changed is None:
            yield f"{family} {name}: no document has a grade"
            continue
        result = changed.measures[changed.primary]
        ends = (result.ci_low, result.ci_high)
        variation = Variation(family, name, result.delta or 0.0, *ends, result.n, changed.verdict.code)
        yield variation, BothMeans(result.baseline.mean, result.candidate.mean)


class _Changes(TypedDict, total=False):
    rule: str
    without: tuple[str, ...]
    adjudicated: bool


def _alternatives(
    contents: BookContents, declared: str, raters: Sequence[str]
) -> Iterator[tuple[Family, str, _Changes]]:
    """Family, name and what is changed."""
    for rule in CONSENSUS:
        yield "consensus rule", rule, {"rule": rule}
    if any(item.final is not None for item in contents.items):
        yield "adjudication", "not used", {"rule": declared, "adjudicated": False}
    for rater in raters if len(raters) >= MIN_RATERS else ():
        yield "without a rater", f"without {rater}", {"rule": declared, "without": (rater,)}


MEASURES = ("nDCG@10",)
SAMPLES = ("queries", "items")
"""What people's judgments may be a random sample of."""


def model_report(
    store: Store,
    book: str,
    runs: Sequence[Path] = (),
    measures: Sequence[str] | None = None,
    *,
    sample: str = "",
    options: ScoringOptions | None = None,
    seed: int = 0,
) -> ModelReport:
    """Compare the models of a book with its people.

    Args:
        store: the database.
        book: name of the book.
        runs: run files of the systems whose order is compared.
        measures: of the systems; default nDCG@10.
        sample: `queries` or `items` where the people's judgments are a random sample of them; empty: nothing is corrected.
        options: how runs are scored.
        seed: of the resamples.

    Raises:
        UnknownNameError: there is no such book.
        UsageError: an unknown kind of sample, or a book of preferences.
        RunFormatError: a run cannot be read.
    """
    if sample and sample not in SAMPLES:
        raise UsageError(f"unknown kind of sample: {sample!r}", expected=" or ".join(SAMPLES))
    for run in runs:
        with opened(run, RunFormatError):  # also where nothing is scored, because no document has both grades
            pass
    contents = contents_of(store, book)
    people = people_grades(contents)
    grades = {rater: model_grades(contents, rater) for rater in contents.models}
    scoring = _Scoring(contents, people, runs, tuple(measures or MEASURES), options or ScoringOptions())
    return ModelReport(
        book=contents.info.name,
        n_people=sum(map(len, people.values())),
        levels=scale_of(contents),
        seed=seed,
        sample=sample,
        models=tuple(compare_model(contents, rater, given, people, seed) for rater, given in grades.items()),
        orders=tuple(order for rater, given in grades.items() for order in scoring.orders(rater, given)),
        corrected=tuple(row for rater, given in grades.items() for row in scoring.corrected(rater, given, sample)),
    )


@dataclass(frozen=True)
class _Scoring:
    contents: BookContents
    people: Grades
    runs: Sequence[Path]
    measures: tuple[str, ...]
    options: ScoringOptions

    def evaluations(self, testset: TestSet) -> list[Evaluation]:
        """None where there is nothing to score."""
        if not self.runs or not testset.queries:
            return []
        return evaluate_files(testset, self.runs, self.measures, self.options)

    def orders(self, rater: str, grades: Grades) -> list[SystemOrder]:
        """The order of the systems by people and by a model, for each measure."""
        testsets = shared_testsets(self.contents, self.people, grades)
        if len(self.runs) < 2 or not testsets[0].queries:
            return []
        by_people, by_model = map(self.evaluations, testsets)
        rows = []
        for measure in self.measures:
            first, second = (tuple(each.mean(measure) for each in found) for found in (by_people, by_model))
            known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
            tau = kendall_tau([a for a, _ in known], [b for _, b in known])
            names = tuple(each.name for each in by_people)
            rows.append(SystemOrder(rater, measure, names, first, second, tau, len(by_people[0].query_ids)))
        return rows

    def corrected(self, rater: str, grades: Grades, sample: str) -> list[Corrected]:
        """The corrected means of a model."""
        if sample == "items":
            return [Corrected.of(rater, "mean grade", "documents", corrected_grade(grades, self.people))]
        if sample != "queries":
            return []
        complete = complete_queries(self.contents, grades)
        judged = complete & complete_queries(self.contents, self.people)
        by_model = {query_id: grades[query_id] for query_id in sorted(complete)}
        by_people = {query_id: self.people[query_id] for query_id in sorted(judged)}
        found = [_row(rater, "mean grade of a query", _query_means(by_model), _query_means(by_people))]
        predicted = self.evaluations(graded_testset(self.contents, "model", by_model))
        labelled = self.evaluations(graded_testset(self.contents, "people", by_people))
        for measure, (place, evaluation) in product(self.measures, enumerate(predicted)):
            values = _values(evaluation, measure)
            labels = _values(labelled[place], measure) if labelled else {}
            found.append(_row(rater, f"{measure} of {evaluation.name}", values, labels))
            if place:
                first = _values(predicted[0], measure)
                first_labels = _values(labelled[0], measure) if labelled else {}
                title = f"{measure}: {evaluation.name} minus {predicted[0].name}"
                found.append(_row(rater, title, _minus(values, first), _minus(labels, first_labels)))
        return found


def _query_means(grades: Grades) -> dict[str, float]:
    return {query_id: sum(docs.values()) / len(docs) for query_id, docs in grades.items()}


def _values(evaluation: Evaluation, measure: str) -> dict[str, float]:
    """Query id to value, of the queries that have one."""
    values = ((query_id, evaluation.value(measure, query_id)) for query_id in evaluation.query_ids)
    return {query_id: value for query_id, value in values if value is not None}


def _minus(values: dict[str, float], others: dict[str, float]) -> dict[str, float]:
    return {query_id: value - others[query_id] for query_id, value in values.items() if query_id in others}


def _row(rater: str, quantity: str, predicted: dict[str, float], labels: dict[str, float]) -> Corrected:
    mean = corrected_mean(list(predicted.values()), [labels.get(query_id) for query_id in predicted])
    return Corrected.of(rater, quantity, "queries", mean)
