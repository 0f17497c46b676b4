"""The JSON Schema of a test set, published beside this module for editors and other tools.

`python -m cranfield.formats.testsets.native_schema` writes it anew; a test keeps it equal to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield.formats.io.files import write_text
from cranfield.formats.testsets.native_models import TestSetModel

SCHEMA_FILE = Path(__file__).with_name("testset.schema.json")


def testset_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), made from the models."""
    schema = TestSetModel.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:cranfield:testset:1", **schema}


def schema_text() -> str:
    """The schema as the published file holds it."""
    return json.dumps(testset_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text()])
