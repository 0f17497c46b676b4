"""Services that a system speaks to: a request over HTTP, a tool of an MCP server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from cranfield.config.check_http import check_basic, check_headers, check_url, check_values
from cranfield.config.check_template import (
    NO_QUERY,
    check_opened_once,
    check_request,
    check_started_once,
    depends_on_query,
)
from cranfield.config.strict import Finding, Strict, by_key, checked
from cranfield.config.template import REQUEST_PLACEHOLDERS
from cranfield.errors import Problem
from cranfield.formats.io.located import Text


class Http(Strict):
    """A request to an HTTP service."""

    url: Annotated[Text, checked(check_request, check_url)]
    """Address. Placeholders in it are percent-encoded."""
    method: Literal["GET", "POST", "PUT"] | None = None
    """POST where there is a body, GET where there is none."""
    headers: Annotated[dict[str, Text], checked(check_request, check_headers)] = Field(default_factory=dict)
    """Headers of the request. Secrets come from the environment: `Authorization: Bearer {env.TOKEN}`."""
    basic: Annotated[Text, checked(check_request, check_basic)] | None = None
    """User and password, from the environment: `{env.USER}:{env.PASSWORD}`."""
    parameters: Annotated[dict[str, Any], checked(check_request, check_values)] = Field(default_factory=dict)
    """Of the URL's query string; a list gives a parameter several times."""
    json_: Annotated[Any, checked(check_request)] = Field(default=None, alias="json")
    """Body as JSON. A string that is nothing but a placeholder takes its value with its type: `size: "{k}"` is a number.
    A member whose parameter is absent is left out."""
    form: Annotated[dict[str, Any], checked(check_request, check_values)] | None = None
    """Body as a form."""
    text: Annotated[str, checked(check_request)] | None = None
    """Body as text, as it stands."""
    http2: bool = True
    """Speak HTTP/2 where the service offers it."""
    ca: Text | None = None
    """File of the certificates to trust in place of the usual ones, relative to the config file."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:  # noqa: ARG002
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


def _check_arguments(arguments: dict[str, Any]) -> Iterator[Finding]:
    yield from check_request(arguments)
    if not depends_on_query(arguments, REQUEST_PLACEHOLDERS):
        yield (), Problem(NO_QUERY)


class McpTool(Strict):
    """A tool of an MCP server."""

    tool: Text
    """Name of the tool. A server without it fails the preflight."""
    arguments: Annotated[dict[str, Any], checked(_check_arguments)] = Field(
        default_factory=lambda: {"query": "{query}"}
    )
    """What the tool is called with, filled in like the body of an HTTP request."""


class McpProgram(McpTool):
    """A tool of an MCP server over stdio."""

    command: Annotated[
        list[Text],
        Field(min_length=1),
        checked(partial(check_started_once, hint="write what depends on the query in arguments.")),
    ]
    """Program that serves on stdin and stdout; it is started once."""


class McpServer(McpTool):
    """A tool of an MCP server over HTTP."""

    url: Annotated[Text, checked(check_url, check_opened_once)]
    """Address of a server over HTTP."""
    headers: Annotated[dict[str, Text], checked(check_headers, check_opened_once)] = Field(default_factory=dict)
    """Of every request to `url`; secrets come from the environment."""


Mcp = Annotated[Annotated[McpProgram, Tag("command")] | Annotated[McpServer, Tag("url")], by_key("command", "url")]
