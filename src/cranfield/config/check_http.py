"""Checks of a request: an address that is none, secrets in the file, headers that would break it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cranfield.config.strict import Finding
from cranfield.config.template import ENV, placeholders
from cranfield.errors import Problem

SECRET_HEADERS = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token", "x-access-token"),
        *("private-token",),
    }
)
SECRET_PARAMETERS = frozenset(
    {
        *("api_key", "apikey", "api-key", "token", "access_token", "auth_token", "api_token"),
        *("password", "passwd", "secret", "client_secret"),
    }
)
"""Parameters, and members of a form, that hold a secret."""
_SET_BY_CLIENT = frozenset({"content-length", "transfer-encoding", "connection"})
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_IN_URL = re.compile(r"[?&]([^=&#]*)=([^&#]*)")


def check_url(url: str) -> Iterator[Finding]:
    """An address of a service, without a secret in it."""
    if not url.startswith(("http://", "https://")) and not url.startswith("{env."):
        yield (), Problem("not the address of a service", expected="http://... or https://...")
    elif "@" in re.split(r"[/?#]", url.partition("//")[2])[0]:
        yield (), Problem("user and password in an address", hint="use basic: '{env.USER}:{env.PASSWORD}'.")
    if "#" in url:
        yield (), Problem("what follows # in an address is not sent", hint="write %23 for a literal #.")
    for _, problem in check_values(dict(_IN_URL.findall(url))):
        yield (), problem


def check_headers(headers: Mapping[str, str]) -> Iterator[Finding]:
    """Valid names, each once, and no secret."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield (name,), Problem("not the name of a header", expected="letters, digits and -", got=repr(name))
        elif name.casefold() in _SET_BY_CLIENT:
            yield (name,), Problem(f"{name} is set by the HTTP client", hint="leave it out.")
        elif name.casefold() in SECRET_HEADERS and "{env." not in value:
            yield (name,), _secret(name)
    for name in {name.casefold() for name in headers}:
        same = [other for other in headers if other.casefold() == name]
        if len(same) > 1:
            yield (same[1],), Problem(f"headers {' and '.join(same)} are the same header")


def check_basic(basic: str) -> Iterator[Finding]:
    """User and password from the environment."""
    if not all(_is_variable(part) for part in basic.partition(":")[::2]):
        yield (), Problem("user and password come from the environment", expected="{env.USER}:{env.PASSWORD}")


def check_values(values: Mapping[str, object]) -> Iterator[Finding]:
    """Texts and numbers, or lists of them, and no secret."""
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, Mapping | list) for item in items):
            yield (name,), Problem("wrong value", expected="text, a number, or a list of them")
        elif name.casefold() in SECRET_PARAMETERS and not any("{env." in str(item) for item in items):
            yield (name,), _secret(name)


def _is_variable(text: str) -> bool:
    names = list(placeholders(text))
    return len(names) == 1 and text == f"{{{names[0]}}}" and names[0].startswith(ENV)


def _secret(name: str) -> Problem:
    hint = f"put it in the environment, and write {name}: '{{env.NAME}}'."
    return Problem("a secret in the config file", hint=hint)
