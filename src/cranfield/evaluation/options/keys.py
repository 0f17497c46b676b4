"""Options as keys of a JSON or YAML document, for the models of pydantic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin

from pydantic import BaseModel, Field, create_model

from cranfield.base.words import or_list
from cranfield.evaluation.options.declaration import CHOICES, Declared, Place, declared

M = TypeVar("M", bound=BaseModel)
ShortText = Annotated[str, Field(max_length=200)]
_TABLE = re.compile(r"\{(\w+)\}")
"""A place in help where the names of a table are listed."""


def key_of(block: type, name: str, *, otherwise: str) -> Any:
    """The description and the bounds of an option, for a key or a parameter that may be left open.

    Args:
        block: of the option.
        name: of the option.
        otherwise: what it is where it is left open.
    """
    option = declared(block)[name]
    return Field(description=description_of(option, otherwise), **option.limits)


def model_with(
    base: type[M],
    name: str,
    options: Iterable[Declared],
    kind: Callable[[Declared], Any],
    *,
    otherwise: str | None = None,
    doc: str | None = None,
) -> type[M]:
    """A model with a key for each option, after those of another model.

    Args:
        base: the other model.
        name: of the new one.
        options: the declarations.
        kind: the type of a key, with its bounds.
        otherwise: what a key is that is left open; None: it has its default.
        doc: what the model is; None: as the other one.
    """
    keys: dict[str, Any] = {option.name: (kind(option), _field(option, otherwise)) for option in options}
    return create_model(name, __base__=base, __module__=base.__module__, __doc__=doc or base.__doc__, **keys)


def _field(key: Declared, otherwise: str | None) -> Any:
    description, default = description_of(key, otherwise), key.default
    if get_origin(key.bare) is Mapping:
        return Field(default_factory=dict, description=description)
    return Field(default=None if otherwise is not None or default == () else default, description=description)


def at(place: Place, block: type) -> list[Declared]:
    """The options of a block that have a place."""
    return [each for each in declared(block).values() if place in each.option.places]


def within_bounds(kind: Any, option: Declared) -> Any:
    """A type with the bounds of an option."""
    for bound in option.bounds:
        kind = Annotated[kind, bound]
    return kind


def open_kind(option: Declared) -> Any:
    """The type of a key of a request. A name of a table is a text: it is checked with everything else that the request means."""
    return within_bounds(ShortText if option.bare is str else option.bare, option) | None


def given_keys(block: type, model: BaseModel) -> Mapping[str, Any]:
    """The options of a block that a model gives, by name; those that are left open are left out."""
    given = {name: getattr(model, name, None) for name in declared(block)}
    return {name: value for name, value in given.items() if value is not None}


def description_of(key: Declared, otherwise: str | None) -> str:
    """Its help as a key has it: names of tables are listed, and what it is where it is left open."""
    text = _TABLE.sub(lambda found: or_list(CHOICES[found[1]].names()), key.option.help)
    text = text.replace("; repeat for more", "; or a list of them" if key.default == () else "")
    if otherwise is not None:
        text = f"{text.partition('; default:')[0].rstrip('.')}; default: {otherwise}."
    more = "Relative to the config file." if key.bare is Path else key.option.in_config
    return " ".join(filter(None, (text, more)))
