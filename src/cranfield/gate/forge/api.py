"""Requests to the API of a forge: token, pagination, retries, error messages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.concurrency.retry import MAX_WAIT_S, TOO_MANY_REQUESTS, is_transient, retry_after_s, retry_policy
from cranfield.base.errors import UsageError, shorten
from cranfield.base.version import __version__

if TYPE_CHECKING:
    from httpx2 import Response

ATTEMPTS = 5
"""Attempts of a request."""
BACKOFF_S = 0.5
TIMEOUT_S = 30.0
"""Longest silence of the forge."""
TOTAL_S = 60.0
"""Longest time of one attempt: a forge that sends a byte a second is never silent."""
MAX_PORT = 65_535
COMMAND_S = 300.0
"""Longest time of all requests of a command, unless the last of them succeeds."""
MAX_BYTES = 64 * 1024**2
"""Maximum length of a response: a page of comments."""
PER_PAGE = 100
MAX_PAGES = 1000
_GONE = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """URL and authorization of an API."""

    forge: str
    """Name of the forge, for messages."""
    url: str
    """Base URL, without a slash at the end."""
    headers: Mapping[str, str]
    """Headers of every request, with the token."""
    hints: Mapping[int, str]
    """Status to the hint of an error."""
    token: str = ""
    """Redacted in what comes back."""


class Api:
    """A client of one API; a context manager."""

    def __init__(self, access: ApiAccess) -> None:
        from httpx2 import Client, InvalidURL

        # Checked here: the message of the client would contain the token.
        if not all(value.isascii() and value.isprintable() for value in access.headers.values()):
            raise UsageError(
                f"the token for {access.forge} is invalid", expected="one line of letters, digits and punctuation"
            )
        self._access = access
        self._until = time.monotonic() + COMMAND_S
        # A compressed response could be cut off unnoticed, or expand without limit.
        headers = {"User-Agent": f"cranfield/{__version__}", "Accept-Encoding": "identity", **access.headers}
        verify = trusted_certificates()
        self._client = Client(headers=headers, verify=verify, timeout=TIMEOUT_S, follow_redirects=False)
        try:
            url = self._client.build_request("GET", access.url).url
        except InvalidURL:
            url = None
        if url is None or url.scheme not in {"http", "https"} or not url.host or not 1 <= (url.port or 1) <= MAX_PORT:
            expected = "an address such as https://api.example.org"
            raise UsageError(f"this is not an address of {access.forge}", expected=expected, got=shorten(access.url))

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close its connections."""
        self._client.close()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a response; None if it is empty.

        Raises:
            UsageError: the request was rejected, with its status and a hint, or the forge cannot be reached.
        """
        return self._json(self._send(method, self._access.url + path, body))

    def call_if_exists(self, method: str, path: str, body: object = None) -> tuple[bool, Any]:
        """As `call`, and whether the object still exists."""
        response = self._send(method, self._access.url + path, body, may_be_gone=True)
        return (False, None) if response.status_code in _GONE else (True, self._json(response))

    def list_items(self, path: str) -> Iterator[Any]:
        """All items of a paginated list.

        Raises:
            UsageError: as `call`; or a page is not a list, or the next page is on another server.
        """
        url = f"{self._access.url}{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}"
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            if url in seen:
                raise UsageError(f"{self._access.forge} returned the same page of comments repeatedly")
            seen.add(url)
            response = self._send("GET", url)
            page = self._json(response)
            if not isinstance(page, list):
                raise UsageError(f"{self._access.forge} did not answer with a list", got=shorten(page))
            yield from page
            following = response.links.get("next", {}).get("url")
            if following is None:
                return
            url = self._same_server(following)
        raise UsageError(f"{self._access.forge} returned more than {MAX_PAGES} pages of comments")

    def _same_server(self, url: str) -> str:
        """Check the URL of a next page: the token is not sent to another server."""
        from httpx2 import URL, InvalidURL

        try:
            base = URL(self._access.url)
            following = base.join(url)
        except InvalidURL:
            raise UsageError(
                f"{self._access.forge} returned a next page that is not an address", got=shorten(url)
            ) from None
        if (base.scheme, base.host, base.port) != (following.scheme, following.host, following.port):
            raise UsageError(
                f"{self._access.forge} returned a next page on another server",
                expected=str(base.host),
                got=str(following.host),
                hint="give the address of its API with {url}",
                parameters=("url",),
            )
        return str(following)

    def _send(self, method: str, url: str, body: object = None, *, may_be_gone: bool = False) -> Response:
        """Send a request, with retries."""
        from httpx2 import HTTPError
        from tenacity import Retrying

        if time.monotonic() > self._until:
            raise UsageError(f"{self._access.forge} took over {COMMAND_S:g} s", path=self._access.url)
        policy = retry_policy(
            ATTEMPTS, BACKOFF_S, may_retry=_may_pass, requested_wait_s=_requested_wait_s, errors=(HTTPError,)
        )
        try:
            response: Response = Retrying(**policy)(self._request_in_time, method, url, body)
        except HTTPError as error:
            why = self._redact(str(error)) or type(error).__name__
            raise UsageError(
                f"{self._access.forge} cannot be reached (tried {ATTEMPTS} times): {why}", path=self._access.url
            ) from None
        if response.is_success or (may_be_gone and response.status_code in _GONE):
            return response
        raise self._rejection(method, response)

    def _request_in_time(self, method: str, url: str, body: object) -> Response:
        """One attempt, in a thread that is abandoned when its time is over: this one hears Ctrl-C meanwhile."""
        from httpx2 import ReadTimeout

        try:
            return event_loop().run_function(lambda: self._attempt(method, url, body), TOTAL_S)
        except TimeoutError:
            raise ReadTimeout(f"no complete response within {TOTAL_S:g} s") from None

    def _attempt(self, method: str, url: str, body: object) -> Response:
        """One request, with a limit of time and length; the token is redacted in what comes back.

        Raises:
            UsageError: the response is too long, or encoded.
            HTTPError: it is late, or could not be received.
        """
        from httpx2 import ReadTimeout, Response

        content, until = bytearray(), time.monotonic() + TOTAL_S
        with self._client.stream(method, url, json=body) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise UsageError(f"{self._access.forge} sent an encoded response that was not requested", path=url)
            for part in response.iter_raw():
                content += part
                if len(content) > MAX_BYTES:
                    raise UsageError(f"{self._access.forge} answered with over {MAX_BYTES // 1024**2} MB", path=url)
                if time.monotonic() > until:
                    raise ReadTimeout(f"no complete response within {TOTAL_S:g} s")
        text = self._redact(content.decode("utf-8", "replace"))
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        return Response(response.status_code, headers=headers, content=text.encode(), request=response.request)

    def _redact(self, text: str) -> str:
        """A text of the forge without the token: it ends up in messages, and so in public logs."""
        return text.replace(self._access.token, "(the token)") if len(self._access.token) > 3 else text

    def _rejection(self, method: str, response: Response) -> UsageError:
        status = response.status_code
        hint = self._access.hints.get(status)
        if _is_limited(response):
            hint = "the server asks to wait for more than a minute: start the job again later"
        elif response.is_redirect:
            hint = "the repository may have moved: give its new name with {repo}, or the address with {url}"
        return UsageError(
            f"{self._access.forge} refused {method} with HTTP status {status}",
            path=response.url.path,
            got=shorten(_message(response)),
            hint=hint,
            parameters=("repo", "url"),
        )

    def _json(self, response: Response) -> Any:
        if not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise UsageError(
                f"{self._access.forge} did not answer in JSON",
                path=str(response.url.host),
                got=shorten(response.text),
                hint="is this the address of its API? {url}",
                parameters=("url",),
            ) from None


def id_number(value: object) -> int:
    """An id of the API.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(value)
    return value


def _may_pass(response: Response) -> bool:
    """Whether the same request may succeed after a wait that is short enough."""
    may_pass = is_transient(response.status_code) or _is_limited(response)
    return may_pass and (_requested_wait_s(response) or 0) <= MAX_WAIT_S


def _is_limited(response: Response) -> bool:
    """Too many requests: by status, or as a refusal that names the rate limit."""
    if response.status_code == TOO_MANY_REQUESTS:
        return True
    if response.status_code != 403:
        return False
    spent = response.headers.get("x-ratelimit-remaining") == "0"
    return spent or "retry-after" in response.headers or "rate limit" in _message(response).lower()


def _requested_wait_s(response: Response) -> float | None:
    """Seconds that the forge asks to wait; None where it does not."""
    headers = response.headers
    if "retry-after" in headers:
        return retry_after_s(headers["retry-after"], headers.get("date", ""))
    reset = headers.get("x-ratelimit-reset", "")
    spent = headers.get("x-ratelimit-remaining") == "0"
    return max(float(reset) - time.time(), 0.0) if spent and reset.isdecimal() else None


def _message(response: Response) -> str:
    """The message of an error response."""
    try:
        content = response.json()
    except (ValueError, RecursionError):
        return response.text
    message = content.get("message", content.get("error", content)) if isinstance(content, dict) else content
    return message if isinstance(message, str) else str(message)
