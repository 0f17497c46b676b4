"""The JSON Schemas that are published with the package: one table, from a document's name to its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.errors import UnknownNameError
from cranfield.plugins import products

PACKAGE = Path(__file__).parents[1]
DEFAULT_SCHEMA = "config"


@dataclass(frozen=True, slots=True)
class PublishedSchema:
    """A row of the table."""

    name: str
    title: str
    """What the document is, with the usual name of its file."""
    place: str
    """The file of the schema, from the folder of the package."""

    @property
    def path(self) -> Path:
        """The file of the schema."""
        return PACKAGE / self.place

    @property
    def text(self) -> str:
        """The schema as it is published."""
        return self.path.read_text(encoding="utf-8")


_TABLE = (
    PublishedSchema(DEFAULT_SCHEMA, "the config, cranfield.yaml", "config/cranfield.schema.json"),
    PublishedSchema("testset", "a test set", "formats/testsets/testset.schema.json"),
    PublishedSchema("golden", "a golden set", "formats/testsets/golden.schema.json"),
)
_OF_PRODUCTS = tuple(
    PublishedSchema(name, title, place) for each in products() for name, (title, place) in each.schemas.items()
)
SCHEMAS: Mapping[str, PublishedSchema] = {schema.name: schema for schema in (*_TABLE, *_OF_PRODUCTS)}


def schema_named(name: str) -> PublishedSchema:
    """The schema of a document.

    Raises:
        UnknownNameError: none has this name; lists the names.
    """
    if name not in SCHEMAS:
        raise UnknownNameError.among("schema", name, SCHEMAS)
    return SCHEMAS[name]
