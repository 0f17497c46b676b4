"""Options as keys of a JSON or YAML document, for the models of pydantic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, create_model

from cranfield.options.declaration import CHOICES, Declared, Place, declared
from cranfield.words import or_list

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


def with_open_keys(base: type[M], block: type, place: Place, otherwise: str) -> type[M]:
    """A model with a key for each option of a block that has a place, all of them open, after those of another model.

    Names of tables are texts: they are checked when the request is acted on, with everything else that is wrong in it.

    Args:
        base: the other model; the new one has its name and its docstring.
        block: of the options.
        place: that they have.
        otherwise: what an option is that is left open.
    """
    keys: dict[str, Any] = {}
    for name, option in declared(block).items():
        if place in option.option.places:
            kind = ShortText if option.bare is str else option.bare
            keys[name] = (Annotated[kind | None, key_of(block, name, otherwise=otherwise)], None)
    return create_model(base.__name__, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **keys)


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
