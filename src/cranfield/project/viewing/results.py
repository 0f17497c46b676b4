"""The results beside a report, as far as the viewer reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield.errors import UsageError
from cranfield.project.output_folder import REPORT_FILES

RESULTS, REPORT, _ = REPORT_FILES


def read_record(results: Path) -> dict[str, Any]:
    """The results as saved, with test set and systems.

    Raises:
        UsageError: it is no file of results.
    """
    try:
        record = json.loads(results.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError("no results", path=str(results), got=str(error)) from None
    is_record = isinstance(record, dict) and isinstance(record.get("testset"), dict)
    systems = record.get("systems") if is_record else None
    if not isinstance(systems, list) or not all(isinstance(system, dict) for system in systems):
        expected = f"the {RESULTS} of a run, with `testset` and `systems`"
        raise UsageError("no results", path=str(results), expected=expected)
    return dict(record)
