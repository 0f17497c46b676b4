"""The JSON Schema of cranfield.yaml, published beside this module for editors and other tools.

`python -m cranfield.config.schema` writes it anew; a test keeps it equal to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield.config.models import Config
from cranfield.formats.io.files import write_text

SCHEMA_FILE = Path(__file__).with_name("cranfield.schema.json")


def config_schema() -> dict[str, Any]:
    """The schema, made from the models."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


def schema_text() -> str:
    """The schema as the published file holds it."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text()])
