"""A system under test provided by an installed package, by an entry point of the group `cranfield.systems`.

The entry point names a function that is called as `function(name=…, settings=…, folder=…, params=…)`. What it returns has a
method `search(query, k, **params)`, as a Python system's function, or is a `System` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cranfield.base.concurrency.loop import event_loop
from cranfield.config.systems import PluginConfig
from cranfield.systems.configured import CheckFailedError, Step
from cranfield.systems.kinds.function_system import FunctionSystem
from cranfield.systems.kinds.modules import module_files
from cranfield.systems.kinds.sources import PluginSource


class PluginSystem(FunctionSystem):
    """A system provided by an installed package."""

    kind = "plugin"
    config: PluginConfig

    def source(self) -> PluginSource:
        """The plug-in."""
        params = {**self.config.params, **self.set_params}
        return PluginSource(self.config.plugin, self.name, self.config.with_ or {}, str(self.folder), params)

    def ready_steps(self) -> Iterator[Step]:
        """Check that a package provides the plugin, and creates the system."""
        yield f"plugin {self.config.plugin}", self._check

    def depends_on(self) -> Iterator[Path]:
        """Besides `depends`, the module of the plugin and the list of its package's files with their digests."""
        yield from super().depends_on()
        with suppress(CheckFailedError):
            point = self.source().entry().point
            yield from module_files(point.module, ())
            for file in (point.dist.files or ()) if point.dist is not None else ():
                if file.name in {"METADATA", "RECORD"}:
                    yield Path(str(file.locate()))

    def _check(self) -> str:
        event_loop().run(self.function.load())
        return f"made{self.source().entry().package}"
