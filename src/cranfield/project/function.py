"""A Python function as the system under test of the library's `evaluate`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from cranfield.model import Run, TestSet


def is_function(run: object) -> TypeGuard[Callable[..., Any]]:
    """Whether what is evaluated is a function to call, and not a run."""
    return callable(run) and not isinstance(run, str | Path | Mapping | Run)


def run_of_function(testset: TestSet, function: Callable[..., Any], *, k: int, name: str | None = None) -> Run:
    """Call a function for every query and keep its answers; a call that fails is an answer with that outcome.

    Args:
        testset: its queries are asked.
        function: called as `function(query, k, **params)`, or as `function(query)` where it takes no more; plain or async.
        k: number of results requested.
        name: what to call the system; by default the name of the function.

    Raises:
        TestSetError: queries without a text.
        PreflightError: the function does not take a query.
    """
    from cranfield.options.collect import CollectOptions
    from cranfield.systems.collect.collection import collect
    from cranfield.systems.collect.collector import require_texts
    from cranfield.systems.collect.preflight import preflight
    from cranfield.systems.kinds.python import PythonSystem

    require_texts(testset)
    called: str = name or getattr(function, "__name__", None) or type(function).__name__
    system = PythonSystem.calling(called if called.isidentifier() else "function", _with_k(function))
    try:
        preflight([system], k=k)
        return collect(testset, system, k=k, options=CollectOptions(keep_going=True))
    finally:
        system.close()


def _with_k(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a system is called; one that takes a query alone gets no more."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C without a signature
        return function
    if _takes(signature, "query", 10) or not _takes(signature, "query"):
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def ask_async(query: str, k: int, **_: object) -> object:
            return _cut(await function(query), k)

        answer: Callable[..., Any] = ask_async
    else:

        @functools.wraps(function)
        def ask(query: str, k: int, **_: object) -> object:
            return _cut(function(query), k)

        answer = ask
    answer.__dict__.pop("__wrapped__")  # its signature is another
    return answer


def _cut(found: object, k: int) -> object:
    return found[:k] if isinstance(found, list | tuple) else found


def _takes(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True
