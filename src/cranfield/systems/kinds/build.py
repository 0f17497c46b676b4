"""Build the systems of a config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from cranfield.base.errors import UnknownNameError
from cranfield.base.platforms import PROGRAMS, missing
from cranfield.config.models import Config
from cranfield.config.systems import FusionConfig, expand_preset
from cranfield.model import Scalar
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.kinds.python import FunctionSystem

if TYPE_CHECKING:
    from cranfield.systems.kinds.function_process import FunctionProcess

SYSTEM_CLASSES = {
    "command": "cranfield.systems.kinds.command:CommandSystem",
    "http": "cranfield.systems.kinds.http:HttpSystem",
    "python": "cranfield.systems.kinds.python:PythonSystem",
    "mcp": "cranfield.systems.kinds.mcp:McpSystem",
    "lines": "cranfield.systems.kinds.line_program:LinesSystem",
    "run": "cranfield.systems.kinds.run_file:RunFileSystem",
    "fusion": "cranfield.systems.kinds.fusion:FusionSystem",
    "plugin": "cranfield.systems.kinds.python:PluginSystem",
}
"""Kind of system to its class, imported on use; presets are settings of one of these kinds."""


def system_class(kind: str) -> type[ConfiguredSystem]:
    """The class of a kind of system."""
    module, _, name = SYSTEM_CLASSES[kind].partition(":")
    found: type[ConfiguredSystem] = getattr(import_module(module), name)
    return found


def build_systems(
    config: Config,
    names: Iterable[str] | None = None,
    params: Mapping[str, Scalar] = MappingProxyType({}),
    *,
    isolated: bool = False,
) -> list[ConfiguredSystem]:
    """The systems of a config, in the order of the file.

    Args:
        config: the config.
        names: names of systems; None: all.
        params: passed with every query of the test set.
        isolated: functions are called in processes of their own, which cannot end or change this one; in this one where
            the operating system does not allow it.

    Raises:
        UnknownNameError: a name is not in the config.
    """
    wanted = None if names is None else set(names)
    for name in sorted(wanted or ()):
        if name not in config.systems:
            raise UnknownNameError.among("system", name, config.systems)
    builder = _Builder(config, params, isolated=isolated)
    return [builder.system(name) for name in config.systems if wanted is None or name in wanted]


class _Builder:
    """Builds each part of fusions once: a part that two fusions share is called once for both."""

    def __init__(self, config: Config, params: Mapping[str, Scalar], *, isolated: bool) -> None:
        self._config = config
        self._params = params
        self._processes: dict[str, FunctionProcess] | None = {} if isolated and not missing(PROGRAMS) else None
        self._parts: dict[str, ConfiguredSystem] = {}

    def system(self, name: str) -> ConfiguredSystem:
        """The system of a name; of a fusion, with its parts."""
        written = self._config.systems[name]
        system = system_class(expand_preset(written).kind)(name, written, self._config.folder, self._params)
        if self._processes is not None and isinstance(system, FunctionSystem):
            system.isolate(self._processes)
        if isinstance(written, FusionConfig):
            system.parts = {part: self._part(part) for part in written.fusion.of}
        return system

    def _part(self, name: str) -> ConfiguredSystem:
        if name not in self._parts:
            self._parts[name] = self.system(name)
        return self._parts[name]


def systems_to_check(systems: Sequence[ConfiguredSystem]) -> list[ConfiguredSystem]:
    """The systems without a fusion whose parts are all checked with another system."""
    if all(system.config.kind != "fusion" for system in systems):
        return list(systems)
    from cranfield.systems.kinds.fusion import FusionSystem

    found: list[ConfiguredSystem] = []
    checked: set[int] = set()
    for system in systems:
        parts = {id(part) for part in system.active_parts.values()} if isinstance(system, FusionSystem) else set()
        if not parts or not parts <= checked:
            found.append(system)
        checked |= parts
    return found
