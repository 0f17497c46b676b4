"""Options as keys of a JSON or YAML document, for the models of pydantic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import Field

from cranfield.options.declaration import CHOICES, Declared, declared
from cranfield.words import or_list

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


def description_of(key: Declared, otherwise: str | None) -> str:
    """Its help as a key has it: names of tables are listed, and what it is where it is left open."""
    text = _TABLE.sub(lambda found: or_list(CHOICES[found[1]].names()), key.option.help)
    text = text.replace("; repeat for more", "; or a list of them" if key.default == () else "")
    if otherwise is not None:
        text = f"{text.partition('; default:')[0].rstrip('.')}; default: {otherwise}."
    more = "Relative to the config file." if key.bare is Path else key.option.in_config
    return " ".join(filter(None, (text, more)))
