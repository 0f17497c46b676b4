"""A document as it was read, or the reason why it could not be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Protocol

from cranfield.config.documents import DocumentFormat


class DocumentFailureKind(StrEnum):
    """Why a document or an image cannot be shown."""

    NO_SOURCE = "no_source"
    """No source is configured for it, and the runs give no text."""
    NOT_FOUND = "not_found"
    """Its source does not have it."""
    REFUSED = "refused"
    """It may not be read: the id leads outside of what the operator's file allows."""
    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    """As many documents of the source as it allows are being read: try again."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """Why there is no text."""

    kind: DocumentFailureKind
    message: str
    """A sentence for raters: no address, path or secret of the operator's file is in it."""


class DocumentError(Exception):
    """A document cannot be read."""

    def __init__(self, kind: DocumentFailureKind, message: str) -> None:
        super().__init__(message)
        self.problem = DocumentProblem(kind, message)


@dataclass(frozen=True, slots=True)
class Content:
    """What a source gives."""

    text: str
    """In its format: HTML, Markdown, code or plain text."""
    format: DocumentFormat | None = None
    """None: the source does not know."""
    title: str = ""
    url: str = ""
    image: str = ""
    first_line: int = 1
    """Number of the first line of code."""
    values: Mapping[str, object] = field(default_factory=dict)
    """All columns of a record."""
    has_text: bool = True
    """False: `text` names the other columns of a record that has no text."""

    def digest(self, template: str | None) -> str:
        """Digest of what a rater can see: the text, title and image, and all columns where a template shows them."""
        seen: list[object] = [self.title, self.text, self.image]
        if template is not None:
            seen += [template, sorted((name, str(value)) for name, value in self.values.items())]
        return "sha256:" + sha256(json.dumps(seen).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A document that a source is asked for."""

    doc_id: str
    values: Mapping[str, str]
    """Placeholder to value: `id`, and the named groups of `match`."""
    fields: Mapping[str, object]
    """What the runs give."""


class Reader(Protocol):
    """A source of texts."""

    def read(self, wanted: Wanted) -> Content:
        """The document.

        Raises:
            DocumentError: it cannot be read.
        """
        ...

    def close(self) -> None:
        """Close what is open between documents: by default nothing is."""
        return


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document: its text, or a problem."""

    doc_id: str
    title: str
    """Never empty: the id of a document without a title."""
    text: str
    """Plain text without markup; empty with a problem."""
    content: str
    """The text in its format, not sanitised: `server.documents` renders it."""
    format: DocumentFormat
    source: str
    """`documents[0] (command)`, `the runs`."""
    first_line: int = 1
    url: str = ""
    """Where the document is on the web: http or https; empty where that is not known."""
    image: str = ""
    """Reference of its image, for `DocumentTexts.image`; empty without one."""
    values: Mapping[str, object] = field(default_factory=dict)
    template: str | None = None
    has_text: bool = True
    """False: the title and other fields are all that is known of the document."""
    digest: str = ""
    """Digest of what is shown. Where it differs later, the document has changed. Empty with a problem."""
    problem: DocumentProblem | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image, or a problem."""

    data: bytes = b""
    content_type: str = ""
    problem: DocumentProblem | None = None
