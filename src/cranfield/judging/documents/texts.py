"""The texts of documents: which source has one, limits of time and number, the cache.

A document that cannot be read is a value with a problem, never an exception. Sources are independent: a slow one delays no
other, and at most `concurrency` of its documents are read at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from cranfield.base.errors import CranfieldError, shorten
from cranfield.config.documents import (
    CommandSource,
    CorpusSource,
    DocumentFormat,
    FieldsSource,
    FileSource,
    Source,
    SqlSource,
    TextSources,
    UrlSource,
    compile_match,
)
from cranfield.config.load import load_config
from cranfield.judging.documents.files import CommandReader, FileReader
from cranfield.judging.documents.records import (
    CorpusReader,
    FieldsReader,
    SqlReader,
    as_text,
    html_title,
    plain_text,
    read_image,
    run_fields,
)
from cranfield.judging.documents.values import (
    Content,
    DocumentError,
    DocumentFailureKind,
    DocumentProblem,
    DocumentText,
    Image,
    Reader,
    Wanted,
)
from cranfield.judging.documents.web import Resolver, Slots, TimedCache, UrlReader, system_resolver
from cranfield.plugins import required
from cranfield.systems.calls.regex_process import SearchError, find

MAX_ID_CHARS = 2_000
CACHED_CHARS = 50_000_000
"""Characters of texts that are kept."""
CACHED_BYTES = 100_000_000
"""Bytes of images that are kept."""
_IMAGES_AT_A_TIME = 8
_ONE_AT_A_TIME = (SqlReader, CorpusReader)
"""Readers over one connection or file."""
_MATCH_S = 2.0
_TITLE_CHARS = 500
LOG = logging.getLogger(__name__)


class _Source:
    """A source of the operator's file."""

    def __init__(self, config: Source, reader: Reader, name: str) -> None:
        self.config = config
        self.reader = reader
        self.name = name
        self.slots = Slots(1 if isinstance(reader, _ONE_AT_A_TIME) else config.concurrency, config.timeout_s)
        self._pattern = None if config.match is None else compile_match(config.match)

    def values(self, doc_id: str) -> dict[str, str] | None:
        """Placeholder to value; None where the source is not for this document."""
        if self._pattern is None:
            return {"id": doc_id}
        found = find("match", self._pattern, doc_id, 1, _MATCH_S)
        if not found:
            return None
        groups = self._pattern.groupindex.items()
        return {**{name: found[0][index] or "" for name, index in groups}, "id": doc_id}


class DocumentTexts:
    """Texts of documents, by the operator's file. Safe to use in several threads.

    Example:
        >>> texts = DocumentTexts()
        >>> document = texts.get("d1", {"title": "Lock", "text": "How to lock"})
        >>> document.title, document.text, document.problem
        ('Lock', 'How to lock', None)
        >>> texts.get("d2", {}).problem.kind.value
        'no_source'
    """

    def __init__(
        self,
        config: TextSources | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        resolver: Resolver = system_resolver,
    ) -> None:
        """Initialise.

        Args:
            config: the operator's file; None: only the fields of the runs.
            clock: seconds, for the age of what is kept.
            resolver: of host names.
        """
        self._config = config or TextSources()
        self._resolver = resolver
        self._sources = [
            _Source(source, _reader(source, self._config, resolver), f"documents[{index}] ({source.kind})")
            for index, source in enumerate(self._config.documents)
        ]
        self._images = Slots(_IMAGES_AT_A_TIME, self._config.images.timeout_s)
        self._kept: TimedCache[Content] = TimedCache(self._config.cache_s, CACHED_CHARS, clock)
        self._kept_images: TimedCache[Image] = TimedCache(self._config.cache_s, CACHED_BYTES, clock)

    def get(self, doc_id: str, fields: Mapping[str, object] | None = None) -> DocumentText:
        """The text of a document, or the problem; never raises for a document.

        Args:
            doc_id: its id.
            fields: what the runs give: `title`, `text`, `url`, `image`, ...
        """
        given = fields or {}
        try:
            return self._found(doc_id, given)
        except DocumentError as error:
            problem = error.problem
        except (SearchError, CranfieldError) as error:
            LOG.warning("document %s: %s", shorten(doc_id), error)
            problem = DocumentProblem(DocumentFailureKind.FAILED, "The source of this document cannot be read.")
        except Exception:  # a document of any content must not stop the page of a rater
            LOG.exception("document %s", shorten(doc_id))
            problem = DocumentProblem(DocumentFailureKind.FAILED, "This document cannot be read.")
        url = web_address(given.get("url"))
        return DocumentText(doc_id, _title(doc_id, given), "", "", "text", "", url=url, problem=problem)

    def image(self, doc_id: str, fields: Mapping[str, object] | None = None) -> Image:
        """The image of a document, or the problem; never raises for a document."""
        document = self.get(doc_id, fields)
        if document.problem is not None or not document.image:
            none = DocumentProblem(DocumentFailureKind.NO_SOURCE, "The document has no image.")
            return Image(problem=document.problem or none)
        reference, config = document.image, self._config.images
        key = ("", reference)
        if (kept := self._kept_images.get(key)) is not None:
            return kept
        try:
            image = self._images.run(lambda: read_image(reference, config, self._resolver))
        except DocumentError as error:
            return Image(problem=error.problem)
        except Exception:  # an image of any content must not stop the page of a rater
            LOG.exception("image of document %s", shorten(doc_id))
            return Image(problem=DocumentProblem(DocumentFailureKind.FAILED, "The image cannot be read."))
        self._kept_images.keep(key, image, len(image.data))
        return image

    def close(self) -> None:
        """End what sources have open."""
        for source in self._sources:
            source.reader.close()

    def _found(self, doc_id: str, fields: Mapping[str, object]) -> DocumentText:
        reason = id_problem(doc_id)
        missing = None if reason is None else DocumentError(DocumentFailureKind.REFUSED, reason)
        for source in self._sources if reason is None else ():
            values = source.values(doc_id)
            if values is None:
                continue
            try:
                content = self._content(source, Wanted(doc_id, values, fields))
            except DocumentError as error:
                if error.problem.kind != DocumentFailureKind.NOT_FOUND:
                    raise
                missing = missing or error
                continue
            return _document(doc_id, content, source.config, source.name, fields)
        try:
            content = run_fields(fields).read(Wanted(doc_id, {"id": doc_id}, fields))
        except DocumentError as error:
            raise (missing or error) from None
        return _document(doc_id, content, None, "the runs", fields)

    def _content(self, source: _Source, wanted: Wanted) -> Content:
        if isinstance(source.reader, FieldsReader):
            return source.reader.read(wanted)
        key = (source.name, wanted.doc_id)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        content = source.slots.run(lambda: source.reader.read(wanted))
        if len(content.text) > source.config.max_bytes:
            raise too_large(source.config.max_bytes)
        self._kept.keep(key, content, len(content.text))
        return content


def open_texts(workbench: Path | None, config: Path | None = None) -> DocumentTexts:
    """The texts of documents by the operator's file, else by the config; by the fields of the runs without sources.

    Args:
        workbench: the operator's file.
        config: the config, whose sources count where the operator's file has none.

    Raises:
        ConfigError: with everything that is wrong with one of the files.
    """
    operator: TextSources = TextSources() if workbench is None else required("operators_file").load_workbench(workbench)
    if operator.documents or config is None:
        return DocumentTexts(operator)
    return DocumentTexts(operator.with_documents_of(load_config(config)))


def id_problem(doc_id: str) -> str | None:
    """Why no source is read for an id: it is empty, very long, or has control characters."""
    if not doc_id or len(doc_id) > MAX_ID_CHARS or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in doc_id):
        return f"The id is empty, longer than {MAX_ID_CHARS} characters, or has control characters."
    if any("\ud800" <= char <= "\udfff" for char in doc_id):
        return "The id is not text in Unicode."
    return None


def too_large(max_bytes: int) -> DocumentError:
    """The error for a document over the limit of its source."""
    return DocumentError(DocumentFailureKind.TOO_LARGE, f"The document is larger than {max_bytes:,} bytes.")


def web_address(value: object) -> str:
    """An address that a browser may open: http or https, with a host; otherwise empty."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    is_plain = not any(char.isspace() or ord(char) < 32 for char in text) and len(text) <= MAX_ID_CHARS
    return text if is_plain and parts.scheme in {"http", "https"} and parts.hostname else ""


def _title(doc_id: str, fields: Mapping[str, object]) -> str:
    """The title in one line; of a document without one, its id."""
    return " ".join(as_text(fields.get("title")).split())[:_TITLE_CHARS] or as_text(doc_id)


def _document(
    doc_id: str, content: Content, config: Source | None, name: str, fields: Mapping[str, object]
) -> DocumentText:
    """What is shown of a content: title, address and image of the runs where the source gives none."""
    template = None if config is None else config.template
    kind: DocumentFormat = (config and config.format) or content.format or "text"
    title = content.title or (html_title(content.text) if kind == "html" else "")
    content = replace(
        content,
        title=_title(doc_id, {"title": title} if title else fields),
        image=content.image or as_text(fields.get("image")),
    )
    return DocumentText(
        doc_id,
        content.title,
        plain_text(content.text, kind),
        content.text,
        kind,
        name,
        first_line=content.first_line,
        url=web_address(content.url) or web_address(fields.get("url")),
        image=content.image,
        values=content.values,
        template=template,
        has_text=content.has_text,
        digest=content.digest(template),
    )


def _reader(source: Source, config: TextSources, resolver: Resolver) -> Reader:
    """The reader of a source."""
    match source:
        case FieldsSource():
            return FieldsReader(source.fields)
        case CommandSource():
            return CommandReader(source, config.folder)
        case FileSource():
            return FileReader(source, config.folder)
        case SqlSource():
            return SqlReader(source, config.folder)
        case UrlSource():
            return UrlReader(source, resolver)
        case CorpusSource():
            return CorpusReader(source, config.folder)
