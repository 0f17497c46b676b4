"""What may not stand in a request: an address that is none, secrets in a file, headers that break it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cranfield.errors import Problem

Place = tuple[str | int, ...]
Finding = tuple[Place, Problem]

OPENS_DOORS = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token", "x-access-token"),
        *("private-token",),
    }
)
"""Headers that hold a secret."""
SECRET_PARAMETERS = frozenset(
    {
        *("api_key", "apikey", "api-key", "token", "access_token", "auth_token", "api_token"),
        *("password", "passwd", "secret", "client_secret"),
    }
)
"""Parameters and members of a form that hold one."""
_OURS = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that say how a request is sent, which is for who sends it to say."""
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_IN_URL = re.compile(r"[?&]([^=&#]*)=([^&#]*)")


def check_url(place: Place, url: str) -> Iterator[Finding]:
    """An address of a service, without a secret in it."""
    if not url.startswith(("http://", "https://")) and not url.startswith("{env."):
        yield place, Problem("not the address of a service", expected="http://... or https://...")
    elif "@" in re.split(r"[/?#]", url.partition("//")[2])[0]:
        hint = "say basic: '{env.USER}:{env.PASSWORD}'."
        yield place, Problem("an address holds no user and password", hint=hint)
    if "#" in url:
        yield place, Problem("what follows # in an address is not sent", hint="write %23 where it is meant.")
    for _, problem in check_values((), dict(_IN_URL.findall(url)), {}):
        yield place, problem


def check_headers(place: Place, headers: Mapping[str, str]) -> Iterator[Finding]:
    """Names that are names, and no secret."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield (*place, name), Problem("not the name of a header", expected="letters, digits and -", got=repr(name))
        elif name.casefold() in _OURS:
            yield (*place, name), Problem(f"{name} follows from what is sent", hint="leave it out.")
        elif name.casefold() in OPENS_DOORS and "{env." not in value:
            yield (*place, name), _in_a_file(name)
    for name in {name.casefold() for name in headers}:
        same = [one for one in headers if one.casefold() == name]
        if len(same) > 1:
            yield (*place, same[1]), Problem(f"headers {' and '.join(same)} are the same header")


def check_basic(place: Place, basic: str | None, headers: Mapping[str, str], *, is_from_env: bool) -> Iterator[Finding]:
    """User and password from the environment, and no other `Authorization` beside them."""
    if basic is None:
        return
    if not is_from_env:
        yield place, Problem("user and password come from the environment", expected="{env.USER}:{env.PASSWORD}")
    if any(name.casefold() == "authorization" for name in headers):
        yield place, Problem("basic is the header Authorization, which is given too", hint="keep one of them.")


def check_values(place: Place, parameters: Mapping[str, object], form: Mapping[str, object]) -> Iterator[Finding]:
    """Texts and numbers, or lists of them, and no secret."""
    for key, values in (("parameters", parameters), ("form", form)):
        for name, value in values.items():
            several = value if isinstance(value, list) else [value]
            if any(isinstance(one, Mapping | list) for one in several):
                yield (*place, key, name), Problem("wrong value", expected="text, a number, or a list of them")
            elif name.casefold() in SECRET_PARAMETERS and not any("{env." in str(one) for one in several):
                yield (*place, key, name), _in_a_file(name)


def _in_a_file(name: str) -> Problem:
    hint = f"put it in the environment, and write {name}: '{{env.NAME}}'."
    return Problem("what opens a door does not stand in a file", hint=hint)
