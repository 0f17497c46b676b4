"""Adversary and judge: the attempt to falsify an answer, the comparison of the narrative, and what both come to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from fractions import Fraction

from cranfield.agents.loop import Transcript
from cranfield.agents.recording import now
from cranfield.golden.agreement import (
    LabelAgreement,
    LabelOutcome,
    ReviewedSource,
    agree,
    compare_structure,
    is_spot_checked,
    needs_judge,
)
from cranfield.golden.folder import Step
from cranfield.golden.outcomes import AgreementRecord, QueueEntry, RecordFinding
from cranfield.golden.records import AdversaryReport, NarrativeJudgment, OracleAnswer
from cranfield.golden.roles import GoldenRole, adversary_task, judge_task
from cranfield.golden.states import State
from cranfield.golden.steps.context import NoOutputError, RoleJob, StepContext


async def review(context: StepContext, query_id: str) -> None:
    """Ask the adversary, and write its report, or why there is none.

    Raises:
        WaitingError: a later run may get a report.
    """
    candidate, answer = context.index.candidates[query_id], _answer(context, query_id)
    job = RoleJob(query_id, GoldenRole.ADVERSARY, answer.attempt)
    task = adversary_task(context.settings(GoldenRole.ADVERSARY), candidate, answer, context.prompts)
    try:
        transcript = await context.ask(job, task, candidate.task_type)
    except NoOutputError as error:
        context.reject(query_id, State.NO_REPORT, [error.finding])
        return
    report = AdversaryReport(
        **context.made(job, transcript, candidate.task_type),
        reviewed_by=f"agent:adversary:{task.model}",
        reviewed_at=now(),
    )
    context.index.add(Step.REPORTS, report)
    context.report(query_id)


async def conclude(context: StepContext, query_id: str) -> None:
    """Compare answer and report, with the votes of the judge where they can decide; queue what does not pass.

    Raises:
        WaitingError: a later run may get the votes.
    """
    answer, report = _answer(context, query_id), _report(context, query_id)
    read = context.reads(RoleJob(query_id, GoldenRole.ADVERSARY, answer.attempt))
    source = ReviewedSource(
        lambda path: None if (lines := context.source.lines(path)) is None else len(lines),
        None if read is None else [each for _, each in read],
    )
    transcripts: list[Transcript] = []
    if needs_judge(answer, compare_structure(answer, report, source)):
        try:
            transcripts = await _votes(context, answer, report)
        except NoOutputError as error:
            context.reject(query_id, State.NO_RATING, [error.finding])
            return
    ratings = [each.output for each in transcripts if isinstance(each.output, NarrativeJudgment)]
    record = _record(context, answer, agree(answer, report, ratings, source), transcripts)
    context.index.add(Step.AGREEMENTS, record)
    queue(context, record)
    context.report(query_id)


def queue(context: StepContext, record: AgreementRecord) -> None:
    """Write a record that did not pass to the queue of people, unless it is there."""
    if record.outcome is not LabelOutcome.PASSED and context.index.queue.get(record.query_id, record.attempt) is None:
        entry = QueueEntry(
            query_id=record.query_id, attempt=record.attempt, at=now(), outcome=record.outcome, reasons=record.reasons
        )
        context.index.add(Step.REVIEW_QUEUE, entry)


async def _votes(context: StepContext, answer: OracleAnswer, report: AdversaryReport) -> list[Transcript]:
    candidate = context.index.candidates[answer.query_id]
    task = judge_task(context.settings(GoldenRole.JUDGE), candidate, answer, report, context.prompts)

    async def vote(number: int) -> Transcript:
        job = RoleJob(answer.query_id, GoldenRole.JUDGE, answer.attempt, number)
        seed = task.sampling.seed if number == 1 else (task.sampling.seed or context.plan.seed) + number
        return await context.ask(job, replace(task, sampling=replace(task.sampling, seed=seed)), answer.task_type)

    votes = (vote(number) for number in range(1, context.plan.judge_votes + 1))
    found = await asyncio.gather(*votes, return_exceptions=True)  # a vote that is under way is not given up
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if isinstance(each, Transcript)]


def _record(
    context: StepContext, answer: OracleAnswer, agreement: LabelAgreement, transcripts: list[Transcript]
) -> AgreementRecord:
    seed, share = context.plan.seed, Fraction(str(context.plan.spot_check))
    return AgreementRecord(
        query_id=answer.query_id,
        attempt=answer.attempt,
        at=now(),
        outcome=agreement.outcome,
        reasons=tuple(RecordFinding(kind=each.kind, message=each.message) for each in agreement.disagreements),
        jaccard_entities=float(agreement.entities.jaccard),
        jaccard_files=float(agreement.files.jaccard),
        missing_entities=agreement.entities.missing,
        missing_files=agreement.files.missing,
        ratings=tuple(each.output for each in transcripts if isinstance(each.output, NarrativeJudgment)),
        judge=transcripts[0].task.model if transcripts else "",
        spot_check=bool(transcripts) and is_spot_checked(answer.query_id, seed, share),
        cost=context.cost(transcripts) if transcripts else None,
    )


def _answer(context: StepContext, query_id: str) -> OracleAnswer:
    return context.index.answers[query_id, context.index.attempt(query_id)]


def _report(context: StepContext, query_id: str) -> AdversaryReport:
    return context.index.reports[query_id, context.index.attempt(query_id)]
