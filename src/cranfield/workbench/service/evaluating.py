"""What a job does: collect and score, or compare. The answers that were collected are kept until the results are stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cranfield.app.experiment import ZERO, AnswerCache, Experiment, experiment_on
from cranfield.app.loading import options_of
from cranfield.base.errors import MeasureError, Problem, UsageError
from cranfield.config import Config
from cranfield.config.grid import with_systems
from cranfield.evaluation.latency import calls_of
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.result import ComparisonResult, result_of
from cranfield.evaluation.values import RATED_BY_SLOT, Evaluation
from cranfield.measures import Measure, deepest_cutoff, parse, parse_all
from cranfield.model import DEFAULT_CONVENTION, Run, TestSet
from cranfield.workbench.service.gating import rules_kept
from cranfield.workbench.service.requests import CompareRequest, CompareResultsRequest, EvaluateRequest, Settings
from cranfield.workbench.service.responses import JobState, StoredSource, Trigger
from cranfield.workbench.service.runs import pack_run, run_file
from cranfield.workbench.service.scoring import USUAL_MEASURES, facts_of, record_of, score, void_of
from cranfield.workbench.service.systems import ChosenSystem, chosen_systems
from cranfield.workbench.service.values import NewComparison, NewEvaluation, NewRun, SetInfo

if TYPE_CHECKING:
    from cranfield.systems import Progress
    from cranfield.workbench.service.service import Service


MOVING = "with the grades of the book {} at the time of collection; its page shows the figures with the current grades"


@dataclass(frozen=True)
class EvaluationSubject:
    """What a request is about."""

    request: EvaluateRequest
    info: SetInfo
    testset: TestSet
    key: str | None
    """Key of the test set in the config; None where it has none."""
    config: Config | None
    systems: tuple[ChosenSystem, ...]
    cache: AnswerCache
    trigger: Trigger


@contextmanager
def evaluated(
    service: Service, request: EvaluateRequest, trigger: Trigger, folder: Path, progress: Progress
) -> Iterator[list[NewEvaluation]]:
    """Evaluate as a request says; the answers stay in the folder until the block has ended.

    Args:
        service: of the database; nothing is written but the version of the test set.
        request: what is evaluated.
        trigger: a schedule measures now, so it takes no answers of the answer cache; an agent asks now, and none are kept.
        folder: of the job: an interrupted job goes on with what it holds.
        progress: notified of each answer.

    Raises:
        InputError: the test set, a run or the config, with all their problems.
        UsageError: the request.
        PreflightError: a check of a system failed; no query was sent.
        Interrupted: the same call goes on where it stopped.
    """
    # Read the test set, and store it where the config has it.
    name, at, _ = request.testset.rpartition("@")
    key = service.testsets.config_key(name if at else request.testset)
    is_current = not at and key is not None
    info = service.testsets.snapshot_of_config(request.testset) if is_current else service.testsets.get(request.testset)
    systems = chosen_systems(service, request)
    caches: dict[Trigger, AnswerCache] = {Trigger.WATCH: "refresh", Trigger.AGENT: "off"}
    cache = caches.get(trigger, "use")
    testset = service.testsets.load_id(info.id or 0)
    subject = EvaluationSubject(request, info, testset, key, service.config(), systems, cache, trigger)
    experiment = _by_slot(_experiment(subject))
    if not request.book:
        experiment.check()
    with ExitStack() as stack:
        runs: dict[str, Run] = {}
        if subject.systems:
            collected = experiment.collected(folder, pilot=request.pilot, progress=progress)
            runs = stack.enter_context(collected)
        found = [_of_system(service, subject, experiment, each, runs[each.name]) for each in subject.systems]
        found += [_of_run(service, subject, experiment, run_id) for run_id in request.runs]
        yield found


def compared(service: Service, request: CompareRequest | CompareResultsRequest) -> NewComparison:
    """Compare two stored evaluations as a request says.

    Raises:
        UsageError: the two do not belong together, or the jobs did not make two.
    """
    if isinstance(request, CompareResultsRequest):
        request = _of_results(service, request)
    comparison = service.comparisons.compare(request)
    record = cast("ComparisonResult", result_of(comparison, with_answers=True))
    return NewComparison(request, record, calls_of(comparison.evaluations, comparison))


def _of_results(service: Service, request: CompareResultsRequest) -> CompareRequest:
    """The comparison of what jobs made.

    Raises:
        UsageError: they did not make two evaluations.
    """
    jobs = [service.jobs.get(number) for number in request.jobs]
    if problems := [
        Problem(f"job {job.id}, whose result is to be compared, is {job.state}", hint="retry it, then retry this job")
        for job in jobs
        if job.state != JobState.DONE
    ]:
        raise UsageError(problems)
    made = [number for job in jobs for number in job.results]
    if len(made) != 2:
        raise UsageError("the jobs did not make two evaluations", got=str(len(made)))
    options = request.model_dump(exclude={"jobs"})
    return CompareRequest(baseline=made[0], candidate=made[1], **options)


def _experiment(subject: EvaluationSubject) -> Experiment:
    """The experiment of a request: the settings of the config, with those of the request in their place."""
    request, config = subject.request, subject.config
    if config is None:
        spelled = [*(request.measures or ()), *([request.primary] if request.primary else ())]
        built = Experiment(
            subject.testset,
            (),
            k=request.k or deepest_cutoff(spelled),
            measures=request.measures,
            scoring=replace(ZERO, convention=request.convention or DEFAULT_CONVENTION),
            declared=CompareOptions(primary=_primary(request)),
        )
        return _with_measures(built)
    chosen = config.settings_of(subject.key)
    given = {"k": request.k, "measures": request.measures and list(request.measures), "primary": _primary(request)}
    if request.measures:
        chosen = chosen.model_copy(update={"primary": None})
    chosen = chosen.model_copy(update={name: value for name, value in given.items() if value is not None})
    varied = with_systems(config, {system.name: system.config for system in subject.systems})
    if request.convention is not None:
        varied = varied.model_copy(update={"convention": request.convention})
    names = [system.name for system in subject.systems]
    depth = options_of(chosen.options, config.folder).depth
    built = experiment_on(subject.testset, varied, chosen, names, seed=request.seed, cache=subject.cache)
    return _with_measures(replace(built, scoring=replace(built.scoring, depth=depth)))


def _with_measures(experiment: Experiment) -> Experiment:
    """The experiment with the usual measures, as far as the test set allows them, where none were named."""
    if experiment.measures is not None:
        return experiment
    allowed = set(experiment.dry.measures)
    if parse("RR@10") not in allowed:
        return experiment  # the library chooses, and notes what it leaves out
    allowed.add(parse("RR"))
    usual = [name for name in USUAL_MEASURES if parse(name) in allowed or _is_allowed(experiment, name)]
    return replace(experiment, measures=usual)


def _is_allowed(experiment: Experiment, spelling: str) -> bool:
    """Whether the test set allows a measure that has no value for a run without results."""
    try:
        return bool(replace(experiment, measures=[spelling]).dry.measures)
    except MeasureError:
        return False


def _left_out(subject: EvaluationSubject, experiment: Experiment) -> Iterator[str]:
    """A note about usual measures that no query of the test set allows."""
    config = subject.config
    named = subject.request.measures or (None if config is None else config.settings_of(subject.key).measures)
    missing = [name for name in USUAL_MEASURES if name not in (experiment.measures or USUAL_MEASURES)]
    if named is None and missing:
        yield f"no query of the test set allows {', '.join(missing)}"


def _by_slot(experiment: Experiment) -> Experiment:
    """The experiment; where raters graded and each measure has its own scale, what is not graded is null, as in the book."""
    is_by_slot = experiment.scoring.convention_name == RATED_BY_SLOT and bool(experiment.testset.ratings)
    if not is_by_slot:
        return experiment
    return replace(experiment, scoring=replace(experiment.scoring, missing=None, failed=None))


def _primary(request: EvaluateRequest) -> str | None:
    """The primary measure of a request; in a book it cannot be the first that has a value."""
    return request.primary or (request.measures[0] if request.book and request.measures else None)


def _of_system(
    service: Service, subject: EvaluationSubject, experiment: Experiment, system: ChosenSystem, run: Run
) -> NewEvaluation:
    """The evaluation of answers that were collected now."""
    run = replace(run, name=system.label)
    content = pack_run(run)
    new = NewRun(run.name, run.digest, content, len(run.answers))
    with run_file(content, "jsonl") as path:
        made = _scored(service, subject, experiment, (system.label, path, "jsonl", new))
    return replace(
        made,
        system=system.name,
        variant=system.variant,
        components=",".join(subject.request.components),
        config_digest=run.config_digest or "",
        configured=_is_configured(service, subject, experiment),
    )


def _is_configured(service: Service, subject: EvaluationSubject, experiment: Experiment) -> bool:
    """Whether metrics and alerts follow the evaluation: a try must not raise an alert, and must not end one."""
    request = subject.request
    if request.pilot or request.book or request.params or service.testsets.get(subject.info.name).id != subject.info.id:
        return False
    declared = EvaluateRequest(testset=request.testset)
    usual = _experiment(replace(subject, request=declared))
    return subject.trigger == Trigger.WATCH or _identity(experiment) == _identity(_by_slot(usual))


def _identity(experiment: Experiment) -> tuple[frozenset[Measure], Settings]:
    """What scores a run, however its measures are spelled and in whatever order."""
    measures = frozenset(experiment.dry.measures if experiment.measures is None else parse_all(experiment.measures))
    return measures, replace(Settings.of(experiment), measures=None)


def _of_run(service: Service, subject: EvaluationSubject, experiment: Experiment, run_id: int) -> NewEvaluation:
    """The evaluation of a stored run; answers of a system stay those of its variant, components and config, and of a pilot."""
    with service.runs.file(run_id) as (info, path):
        first = service.evaluations.first_of_run(run_id) if info.source is StoredSource.COLLECTED else None
        if first is not None:
            components = tuple(filter(None, first.components.split(",")))
            kept = {"pilot": subject.request.pilot or first.pilot, "components": components}
            subject = replace(subject, request=subject.request.model_copy(update=kept))
        made = _scored(service, subject, experiment, (info.name, path, info.format, run_id))
    if first is None:
        return made
    names = ("system", "variant", "components", "config_digest")
    return replace(made, **{name: getattr(first, name) for name in names})


def _scored(
    service: Service, subject: EvaluationSubject, experiment: Experiment, run: tuple[str, Path, str, NewRun | int]
) -> NewEvaluation:
    request, (name, path, run_format, stored) = subject.request, run
    settings = Settings.of(experiment, name=name, pilot=request.pilot)
    book_id, evaluation = None, None
    if request.book:
        settings, book_id, evaluation = _in_book(service, subject, settings, path, run_format)
    evaluation = evaluation or score(settings, subject.testset, path, run_format)
    if request.book:
        evaluation = replace(evaluation, warnings=(MOVING.format(request.book), *evaluation.warnings))
    # the rules are for the whole system, on all queries, with their grades
    config = None if request.pilot or request.components or request.book else subject.config
    rules, undecided = rules_kept(service, config, subject.key, experiment, evaluation, subject.info.name)
    notes = (*evaluation.warnings, *undecided, *_left_out(subject, experiment))
    evaluation = replace(evaluation, warnings=notes)
    return NewEvaluation(
        testset=subject.info.id or 0,
        run=stored,
        system=name,
        settings=settings,
        record=record_of(evaluation),
        calls=calls_of((evaluation,)),
        facts=facts_of(evaluation, rules),
        void=void_of(evaluation, settings),
        book_id=book_id,
        tags=request.tags,
        note=request.note,
    )


def _in_book(
    service: Service, subject: EvaluationSubject, settings: Settings, path: Path, run_format: str
) -> tuple[Settings, int, Evaluation]:
    """Put the results into the book of the request, and score them by its grades."""
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.workbench.service.runs import read_stored_run
    from cranfield.workbench.service.snapshot import take_snapshot

    run = replace(read_stored_run(path, run_format), name=settings.name)
    documents = service.workbench.with_documents_of(service.config())
    with closing(DocumentTexts(documents)) as texts:  # what raters see decides whether a document has changed
        runs, name = {run.name: run}, subject.request.book
        book = take_snapshot(service.store, name, subject.testset, runs, settings.k, texts=texts)
    settings = replace(settings, book=name, newest_item=service.store.reading.newest_item(book.id))
    return settings, book.id, service.evaluations.score_in_book(book.id, settings, subject.testset, run)
