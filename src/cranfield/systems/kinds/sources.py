"""Where functions come from: a module, or a plug-in of an installed package. Plain data, so that another process can load them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError, unknown_name
from cranfield.model import Answer, Query, Scalar
from cranfield.systems.calls.answer_schema import type_name
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.kinds.function import FunctionSource, error_text_with_place, find_callable, with_arguments
from cranfield.systems.kinds.modules import import_name

if TYPE_CHECKING:
    from cranfield.plugins import Plugin


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A function of a module, or made by a factory of a module."""

    module: str
    name: str
    folders: tuple[str, ...]
    """Searched first for the module."""
    settings: Mapping[str, Any] | None
    """Arguments of the factory; None: the function itself."""
    folder: str
    """Folder of the config file."""
    env: Mapping[str, str]
    """Added to the environment that the factory is given."""
    arguments: Mapping[str, Any] | None = None
    """Arguments of the function by name, with placeholders; None: query and k, and params by name."""

    @property
    def called(self) -> str:
        """The function's name."""
        return self.name

    def load(self) -> tuple[object, object]:
        """Import the function, or create it with its factory."""
        found, made = self._load()
        if self.arguments is None:
            return found, made
        return with_arguments(find_callable(found, self.name), self.name, self.arguments), made

    def _load(self) -> tuple[object, object]:
        found = import_name(self.module, self.name, [Path(folder) for folder in self.folders])
        if self.settings is None:
            return found, None
        offered = {"folder": Path(self.folder), "environment": {**os.environ, **self.env}}
        made = call_factory(found, self.name, self.settings, offered, needed=("environment",) if self.env else ())
        return made, made


@dataclass(frozen=True, slots=True)
class PluginSource:
    """What the plug-in of an installed package makes."""

    plugin: str
    system: str
    settings: Mapping[str, Any]
    folder: str
    """Folder of the config file."""
    params: Mapping[str, Scalar]

    @property
    def called(self) -> str:
        """The method that is called."""
        return f"{self.plugin}.search"

    def entry(self) -> Plugin:
        """The entry point.

        Raises:
            CheckFailedError: no package provides it, or several do.
        """
        from cranfield.plugins import plugins  # slow, and a function of a module needs none

        name = self.plugin
        installed = list(plugins("cranfield.systems"))
        points = {plugin.name: plugin for plugin in installed}
        same = {plugin.point.value for plugin in installed if plugin.name == name}
        if len(same) > 1:
            raise CheckFailedError("one package that provides it", f"several: {', '.join(sorted(same))}")
        if name not in points:
            problem = unknown_name("plugin", name, points)
            brings = "no installed package provides a plugin of that name"
            raise CheckFailedError(problem.expected or "a package that provides it", brings, problem.hint)
        return points[name]

    def load(self) -> tuple[object, object]:
        """Create the system."""
        plugin = self.entry()
        point = plugin.point
        hint = f"fix {point.value}, or uninstall the package."
        try:
            factory: Any = point.load()
            made = factory(
                name=self.system, settings=dict(self.settings), folder=Path(self.folder), params=dict(self.params)
            )
        except (Exception, SystemExit) as error:
            subject = f"plugin {plugin.name}{plugin.package} to create a system"
            raise CheckFailedError(subject, error_text_with_place(error), hint) from error
        try:
            return _as_function(made) or find_callable(made, self.called), made
        except CheckFailedError as problem:
            subject = f"plugin {plugin.name}{plugin.package} to create an object with a method search"
            raise CheckFailedError(subject, problem.found, hint) from None


_KINDS: Mapping[str, type[ModuleSource | PluginSource]] = {"module": ModuleSource, "plugin": PluginSource}


def source_record(source: FunctionSource) -> dict[str, Any]:
    """A source as JSON values."""
    kind = next(kind for kind, made in _KINDS.items() if isinstance(source, made))
    return {"kind": kind, **asdict(source)}  # type: ignore[call-overload]


def source_from_record(record: Mapping[str, Any]) -> FunctionSource:
    """The source of which `source_record` made a record."""
    return _KINDS[record["kind"]](**{key: value for key, value in record.items() if key != "kind"})


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


def _as_function(made: Any) -> Callable[..., Any] | None:
    """The `search` of a `System` as a plain function; None for other objects."""
    if not (
        hasattr(made, "config_digest") and hasattr(made, "public_config") and callable(getattr(made, "search", None))
    ):
        return None

    def search(query: str, k: int, **params: Scalar) -> Answer:
        answer, _ = made.search(Query("query", query, params=params), k)
        return answer  # type: ignore[no-any-return]

    return search
