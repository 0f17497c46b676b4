"""The JSON Schema of the operator's file, published beside this module for editors and other tools.

`python -m cranfield.workbench.schema` writes it anew; a test keeps it equal to the model.
"""

from __future__ import annotations

from pathlib import Path

from cranfield.formats.io.files import write_text
from cranfield.formats.io.validation import published_schema, schema_text
from cranfield.workbench.config import Workbench

WORKBENCH_FILE = Path(__file__).with_name("workbench.schema.json")


if __name__ == "__main__":
    write_text(WORKBENCH_FILE, [schema_text(published_schema(Workbench))])
