"""The one policy of retries: exponential backoff, or the wait that a service requests by `Retry-After`."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenacity import RetryCallState

DEFAULT_ATTEMPTS = 5
"""Requests to a model, the first included."""
MAX_WAIT_S = 60.0
"""Longest wait before a retry, whatever a service requests."""
TOO_MANY_REQUESTS = 429


def retry_policy(
    attempts: int,
    backoff_s: float,
    *,
    may_retry: Callable[[Any], bool],
    requested_wait_s: Callable[[Any], float | None],
    errors: tuple[type[Exception], ...] = (),
) -> dict[str, Any]:
    """Settings of tenacity's `Retrying` and `AsyncRetrying`.

    Args:
        attempts: at most this many, the first included; the result of the last one stands.
        backoff_s: mean of the first wait; it doubles each time.
        may_retry: whether a result is a failure that may pass.
        requested_wait_s: seconds that the service asks to wait; None: exponential backoff.
        errors: exceptions that may pass.
    """
    from tenacity import (
        retry_if_exception_type,
        retry_if_result,
        stop_after_attempt,
        wait_random_exponential,
    )

    backoff = wait_random_exponential(multiplier=backoff_s, min=backoff_s / 2, max=MAX_WAIT_S)

    def wait_s(state: RetryCallState) -> float:
        outcome = state.outcome
        requested_s = None if outcome is None or outcome.failed else requested_wait_s(outcome.result())
        return backoff(state) if requested_s is None else min(requested_s, MAX_WAIT_S)

    return {
        "stop": stop_after_attempt(attempts),
        "wait": wait_s,
        "retry": retry_if_result(may_retry) | retry_if_exception_type(errors),
        "retry_error_callback": lambda state: state.outcome.result(),
    }


def is_transient(status: int) -> bool:
    """Whether the same HTTP request may succeed later: too many requests, or an error of the server."""
    return status == TOO_MANY_REQUESTS or status >= 500


def retry_after_s(value: str, date: str = "") -> float | None:
    """Seconds that a service asks to wait; None where the header is missing or invalid.

    Args:
        value: of `Retry-After`: seconds, or a date.
        date: of `Date`: the clock of the service, to which its dates refer.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    until = _timestamp(value)
    if until is None:
        return None
    now = _timestamp(date)
    return max(0.0, until - (time.time() if now is None else now))


def _timestamp(text: str) -> float | None:
    try:
        parsed: datetime = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
