"""Which tool of a server searches, by its schema alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cranfield.app.init.targets import search_tool

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def tool(name, properties, required=(), description=""):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return SimpleNamespace(name=name, title=None, description=description, input_schema=schema)


@pytest.mark.parametrize(
    ("properties", "required", "arguments"),
    [
        ({"query": TEXT}, ["query"], {"query": "{query}"}),
        ({"query": TEXT, "limit": NUMBER, "lang": TEXT}, ["query"], {"query": "{query}", "limit": "{k}"}),
        ({"q": TEXT, "top_k": {"anyOf": [NUMBER, {"type": "null"}]}}, [], {"q": "{query}", "top_k": "{k}"}),
        ({"needle": TEXT}, ["needle"], {"needle": "{query}"}),
        ({"query": TEXT, "mode": {"enum": ["fast"]}}, ["query", "mode"], {"query": "{query}", "mode": "fast"}),
        ({"query": TEXT, "n": {"type": "integer", "default": 0}}, ["n"], {"query": "{query}", "n": "{k}"}),
        ({"query": TEXT, "page": {"type": "integer", "default": 0}}, ["page"], {"query": "{query}", "page": 0}),
    ],
)
def test_the_arguments_of_a_tool_that_searches(properties, required, arguments):
    assert search_tool(tool("search", properties, required)).arguments == arguments


def test_arguments_named_as_parameters_of_the_queries_have_their_values():
    properties = {"query": TEXT, "library": TEXT, "version": TEXT, "page": TEXT, "limit": NUMBER}
    found = search_tool(tool("search", properties, ["query", "library"]), ["library", "version", "limit", "query"])
    values = {"library": "{params.library}", "version": "{params.version}"}
    assert found.arguments == {"query": "{query}", "limit": "{k}", **values}


@pytest.mark.parametrize(
    ("properties", "required"),
    [
        ({}, []),
        ({"id": NUMBER}, ["id"]),
        ({"document": TEXT, "name": TEXT}, ["document", "name"]),
        ({"query": TEXT, "index": TEXT}, ["query", "index"]),
        ({"query": "text"}, ["query"]),
        ([], []),
    ],
)
def test_a_tool_that_takes_no_query_or_needs_more_is_none(properties, required):
    assert search_tool(tool("search", properties, required)) is None


def test_a_tool_whose_name_says_search_goes_first():
    tools = [search_tool(tool(name, {"query": TEXT}, ["query"])) for name in ("fetch", "find_docs", "search_docs")]
    assert max(tools, key=lambda found: found.rank).name == "search_docs"
