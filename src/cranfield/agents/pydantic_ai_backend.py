"""The adapter of pydantic-ai: the only module that imports it. One request of the protocol is one request of HTTP."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from cranfield.agents.protocol import Failure, FailureKind, Message, ModelAnswer, Request, ToolCall, Usage, with_output
from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.retry import TOO_MANY_REQUESTS, is_transient
from cranfield.base.errors import MissingExtraError, UsageError, shorten
from cranfield.base.words import printable
from cranfield.systems.calls.redact import Redactor

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

OPENAI = "https://api.openai.com/v1"
OLLAMA = "http://127.0.0.1:11434/v1"
OUTPUT_TOOL = "answer"
"""Tool whose argument is the answer, in the mode `tool`."""
NO_KEY = "none"
"""Sent to servers that need no key: the client requires one."""
REDIRECTS = range(300, 400)
MESSAGE_CHARS = 500
"""Most characters of an error of a provider."""
ANSWER_CHARS = 2_000_000
"""A longer answer is refused: no model writes so much in one call."""
_UNUSED = Usage(input=0, output=0)
_UNKNOWN = Usage(unmeasured=1)
_RECEIVED: ContextVar[list[str]] = ContextVar("received")
"""The body that came to a request; the library does not say what it could not read."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a model is."""

    name: str
    """`openai`: any server that speaks OpenAI's protocol; `ollama`; others by the names of pydantic-ai."""
    base_url: str = ""
    api_key_env: str = ""
    """Environment variable that holds the key."""


def split_model(model: str) -> tuple[str, str]:
    """Provider and name of `provider:name`.

    Raises:
        UsageError: it is not of that form.
    """
    provider, colon, name = model.partition(":")
    if not (colon and provider and name):
        hint = "for a server with an OpenAI-compatible API, use openai:NAME with a base URL"
        raise UsageError("the model has no provider", got=repr(model), expected="PROVIDER:NAME", hint=hint)
    return provider, name


class PydanticAiBackend:
    """Sends requests by pydantic-ai, without its retries. The key is read from its variable, and redacted everywhere."""

    def __init__(self, provider: Provider) -> None:
        key = ""
        if provider.api_key_env:
            key = os.environ.get(provider.api_key_env, "")
            if not key:
                raise UsageError(f"the environment variable {provider.api_key_env} is not set", expected="the API key")
        elif provider.name == "openai" and not provider.base_url:
            hint = "name the variable: --api-key-env OPENAI_API_KEY"
            raise UsageError("no OpenAI API key", expected="an environment variable with the key", hint=hint)
        self.provider = provider
        self._key = key
        self._redactor = Redactor({provider.api_key_env: key} if key else {})
        self._models: dict[str, Model] = {}
        try:
            for name in ("openai", "pydantic_ai"):
                import_module(name)
        except ImportError:
            raise MissingExtraError.for_extra("calling a model", "agents") from None

    async def ask(self, request: Request) -> ModelAnswer:
        """Send the request once."""
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import AgentRunError, UserError

        model, messages = self._model(request.model), list(_messages(request))
        settings, parameters = _settings(request), _parameters(request)
        received: list[str] = []
        _RECEIVED.set(received)
        started = time.monotonic()
        try:
            async with asyncio.timeout(request.timeout_s):
                response = await model_request(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
        except UserError as error:
            raise UsageError(f"{request.model}: {self._redactor.redact(str(error))}") from None
        except (AgentRunError, TimeoutError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            # The library reads some malformed answers without a check: no choices are its IndexError.
            answer = self._redacted(_failed(error, request, received))
        else:
            answer = self._redacted(_answer(response, request))
            if answer.failure is None and not answer.tool_calls:
                answer = with_output(answer, request)
        return replace(answer, wall_s=time.monotonic() - started)

    async def close(self) -> None:
        """Close the connections."""
        for model in self._models.values():
            client = getattr(model, "client", None)
            if client is not None:
                await client.close()

    def _redacted(self, answer: ModelAnswer) -> ModelAnswer:
        failure = answer.failure

        def redact(text: str) -> str:  # half a character, which no request can carry, becomes `?`
            return self._redactor.redact(text.encode("utf-8", "replace").decode())

        if failure is not None:
            message = printable(redact(failure.message))[:MESSAGE_CHARS]
            failure = replace(failure, message=message, got=failure.got and shorten(redact(failure.got)))
        calls = tuple(replace(call, arguments=redact(call.arguments)) for call in answer.tool_calls)
        return replace(answer, text=redact(answer.text), tool_calls=calls, failure=failure)

    def _model(self, model: str) -> Model:
        if model not in self._models:
            self._models[model] = self._connected(*split_model(model))
        return self._models[model]

    def _connected(self, provider: str, name: str) -> Model:
        base_url = self.provider.base_url or {"openai": OPENAI, "ollama": OLLAMA}.get(provider, "")
        if provider in ("openai", "ollama"):
            return _openai_model(provider, name, base_url, self._key)
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class

        settings = {"api_key": self._key} if self._key else {}
        try:
            return infer_model(
                f"{provider}:{name}",
                lambda known: infer_provider_class(known)(**settings, **({"base_url": base_url} if base_url else {})),
            )
        except (UserError, ValueError, TypeError, ImportError) as error:
            hint = "for a server with an OpenAI-compatible API, use openai:NAME with --base-url"
            message = self._redactor.redact(str(error).partition("\n")[0])
            raise UsageError(f"cannot use the provider {provider!r}: {message}", hint=hint) from None


def _openai_model(provider: str, name: str, base_url: str, key: str) -> Model:
    """A model behind OpenAI's protocol. The library's profile of the provider knows what a server does not support."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # The library would follow a redirect with the prompt, and to another port or path of the host also with the key.
    http = DefaultAsyncHttpxClient(
        follow_redirects=False, verify=trusted_certificates(), event_hooks={"response": [_keep_received]}
    )
    client = AsyncOpenAI(base_url=base_url, api_key=key or NO_KEY, max_retries=0, http_client=http)
    if provider == "ollama":
        return OllamaModel(name, provider=OllamaProvider(openai_client=client))
    if base_url == OPENAI:
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))
    return OpenAIChatModel(name, provider=OpenAICompatibleProvider(provider, openai_client=client))


async def _keep_received(response: Any) -> None:
    await response.aread()
    _RECEIVED.get([]).append(response.text[:MESSAGE_CHARS])


def _messages(request: Request) -> Iterator[ModelMessage]:
    from pydantic_ai import messages as library

    system = [library.SystemPromptPart(request.system)] if request.system else []
    for message in request.messages:
        if message.role == "assistant":
            calls = [library.ToolCallPart(call.name, call.arguments, call.id) for call in message.tool_calls]
            yield library.ModelResponse([*([library.TextPart(message.text)] if message.text else []), *calls])
        else:
            yield library.ModelRequest([*system, _user_part(message)])
            system = []


def _user_part(message: Message) -> Any:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    if message.role == "tool":
        return ToolReturnPart(message.tool_name, message.text, message.tool_call_id)
    return UserPromptPart(message.text)


def _settings(request: Request) -> ModelSettings:
    sampling = request.sampling
    given = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "max_tokens": sampling.max_tokens,
        "timeout": request.timeout_s,
    }
    return cast("ModelSettings", {name: value for name, value in given.items() if value is not None})


def _parameters(request: Request) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=tool.name, parameters_json_schema=dict(tool.parameters), description=tool.description)
        for tool in request.tools
    ]
    if request.output is None:
        return ModelRequestParameters(function_tools=tools)
    schema = request.output.model_json_schema()
    if request.output_mode == "tool":
        answer = ToolDefinition(
            name=OUTPUT_TOOL, parameters_json_schema=schema, description="Gives the answer.", kind="output"
        )
        return ModelRequestParameters(
            function_tools=tools, output_tools=[answer], output_mode="tool", allow_text_output=False
        )
    shape = OutputObjectDefinition(json_schema=schema, name=request.output.__name__, strict=True)
    return ModelRequestParameters(function_tools=tools, output_mode=request.output_mode, output_object=shape)


def _answer(response: ModelResponse, request: Request) -> ModelAnswer:
    """What the model wrote, not validated yet."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    typed = [_arguments(call) for call in calls if call.tool_name == OUTPUT_TOOL]
    other = tuple(
        ToolCall(call.tool_call_id, call.tool_name, _arguments(call)) for call in calls if call.tool_name != OUTPUT_TOOL
    )
    text = typed[0] if request.output_mode == "tool" and typed else "".join(texts)
    answer = ModelAnswer(text=text, tool_calls=other, usage=_usage(response), model=response.model_name)
    if len(text) > ANSWER_CHARS:
        message = f"the answer has {len(text):,} characters; {ANSWER_CHARS:,} are accepted"
        text = text[:MESSAGE_CHARS]
        return replace(answer, text=text, failure=Failure(FailureKind.BAD_OUTPUT, message, got=text))
    if response.finish_reason == "content_filter":
        return replace(answer, failure=Failure(FailureKind.FILTERED, "the model or its provider refused to answer"))
    if response.finish_reason == "length":
        message = f"the answer reached its maximum of {request.sampling.max_tokens or 'an unknown number of'} tokens"
        return replace(answer, failure=Failure(FailureKind.TRUNCATED, message, got=text))
    return answer


def _arguments(call: ToolCallPart) -> str:
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def _usage(response: ModelResponse) -> Usage:
    """What the provider reported: the library sets no attribute for the rest, and its defaults are 0."""
    reported = vars(response.usage)
    if response.usage.unmeasured_requests or "input_tokens" not in reported:
        return _UNKNOWN
    details = reported.get("details") or {}
    return Usage(
        input=reported.get("input_tokens"),
        cache_read=reported.get("cache_read_tokens"),
        cache_write=reported.get("cache_write_tokens"),
        output=reported.get("output_tokens"),
        reasoning=reported.get("output_reasoning_tokens", details.get("reasoning_tokens")),
    )


def _failed(error: Exception, request: Request, received: list[str]) -> ModelAnswer:
    from pydantic_ai import exceptions

    status = getattr(error, "status_code", None) or getattr(error.__cause__, "status_code", None)  # of a redirect
    retry_after_s = getattr(error, "retry_after", None)
    if isinstance(error, TimeoutError | exceptions.ModelTimeoutError | exceptions.ModelRequestTimeout):
        failure = Failure(FailureKind.TIMEOUT, f"no answer in {request.timeout_s:g} s")
        return ModelAnswer(failure=failure, usage=_UNKNOWN)
    if status is not None:
        kind = FailureKind.REJECTED
        if is_transient(status):
            kind = FailureKind.RATE_LIMITED if status == TOO_MANY_REQUESTS else FailureKind.UNAVAILABLE
        return ModelAnswer(failure=Failure(kind, _http_message(error, status), status, retry_after_s), usage=_UNUSED)
    if isinstance(error, exceptions.ModelConnectionError):
        cause = _first_cause(error)
        failure = Failure(FailureKind.CONNECTION, f"no connection: {cause or type(cause).__name__}")
        return ModelAnswer(failure=failure, usage=_UNUSED if _never_sent(error) else _UNKNOWN)
    body = "".join(received)
    why = "the body is empty" if received and not body else str(error) or type(error).__name__
    failure = Failure(FailureKind.PROTOCOL, f"not an answer of a model: {why}", got=body)
    return ModelAnswer(failure=failure, usage=_UNKNOWN)


def _http_message(error: Exception, status: int) -> str:
    """The status, and what the provider says."""
    body = getattr(error, "body", None)
    text = body.get("message") if isinstance(body, dict) else body
    if status in REDIRECTS:
        return f"HTTP {status}: redirects are not followed; give the final address"
    return f"HTTP {status}: {text}" if text else f"HTTP {status}"


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _never_sent(error: BaseException | None) -> bool:
    """Whether there was no connection at all: a connection that is lost later may have used tokens."""
    from httpx2 import ConnectError, ConnectTimeout

    while error is not None and not isinstance(error, ConnectError | ConnectTimeout):
        error = error.__cause__
    return error is not None
