"""Stored comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from cranfield.books.store.rows import as_value
from cranfield.evaluation.result import ComparisonResult, without_queries
from cranfield.measures.measure import KEEP_UNKNOWN
from cranfield.model.results import from_jsonable, to_json, to_jsonable
from cranfield.workbench.service.requests import CompareRequest
from cranfield.workbench.service.store.blobs import ServicePart, account_names, blob_json, keep_blob, row_of
from cranfield.workbench.service.store.evaluations import evaluation_infos
from cranfield.workbench.service.store.schema import Job, StoredComparison, StoredEvaluation
from cranfield.workbench.service.values import ComparisonInfo, Json, NewComparison


class StoredComparisons(ServicePart):
    """Comparisons of two evaluations."""

    def all(
        self, *, evaluation: int | None = None, limit: int = 100, before: int | None = None
    ) -> tuple[ComparisonInfo, ...]:
        """The latest first.

        Args:
            evaluation: of this one, on either side.
            limit: most of them.
            before: ids under this one: the next page.
        """
        row = StoredComparison
        query = select(row).order_by(row.id.desc()).limit(limit)
        if evaluation is not None:
            query = query.where((row.baseline_id == evaluation) | (row.candidate_id == evaluation))
        if before is not None:
            query = query.where(row.id < before)
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def get(self, comparison_id: int) -> ComparisonInfo:
        """A comparison.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self._database.read() as session:
            return _info(session, _row(session, comparison_id))

    def for_job(self, job_id: int) -> ComparisonInfo | None:
        """The comparison that a job made."""
        with self._database.read() as session:
            row = session.scalar(select(StoredComparison).where(StoredComparison.job_id == job_id))
            return None if row is None else _info(session, row)

    def of_runs(self, baseline: int, candidate: int) -> tuple[ComparisonInfo, ...]:
        """The comparisons of two stored runs, on whichever test sets, the latest first."""
        sides = aliased(StoredEvaluation), aliased(StoredEvaluation)
        query = (
            select(StoredComparison)
            .join(sides[0], sides[0].id == StoredComparison.baseline_id)
            .join(sides[1], sides[1].id == StoredComparison.candidate_id)
            .where(sides[0].run_id == baseline, sides[1].run_id == candidate)
            .order_by(StoredComparison.id.desc())
        )
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def payload(self, comparison_id: int) -> Json:
        """The JSON of the comparison, with every query."""
        with self._database.read() as session:
            return blob_json(session, _row(session, comparison_id).payload)

    def calls(self, comparison_id: int) -> Json:
        """The JSON of the calls of both sides."""
        with self._database.read() as session:
            return blob_json(session, _row(session, comparison_id).calls)


def _row(session: Session, comparison_id: int) -> StoredComparison:
    return row_of(session, StoredComparison, comparison_id, "comparison")


def _info(session: Session, row: StoredComparison) -> ComparisonInfo:
    return _infos(session, [row])[0]


def _infos(session: Session, rows: Sequence[StoredComparison]) -> tuple[ComparisonInfo, ...]:
    """Comparisons as values: four queries, however many comparisons."""
    sides = {side for row in rows for side in (row.baseline_id, row.candidate_id)}
    found = session.scalars(select(StoredEvaluation).where(StoredEvaluation.id.in_(sides))).all()
    evaluations = {info.id: info for info in evaluation_infos(session, found)}
    names = account_names(session, (row.account_id for row in rows))
    return tuple(
        as_value(
            ComparisonInfo,
            row,
            baseline=evaluations[row.baseline_id],
            candidate=evaluations[row.candidate_id],
            request=CompareRequest.model_validate(row.request),
            record=from_jsonable(ComparisonResult, row.record, KEEP_UNKNOWN),
            account=names[row.account_id],
        )
        for row in rows
    )


def add_comparison(session: Session, job: Job, made: NewComparison, now: int) -> None:
    """Store the comparison that a job made."""
    row = StoredComparison(
        job_id=job.id,
        baseline_id=made.request.baseline,
        candidate_id=made.request.candidate,
        request=made.request.model_dump(mode="json"),
        record=to_jsonable(without_queries(made.record)),
        payload=keep_blob(session, to_json(made.record).encode()),
        calls=keep_blob(session, to_json(made.calls).encode()),
        at=now,
        account_id=job.account_id,
    )
    session.add(row)
