"""The texts of documents: which source has one, limits of time and number, the cache.

A document that cannot be read is a value with a problem, never an exception. Sources are independent: a slow one delays no
other, and at most `concurrency` of its documents are read at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from cranfield.concurrency.loop import event_loop
from cranfield.config.documents import (
    CommandSource,
    DocumentFormat,
    FieldsSource,
    FileSource,
    Source,
    Workbench,
    compile_match,
)
from cranfield.errors import CranfieldError, shorten
from cranfield.judging.documents.files import CommandReader, FileReader
from cranfield.judging.documents.plain import html_title, plain_text
from cranfield.judging.documents.records import FieldsReader, run_fields
from cranfield.judging.documents.values import (
    Content,
    DocumentError,
    DocumentProblem,
    DocumentText,
    FailureKind,
    Image,
)
from cranfield.systems.calls.regex_process import SearchError, find

MAX_ID_CHARS = 2_000
WAIT_S = 2.0
"""Longest wait for another document of the same source to end."""
CACHED_CHARS = 50_000_000
"""Characters of texts that are kept."""
_GRACE_S = 0.5
"""Seconds over the limit that a source has to report its own end."""
_MATCH_S = 2.0
_TITLE_CHARS = 500
_log = logging.getLogger(__name__)


class Reader(Protocol):
    """A source of texts."""

    def read(self, doc_id: str, values: Mapping[str, str], fields: Mapping[str, object]) -> Content:
        """The document.

        Args:
            doc_id: its id.
            values: placeholder to value: `id`, and the named groups of `match`.
            fields: what the runs give.

        Raises:
            DocumentError: it cannot be read.
        """
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class _Slots:
    """The documents of one source that are being read, and those that wait."""

    def __init__(self, concurrency: int) -> None:
        self._running = threading.BoundedSemaphore(concurrency)
        self._waiting = threading.BoundedSemaphore(2 * concurrency)

    def run(self, work: Callable[[], Content], timeout_s: float) -> Content:
        """Run a function in a thread, with a limit of time. A late one is abandoned, and keeps its slot until it ends.

        Raises:
            DocumentError: the source is busy, or it is late.
        """
        busy = DocumentError(FailureKind.BUSY, "Other documents of this source are being read. Try again in a moment.")
        if not self._waiting.acquire(blocking=False):
            raise busy
        try:
            if not self._running.acquire(timeout=WAIT_S):
                raise busy
        finally:
            self._waiting.release()

        def worked() -> Content:
            try:
                return work()
            finally:
                self._running.release()

        try:
            return event_loop().run_function(worked, timeout_s)
        except TimeoutError:
            raise DocumentError(
                FailureKind.TIMED_OUT, f"The source of this document did not answer within {timeout_s - _GRACE_S:g} s."
            ) from None


class _Source:
    """A source of the operator's file."""

    def __init__(self, config: Source, reader: Reader, name: str) -> None:
        self.config = config
        self.reader = reader
        self.name = name
        self.slots = _Slots(config.concurrency)
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

    def __init__(self, config: Workbench | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config or Workbench()
        self._clock = clock
        self._sources = [
            _Source(source, _reader(source, self._config), f"documents[{index}] ({source.kind})")
            for index, source in enumerate(self._config.documents)
        ]
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[float, Content]] = OrderedDict()
        self._kept_chars = 0

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
            _log.warning("document %s: %s", shorten(doc_id), error)
            problem = DocumentProblem(FailureKind.FAILED, "The source of this document cannot be read.")
        except Exception:  # noqa: BLE001  a document of any content must not stop the page of a rater
            _log.warning("document %s", shorten(doc_id), exc_info=True)
            problem = DocumentProblem(FailureKind.FAILED, "This document cannot be read.")
        title = str(given.get("title") or doc_id)[:_TITLE_CHARS]
        url = web_address(given.get("url"))
        return DocumentText(doc_id, title, "", "", "text", "", url=url, problem=problem)

    def image(self, reference: str) -> Image:
        """An image that a document names, or the problem; never raises."""
        del reference
        return Image(problem=DocumentProblem(FailureKind.NO_SOURCE, "No source of images has it."))

    def close(self) -> None:
        """End what sources have open."""
        for source in self._sources:
            source.reader.close()

    def _found(self, doc_id: str, fields: Mapping[str, object]) -> DocumentText:
        check_id(doc_id)
        not_found: DocumentError | None = None
        for source in self._sources:
            values = source.values(doc_id)
            if values is None:
                continue
            try:
                content = self._content(source, doc_id, values, fields)
            except DocumentError as error:
                if error.problem.kind != FailureKind.NOT_FOUND:
                    raise
                not_found = not_found or error
                continue
            return _document(doc_id, content, source.config, source.name, fields)
        try:
            content = run_fields(fields).read(doc_id, {"id": doc_id}, fields)
        except DocumentError as error:
            raise (not_found or error) from None
        return _document(doc_id, content, None, "the runs", fields)

    def _content(
        self, source: _Source, doc_id: str, values: Mapping[str, str], fields: Mapping[str, object]
    ) -> Content:
        if isinstance(source.reader, FieldsReader):
            return source.reader.read(doc_id, values, fields)
        key = (source.name, doc_id)
        with self._lock:
            until, content = self._kept.get(key, (0.0, None))
            if content is not None and self._clock() < until:
                self._kept.move_to_end(key)
                return content
        content = source.slots.run(
            lambda: source.reader.read(doc_id, values, fields), source.config.timeout_s + _GRACE_S
        )
        if len(content.text) > source.config.max_bytes:
            raise too_large(source.config.max_bytes)
        self._keep(key, content)
        return content

    def _keep(self, key: tuple[str, str], content: Content) -> None:
        with self._lock:
            _, before = self._kept.pop(key, (0.0, None))
            self._kept_chars += len(content.text) - (0 if before is None else len(before.text))
            self._kept[key] = (self._clock() + self._config.cache_s, content)
            while self._kept_chars > CACHED_CHARS:
                _, (_, oldest) = self._kept.popitem(last=False)
                self._kept_chars -= len(oldest.text)


def check_id(doc_id: str) -> None:
    """Refuse an id that no source can have.

    Raises:
        DocumentError: it is empty, very long, or has control characters.
    """
    if not doc_id or len(doc_id) > MAX_ID_CHARS or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in doc_id):
        raise DocumentError(
            FailureKind.REFUSED, f"The id is empty, longer than {MAX_ID_CHARS} characters, or has control characters."
        )
    if any("\ud800" <= char <= "\udfff" for char in doc_id):
        raise DocumentError(FailureKind.REFUSED, "The id is not text in Unicode.")


def too_large(max_bytes: int) -> DocumentError:
    """The error for a document over the limit of its source."""
    return DocumentError(FailureKind.TOO_LARGE, f"The document is larger than {max_bytes:,} bytes.")


def web_address(value: object) -> str:
    """An address that a browser may open: http or https, with a host; otherwise empty."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    is_plain = not any(char.isspace() or ord(char) < 32 for char in text) and len(text) <= MAX_ID_CHARS
    return text if is_plain and parts.scheme in {"http", "https"} and parts.hostname else ""


def _document(
    doc_id: str, content: Content, config: Source | None, name: str, fields: Mapping[str, object]
) -> DocumentText:
    """What is shown of a content: title, address and image of the runs where the source gives none."""
    template = None if config is None else config.template
    kind: DocumentFormat = (config and config.format) or content.format or "text"
    title = content.title or (html_title(content.text) if kind == "html" else "")
    title = " ".join((title or str(fields.get("title") or "")).split())[:_TITLE_CHARS]
    content = replace(content, title=title, image=content.image or str(fields.get("image") or ""))
    return DocumentText(
        doc_id,
        title or doc_id,
        plain_text(content.text, kind),
        content.text,
        kind,
        name,
        first_line=content.first_line,
        url=web_address(content.url) or web_address(fields.get("url")),
        image=content.image,
        values=content.values,
        template=template,
        digest=content.digest(template),
    )


def _reader(source: Source, config: Workbench) -> Reader:
    """The reader of a source."""
    if isinstance(source, FieldsSource):
        return FieldsReader(source.fields)
    if isinstance(source, CommandSource):
        return CommandReader(source, config.folder)
    if isinstance(source, FileSource):
        return FileReader(source, config.folder)
    raise NotImplementedError
