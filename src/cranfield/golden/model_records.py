"""The records of the models of a run, for the test that retires a model: which of them were rejected.

Only the oracle and the adversary are tested. Authors write half as many candidates again as are wanted, and a rejected
candidate is no failure of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cranfield.golden.agreement import QueueReason
from cranfield.golden.index import RunIndex
from cranfield.golden.retirement import ModelRecord
from cranfield.golden.states import State
from cranfield.model.review import ReviewVerdict

ORACLE, ADVERSARY = "oracle", "adversary"
_ACCEPTED = frozenset({State.PASSED, State.KEPT})
_REJECTED = frozenset({State.NO_ANSWER, State.GATE_FAILED, State.BLOCKED, State.DROPPED})
_SERIOUS = frozenset({ReviewVerdict.MAJOR_ISSUE, ReviewVerdict.WRONG})
_CARELESS = frozenset(
    {
        QueueReason.SILENT,
        QueueReason.NO_CITATION,
        QueueReason.BAD_CITATION,
        QueueReason.UNREAD_CITATION,
        QueueReason.UNREAD_CLAIM,
    }
)
"""Faults of a report, whatever it says of the answer."""


def model_records(index: RunIndex) -> list[ModelRecord]:
    """Of the oracle and the adversary of a run, in the order of its candidates; without records that are undecided.

    A record of the oracle is rejected where it gave no answer, the gate or the adversary stopped it, or people dropped it or
    found it seriously wrong. One of the adversary is where it gave no report, left claims without a verdict that holds, or
    passed what people found seriously wrong.
    """
    return [record for status in index.statuses() for record in _of_status(index, status.query_id)]


def _of_status(index: RunIndex, query_id: str) -> Iterator[ModelRecord]:
    models = index.folder.manifest.models
    status = index.status(query_id)
    reviews = index.reviews.get(query_id, [])
    is_serious = bool(reviews) and reviews[-1].verdict in _SERIOUS
    answer = index.answers.get(query_id, status.attempt)
    if answer is None or not answer.imported_from:
        model = answer.model if answer is not None else models.get(ORACLE, "")
        if model and (status.state in _ACCEPTED | _REJECTED):
            yield ModelRecord(ORACLE, model, query_id, status.state in _REJECTED or is_serious)
    report = index.reports.get(query_id, status.attempt)
    agreement = index.agreements.get(query_id, status.attempt)
    if status.state is State.NO_REPORT and models.get(ADVERSARY):
        yield ModelRecord(ADVERSARY, models[ADVERSARY], query_id, is_rejected=True)
    elif report is not None and agreement is not None:
        is_careless = bool(_CARELESS & set(agreement.kinds))
        yield ModelRecord(
            ADVERSARY, report.model, query_id, is_careless or (is_serious and agreement.outcome == "passed")
        )


def kept_records(records: Iterable[ModelRecord]) -> list[dict[str, str]]:
    """As the metadata of a version keep them: a digit a record, 1 where it was rejected."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        found.setdefault((record.role, record.model), []).append(str(int(record.is_rejected)))
    return [{"role": role, "model": model, "rejected": "".join(digits)} for (role, model), digits in found.items()]


def read_kept(entries: Sequence[Mapping[str, Any]]) -> list[ModelRecord]:
    """The records of `kept_records`, without their ids."""
    return [
        ModelRecord(str(entry["role"]), str(entry["model"]), "", digit == "1")
        for entry in entries
        for digit in str(entry["rejected"])
    ]
