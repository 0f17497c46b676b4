"""Parts of a config whose keys are options: type, bounds, default, description and owner are those of the declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_origin

from pydantic import BaseModel, Field, create_model

from cranfield.config.names import AdjustmentName, ConventionName, MeasureName, TestName
from cranfield.config.owners import FieldOwner
from cranfield.model.kinds import Text
from cranfield.options.declaration import Declared, declared
from cranfield.options.keys import description_of

B = TypeVar("B")
M = TypeVar("M", bound=BaseModel)
NAMES: Mapping[str, Any] = MappingProxyType(
    {"tests": TestName, "adjustments": AdjustmentName, "conventions": ConventionName, "measures": MeasureName}
)
"""Names that an option takes to the type of a key."""


def with_keys(
    base: type[M],
    name: str,
    options: Iterable[Declared],
    *,
    otherwise: str | None = None,
    doc: str | None = None,
) -> type[M]:
    """A model with a key for each option, after those of another model.

    Args:
        base: the other model.
        name: of the new one.
        options: the declarations.
        otherwise: what a key is that is left open; None: it has its default.
        doc: what the model is; None: as the other one.
    """
    keys: dict[str, Any] = {option.name: (_typed(option, otherwise), _field(option, otherwise)) for option in options}
    return create_model(name, __base__=base, __module__=base.__module__, __doc__=doc or base.__doc__, **keys)


def block_of(block: type[B], part: BaseModel, **more: Any) -> B:
    """A block of options, with the values of the keys that a part of a config has, and further ones."""
    values = {name: getattr(part, name) for name in declared(block) if name in type(part).model_fields}
    return block(**{**values, **more})


def _field(key: Declared, otherwise: str | None) -> Any:
    description, default = description_of(key, otherwise), key.default
    if get_origin(key.bare) is Mapping:
        return Field(default_factory=dict, description=description)
    return Field(default=None if otherwise is not None or default == () else default, description=description)


def _typed(key: Declared, otherwise: str | None) -> Any:
    """Type of a key, and who decides it."""
    is_open = otherwise is not None or key.kind != key.bare or key.default == ()
    kind = _type(key)
    return Annotated[kind | None if is_open else kind, FieldOwner(key.option.owner)]


def _type(key: Declared) -> Any:
    bare = key.bare
    if key.option.choices:
        return NAMES[key.option.choices]
    if bare in {str, Path}:
        return Text
    if get_origin(bare) is Mapping:
        return dict[Text, Text]
    if key.default == ():
        return Text | list[Text]
    for bound in key.bounds:
        bare = Annotated[bare, bound]
    return bare
