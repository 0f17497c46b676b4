"""A corpus in one file of JSON Lines, or in a dataset of LlamaIndex. Where each record begins is remembered; the records stay in the file.

A compressed file is unpacked to a temporary file first, which has no name.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from cranfield.config.documents import CorpusFile, CorpusSource
from cranfield.judging.documents.records import as_text, record_content
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted

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
