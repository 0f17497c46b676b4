"""Which entities are public, and under which name: the re-exports of all modules, resolved without importing any.

A name defined in a private place (`_csv`, `_pydecimal.py`, `concurrent/futures/_base.py`) is public when a public
module takes it in and offers it; a name defined in a public module may have a shorter public name in a package above it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cranfield.app.demo.compiled import CompiledModule
from cranfield.app.demo.entity import DocumentedObject
from cranfield.app.demo.source import SourceModule

Place = tuple[str, str]
"""(module, name): where a top-level name is defined."""

_OFFERED_BY_OTHERS = {"posix", "nt", "genericpath"}
"""Named like public modules, and offered to people as `os` and `os.path`."""

_PATH_MODULE = os.path.__name__
"""`posixpath` or `ntpath`: what people call `os.path` on this machine. The other one keeps its own name."""
_OTHER_PATH_MODULES = {"posixpath", "ntpath"} - {_PATH_MODULE}


def is_private_module(name: str) -> bool:
    """True for a module that people are not meant to import: `_csv`, `concurrent.futures._base`, `posix`."""
    parts = name.split(".")
    hidden = any(part.startswith("_") and not part.endswith("__") for part in parts)
    return hidden or name in _OFFERED_BY_OTHERS


def public_entities(
    modules: Mapping[str, SourceModule], compiled: Mapping[str, CompiledModule]
) -> Iterator[DocumentedObject]:
    """Yield every public entity of the library under its best name, in no particular order."""
    for entity in _public_entities(modules, compiled):
        if entity.module == _PATH_MODULE:
            inner = entity.qualname.removeprefix(_PATH_MODULE)
            yield replace(entity, module="os.path", qualname=f"os.path{inner}", name=entity.name if inner else "path")
        else:
            yield entity


def _public_entities(
    modules: Mapping[str, SourceModule], compiled: Mapping[str, CompiledModule]
) -> Iterator[DocumentedObject]:
    homes = _Exports(modules, compiled).homes()
    for module in modules.values():
        for entity in module.entities:
            inner = entity.id.partition("::")[2]
            if inner or not is_private_module(module.name):
                yield from _source_entity(entity, inner, homes, is_private=is_private_module(module.name))
    for described in compiled.values():
        if not is_private_module(described.name):
            name = described.name
            yield DocumentedObject(id=name, kind="module", name=name, qualname=name, module=name, doc=described.doc)
        for entity in described.entities:
            yield from _compiled_entity(entity, homes, is_private=is_private_module(described.name))


def _source_entity(
    entity: DocumentedObject, inner: str, homes: Mapping[Place, Place], *, is_private: bool
) -> Iterator[DocumentedObject]:
    top, dot, rest = inner.partition(".")
    home = homes.get((entity.module, top))
    if home is not None:
        module, name = home
        yield replace(entity, module=module if is_private else entity.module, qualname=f"{module}.{name}{dot}{rest}")
    elif not is_private and not top.startswith("_"):
        yield entity


def _compiled_entity(
    entity: DocumentedObject, homes: Mapping[Place, Place], *, is_private: bool
) -> Iterator[DocumentedObject]:
    if not is_private:
        yield entity
        return
    top, dot, rest = entity.id.partition("::")[2].partition(".")
    home = homes.get((entity.module, top))
    if home is not None:
        module, name = home
        inner = f"{name}{dot}{rest}"
        yield replace(
            entity,
            id=f"{module}::{inner}",
            name=inner.rpartition(".")[2],
            qualname=f"{module}.{inner}",
            module=module,
        )


@dataclass
class _Exports:
    """Follows `from ... import ...` through all modules."""

    modules: Mapping[str, SourceModule]
    compiled: Mapping[str, CompiledModule]
    compiled_names: dict[str, set[str]] = field(default_factory=dict)
    starred: dict[str, set[str]] = field(default_factory=dict)
    resolved: dict[Place, Place | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, module in self.compiled.items():
            tops = (entity.id.partition("::")[2] for entity in module.entities)
            self.compiled_names[name] = {top for top in tops if "." not in top}

    def homes(self) -> dict[Place, Place]:
        """Where each private or shortened name is offered: (public module, name there)."""
        offers: dict[Place, list[tuple[bool, int, Place]]] = {}
        for module in self.modules.values():
            if is_private_module(module.name) or module.name in _OTHER_PATH_MODULES:
                continue
            for name in sorted(self._offered(module)):
                place = self.resolve(module.name, name)
                if place is not None and place[0] != module.name and _may_offer(module.name, place[0]):
                    rank = (name not in module.exported, len(module.name), (module.name, name))
                    offers.setdefault(place, []).append(rank)
        return {place: min(ranks)[2] for place, ranks in offers.items()}

    def _offered(self, module: SourceModule) -> set[str]:
        """Names that a module takes from elsewhere and offers as its own."""
        if module.is_export_list_complete:
            return {name for name in module.exported if not name.startswith("_")}
        offered = set(module.exported)
        for statement in module.imports:
            for name, through_star in self._taken(statement.module, statement.names):
                if through_star or _is_kin(module.name, statement.module):
                    offered.add(name)
        return {name for name in offered if not name.startswith("_")}

    def _taken(self, target: str, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
        """Pairs of a name and whether it came through a star."""
        for there, here in names:
            if there == "*":
                yield from ((name, True) for name in self._star(target))
            else:
                yield here, False

    def _star(self, target: str) -> set[str]:
        """Names that `from target import *` brings."""
        if target not in self.starred:
            self.starred[target] = set()  # ends a circle of imports
            self.starred[target] = self._find_star(target)
        return self.starred[target]

    def _find_star(self, target: str) -> set[str]:
        module = self.modules.get(target)
        if module is None:
            return self.compiled_names.get(target, set())
        if module.is_export_list_complete:
            return module.exported
        names = module.exported | module.defined
        for statement in module.imports:
            names |= {name for name, _ in self._taken(statement.module, statement.names)}
        return {name for name in names if not name.startswith("_")}

    def resolve(self, module_name: str, name: str) -> Place | None:
        """Where `name`, as seen in a module, is defined; Python source goes before compiled code."""
        key = (module_name, name)
        if key not in self.resolved:
            self.resolved[key] = None  # ends a circle of imports
            self.resolved[key] = self._resolve(module_name, name)
        return self.resolved[key]

    def _resolve(self, module_name: str, name: str) -> Place | None:
        module = self.modules.get(module_name)
        if module is None:
            return (module_name, name) if name in self.compiled_names.get(module_name, ()) else None
        if name in module.defined:
            return (module_name, name)
        found = []
        for statement in module.imports:
            for there, here in statement.names:
                if here == name or (there == "*" and name in self._star(statement.module)):
                    found.append(self.resolve(statement.module, name if there == "*" else there))
        places = [place for place in found if place is not None]
        if not places and name in module.exported:
            places = self._below(module_name, name)
        return next((place for place in places if place[0] in self.modules), places[0] if places else None)

    def _below(self, module_name: str, name: str) -> list[Place]:
        """Where a package's promised name is defined that it only imports when asked (`concurrent.futures`)."""
        below = [other for other in self.modules.values() if other.name.startswith(f"{module_name}.")]
        defining = [other.name for other in below if name in other.defined]
        return [(defining[0], name)] if len(defining) == 1 else []


def _is_kin(module: str, origin: str) -> bool:
    """True for the compiled twin of a module (`ssl`, `_ssl`) and for what lies in the module's own package."""
    package = module.rpartition(".")[0] or module
    return origin in {f"_{module}", f"{module}.{origin.rpartition('.')[2]}"} or origin.startswith(f"{package}.")


def _may_offer(module: str, origin: str) -> bool:
    """True when a name of `origin` is properly called by `module`'s name: the origin is private, or lies below it."""
    return is_private_module(origin) or origin.startswith(f"{module}.")
