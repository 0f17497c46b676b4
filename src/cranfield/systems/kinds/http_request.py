"""Build the HTTP request of a query from the `http` part of a config.

Values are percent-encoded in URLs and forms, escaped in JSON, and rejected where they would break a header.
"""

from __future__ import annotations

import codecs
import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES
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
        raise IncompleteRequestError("it contains a character that is not allowed in a request") from None
    except ValueError:
        raise IncompleteRequestError("its body contains a number that JSON cannot represent") from None


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
            raise IncompleteRequestError(f"header {name} would contain a line break")
        yield name, text
    basic = basic_credentials(http, values)
    if basic is not None:
        yield "Authorization", f"Basic {basic}"


def _body(http: Http, values: Mapping[str, Scalar]) -> tuple[bytes | None, str | None]:
    if http.json_ is not None:
        filled = fill_value(http.json_, values)
        if filled is ABSENT:
            raise IncompleteRequestError("the body needs a parameter that is missing")
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
        raise IncompleteRequestError(f"{what} needs {absent[0]}, which is missing")


ENCODINGS = ("gzip", "deflate")
"""Accepted content encodings: those that need no extra package."""
TOO_LONG = f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_MAX_LAYERS = 3
"""Maximum number of encodings, one on top of the other."""
_MAX_MEMBERS = 300
"""Maximum number of parts of a gzip body: each costs a copy of the rest."""
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "utf-7"}
)
"""Codecs of Python that are not charsets of text, or unsafe."""


class BodyError(Exception):
    """The body is not whole, or cannot be read; the message is the reason."""

    def __init__(self, reason: str, got: str | None = None) -> None:
        """Initialise; `got` is what the service wrote, which may be a secret."""
        super().__init__(reason)
        self.got = got


def decode_body(body: bytes, content_encoding: str) -> bytes:
    """A body without its content encodings.

    Raises:
        BodyError: it is cut off, damaged or too long, bytes follow its end, or it has an encoding that was not accepted.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name not in {"", "identity"}]
    if unknown := sorted(set(names).difference(ENCODINGS)):
        raise BodyError("the answer has a content encoding that was not requested", unknown[0])
    if len(names) > _MAX_LAYERS:
        raise BodyError(f"the answer has over {_MAX_LAYERS} content encodings, one on top of the other")
    for name in reversed(names):
        try:
            body = _gunzip(body) if name == "gzip" else _inflate(body)
        except zlib.error:
            raise BodyError(f"the answer cannot be decoded as {name}, its declared encoding") from None
    return body


def decode_text(body: bytes, content_type: str) -> str:
    """A body as text, in the charset of its `Content-Type`.

    Raises:
        BodyError: it is not text in that charset, or Python knows no such charset.
    """
    charset = charset_of(content_type)
    try:
        return body.decode("" if _is_trap(charset) else charset)
    except LookupError:
        raise BodyError("the charset of the answer is unknown", charset) from None
    except ValueError:
        raise BodyError(f"the answer is not text in {charset}") from None


def charset_of(content_type: str) -> str:
    """The charset of a `Content-Type`, in lower case; default UTF-8."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'"):
            return value.strip(" \"'").lower()
    return "utf-8"


def _is_trap(charset: str) -> bool:
    return codecs.lookup(charset).name.replace("_", "-") in _NO_CHARSETS


def _gunzip(data: bytes) -> bytes:
    """All parts of a gzip body, in order: RFC 1952 allows several."""
    whole = b""
    for _ in range(_MAX_MEMBERS):
        part, data = _decompressed(data, _GZIP, "gzip", MAX_OUTPUT_BYTES - len(whole))
        whole += part
        if not data:
            return whole
        if not data.startswith(b"\x1f\x8b"):
            raise BodyError(f"{len(data)} bytes follow the end of the answer's gzip encoding")
    raise BodyError(f"the answer's gzip encoding has over {_MAX_MEMBERS} parts")


def _inflate(data: bytes) -> bytes:
    """A body of `deflate`: with the header and checksum of zlib, as specified, or without, as some servers send it."""
    try:
        whole, left = _decompressed(data, _ZLIB, "deflate", MAX_OUTPUT_BYTES)
    except zlib.error:
        whole, left = _decompressed(data, _RAW, "deflate", MAX_OUTPUT_BYTES)
    if left:
        raise BodyError(f"{len(left)} bytes follow the end of the answer's deflate encoding")
    return whole


def _decompressed(data: bytes, bits: int, name: str, limit: int) -> tuple[bytes, bytes]:
    """One compressed part, and the bytes that follow it."""
    decompressor = zlib.decompressobj(bits)
    part = decompressor.decompress(data, limit + 1)
    if len(part) > limit:
        raise BodyError(TOO_LONG)
    if not decompressor.eof:
        raise BodyError(f"the answer is cut off: its {name} encoding has no end")
    return part, decompressor.unused_data
