"""Services that are called: hosts, networks and times of requests, addresses over HTTP, and MCP servers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from cranfield.base.errors import Problem, shorten
from cranfield.config.owners import OfChange
from cranfield.config.strict import (
    ENV,
    NO_QUERY,
    REQUEST_PLACEHOLDERS,
    Finding,
    Strict,
    by_key,
    check_opened_once,
    check_request,
    check_started_once,
    checked,
    depends_on_query,
    placeholders,
)
from cranfield.model.kinds import Text

_DURATION = re.compile(r"(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?")
_HOST = re.compile(r"(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """An address or a network; None for the name of a host."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _check_host(text: str) -> Iterator[Finding]:
    if network_of(text) is None and (_HOST.fullmatch(text) is None or re.fullmatch(r"[0-9./x]+", text)):
        yield (), Problem("not a host or a network", expected="wiki.intern, *.intern, 10.1.0.0/16", got=shorten(text))


Host = Annotated[str, checked(_check_host)]
Seconds = Annotated[float, Field(gt=0, le=120)]


def is_duration(text: str) -> bool:
    """Whether a text is a duration as Prometheus writes it."""
    return bool(text) and _DURATION.fullmatch(text) is not None


def _check_duration(text: str) -> Iterator[Finding]:
    if not is_duration(text):
        yield (), Problem("not a duration", expected="such as 15m, 1h30m or 2d", got=shorten(text))


Duration = Annotated[str, checked(_check_duration)]
"""As Prometheus writes it: `15m`, `1h30m`, `2d`."""

SECRET_HEADERS = frozenset({
    "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token", "x-access-token",
    "private-token",
})  # fmt: skip
SECRET_PARAMETERS = frozenset({
    "api_key", "apikey", "api-key", "token", "access_token", "auth_token", "api_token", "password", "passwd",
    "secret", "client_secret",
})  # fmt: skip
"""Parameters, and members of a form, that hold a secret."""
_SET_BY_CLIENT = frozenset({"content-length", "transfer-encoding", "connection"})
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_IN_URL = re.compile(r"[?&]([^=&#]*)=([^&#]*)")


def is_port(text: str) -> bool:
    """Whether it is the number of a port that a service can have."""
    return re.fullmatch("[0-9]{1,5}", text) is not None and 1 <= int(text) <= 65535


def check_url(url: str) -> Iterator[Finding]:
    """An address of a service, without a secret in it."""
    authority = re.split(r"[/?#]", url.partition("//")[2])[0]
    port = re.search(r":([^:{}\]]+)$", authority)
    if not url.startswith(("http://", "https://")) and not url.startswith("{env."):
        yield (), Problem("not the address of a service", expected="http://... or https://...")
    elif "@" in authority:
        yield (), Problem("user and password in an address", hint="use basic: '{env.USER}:{env.PASSWORD}'.")
    elif port is not None and not is_port(port[1]):
        yield (
            (),
            Problem("the port of the address is not valid", expected="a number from 1 to 65535", got=shorten(port[1])),
        )
    if "#" in url:
        yield (), Problem("the part of an address after # is not sent", hint="write %23 for a literal #.")
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


class Http(Strict):
    """A request to an HTTP service."""

    url: OfChange[Annotated[Text, checked(check_request, check_url)]]
    """Address. Placeholders in it are percent-encoded."""
    method: OfChange[Literal["GET", "POST", "PUT"] | None] = None
    """HTTP method; default: POST with a body, GET without."""
    headers: OfChange[Annotated[dict[str, Text], checked(check_request, check_headers)]] = Field(default_factory=dict)
    """Headers of the request. Secrets come from the environment: `Authorization: Bearer {env.TOKEN}`."""
    basic: OfChange[Annotated[Text, checked(check_request, check_basic)] | None] = None
    """User and password, from the environment: `{env.USER}:{env.PASSWORD}`."""
    parameters: OfChange[Annotated[dict[str, Any], checked(check_request, check_values)]] = Field(default_factory=dict)
    """Parameters of the query string of the URL; a list repeats a parameter."""
    json_: OfChange[Annotated[Any, checked(check_request)]] = Field(default=None, alias="json")
    """Body as JSON. A string that is only a placeholder takes the typed value: `size: "{k}"` is a number.
    A member whose parameter is absent is left out."""
    form: OfChange[Annotated[dict[str, Any], checked(check_request, check_values)] | None] = None
    """Body as a form."""
    text: OfChange[Annotated[str, checked(check_request)] | None] = None
    """Body as plain text."""
    http2: OfChange[bool] = True
    """Use HTTP/2 if the service supports it."""
    ca: OfChange[Text | None] = None
    """File of the trusted certificates, instead of the default ones, relative to the config file."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Bodies that exclude each other, a request without the query, two headers `Authorization`."""
        bodies = {"json": self.json_, "form": self.form, "text": self.text}
        given = [key for key, body in bodies.items() if body is not None]
        if len(given) > 1:
            yield (), Problem("the body", expected="at most one of json, form and text", got=" and ".join(given))
        if given and self.method == "GET":
            yield ("method",), Problem("a GET has no body", hint="use POST, or put the query in parameters.")
        if not depends_on_query([self.url, self.headers, self.parameters, *bodies.values()], REQUEST_PLACEHOLDERS):
            yield (), Problem(NO_QUERY)
        if self.basic is not None and any(name.casefold() == "authorization" for name in self.headers):
            hint = "keep one of them."
            yield ("basic",), Problem("basic sets the header Authorization, which is given too", hint=hint)


def check_arguments(arguments: dict[str, Any]) -> Iterator[Finding]:
    """Arguments of a tool or a function: placeholders that are known, the query among them."""
    yield from check_request(arguments)
    if not depends_on_query(arguments, REQUEST_PLACEHOLDERS):
        yield (), Problem(NO_QUERY)


class McpTool(Strict):
    """A tool of an MCP server."""

    tool: OfChange[Text]
    """Name of the tool. A server without it fails the preflight."""
    arguments: OfChange[Annotated[dict[str, Any], checked(check_arguments)]] = Field(
        default_factory=lambda: {"query": "{query}"}
    )
    """Arguments of the tool, with placeholders as in the body of an HTTP request."""


class McpProgram(McpTool):
    """A tool of an MCP server over stdio."""

    command: OfChange[
        Annotated[
            list[Text],
            Field(min_length=1),
            checked(partial(check_started_once, hint="put values that depend on the query in arguments.")),
        ]
    ]
    """Program and arguments of the server, which is started once and uses stdin and stdout."""


class McpServer(McpTool):
    """A tool of an MCP server over HTTP."""

    url: OfChange[Annotated[Text, checked(check_url, check_opened_once)]]
    """Address of a server over HTTP."""
    headers: OfChange[Annotated[dict[str, Text], checked(check_headers, check_opened_once)]] = Field(
        default_factory=dict
    )
    """Headers of every request to `url`; secrets come from the environment."""


Mcp = Annotated[Annotated[McpProgram, Tag("command")] | Annotated[McpServer, Tag("url")], by_key("command", "url")]
