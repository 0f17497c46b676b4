"""The published JSON Schema of a result, made from the model by which it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield.benefit.result import BenefitResult
from cranfield.formats.io.files import write_text
from cranfield.formats.io.validation import published_schema, schema_text

SCHEMA_FILE = Path(__file__).with_name("benefit_result.schema.json")


def result_schema() -> dict[str, Any]:
    """The schema (draft 2020-12)."""
    return published_schema(BenefitResult, **{"$id": "urn:cranfield:benefit-result:1"})


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(result_schema())])
