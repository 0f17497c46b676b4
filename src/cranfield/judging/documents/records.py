"""Records as documents: the fields of a run, a row of a database, a line of a corpus."""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import json
import re
import shutil
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from cranfield.base.errors import MissingExtraError
from cranfield.config.documents import (
    CorpusFile,
    CorpusSource,
    DocumentFormat,
    Images,
    RecordNames,
    SqlSource,
    bind_parameters,
    parameter_names,
)
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Image, Reader, Wanted
from cranfield.judging.documents.web import Resolver, WebClient, system_resolver
from cranfield.systems.predicates.read_only import Refused
from cranfield.systems.predicates.rows import RowReader, opened_rows

TEXT_NAMES = ("text", "body", "content", "snippet", "description")
"""Fields of runs that hold a text, the first one counts."""
_MAX_NAMES = 50
_HIDDEN = frozenset({"rank", "position", "score", "distance", "similarity", "system", "engine", "run"})
"""Fields of runs that a rater may not see before the item is graded, whatever underscores are around them."""


def record_content(record: Mapping[str, object], names: RecordNames) -> Content:
    """A record as a document; without a text it is the list of its names and values."""
    title, text, url, image = (as_text(record.get(name)) for name in (names.title, names.text, names.url, names.image))
    has_text = bool(text)
    if not text:
        parts = {names.title, names.url, names.image, "id"}
        rows = [(name, as_text(value)) for name, value in record.items() if name not in parts]
        text = "\n".join(f"{name}: {value}" for name, value in rows[:_MAX_NAMES] if value)
    return Content(text, title=title, url=url, image=image, values=record, has_text=has_text)


@dataclass(frozen=True, slots=True)
class FieldsReader(Reader):
    """The fields that the runs give."""

    names: RecordNames

    def read(self, wanted: Wanted) -> Content:
        """The document as the runs give it."""
        shown = {name: value for name, value in wanted.fields.items() if name.strip("_").lower() not in _HIDDEN}
        content = record_content(shown, self.names)
        if not (content.text or content.title or content.image):
            raise DocumentError(
                DocumentFailureKind.NO_SOURCE, "Neither the runs nor a source of texts has a text of this document."
            )
        return content


def run_fields(fields: Mapping[str, object]) -> FieldsReader:
    """The reader of a document that no source has: its text is the first field that is named like one."""
    text = next((name for name in TEXT_NAMES if fields.get(name)), "text")
    return FieldsReader(RecordNames(text=text))


def as_text(value: object) -> str:
    """A value of a record as text; a lone surrogate, which no page can hold, is a question mark."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode()


class SqlReader(Reader):
    """Rows, one at a time over one connection."""

    def __init__(self, config: SqlSource, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._row_of: RowReader | None = None
        kind, names = config.sql.database.partition(":")[0], parameter_names(config.sql.query)
        spell = {"duckdb": lambda name: f"${name}", "env": lambda name: f"${names.index(name) + 1}"}.get(kind)
        self._statement = bind_parameters(config.sql.query, spell) if spell else config.sql.query
        self._names, self._by_position = names, kind == "env"

    def read(self, wanted: Wanted) -> Content:
        """The first row of the statement."""
        with self._lock:
            try:
                if self._row_of is None:
                    place, timeout_s = self._config.sql.database, self._config.timeout_s
                    self._row_of = self._open.enter_context(opened_rows(place, self._folder, timeout_s))
                parameters = {name: wanted.values[name] for name in self._names}
                row = self._row_of(self._statement, list(parameters.values()) if self._by_position else parameters)
            except Refused as refused:
                if refused.is_late:
                    message = f"The database of this source did not answer within {self._config.timeout_s:g} s."
                    raise DocumentError(DocumentFailureKind.TIMED_OUT, message) from None
                raise DocumentError(
                    DocumentFailureKind.FAILED, f"The database of this source failed: {refused}."
                ) from None
        if row is None:
            raise DocumentError(DocumentFailureKind.NOT_FOUND, "The document is not in the database of this source.")
        return record_content(row, RecordNames())

    def close(self) -> None:
        """End the process or the connection that reads."""
        with self._lock:
            self._row_of = None
            self._open.close()


_BLOCK_NAMES = (
    "address article aside blockquote br dd div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr li main nav "
    "ol p pre section summary table td th tr ul"
)
_DROPPED_NAMES = "script style template noscript iframe object embed svg math title head textarea select"
DROPPED = frozenset(_DROPPED_NAMES.split())
"""Elements whose content is no text of the document."""
_TAG = re.compile(r"</?[a-z0-9]+>")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)<", re.IGNORECASE)
_MAX_CHARS = 1_000_000
_MAX_DEPTH = 300
_OPENED_OR_CLOSED = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
_NOT_NESTED_NAMES = (
    "area base br col dd dt hr img input li link meta option p source tbody td tfoot th thead tr track wbr"
)
_NOT_NESTED = frozenset(_NOT_NESTED_NAMES.split())
"""Elements that need no end tag."""
_TITLE_CHARS = 20_000
"""A title is looked for in so many characters at the beginning."""


def plain_text(content: str, kind: DocumentFormat) -> str:
    """The text without markup; Markdown is its own plain text."""
    if kind != "html":
        return content
    try:
        import nh3
    except ImportError:
        raise MissingExtraError.for_extra("reading HTML", "web") from None
    blocks = nh3.clean(
        without_depth(content[:_MAX_CHARS]),
        tags=set(_BLOCK_NAMES.split()),
        clean_content_tags=set(DROPPED),
        attributes={},
        link_rel=None,
    )
    text = html.unescape(_TAG.sub("\n", blocks))
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def without_depth(markup: str) -> str:
    """HTML up to where its elements are nested too deeply: the time of a parser is quadratic in the depth."""
    unclosed: Counter[str] = Counter()
    depth = 0
    for found in _OPENED_OR_CLOSED.finditer(markup):
        name = found[2].lower()
        if name in _NOT_NESTED:
            continue
        if not found[1]:
            unclosed[name] += 1
            depth += 1
        elif unclosed[name]:
            unclosed[name] -= 1
            depth -= 1
        if depth > _MAX_DEPTH:
            return markup[: found.start()]
    return markup


def html_title(content: str) -> str:
    """The title of a page; empty without one."""
    found = _TITLE.search(content[:_TITLE_CHARS])
    return " ".join(html.unescape(found[1]).split()) if found else ""


_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""First bytes to content type. No SVG: it can hold scripts."""


def read_image(reference: str, config: Images, resolver: Resolver = system_resolver) -> Image:
    """The image that a document names.

    Args:
        reference: a `data:` address, or one of http or https.
        config: the operator's.
        resolver: of host names.

    Raises:
        DocumentError: it cannot be had.
    """
    if reference.startswith("data:"):
        data = _inline(reference, config.max_bytes)
    elif reference.startswith(("http://", "https://")):
        client = WebClient(
            allow=config.allow,
            timeout_s=config.timeout_s,
            max_bytes=config.max_bytes,
            hosts=config.hosts,
            resolver=resolver,
        )
        data = client.get(reference, "image/png, image/jpeg, image/webp, image/gif").body
    else:
        raise DocumentError(DocumentFailureKind.REFUSED, "The image is neither in the record nor on the web.")
    return Image(data, image_type(data))


def _inline(reference: str, most: int) -> bytes:
    head, comma, text = reference.partition(",")
    if not comma or not head.endswith(";base64"):
        raise DocumentError(DocumentFailureKind.REFUSED, "The image is not in Base64.")
    if len(text) > most * 4 / 3 + 4:
        raise DocumentError(DocumentFailureKind.TOO_LARGE, f"The image is larger than {most:,} bytes.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DocumentError(DocumentFailureKind.FAILED, "The image is not in Base64.") from None


def image_type(data: bytes) -> str:
    """The content type by the first bytes of an image, whatever the server calls it.

    Raises:
        DocumentError: it is no image that pages show.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for start, content_type in _KINDS.items():
        if data.startswith(start):
            return content_type
    raise DocumentError(DocumentFailureKind.REFUSED, "The image is not PNG, JPEG, GIF or WebP.")


MAX_UNPACKED = 20 * 1024**3
"""Bytes that a compressed corpus may unpack to."""
_BLOCK = 1024 * 1024
_BEGINNING = 1000
_DATASET = re.compile(rb'\A\s*\{\s*"(queries|corpus)"\s*:\s*\{')


@dataclass(frozen=True, slots=True)
class _Index:
    """Where records are."""

    stamp: tuple[int, int, int]
    """Stamp of the file: number, size, time of change. Where it differs, the file is read again."""
    stream: BinaryIO
    starts: Mapping[str, tuple[int, int]]
    """Id to first byte and length."""


class CorpusReader(Reader):
    """Records of a file."""

    def __init__(self, config: CorpusSource, folder: Path) -> None:
        self._config = config
        self._path = folder / config.corpus.path
        self._lock = threading.Lock()
        self._index: _Index | None = None

    def read(self, wanted: Wanted) -> Content:
        """The record of the document."""
        with self._lock:
            index = self._current()
            start, length = index.starts.get(wanted.doc_id, (0, 0))
            if not length:
                raise DocumentError(DocumentFailureKind.NOT_FOUND, "The document is not in the corpus.")
            if length > self._config.max_bytes:
                message = f"The document is larger than {self._config.max_bytes:,} bytes."
                raise DocumentError(DocumentFailureKind.TOO_LARGE, message)
            index.stream.seek(start)
            record = _record(index.stream.read(length))
        if record is None or as_text(record.get(self._config.corpus.id)) != wanted.doc_id:
            raise DocumentError(DocumentFailureKind.FAILED, "The corpus changed while it was read.")
        return record_content(record, self._config.corpus)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._index is not None:
                self._index.stream.close()
                self._index = None

    def _current(self) -> _Index:
        try:
            found = self._path.stat()
            stamp = found.st_ino, found.st_size, found.st_mtime_ns
            if self._index is None or self._index.stamp != stamp:
                if self._index is not None:
                    self._index.stream.close()
                    self._index = None
                self._index = self._made(stamp)
        except (OSError, EOFError, zlib.error, ValueError):
            raise DocumentError(DocumentFailureKind.FAILED, "The corpus of this source cannot be read.") from None
        return self._index

    def _made(self, stamp: tuple[int, int, int]) -> _Index:
        with ExitStack() as on_failure:
            stream: BinaryIO
            if self._path.suffix == ".gz":
                stream = cast("BinaryIO", on_failure.enter_context(tempfile.TemporaryFile()))
                _unpack(self._path, stream)
            else:
                stream = on_failure.enter_context(self._path.open("rb"))
            if lines := _dataset_lines(stream):
                stream.close()
                stream = cast("BinaryIO", on_failure.enter_context(tempfile.TemporaryFile()))
                stream.write(b"".join(_line_of(name, text, self._config.corpus) for name, text in lines))
            stream.seek(0)
            starts: dict[str, tuple[int, int]] = {}
            for start, data in _lines(stream):
                record = _record(data)
                if record is not None and (name := as_text(record.get(self._config.corpus.id))):
                    starts.setdefault(name, (start, len(data)))
            on_failure.pop_all()
            return _Index(stamp, stream, starts)


def _dataset_lines(stream: BinaryIO) -> list[tuple[str, str]]:
    """Id and text of the documents of a dataset of LlamaIndex, which holds them under `corpus`; none of another file."""
    beginning = stream.read(_BEGINNING)
    stream.seek(0)
    if not beginning.lstrip().startswith(b"{") or _DATASET.match(beginning) is None:
        return []
    record = _record(stream.read())
    corpus = record.get("corpus") if record is not None else None
    return [(name, text) for name, text in corpus.items() if isinstance(text, str)] if isinstance(corpus, dict) else []


def _line_of(name: str, text: str, names: CorpusFile) -> bytes:
    return json.dumps({names.id: name, names.text or "text": text}).encode() + b"\n"


def _record(data: bytes) -> dict[str, object] | None:
    """A record; None where it is none."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _unpack(path: Path, unpacked: BinaryIO) -> None:
    """Unpack a file compressed with gzip, up to a size."""
    with gzip.open(path) as packed:
        while block := packed.read(_BLOCK):
            unpacked.write(block)
            if unpacked.tell() > MAX_UNPACKED or shutil.disk_usage(tempfile.gettempdir()).free < _BLOCK:
                raise OSError("unpacks to too much")
    unpacked.seek(0)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """First byte and bytes of each line."""
    start = 0
    for line in stream:
        if line.strip():
            yield start, line
        start += len(line)
