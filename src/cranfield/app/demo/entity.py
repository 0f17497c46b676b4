"""The documents of the demo: one `DocumentedObject` for each module, class, function, topic of the standard library.

`corpus` reads entities; `search` searches them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["module", "class", "function", "method", "property", "data", "topic"]


@dataclass(frozen=True, slots=True)
class DocumentedObject:
    """A documented object of the library, or a topic of the documentation."""

    id: str
    """`json/decoder.py::JSONDecoder` where there is source, `math::sqrt` where there is none, `topics::lambda`."""
    kind: Kind
    name: str
    """The last part of its name: `decode`."""
    qualname: str
    """The shortest dotted name it can be reached by: `json.JSONDecoder.decode`."""
    module: str
    """The public module it belongs to: `json.decoder`; empty for a topic."""
    signature: str = ""
    doc: str = ""
    path: str = ""
    """Source file below the library's folder, with forward slashes; empty where there is no source."""
    start: int = 0
    """First source line, decorators included; 1-based, 0 where there is no source."""
    end: int = 0
    """Last source line, inclusive."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters of a function, or of a class's own `__init__`, without `self` and `cls`."""
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    is_async: bool = False
    is_generator: bool = False
    is_context_manager: bool = False
    """A class that defines `__enter__` or `__aenter__` itself, or a function decorated as a context manager."""
    is_deprecated: bool = False
    """Its documentation says so, or its body warns so before anything else can happen."""


@dataclass(frozen=True)
class Corpus:
    """All entities, in the order of their ids."""

    entities: tuple[DocumentedObject, ...]

    @cached_property
    def by_id(self) -> Mapping[str, DocumentedObject]:
        """Entities by id."""
        return {entity.id: entity for entity in self.entities}

    def __contains__(self, entity_id: object) -> bool:
        """True when an entity has this id."""
        return entity_id in self.by_id

    def __iter__(self) -> Iterator[DocumentedObject]:
        """Entities in the order of their ids."""
        return iter(self.entities)

    def __len__(self) -> int:
        """Count of entities."""
        return len(self.entities)
