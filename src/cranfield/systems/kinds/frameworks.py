"""Retrievers of LangChain and LlamaIndex, and pipelines of Haystack, as functions that answer queries.

They are recognised by the methods of their classes; no framework is imported. Their documents become hits where answers are read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cranfield.systems.calls.stages import CheckFailedError

_QUERY_INPUTS = ("query", "text", "question")
"""Usual names of the inputs of a pipeline that take the query."""

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call."""
Arguments = Callable[[str, int, dict[str, Any]], Call]
"""Makes them of a query, k and params."""


class _Framework(NamedTuple):
    """How objects of one kind are called."""

    marks: tuple[str, ...]
    """Methods that tell the kind from others, besides one of the next two."""
    plain: str
    awaited: str
    arguments: Callable[[Any, str], Arguments]
    """Makes them of an object and its name."""


def retriever_function(found: object, name: str) -> Callable[..., Any] | None:
    """The function `(query, k, **params)` of a retriever, a vector store or a pipeline; None of any other object.

    Args:
        found: such an object, whose plain method is called, or the async one where it has no plain one, or that raises
            NotImplementedError; or one of the two methods (`retriever.ainvoke`), which is called itself.
        name: its name in messages.

    Raises:
        CheckFailedError: a pipeline has no input, or several, that may be the query.
    """
    kind, owner = _framework_of(found)
    if kind is None:
        return None
    plain, awaited = (getattr(owner, method, None) for method in (kind.plain, kind.awaited))
    if owner is not found:
        plain, awaited = (found, None) if found == plain else (None, found)
    arguments = kind.arguments(owner, name)
    if not kind.marks and _takes_k(plain or awaited):  # an object of the user's own, with a method of that name
        arguments = _with_both

    async def ask_async(query: str, k: int, **params: Any) -> object:
        args, kwargs = arguments(query, k, params)
        return await awaited(*args, **kwargs)  # type: ignore[misc]

    def ask(query: str, k: int, **params: Any) -> object:
        args, kwargs = arguments(query, k, params)
        try:
            return plain(*args, **kwargs)  # type: ignore[misc]
        except NotImplementedError:
            if awaited is None:
                raise
            return awaited(*args, **kwargs)

    return ask_async if plain is None else ask


def is_retriever(found: object) -> bool:
    """Whether `retriever_function` takes an object."""
    return _framework_of(found)[0] is not None


def is_vector_store(found: object) -> bool:
    """Whether it is a vector store of LangChain, whose method `search` is none of a system."""
    return _has(found, _STORE.marks)


def _framework_of(found: object) -> tuple[_Framework | None, object]:
    """The kind of an object, or of the object of a method, and that object. What can be called itself is a function."""
    owner, method = (found.__self__, found.__name__) if inspect.ismethod(found) else (found, None)
    if method is None and callable(owner):
        return None, found
    for kind in _FRAMEWORKS:
        methods = [name for name in (kind.plain, kind.awaited) if _has(owner, (name,))]
        if methods and _has(owner, kind.marks) and method in (None, *methods):
            return kind, owner
    return None, found


def _has(owner: object, methods: tuple[str, ...]) -> bool:
    """Whether the class of an object has methods: asked of the object, proxies have any."""
    return all(callable(getattr(type(owner), method, None)) for method in methods)


def _takes_k(method: Any) -> bool:
    """Whether a method takes more than the query by position, and not LangChain's `config`."""
    try:
        second = [*inspect.signature(method).parameters.values()][1:2]
    except (TypeError, ValueError):  # implemented in C without a signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in positional and parameter.name != "config" for parameter in second)


def _with_both(query: str, k: int, params: dict[str, Any]) -> Call:
    return (query, k), params


def _with_k(store: object, name: str) -> Arguments:  # noqa: ARG001 - as of the others
    return lambda query, k, params: ((query,), {"k": k, **params})


def _query_alone(retriever: object, name: str) -> Arguments:  # noqa: ARG001 - as of the others
    return lambda query, _, params: ((query,), params)


def _bundle(retriever: object, name: str) -> Arguments:
    """A retriever of LlamaIndex takes a text; a query engine takes only what its framework makes of one."""
    if not _has(retriever, ("query",)):
        return _query_alone(retriever, name)
    try:
        from llama_index.core.schema import QueryBundle
    except ImportError:
        return _query_alone(retriever, name)
    return lambda query, _, params: ((QueryBundle(query),), params)


def _pipeline_data(pipeline: Any, name: str) -> Arguments:
    """The query to the inputs that take it, and params to all inputs of their names."""
    inputs: Mapping[str, Mapping[str, Any]] = pipeline.inputs()
    given_to = _query_inputs(inputs, name)

    def arguments(query: str, _: int, params: dict[str, Any]) -> Call:
        data: dict[str, dict[str, Any]] = {}
        for component, place in given_to:
            data.setdefault(component, {})[place] = query
        for param, value in params.items():
            takers = [component for component, places in inputs.items() if param in places]
            if not takers:
                raise TypeError(f"no component of {name} has an input {param}")
            for component in takers:
                data.setdefault(component, {})[param] = value
        return (data,), {}

    return arguments


def _query_inputs(inputs: Mapping[str, Mapping[str, Any]], name: str) -> list[tuple[str, str]]:
    """Component and name of each input that gets the query: what is required and has a usual name, or is the only text.

    Raises:
        CheckFailedError: there is none, or there are several texts without a usual name.
    """
    open_inputs = [(part, place, about) for part, places in inputs.items() for place, about in places.items()]
    required = [(part, place) for part, place, about in open_inputs if about.get("is_mandatory")]
    named = [(part, place) for part, place in required if place in _QUERY_INPUTS]
    texts = [(part, place) for part, place, about in open_inputs if (part, place) in required and about["type"] is str]
    if named or len(texts) == 1:
        return named or texts
    optional = [(part, place) for part, place, _ in open_inputs if place in _QUERY_INPUTS]
    if len(optional) == 1 and not texts:
        return optional
    among = texts or optional or [(part, place) for part, place, _ in open_inputs]
    part, place = among[0] if among else ("component", "input")
    call = f'{name}.run({{"{part}": {{"{place}": query}}}})'
    raise CheckFailedError(
        f"one input of {name} that takes the query",
        ", ".join(f"{part}.{place}" for part, place in among) or "no input",
        f"name a function that says which: def search(query, k): return {call}",
    )


_STORE = _Framework(
    ("as_retriever", "add_texts"), "similarity_search_with_score", "asimilarity_search_with_score", _with_k
)
_FRAMEWORKS = (
    _STORE,
    _Framework((), "invoke", "ainvoke", _query_alone),
    _Framework((), "retrieve", "aretrieve", _bundle),
    _Framework(("inputs", "outputs"), "run", "run_async", _pipeline_data),
)
