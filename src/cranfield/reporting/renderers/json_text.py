"""The payload of a Document as JSON; in a file, with every query and its hits."""

from __future__ import annotations

from cranfield.reporting.document import Document
from cranfield.reporting.payload import to_json


def render_json(document: Document) -> str:
    """What `--format json` prints."""
    return to_json(document.payload())


def render_record(document: Document) -> str:
    """What a .json file holds: the payload, and everything about every query."""
    return to_json(document.payload() if document.record is None else document.record())
