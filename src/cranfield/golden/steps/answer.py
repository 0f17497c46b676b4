"""Oracle and gate: the canonical answer of a candidate, and the mechanical checks of it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from cranfield.agents.recording import now
from cranfield.golden.folder import Step
from cranfield.golden.gate import GateCheck, RecordGateReport, gate
from cranfield.golden.outcomes import GateFailure, RecordFinding
from cranfield.golden.records import OracleAnswer
from cranfield.golden.roles import GoldenRole, oracle_task
from cranfield.golden.states import State
from cranfield.golden.steps.context import NoOutputError, RoleJob, StepContext


async def answer(context: StepContext, query_id: str) -> None:
    """Ask the oracle, and write its answer, or why there is none.

    Raises:
        WaitingError: a later run may get an answer.
    """
    candidate = context.index.candidates[query_id]
    job = RoleJob(query_id, GoldenRole.ORACLE, context.index.attempt(query_id))
    feedback = context.feedback_of(candidate.task_type, candidate.difficulty, query_id)
    hint = context.index.hint(query_id)
    task = oracle_task(context.settings(GoldenRole.ORACLE), candidate, context.prompts, feedback=feedback, hint=hint)
    try:
        transcript = await context.ask(job, task, candidate.task_type)
        found = OracleAnswer(
            **context.made(job, transcript, candidate.task_type),
            task_type=candidate.task_type,
            difficulty=candidate.difficulty,
            authored_by=f"agent:oracle:{task.model}",
            created_at=now(),
        )
    except NoOutputError as error:
        context.reject(query_id, State.NO_ANSWER, [error.finding])
    except ValidationError as error:
        reasons = [RecordFinding(kind="invalid_answer", message=each["msg"]) for each in error.errors()]
        context.reject(query_id, State.NO_ANSWER, reasons)
    else:
        context.index.add(Step.ANSWERS, found)
        context.report(query_id)


def check_answer(context: StepContext, query_id: str) -> bool:
    """Run the gate; a failure is written with every check that failed."""
    report = gate_report(context, query_id)
    if report.passed:
        return True
    failure = GateFailure(
        query_id=query_id,
        attempt=context.index.attempt(query_id),
        at=now(),
        failures=_findings(report, report.failed),
        missing=_findings(report, report.missing),
    )
    context.index.add(Step.GATE_FAILURES, failure)
    context.report(query_id)
    return False


def gate_report(context: StepContext, query_id: str) -> RecordGateReport:
    """What the gate finds of the answer to a candidate."""
    attempt = context.index.attempt(query_id)
    found = context.index.answers[query_id, attempt]
    reads = None if found.imported_from else context.reads(RoleJob(query_id, GoldenRole.ORACLE, attempt)) or ()
    shown = None if reads is None else [read for _, read in reads]
    return gate(context.index.candidates[query_id], found, shown, context.source, context.plan.bounds)


def _findings(report: RecordGateReport, checks: Sequence[GateCheck]) -> tuple[RecordFinding, ...]:
    return tuple(
        RecordFinding(kind=check, message=problem) for check in checks for problem in report.checks[check].problems
    )
