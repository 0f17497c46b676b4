"""The catalogue of errors of cells: what each is known by, whether it is scored, and whether the cell is run again.

The first entry that fits counts. What the agent brings about (an answer that is too long, a refusal) is a failure of its
arm, and is scored; what the machine or a server brings about is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from cranfield.agents.protocol import Failure, FailureKind
from cranfield.benefit.records import CellEnd

OUTAGES_IN_A_ROW = 5


class CellError(StrEnum):
    """Name of an error."""

    BUDGET = "budget"
    NOT_RECORDED = "not_recorded"
    AUTHENTICATION = "authentication"
    MODEL_MISSING = "model_missing"
    AGENT_MISSING = "agent_missing"
    CONTEXT_WINDOW = "context_window"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    REQUEST_TIMEOUT = "request_timeout"
    CONNECTION = "connection"
    PROTOCOL = "protocol"
    TOOL_NOT_STARTED = "tool_not_started"
    TOOL_CHANGED = "tool_changed"
    TOOL_LOST = "tool_lost"
    AGENT_CRASHED = "agent_crashed"
    OUT_OF_DISK = "out_of_disk"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    BAD_OUTPUT = "bad_output"
    EMPTY_ANSWER = "empty_answer"
    REJECTED = "rejected"


class Retry(StrEnum):
    """What follows an error."""

    SCORED = "scored"
    """Nothing: it is a failure of the cell."""
    AGAIN = "again"
    """The cell is run again, as often as the plan allows."""
    AGAIN_IF_UP = "again_if_up"
    """As `again`; after `OUTAGES_IN_A_ROW` runs of any cells in a row the others would end the same way, and none is begun."""
    NOT_NOW = "not_now"
    """Another attempt would end the same way: the cell waits for the next call."""
    STOP = "stop"
    """So would every other cell: none is begun."""


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """An entry of the catalogue."""

    name: CellError
    meaning: str
    """For reports."""
    retry: Retry
    end: CellEnd = CellEnd.INFRASTRUCTURE
    kinds: tuple[FailureKind, ...] = ()
    """Failures of requests that it is known by."""
    statuses: tuple[int, ...] = ()
    """HTTP statuses of these failures; empty: any."""
    says: str = ""
    """What the message of these failures must say, as a regular expression; empty: anything."""
    output: str = ""
    """Fingerprint in what a program printed; empty: none."""

    @property
    def is_outage(self) -> bool:
        """Whether it may be that of a server that is down."""
        return self.retry is Retry.AGAIN_IF_UP

    def fits(self, failure: Failure) -> bool:
        """Whether a failure of a request is of this class."""
        is_of_status = not self.statuses or failure.status in self.statuses
        foreign = failure.message  # in the words of a server: there is nothing else to tell some of them apart
        return failure.kind in self.kinds and is_of_status and bool(_search(self.says, foreign))


_TOO_LONG = (
    r"context (length|window|size)|maximum context|context_length_exceeded|prompt is too long|input is too long"
    r"|too many (input )?tokens|exceeds? the (model'?s )?(maximum|max|limit)"
)
CATALOGUE: tuple[ErrorClass, ...] = (
    ErrorClass(CellError.BUDGET, "the budget limit was reached", Retry.STOP, kinds=(FailureKind.BUDGET,)),
    ErrorClass(
        CellError.NOT_RECORDED,
        "the replayed recording does not contain a request",
        Retry.NOT_NOW,
        kinds=(FailureKind.NOT_RECORDED,),
    ),
    ErrorClass(
        CellError.AUTHENTICATION,
        "the key of the model is missing or not accepted",
        Retry.STOP,
        kinds=(FailureKind.REJECTED,),
        statuses=(401, 402, 403),
        output=(
            r"invalid (x-)?api[ _-]?key|incorrect api key|unauthori[sz]ed|authentication_error|not logged in"
            r"|please run /login|insufficient[_ ]quota|credit balance is too low"
        ),
    ),
    ErrorClass(
        CellError.MODEL_MISSING,
        "the server does not have this model, or serves no models at this address",
        Retry.AGAIN_IF_UP,
        kinds=(FailureKind.REJECTED,),
        statuses=(404,),
        output=r"model_not_found",
    ),
    ErrorClass(
        CellError.CONTEXT_WINDOW,
        "the conversation exceeds the context window of the model",
        Retry.SCORED,
        CellEnd.TOKENS,
        kinds=(FailureKind.REJECTED, FailureKind.PROTOCOL),
        says=_TOO_LONG,
        output=_TOO_LONG,
    ),
    ErrorClass(
        CellError.RATE_LIMITED,
        "the server limits requests",
        Retry.AGAIN,
        kinds=(FailureKind.RATE_LIMITED,),
        output=r"rate.?limit|too many requests|\b429\b|overloaded",
    ),
    ErrorClass(
        CellError.SERVER_ERROR,
        "the server of the model failed",
        Retry.AGAIN_IF_UP,
        kinds=(FailureKind.UNAVAILABLE,),
        output=r"internal server error|bad gateway|service unavailable|api_error|\b(500|502|503|504|529)\b",
    ),
    ErrorClass(
        CellError.REQUEST_TIMEOUT,
        "the server of the model did not answer in time",
        Retry.AGAIN,
        kinds=(FailureKind.TIMEOUT,),
        output=r"request timed out|read timeout|deadline exceeded",
    ),
    ErrorClass(
        CellError.TOOL_NOT_STARTED,
        "a tool under test did not start, or was not offered to the agent",
        Retry.AGAIN,
        output=r"mcp[^\n]{0,80}(failed to (start|connect|initiali[sz]e)|handshak\w+ fail|timed out|not (found|connected))",
    ),
    ErrorClass(
        CellError.CONNECTION,
        "the server of the model cannot be reached",
        Retry.AGAIN_IF_UP,
        kinds=(FailureKind.CONNECTION,),
        output=(
            r"connection (refused|reset|error|aborted|closed)|ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN"
            r"|name resolution|stream disconnected|error sending request"
        ),
    ),
    ErrorClass(
        CellError.PROTOCOL, "the response is not an answer of a model", Retry.AGAIN_IF_UP, kinds=(FailureKind.PROTOCOL,)
    ),
    ErrorClass(CellError.TOOL_CHANGED, "a tool under test has changed", Retry.STOP),
    ErrorClass(CellError.TOOL_LOST, "a tool under test ended during the run", Retry.AGAIN),
    ErrorClass(
        CellError.OUT_OF_DISK, "no space left on the device", Retry.STOP, output=r"no space left on device|ENOSPC"
    ),
    ErrorClass(CellError.AGENT_MISSING, "the program of the agent was not found", Retry.STOP),
    ErrorClass(CellError.AGENT_CRASHED, "the agent failed for an unknown reason", Retry.AGAIN),
    ErrorClass(
        CellError.REFUSED, "the model refused to answer", Retry.SCORED, CellEnd.NO_ANSWER, kinds=(FailureKind.FILTERED,)
    ),
    ErrorClass(
        CellError.TRUNCATED,
        "the answer reached its maximum length",
        Retry.SCORED,
        CellEnd.NO_ANSWER,
        kinds=(FailureKind.TRUNCATED,),
    ),
    ErrorClass(
        CellError.BAD_OUTPUT,
        "the answer does not fit its schema, after all corrections",
        Retry.SCORED,
        CellEnd.NO_ANSWER,
        kinds=(FailureKind.BAD_OUTPUT,),
    ),
    ErrorClass(CellError.EMPTY_ANSWER, "the agent ended without an answer", Retry.SCORED, CellEnd.NO_ANSWER),
    ErrorClass(
        CellError.REJECTED, "the server of the model rejects the request", Retry.NOT_NOW, kinds=(FailureKind.REJECTED,)
    ),
)
BY_NAME = {each.name: each for each in CATALOGUE}


def error_of(failure: Failure) -> ErrorClass:
    """The class of a request that failed."""
    return next(each for each in CATALOGUE if each.fits(failure))


def error_in(output: str) -> ErrorClass | None:
    """The class whose fingerprint stands in what a program printed; None: none does."""
    return next((each for each in CATALOGUE if each.output and _search(each.output, output)), None)


def retry_of(name: str) -> Retry:
    """What follows an error, by its name; of one that is not in the catalogue as of a crash."""
    known = BY_NAME.get(CellError(name)) if name in list(CellError) else None
    return Retry.AGAIN if known is None else known.retry


def _search(words: str, text: str) -> re.Match[str] | None:
    return re.search(words, text, re.IGNORECASE)
