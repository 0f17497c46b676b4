"""Replies of a function as JSON values and back: what its process sends. The answer is the record of run files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.formats.runs.record import answer_from_record, answer_record
from cranfield.model import Answer, Outcome
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.configured import Reply


@dataclass(frozen=True, slots=True)
class FailedCheck(Reply):
    """The function cannot be loaded, or cannot be called as it would be."""

    expected: str = ""
    found: str = ""
    hint: str | None = None

    @property
    def error(self) -> CheckFailedError:
        """The same as an exception."""
        return CheckFailedError(self.expected, self.found, self.hint)


def failed_check(error: CheckFailedError) -> FailedCheck:
    """A reply of an exception."""
    answer = Answer(Outcome.ERROR, reason=f"{error.expected}: {error.found}")
    return FailedCheck(answer=answer, expected=error.expected, found=error.found, hint=error.hint)


def reply_record(reply: Reply) -> dict[str, Any]:
    """A reply as JSON values."""
    if isinstance(reply, FailedCheck):
        return {"check_failed": {"expected": reply.expected, "found": reply.found, "hint": reply.hint}}
    record: dict[str, Any] = {"output": reply.output, "stderr": reply.stderr, "may_retry": reply.may_retry}
    return record if reply.answer is None else {**record, "answer": answer_record("", reply.answer)}


def reply_from_record(record: Mapping[str, Any]) -> Reply:
    """The reply of which `reply_record` made a record. The record is not trusted.

    Raises:
        RunFormatError: the answer is no answer.
        ValueError: something else is not what it should be.
    """
    check = record.get("check_failed")
    if check is not None:
        if not isinstance(check, dict):
            raise ValueError(check)
        expected, found, hint = (check.get(key) for key in ("expected", "found", "hint"))
        return failed_check(CheckFailedError(str(expected), str(found), None if hint is None else str(hint)))
    output, stderr, may_retry = (record.get(key) for key in ("output", "stderr", "may_retry"))
    if not (isinstance(output, str) and isinstance(stderr, str) and isinstance(may_retry, bool)):
        raise ValueError(record)  # noqa: TRY004 - one kind for all
    answer = answer_from_record(record["answer"])[1] if "answer" in record else None
    return Reply(output, stderr, answer, may_retry)
