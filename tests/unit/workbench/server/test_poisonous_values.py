"""Every route, pages and forms too, with values that a database or an answer cannot hold: refused, and no failure of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from fastapi.openapi.utils import get_openapi

TEXTS = ("a\0b", "a\ud800b", "日本語", "x" * 3_000)
NUMBERS = (2**31, 2**63, -1, 10**400, "9" * 5_000, float("nan"))
LAST = ("/sign-out", "/account/password")
"""Routes that end the session."""
Request = tuple[str, dict[str, Any]]
"""Address, and what the client sends."""


def encoded(value: object) -> str:
    """Percent-encoded, lone surrogates too."""
    return quote_from_bytes(str(value).encode("utf-8", "surrogatepass"), safe="")


def as_form(fields: dict[str, Any]) -> str:
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in fields.items())


def as_json(value: object) -> str:
    """JSON, with a number of more digits than Python converts written as it is."""
    digits = NUMBERS[-1]
    return json.dumps(value).replace(f'"{digits}"', str(digits))


def example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """A value of a schema, with all fields of an object."""
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return example(schema[several][0], schemas)
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    match schema.get("type"):
        case "object":
            return {name: example(each, schemas) for name, each in schema.get("properties", {}).items()}
        case "array":
            return [example(schema["items"], schemas)] if schema.get("items") else []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return "shop"


def poisoned(value: Any, poison: object) -> Iterator[Any]:
    """Copies of a value, each with the poison in one place of it."""
    yield poison
    if isinstance(value, dict):
        yield {**value, str(poison)[:100]: poison}
        for name, inner in value.items():
            yield from ({**value, name: each} for each in poisoned(inner, poison))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], each, *value[place + 1 :]] for each in poisoned(inner, poison))


def requests_of(path: str, operation: dict[str, Any], schemas: dict[str, Any], poison: object) -> Iterator[Request]:
    """The requests of a route, each with the poison in one parameter."""
    parameters = operation.get("parameters", [])
    queries = {
        each["name"]: example(each["schema"], schemas)
        for each in parameters
        if each["in"] == "query" and each.get("required")
    }
    names = re.findall(r"{(\w+)}", path)
    places = {name: "shop" if name in {"book", "name", "ref"} else "q1" if name == "query" else "1" for name in names}

    def address(places: dict[str, str], queries: dict[str, Any]) -> str:
        return re.sub(r"{(\w+)}", lambda found: places[found[1]], path) + "?" + as_form(queries)

    plain, sent = address(places, queries), {}
    for content, found in operation.get("requestBody", {}).get("content", {}).items():
        whole = example(found["schema"], schemas)
        sent = sent_as(content, whole)
        for body in poisoned(whole, poison):
            yield plain, sent_as(content, body)
    for name in places:
        yield address({**places, name: encoded(poison)}, queries), sent
    for name in [each["name"] for each in parameters if each["in"] == "query"] or ["unknown"]:
        yield address(places, {**queries, name: poison}), sent
    for name in [each["name"] for each in parameters if each["in"] == "header"]:
        value = str(poison).encode("utf-8", "surrogatepass")
        yield plain, {**sent, "headers": {**sent.get("headers", {}), name: value}}


def sent_as(content: str, body: Any) -> dict[str, Any]:
    """What the client sends of a body."""
    if content == "multipart/form-data":
        files = body.items() if isinstance(body, dict) else [("file", body)]
        return {
            "files": [
                (name.encode("utf-8", "replace").decode(), (None, str(value).encode("utf-8", "surrogatepass")))
                for name, value in files
            ]
        }
    text = as_json(body) if content == "application/json" else as_form(body if isinstance(body, dict) else {"a": body})
    return {"content": text, "headers": {"content-type": content}}


def crawl(team: Any, values: tuple[object, ...]) -> Iterator[str]:
    """What failed: the status, and the request."""
    described = get_openapi(title="all", version="1", routes=team.app.routes)
    operations = [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if not path.endswith("/live")
    ]
    client = team.browser("alex")
    token = team.csrf(client)
    for path, method, operation in sorted(operations, key=lambda each: each[0] in LAST):
        for poison in values:
            for address, sent in requests_of(path, operation, described["components"]["schemas"], poison):
                headers = {"x-csrf-token": token, **sent.get("headers", {})}
                answer = client.request(method, address, **{**sent, "headers": headers})
                if answer.status_code >= 500:
                    yield f"{answer.status_code} {method} {path}: {address[-150:]} {ascii(sent)[:200]}"
                elif path in LAST and answer.status_code == 303:
                    team.forget("alex")
                    client = team.browser("alex")
                    token = team.csrf(client)


@pytest.mark.slow
@pytest.mark.parametrize("values", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_no_value_of_a_request_is_a_failure_of_the_server(
    idle_bench: Any, values: tuple[object, ...], caplog: pytest.LogCaptureFixture
) -> None:
    found = [*crawl(idle_bench.team, values)]
    traces = [record.exc_text or str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert not found, "\n".join([str(len(found)), *dict.fromkeys(found), *dict.fromkeys(traces)])
    assert not traces
