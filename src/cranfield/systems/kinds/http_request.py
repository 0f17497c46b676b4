"""Build the HTTP request of a query from the `http` part of a config.

Values are percent-encoded in URLs and forms, escaped in JSON, and rejected where they would break a header.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cranfield.base.version import __version__
from cranfield.config.services import Http
from cranfield.config.strict import (
    ABSENT,
    ENV,
    REQUEST_PLACEHOLDERS,
    as_argument,
    fill_text,
    fill_value,
    is_placeholder,
    placeholders,
    texts,
)
from cranfield.model import Scalar

_BREAKS_A_HEADER = frozenset("\r\n\0")


class IncompleteRequestError(Exception):
    """The request cannot be built for this query; the message is the reason in reports."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request."""

    method: str
    url: str
    """Percent-encoded."""
    headers: tuple[tuple[str, str], ...]
    """Headers of this request; the client adds those of the connection."""
    body: bytes | None = None

    def __str__(self) -> str:
        """For display: request line, headers, body."""
        lines = [f"{self.method} {self.url}", *(f"{name}: {value}" for name, value in self.headers)]
        if self.body is not None:
            lines += ["", self.body.decode("utf-8", "replace")]
        return "\n".join(lines)


def required_variables(http: Http) -> list[str]:
    """Names of the environment variables in a request, sorted."""
    parts = http.url, http.headers, http.basic, http.parameters, http.json_, http.form, http.text
    names = {name for part in parts for text in texts(part) for name in placeholders(text)}
    return sorted(name.removeprefix(ENV) for name in names if name.startswith(ENV))


def basic_credentials(http: Http, values: Mapping[str, Scalar]) -> str | None:
    """Credentials of basic authorization, encoded; None if not configured, or a variable is not set."""
    pair = ABSENT if http.basic is None else fill_value(http.basic, values)
    return None if pair is ABSENT else b64encode(str(pair).encode("utf-8", "surrogateescape")).decode("ascii")


def build_request(http: Http, values: Mapping[str, Scalar]) -> HttpRequest:
    """Build a request.

    Args:
        http: its configuration.
        values: typed values of placeholders: see `template.request_values`.

    Raises:
        IncompleteRequestError: it cannot be built.
    """
    try:
        body, content_type = _body(http, values)
        headers = dict(_headers(http, values))
        present = {name.casefold() for name in headers}
        if content_type is not None and "content-type" not in present:
            headers["Content-Type"] = content_type
        if "user-agent" not in present:
            headers["User-Agent"] = f"cranfield/{__version__}"
        method = http.method or ("GET" if body is None else "POST")
        return HttpRequest(method, _url(http, values), tuple(headers.items()), body)
    except UnicodeEncodeError:
        raise IncompleteRequestError("a character in it can stand in no request") from None
    except ValueError:
        raise IncompleteRequestError("a number in its body can stand in no JSON") from None


def _url(http: Http, values: Mapping[str, Scalar]) -> str:
    _require(http.url, values, "the address")
    encoded = {name: _in_url(value) for name, value in values.items()}
    url = http.url
    first = next(placeholders(url), "")
    if first.startswith(ENV) and url.startswith(f"{{{first}}}"):
        # The variable holds the URL of the service, already encoded.
        encoded[first] = str(values[first]).rstrip("/")
    url = fill_text(url, encoded)
    parameters = list(_pairs(http.parameters, values))
    if parameters:
        url += ("&" if "?" in url else "?") + _encoded(parameters)
    return url


def _in_url(value: Scalar) -> str:
    text = quote(as_argument(value), safe="")
    # A path segment of dots alone would leave its folder.
    return text.replace(".", "%2E") if text in {".", ".."} else text


def _headers(http: Http, values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    for name, written in http.headers.items():
        value = fill_value(written, values)
        if value is ABSENT:
            continue
        text = as_argument(value).strip()
        if _BREAKS_A_HEADER & set(text):
            raise IncompleteRequestError(f"header {name} would hold a line break")
        yield name, text
    basic = basic_credentials(http, values)
    if basic is not None:
        yield "Authorization", f"Basic {basic}"


def _body(http: Http, values: Mapping[str, Scalar]) -> tuple[bytes | None, str | None]:
    if http.json_ is not None:
        filled = fill_value(http.json_, values)
        if filled is ABSENT:
            raise IncompleteRequestError("the body needs a parameter that is not there")
        return json.dumps(filled, ensure_ascii=False, allow_nan=False, default=str).encode(), "application/json"
    if http.form is not None:
        return _encoded(_pairs(http.form, values)).encode("ascii"), "application/x-www-form-urlencoded"
    if http.text is not None:
        _require(http.text, values, "the body")
        text = fill_text(http.text, {name: as_argument(value) for name, value in values.items()})
        return text.encode(), "text/plain; charset=utf-8"
    return None, None


def _pairs(parameters: Mapping[str, Any], values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """Names and values of a query string or form; a list repeats its name, null omits it."""
    for name, value in fill_value(parameters, values).items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, as_argument(item) if isinstance(item, str | bool | int | float) else str(item)


def _encoded(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def _require(text: str, values: Mapping[str, Scalar], what: str) -> None:
    absent = [n for n in placeholders(text) if is_placeholder(n, REQUEST_PLACEHOLDERS) and n not in values]
    if absent:
        raise IncompleteRequestError(f"{what} needs {absent[0]}, which is not there")
