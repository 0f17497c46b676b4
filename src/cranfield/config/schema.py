"""The JSON Schemas of cranfield.yaml and of the workbench's file, published beside this module for editors and other tools.

`python -m cranfield.config.schema` writes them anew; a test keeps them equal to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cranfield.config.documents import Workbench
from cranfield.config.models import Config
from cranfield.formats.io.files import write_text

SCHEMA_FILE = Path(__file__).with_name("cranfield.schema.json")
WORKBENCH_FILE = Path(__file__).with_name("workbench.schema.json")


def config_schema(model: type[BaseModel] = Config) -> dict[str, Any]:
    """The schema of a file, made from the models."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


def schema_text(model: type[BaseModel] = Config) -> str:
    """The schema as the published file holds it."""
    return json.dumps(config_schema(model), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text()])
    write_text(WORKBENCH_FILE, [schema_text(Workbench)])
