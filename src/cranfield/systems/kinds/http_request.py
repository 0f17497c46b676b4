"""An HTTP request filled in for one query: from the `http` part of a config to the bytes that are sent.

Nothing is sent here. What a query or parameter holds stays inside its place: it is percent-encoded in an address and in
a form, escaped in JSON, and refused where it would break a header.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cranfield.config.services import Http
from cranfield.config.template import (
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
from cranfield.version import __version__

_BREAKS_A_HEADER = frozenset("\r\n\0")


class UnfilledError(Exception):
    """The request cannot be made of this query; the message is the reason a report shows."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent."""

    method: str
    url: str
    """Percent-encoded throughout."""
    headers: tuple[tuple[str, str], ...]
    """Those that say something of this request; the client adds what belongs to the connection."""
    body: bytes | None = None

    def __str__(self) -> str:
        """As a person reads it: the first line, the headers, the body."""
        lines = [f"{self.method} {self.url}", *(f"{name}: {value}" for name, value in self.headers)]
        if self.body is not None:
            lines += ["", self.body.decode("utf-8", "replace")]
        return "\n".join(lines)


def variables(http: Http) -> list[str]:
    """Names of the environment's variables that a request needs, sorted."""
    said = http.url, http.headers, http.basic, http.parameters, http.json_, http.form, http.text
    names = {name for part in said for text in texts(part) for name in placeholders(text)}
    return sorted(name.removeprefix(ENV) for name in names if name.startswith(ENV))


def basic_of(http: Http, values: Mapping[str, Scalar]) -> str | None:
    """What stands after `Basic` in the `Authorization` header; None where there is nothing, or a variable is not set."""
    pair = ABSENT if http.basic is None else fill_value(http.basic, values)
    return None if pair is ABSENT else b64encode(str(pair).encode("utf-8", "surrogateescape")).decode("ascii")


def request_of(http: Http, values: Mapping[str, Scalar]) -> HttpRequest:
    """Fill in a request.

    Args:
        http: as the config says.
        values: what placeholders stand for, each with its type: see `template.request_values`.

    Raises:
        UnfilledError: it cannot be made.
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
        raise UnfilledError("a character in it can stand in no request") from None
    except ValueError:
        raise UnfilledError("a number in its body can stand in no JSON") from None


def _url(http: Http, values: Mapping[str, Scalar]) -> str:
    _require(http.url, values, "the address")
    encoded = {name: _in_url(value) for name, value in values.items()}
    url = http.url
    first = next(placeholders(url), "")
    if first.startswith(ENV) and url.startswith(f"{{{first}}}"):
        # The environment says where the service is: its value is an address already.
        encoded[first] = str(values[first]).rstrip("/")
    url = fill_text(url, encoded)
    parameters = list(_pairs(http.parameters, values))
    if parameters:
        url += ("&" if "?" in url else "?") + _encoded(parameters)
    return url


def _in_url(value: Scalar) -> str:
    text = quote(as_argument(value), safe="")
    # A step of dots alone would climb out of the path it stands in.
    return text.replace(".", "%2E") if text in {".", ".."} else text


def _headers(http: Http, values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    for name, written in http.headers.items():
        value = fill_value(written, values)
        if value is ABSENT:
            continue
        text = as_argument(value).strip()
        if _BREAKS_A_HEADER & set(text):
            raise UnfilledError(f"header {name} would hold a line break")
        yield name, text
    basic = basic_of(http, values)
    if basic is not None:
        yield "Authorization", f"Basic {basic}"


def _body(http: Http, values: Mapping[str, Scalar]) -> tuple[bytes | None, str | None]:
    if http.json_ is not None:
        filled = fill_value(http.json_, values)
        if filled is ABSENT:
            raise UnfilledError("the body needs a parameter that is not there")
        return json.dumps(filled, ensure_ascii=False, allow_nan=False, default=str).encode(), "application/json"
    if http.form is not None:
        return _encoded(_pairs(http.form, values)).encode("ascii"), "application/x-www-form-urlencoded"
    if http.text is not None:
        _require(http.text, values, "the body")
        text = fill_text(http.text, {name: as_argument(value) for name, value in values.items()})
        return text.encode(), "text/plain; charset=utf-8"
    return None, None


def _pairs(said: Mapping[str, Any], values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """Names and values of a query string or form; a list gives its name several times, null does not give it."""
    for name, value in fill_value(said, values).items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield name, as_argument(one) if isinstance(one, str | bool | int | float) else str(one)


def _encoded(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def _require(text: str, values: Mapping[str, Scalar], what: str) -> None:
    absent = [n for n in placeholders(text) if is_placeholder(n, REQUEST_PLACEHOLDERS) and n not in values]
    if absent:
        raise UnfilledError(f"{what} needs {absent[0]}, which is not there")
