"""Who decides each key of a config in a gate with `--baseline-ref`: declared beside the field, in its annotation.

A pull request may change what is under test, and nothing that makes passing easier. A key of a block that the ref decides
is decided by the ref; in any other block each key has its own declaration, and a test fails for one without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Owner = Literal["ref", "change", "digest", "none", "each"]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FieldOwner:
    """Marker of a field."""

    owner: Owner


OfRef = Annotated[T, FieldOwner("ref")]
"""The ref decides, because another value could loosen the gate."""
OfChange = Annotated[T, FieldOwner("change")]
"""The change decides: it is what is under test."""
OfDigest = Annotated[T, FieldOwner("digest")]
"""Read as the change has it, and refused unless its content is that of the ref's baseline."""
OfNone = Annotated[T, FieldOwner("none")]
"""Without effect on the outcome of a gate."""
OfEach = Annotated[T, FieldOwner("each")]
"""A block whose keys are decided one by one."""

OWNERS: Mapping[Owner, str] = MappingProxyType(
    {
        "ref": "the ref",
        "change": "the change, because it is under test",
        "digest": "the change, if its content is that of the ref's baseline",
        "none": "either; it has no effect on the outcome",
    }
)
"""Owner to its name in the documentation."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the config and its owner."""

    place: tuple[str, ...]
    """`systems`, `NAME`, `timeout_s`: NAME where the file chooses the key."""
    owner: Owner | None
    """None: not declared."""
    kinds: tuple[str, ...] = ()
    """Kinds of system that have it; empty where it is no key of a system alone."""


def owner_of(field: FieldInfo) -> Owner | None:
    """What is declared for a field; None where nothing is."""
    return next((marker.owner for marker in field.metadata if isinstance(marker, FieldOwner)), None)


def keys_of(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[Key]:
    """Every key of a model, and those of the blocks that it holds unless the ref, or nothing, decides a block as a whole.

    Args:
        model: of a config or a part of one.
        above: place of the model.
    """
    kind = getattr(model, "kind", "")
    for name, field in model.model_fields.items():
        place, owner = (*above, field.alias or name), owner_of(field)
        yield Key(place, owner, (kind,) if kind else ())
        if owner not in {"ref", "none"}:
            for inner, is_named in _models_in(field.annotation):
                for key in keys_of(inner, (*place, *(["NAME"] if is_named else []))):
                    yield Key(key.place, key.owner, key.kinds or ((kind,) if kind else ()))


def _models_in(annotation: Any, *, is_named: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models that a type holds, and whether they stand under names of the file's own."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, is_named
        return
    for part in get_args(annotation):
        yield from _models_in(part, is_named=is_named or getattr(annotation, "__origin__", None) is dict)


def merged(change: M, ref: BaseModel | None) -> M:
    """A part of the config of a change, with the keys that the ref decides as the ref has them.

    Args:
        change: the part.
        ref: the same part in the ref, maybe of another kind; a key that it does not have gets its default.
    """
    values, is_set = {}, set(change.model_fields_set)
    for name, field in type(change).model_fields.items():
        if owner_of(field) == "ref":
            known = ref is not None and name in type(ref).model_fields
            values[name] = getattr(ref, name) if known else field.get_default(call_default_factory=True)
            (is_set.add if ref is not None and name in ref.model_fields_set else is_set.discard)(name)
    found = change.model_copy(update=values)
    found.model_fields_set.intersection_update(is_set)  # a default that is spelled out is another configuration
    return found


def differing(change: BaseModel, decided: BaseModel) -> Iterator[str]:
    """Names of the keys of a part whose values `merged` replaced."""
    for name, field in type(change).model_fields.items():
        if getattr(change, name) != getattr(decided, name):
            yield field.alias or name
