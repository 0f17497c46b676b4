"""An experiment scored, and its result written: the steps after its cells are run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cranfield.agents.budget import Budget, PriceList, Spent
from cranfield.agents.connect import connected
from cranfield.agents.kept import Kept, charge
from cranfield.agents.protocol import Backend
from cranfield.answers.judge import Judge, JudgeSettings
from cranfield.benefit.assemble import assemble, last_scores
from cranfield.benefit.folder import ExperimentFolder, Step
from cranfield.benefit.plan import BenefitPlan
from cranfield.benefit.records import ScoreReason, ScoreRecord, deciding_facts
from cranfield.benefit.redaction import LeakFinder, redaction_of
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.result_file import read_result, write_result
from cranfield.benefit.schedule import schedule
from cranfield.benefit.score import Checkers, Scorer, SealedAnswer, seal, unscored, unseal
from cranfield.benefit.source import TreeCheck, record_tree
from cranfield.benefit.validity import Evidence
from cranfield.codecheck.registry import checker_for
from cranfield.concurrency.loop import event_loop
from cranfield.errors import UsageError
from cranfield.formats.io.files import shown
from cranfield.project.benefit_history import remember_result
from cranfield.words import first_of, n_of

JUDGE_CALLS = "judge.jsonl"
"""Answers of the judge, by their requests: one file for both arms."""


@dataclass(frozen=True, slots=True)
class ScoringOutcome:
    """What a call of the scorer did."""

    n_cells: int
    """Of the experiment, that have ended."""
    n_scored: int
    """By this call."""
    n_undecided: int
    """Of all."""
    n_leaks: int
    """Answers of all that name a tool or an arm, which was removed."""
    n_failed: int
    """Of the undecided, those whose judge failed."""
    first_missing: str
    """Cell and statement of the first vote that is missing, and what came instead; empty: none is."""
    judge: Judge | None
    """That this call asked; None: the plan has none."""
    spent: Spent
    """What the judge used, by all calls."""
    prices: PriceList


def score_experiment(path: Path, *, checkers: Checkers | None = None, source: Backend | None = None) -> ScoringOutcome:
    """Score the cells that have ended and have no score, or one that may be decided now.

    Args:
        path: folder of the experiment.
        checkers: target of code to its checker; default: those of the plan and of the package.
        source: answers in the place of the judge, for tests.

    Raises:
        UsageError: there is no experiment, or another process writes in it.
        InputError: a file of it is damaged.
    """
    with ExperimentFolder.writing(path) as folder:
        record_tree(folder, "score")
        return event_loop().run(_score(folder, checkers, source))


def configured_checkers(plan: BenefitPlan) -> Checkers:
    """The checkers of the plan and of the package."""
    return partial(checker_for, configured=plan.success.checkers)


async def _score(folder: ExperimentFolder, checkers: Checkers | None, source: Backend | None) -> ScoringOutcome:
    plan, tasks, runs = folder.plan, folder.tasks(), folder.cells()
    cells = {run.key: run for run in runs if run.end.is_scored}
    redact = redaction_of(plan, runs, folder.preflights())
    before = last_scores(folder.scores())
    sealed = seal(unscored(list(cells.values()), before.values()), plan.seed)
    leaks = LeakFinder(redact, tasks)
    budget = Budget(plan.budget.judge_tokens, plan.budget.judge_money, plan.budget.prices)
    async with AsyncExitStack() as stack:
        judge = await _judge(plan, folder.path, budget, stack, source)
        checks = checkers or configured_checkers(plan)
        scorer = Scorer(tasks, plan.success, redact=redact, judge=judge, checkers=checks)

        async def score(answer: SealedAnswer) -> None:
            found = {answer.sealed_id: await scorer.score(answer)}
            for record in unseal(sealed, found, cells, tasks, leaks):
                known = before.get(record.key)
                if known is None or known.model_dump_json() != record.model_dump_json():
                    folder.append(Step.SCORES, record)

        async with asyncio.TaskGroup() as group:
            for answer in sealed.answers:
                group.create_task(score(answer))
    scores = last_scores(folder.scores()).values()
    return ScoringOutcome(
        len(cells),
        len(sealed.answers),
        sum(score.success is None for score in scores),
        sum(bool(score.redacted) for score in scores),
        sum(score.why is ScoreReason.JUDGE_FAILED for score in scores),
        next(_missing(scores), ""),
        judge,
        budget.spent,
        budget.prices,
    )


def _missing(scores: Iterable[ScoreRecord]) -> Iterator[str]:
    for score in scores:
        if score.why is ScoreReason.JUDGE_FAILED:
            for fact in deciding_facts(score.why, score.facts):
                yield from (f"{score.key}, {fact.id}: {vote.problem}" for vote in fact.votes if vote.problem)


async def _judge(
    plan: BenefitPlan, folder: Path, budget: Budget, stack: AsyncExitStack, source: Backend | None
) -> Judge | None:
    """The judge of the plan, within a budget; None: it has none, or needs none."""
    settings = plan.judge
    if settings is None:
        return None
    backend = await stack.enter_async_context(connected(settings.connection, budget, source))
    kept = stack.enter_context(closing(Kept(folder / JUDGE_CALLS, backend, keeps_rejections=False)))
    charge(budget, kept.usages())
    more = {} if settings.max_tokens is None else {"max_tokens": settings.max_tokens}
    judge_settings = JudgeSettings(
        settings.model,
        plan.success.judge_votes,
        settings.temperature,
        settings.seed or 0,
        settings.output_mode,
        settings.concurrency,
        timeout_s=settings.timeout_s,
        attempts=settings.attempts,
        **more,
    )
    return Judge(kept, judge_settings)


def result_of(path: Path) -> BenefitResult:
    """The result of an experiment, of the pairs that are complete.

    Raises:
        UsageError: there is no experiment, no cell of it ended, or cells are not scored.
        InputError: a file of it is damaged.
    """
    folder = ExperimentFolder.open(path)
    plan, tasks, runs = folder.plan, folder.tasks(), folder.cells()
    scores = last_scores(folder.scores())
    ended = [run.key for run in runs if run.end.is_scored]
    if not ended:
        raise UsageError(
            "no cell of this experiment has ended",
            path=shown(path),
            hint=f"`cranfield benefit run --resume {shown(path)}` goes on with it",
        )
    if missing := [str(key) for key in ended if key not in scores]:
        hint = f"score them first: cranfield benefit score {shown(path)}"
        raise UsageError(
            f"{n_of(len(missing), 'cells')} without a score", path=shown(path), got=first_of(missing), hint=hint
        )
    evidence = Evidence(
        plan,
        schedule(plan, tasks.tasks),
        runs,
        scores,
        folder.preflights(),
        tasks.commit,
        folder.manifest.commit,
        folder.manifest.tree,
        folder.read(Step.TREES, TreeCheck),
    )
    return assemble(evidence, tasks, run=path.resolve().name)


def publish(result: BenefitResult, folder: Path) -> tuple[Path, str | None]:
    """Write a result under its version, and add it to the history of the folder.

    Returns:
        The file, and why the history was not written; None where it was.
    """
    path = write_result(result, folder)
    return path, remember_result(read_result(path), path)
