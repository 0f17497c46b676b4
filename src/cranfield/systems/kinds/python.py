"""A system under test that is a Python function, plain or async, in this process."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from cranfield.concurrency.loop import event_loop
from cranfield.config.systems import PythonConfig
from cranfield.errors import CranfieldError
from cranfield.model import Order
from cranfield.systems.calls.answer_schema import type_name
from cranfield.systems.configured import CheckFailedError, Step
from cranfield.systems.kinds.in_process import InProcessSystem, check_signature, error_text_with_place
from cranfield.systems.kinds.modules import import_name, module_files


class PythonSystem(InProcessSystem):
    """A function `module:name`, called as `name(query, k, **params)`; with `with`, a factory of that function.

    Example:
        >>> from cranfield.model import Query
        >>> def search(query, k):
        ...     return [(f"doc-{word}", 1.0) for word in query.split()][:k]
        >>> answer, log = PythonSystem.calling("words", search).search(Query("q1", "grid layout"), k=1)
        >>> answer.hits[0].id
        'doc-grid'
    """

    kind = "python"
    config: PythonConfig

    _given: Callable[..., Any] | None = None

    @classmethod
    def calling(
        cls,
        name: str,
        function: Callable[..., Any],
        *,
        order: Order = "given",
        concurrency: int = 1,
        timeout_s: float = 30.0,
    ) -> Self:
        """Make a system from a function object.

        Args:
            name: its name in reports.
            function: called as `function(query, k, **params)`, plain or async; or an object with such a method `search`.
            order: whether the order of its list counts, or it is sorted by score.
            concurrency: calls at a time.
            timeout_s: time limit of a call.

        Raises:
            ConfigError: a setting is invalid.
        """
        kind = function if hasattr(function, "__qualname__") else type(function)
        reference = re.sub(r"[^\w.]", "_", f"{kind.__module__}.{kind.__qualname__}")
        module, _, last = reference.rpartition(".")
        system = cls.of(
            name,
            python=f"{module or 'function'}:{last}",
            order=order,
            concurrency=concurrency,
            timeout_s=timeout_s,
        )
        system._given = function  # noqa: SLF001 - its own class
        return system

    def prepare(self) -> None:
        """Initialise; nothing is imported yet."""
        super().prepare()
        self._folders = tuple(dict.fromkeys((self.cwd.resolve(), self.folder.resolve())))
        self._module, _, self._attribute = self.config.python.partition(":")

    @property
    def called(self) -> str:
        """The function's name."""
        return self._attribute

    def ready_steps(self) -> Iterator[Step]:
        """Check that the function exists, is callable, and accepts its arguments."""
        yield f"python {self.config.python}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the file of the module, and of modules that it imports from `cwd` and the config's folder."""
        yield from super().depends_on()
        if self._given is None:
            yield from module_files(self._module, self._folders)

    @property
    def config_digest(self) -> str:
        """SHA-256 over the configuration as written, and over the source of a function object."""
        digest = super().config_digest
        if self._given is None:
            return digest
        source = ""
        with suppress(OSError, TypeError):
            given = self._given if hasattr(self._given, "__qualname__") else type(self._given)
            source = inspect.getsource(given)
        return "sha256:" + sha256(f"{digest}\n{source}".encode("utf-8", "surrogatepass")).hexdigest()

    def _check(self) -> str:
        function = event_loop().run(self.loaded())
        check_signature(function.called, self._attribute, {**self.config.params, **self.set_params})
        return "an async function" if function.is_async else "a function"

    def load(self) -> tuple[object, object]:
        """Import the function, or create it with its factory."""
        if self._given is not None:
            return self._given, None
        found = import_name(self._module, self._attribute, self._folders)
        settings = self.config.with_
        if settings is None:
            return found, None
        offered = {"folder": self.folder, "environment": self.environment}
        made = call_factory(
            found, self._attribute, settings, offered, needed=("environment",) if self.config.env else ()
        )
        return made, made


def call_factory(
    factory: Any, name: str, settings: Mapping[str, Any], offered: Mapping[str, Any], *, needed: tuple[str, ...] = ()
) -> object:
    """Call a factory with its settings.

    Args:
        factory: the factory.
        name: its name in messages.
        settings: keyword arguments.
        offered: passed if the factory has a parameter of that name.
        needed: names in `offered` that the factory must have a parameter for.

    Raises:
        CheckFailedError: it is not callable, does not accept the settings, or raised an exception.
    """
    if not callable(factory):
        raise CheckFailedError(f"{name} to be a function that takes `with`", type_name(factory))
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # implemented in C without a signature
        given = dict(settings)
    else:
        named = {
            parameter.name for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
        }
        for key in needed:
            if key not in named:
                raise CheckFailedError(f"{name} to take {key}, for the system has an env", f"{name}{signature}")
        given = {**{key: value for key, value in offered.items() if key in named}, **settings}
        try:
            signature.bind(**given)
        except TypeError as error:
            raise CheckFailedError(
                f"{name} to take {', '.join(given) or 'nothing'}", f"{name}{signature}: {error}"
            ) from None
    try:
        return factory(**given)
    except CranfieldError as error:
        problem = error.problems[0]
        raise CheckFailedError(problem.expected or "valid settings", problem.message, problem.hint) from error
    except (Exception, SystemExit) as error:
        raise CheckFailedError(f"{name} to create the system", error_text_with_place(error)) from error
