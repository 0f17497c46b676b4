"""Redaction of secrets in everything that a system returns and Cranfield stores or shows."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

SHORTEST_SECRET = 4
"""Shorter values (`C`, `1`, `yes`) are not redacted: they are not secrets, and occur in every output."""


class Redactor:
    """Replaces values of environment variables, in every encoding, by the name of the variable: `${TOKEN}`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        hidden = {
            spelling: f"${{{name}}}"
            for name, value in secrets.items()
            for secret in _secrets_in(value)
            if len(secret) >= SHORTEST_SECRET
            for spelling in spellings(secret)
        }
        # The longest first: one value may contain another.
        self._hidden = sorted(hidden.items(), key=lambda item: (-len(item[0]), item[0]))

    def redact(self, text: str) -> str:
        """Redact a text."""
        for value, name in self._hidden:
            text = text.replace(value, name)
        return text

    def redact_value(self, value: Any) -> Any:
        """Redact all texts of a JSON value, keys included."""
        if not self._hidden:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact_value(item) for key, item in value.items()}
        return [self.redact_value(item) for item in value] if isinstance(value, list | tuple) else value


def _secrets_in(value: str) -> Iterator[str]:
    """The value, and the password in it if it is a URL."""
    yield value
    if "://" in value:
        try:
            password = urlsplit(value).password
        except ValueError:
            return
        yield from {password, unquote(password)} if password else ()


def spellings(value: str) -> Iterator[str]:
    """A value unchanged, percent-encoded, and escaped for JSON, HTML and basic authorization."""
    data = value.encode("utf-8", "surrogateescape")
    percented = quote(data, safe=""), quote_plus(data), quote(data)
    yield value
    for text in percented:
        yield text
        yield _lower_escapes(text)
    for is_ascii in (True, False):
        quoted = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield quoted
        yield quoted.replace("/", "\\/")
    yield escape(value)
    for encoded in (b64encode(data), urlsafe_b64encode(data)):
        yield encoded.decode("ascii")
        yield encoded.decode("ascii").rstrip("=")


def _lower_escapes(text: str) -> str:
    """`a%2FB` as `a%2fB`."""
    head, *rest = text.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
