"""The JSON Schema of cranfield.yaml, published beside this module for editors and other tools.

`python -m cranfield.config.schema` writes it anew; a test keeps it equal to the models.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.config.models import Config
from cranfield.formats.io.files import write_text
from cranfield.formats.io.validation import published_schema, schema_text

SCHEMA_FILE = Path(__file__).with_name("cranfield.schema.json")


if __name__ == "__main__":
    write_text(SCHEMA_FILE, [schema_text(published_schema(Config))])
