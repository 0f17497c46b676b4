"""Requests and responses of models as they pass: the tools that are offered, the model, and the tokens.

Three formats are read: OpenAI's responses and chat completions, and Anthropic's messages, streamed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cranfield.agents.protocol import Usage
from cranfield.benefit.external.events import count_of, dicts_of, json_object, mapping_of, plain_name
from cranfield.benefit.usage import estimated_tokens

_DATA = b"data:"


def request_of(body: bytes) -> Mapping[str, Any]:
    """A request to a model; empty where it is none."""
    value = json_object(body) or {}
    return value if isinstance(value.get("model"), str) and ("messages" in value or "input" in value) else {}


def offered_tools(request: Mapping[str, Any]) -> Mapping[str, int]:
    """Plain names of the tools of a request, each with the tokens of its schema, estimated. A group names each of its tools."""
    found: dict[str, int] = {}
    for tool in dicts_of(request.get("tools")):
        name = str(tool.get("name") or mapping_of(tool.get("function")).get("name") or tool.get("type") or "")
        inner = dicts_of(tool.get("tools"))
        parts = {f"{name}__{each.get('name')}": each for each in inner} if inner else {name: tool}
        found |= {plain_name(part): estimated_tokens(json.dumps(each)) for part, each in parts.items()}
    return found


def response_of(body: bytes) -> tuple[Usage | None, str]:
    """Tokens of a response, None where it reports none; and the model's name."""
    tokens: dict[str, Any] = {}
    model = ""
    for value in _documents(body):
        for part in (value, mapping_of(value.get("response")), mapping_of(value.get("message"))):
            tokens |= {key: each for key, each in mapping_of(part.get("usage")).items() if each is not None}
            model = model or str(part.get("model") or "")
    return (_usage(tokens) if tokens else None), model


def _usage(tokens: Mapping[str, Any]) -> Usage:
    if "prompt_tokens" in tokens:
        return _openai(tokens, "prompt_tokens", "completion_tokens")
    if "cache_read_input_tokens" in tokens or "cache_creation_input_tokens" in tokens:
        return anthropic_usage(tokens)
    return _openai(tokens, "input_tokens", "output_tokens")


def anthropic_usage(tokens: Mapping[str, Any]) -> Usage:
    """Usage in a response of Anthropic, whose `input_tokens` are those that no cache held."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    uncached, read, write, output = (count_of(tokens.get(name)) for name in names)
    whole = None if uncached is None else uncached + (read or 0) + (write or 0)
    return Usage(input=whole, cache_read=read, cache_write=write, output=output)


def _openai(tokens: Mapping[str, Any], input_: str, output: str) -> Usage:
    inputs, outputs = mapping_of(tokens.get(f"{input_}_details")), mapping_of(tokens.get(f"{output}_details"))
    return Usage(
        input=count_of(tokens.get(input_)),
        cache_read=count_of(inputs.get("cached_tokens")),
        cache_write=count_of(inputs.get("cache_write_tokens")),
        output=count_of(tokens.get(output)),
        reasoning=count_of(outputs.get("reasoning_tokens")),
    )


def _documents(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a response: the whole, or each event of a stream."""
    if body.lstrip()[:1] == b"{":
        yield json_object(body) or {}
        return
    for line in body.splitlines():
        if line.startswith(_DATA) and (b'"usage"' in line or b'"model"' in line):
            yield json_object(line.removeprefix(_DATA)) or {}
