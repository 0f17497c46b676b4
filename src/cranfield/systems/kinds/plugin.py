"""A system under test provided by an installed package, by an entry point of the group `cranfield.systems`.

The entry point names a function that is called as `function(name=…, settings=…, folder=…, params=…)`. What it returns has a
method `search(query, k, **params)`, as a Python system's function, or is a `System` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cranfield.concurrency.loop import event_loop
from cranfield.config.systems import PluginConfig
from cranfield.errors import unknown_name
from cranfield.model import Answer, Query, Scalar
from cranfield.plugins import Plugin, plugins
from cranfield.systems.configured import CheckFailedError, Step
from cranfield.systems.kinds.in_process import InProcessSystem, error_text_with_place, find_callable
from cranfield.systems.kinds.modules import module_files


class PluginSystem(InProcessSystem):
    """A system provided by an installed package."""

    kind = "plugin"
    config: PluginConfig

    @property
    def called(self) -> str:
        """The method that is called."""
        return f"{self.config.plugin}.search"

    def ready_steps(self) -> Iterator[Step]:
        """Check that a package provides the plugin, and creates the system."""
        yield f"plugin {self.config.plugin}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the module of the plugin and the list of its package's files with their digests."""
        yield from super().depends_on()
        with suppress(CheckFailedError):
            point = self._plugin().point
            yield from module_files(point.module, ())
            for file in (point.dist.files or ()) if point.dist is not None else ():
                if file.name in {"METADATA", "RECORD"}:
                    yield Path(str(file.locate()))

    def _check(self) -> str:
        event_loop().run(self.loaded())
        return f"made{self._plugin().package}"

    def _plugin(self) -> Plugin:
        name = self.config.plugin
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
        plugin = self._plugin()
        point = plugin.point
        hint = f"fix {point.value}, or uninstall the package."
        try:
            factory: Any = point.load()
            made = factory(
                name=self.name,
                settings=dict(self.config.with_ or {}),
                folder=self.folder,
                params={**self.config.params, **self.set_params},
            )
        except (Exception, SystemExit) as error:
            subject = f"plugin {plugin.name}{plugin.package} to create a system"
            raise CheckFailedError(subject, error_text_with_place(error), hint) from error
        return _as_function(made) or self._request_server(made, plugin), made

    def _request_server(self, made: object, plugin: Plugin) -> Callable[..., Any]:
        try:
            return find_callable(made, self.called)
        except CheckFailedError as problem:
            subject = f"plugin {plugin.name}{plugin.package} to create an object with a method search"
            raise CheckFailedError(
                subject, problem.found, f"fix {plugin.point.value}, or uninstall the package."
            ) from None


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
