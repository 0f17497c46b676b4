"""Redaction of secrets in everything that a system returns and Cranfield stores or shows."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from cranfield.model import Hit

_MARKUP_IN_JSON = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}
SHORTEST_IN_BASE64 = 8
"""Shorter parts of a longer Base64 text are not redacted: they occur by chance."""
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

    def redact_hit(self, hit: Hit) -> Hit:
        """A result without secrets in its title, fields and explanation, and with forms of its id and span that hold none."""
        if not self._hidden:
            return hit
        if hit.fields is not None:
            hit = replace(hit, fields=self.redact_value(hit.fields))
        if hit.explanation is not None:
            hit = replace(hit, explanation=hit.explanation.renamed(self.redact))
        title, name, span = (text and self.redact(text) for text in (hit.title, hit.id, hit.span))
        if (title, name, span) == (hit.title, hit.id, hit.span):
            return hit
        redacted_id, redacted_span = name if name != hit.id else None, span if span != hit.span else None
        return replace(hit, title=title, redacted_id=redacted_id, redacted_span=redacted_span)


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
        head, *rest = text.split("%")
        yield "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
    for is_ascii in (True, False):
        quoted = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield quoted
        yield quoted.replace("/", "\\/")
    for text in (value, *(json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))):
        yield text.translate(_MARKUP_IN_JSON)
        yield escape(text)
        yield escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    for encode in (b64encode, urlsafe_b64encode):
        whole = encode(data).decode("ascii")
        yield from (whole, whole.rstrip("="))
        yield from _within_base64(data, encode)


def _within_base64(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """What stays the same of a value in the middle of a longer text, at each of three offsets: `user:VALUE` in Base64."""
    for offset in range(3):
        text = encode(bytes(offset) + data).decode("ascii").rstrip("=")
        end = len(text) - ((offset + len(data)) % 3 > 0)  # the last character holds bits of what follows
        inner = text[(0, 2, 3)[offset] : end]
        if len(inner) >= SHORTEST_IN_BASE64:
            yield inner
