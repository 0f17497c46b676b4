"""The JSON Schemas of cranfield.yaml and of the workbench's file, published beside this module for editors and other tools.

`python -m cranfield.config.schema` writes them anew; a test keeps them equal to the models.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.config.models import Config
from cranfield.config.workbench import Workbench
from cranfield.formats.io.files import write_text
from cranfield.formats.io.published_schema import published_schema, schema_text

SCHEMA_FILE = Path(__file__).with_name("cranfield.schema.json")
WORKBENCH_FILE = Path(__file__).with_name("workbench.schema.json")


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(published_schema(Config))])
    write_text(WORKBENCH_FILE, [schema_text(published_schema(Workbench))])
