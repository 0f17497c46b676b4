"""Taking production queries in: read, redacted, counted by day and source, each log once.

A log file is remembered by its beginning: a file that begins with what was read before is read from there on, so that the
same log, longer, compressed or under another name, does not count twice. Batches of programs have a key.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import pbkdf2_hmac, sha256
from pathlib import Path
from typing import BinaryIO

from cranfield.base.errors import UsageError
from cranfield.base.redaction import is_only_placeholders
from cranfield.books.database.engine import Clock, day_of
from cranfield.formats.io.files import STDIN, opened, path_lock, refusal, shown
from cranfield.workbench.config import SOURCE_PATTERN, Intake
from cranfield.workbench.service.intake.reading import LONGEST_LINE, DropReason, LogError, LoggedQuery, Reader
from cranfield.workbench.service.intake.redaction import PatternTimeoutError, QueryRedactor
from cranfield.workbench.service.store.queries import KnownBatch, ProductionQueries

RECORDS = 50_000
"""Records that are stored at once: what an interrupt leaves is counted, and the next time begins after it."""
_ROUNDS = 20_000
"""Rounds of the digest of a beginning: with few, the text of a short log could be found by trying."""
_READ_BYTES = 1 << 20
_DAY_MS = 86_400_000


@dataclass
class IntakeCounts:
    """What an intake came to; each record that was read is kept or dropped."""

    n_kept: int = 0
    n_queries: int = 0
    """Sum of the counts of those that are kept."""
    dropped: Counter[DropReason] = field(default_factory=Counter)
    redacted: Counter[str] = field(default_factory=Counter)
    """Kind to the number of places, in queries that are kept."""
    n_known: int = 0
    """Records of the beginning that was read before, or of a batch that is known: not counted again."""
    unfinished: bool = False
    """The last line of the file has no end yet: it is read the next time."""

    @property
    def n_read(self) -> int:
        """Records that were read, and not known."""
        return self.n_kept + self.dropped.total()


@dataclass(kw_only=True)
class _Pending(IntakeCounts):
    """What was taken and is not stored."""

    redactor: QueryRedactor
    texts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Day and text to how often it came."""


class Taking:
    """One intake from one source.

    Args:
        queries: where they are stored.
        config: what is removed, and how long queries are kept.
        source: name of the source.
        clock: gives the day of records without one.
    """

    def __init__(self, queries: ProductionQueries, config: Intake, source: str, clock: Clock) -> None:
        self._queries, self._config, self._source = queries, config, source
        self._today = day_of(clock())
        self._first_day = self._today - timedelta(days=config.keep_days)
        self._pending = _Pending(redactor=QueryRedactor(config))
        self.counts = IntakeCounts()

    def batch(self, records: Iterable[LoggedQuery | DropReason], key: str = "") -> IntakeCounts:
        """Take in records, all or none of them. With a key they count once."""
        for record in records:
            self.take(record)
        digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        self._store(KnownBatch(f"key:{digest}") if key else None)
        return self.counts

    def file(self, path: Path, reader: Reader, longest: int = LONGEST_LINE) -> IntakeCounts:
        """Take in a file, from where it was read to; `-` is standard input, which is not remembered.

        Args:
            path: the file.
            reader: of its format.
            longest: bytes of the longest line.

        Raises:
            LogError: it cannot be read, or another intake reads it.
        """
        with _locked(path):
            lines = _Lines(is_remembered=str(path) != STDIN, longest=longest)
            known = self._known_beginning(path) if lines.is_remembered else None
            with opened(path, LogError) as stream, closing(lines.of(stream)) as texts:
                for record in _records(reader, texts, lines):
                    if known is not None and lines.n_bytes <= known.offset:
                        self.counts.n_known += 1
                        continue
                    self.take(record)
                    if self._pending.n_read >= RECORDS:
                        known = self._store_read(lines, known)
            if self._pending.n_read:
                self._store_read(lines, known)
        self.counts.unfinished = lines.unfinished
        return self.counts

    def _store_read(self, lines: _Lines, known: KnownBatch | None) -> KnownBatch | None:
        """Store what was read, and how far, at once."""
        batch = KnownBatch(_slow(lines.digest.digest(), self._source), lines.n_bytes) if lines.is_remembered else None
        self._store(batch, known)
        return batch

    def _known_beginning(self, path: Path) -> KnownBatch | None:
        """The longest beginning of the file that was read before."""
        found, place, digest = None, 0, sha256()
        with opened(path, LogError) as stream:
            for batch in self._queries.batches(self._source):
                while place < batch.offset and (data := stream.read(min(_READ_BYTES, batch.offset - place))):
                    digest.update(data)
                    place += len(data)
                if place < batch.offset:
                    break
                if _slow(digest.digest(), self._source) == batch.digest:
                    found = batch
        return found

    def take(self, record: LoggedQuery | DropReason) -> str | None:
        """Take in a record, which `batch` stores; its redacted text, or None where it is dropped."""
        pending = self._pending
        kept = record if isinstance(record, DropReason) else self._kept(record)
        if isinstance(kept, DropReason):
            pending.dropped[kept] += 1
            return None
        text, n, day = kept
        pending.n_kept += 1
        pending.texts[day.isoformat(), text] += n
        return text

    def redacted(self, record: LoggedQuery) -> str | None:
        """The redacted text of a record that is not taken in; None of one that would be dropped."""
        kept = self._kept(record)
        return None if isinstance(kept, DropReason) else kept[0]

    def _store(self, batch: KnownBatch | None, replaced: KnownBatch | None = None) -> None:
        """Store what was taken since the last time, unless the batch is known."""
        counts, pending = self.counts, self._pending
        self._pending = _Pending(redactor=QueryRedactor(self._config))
        if not self._queries.record(self._source, pending.texts, batch, replaced):
            counts.n_known += pending.n_read
            return
        counts.n_kept += pending.n_kept
        counts.n_queries += pending.texts.total()
        counts.dropped += pending.dropped
        counts.redacted += pending.redactor.found

    def _kept(self, record: LoggedQuery) -> tuple[str, int, date] | DropReason:
        """The redacted text, how often and when; or why it is dropped."""
        day = record.day or self._today
        refused = self._refusal(record.text, day)
        if refused is not None:
            return refused
        try:
            redacted = self._pending.redactor.redact(record.text)
        except PatternTimeoutError:
            return DropReason.PATTERN_TIMEOUT
        if not redacted:
            return DropReason.BLANK
        return DropReason.ONLY_REDACTED if is_only_placeholders(redacted) else (redacted, record.n, day)

    def _refusal(self, text: str, day: date) -> DropReason | None:
        if len(text.strip()) > self._config.longest:
            return DropReason.TOO_LONG
        if any("\ud800" <= char <= "\udfff" for char in text):
            return DropReason.UNREADABLE
        if day < self._first_day:
            return DropReason.TOO_OLD
        # A clock of another machine may be ahead.
        return DropReason.UNREADABLE if day > self._today + timedelta(days=1) else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file: two that read it at once would count what is new in it twice."""
    try:
        with path_lock(path, wait=False) if path.is_file() else nullcontext():
            yield
    except BlockingIOError:
        hint = "start this intake again when the other has ended; it continues from there"
        raise LogError("another intake is reading the file", path=shown(path), hint=hint) from None
    except OSError as error:
        raise LogError(refusal(path, error)) from None


def _records(reader: Reader, texts: Iterator[str], lines: _Lines) -> Iterator[LoggedQuery | DropReason]:
    """Records of the format; a line that is no text comes to the reader as a blank one, and its reason is given."""
    try:
        for record in reader(texts):
            yield record if lines.bad is None else lines.bad
            lines.bad = None
    except csv.Error:
        raise LogError("the table cannot be read", line=lines.n, hint="close the quoted cell") from None


class _Lines:
    """The lines of a stream as texts, with the bytes read so far and their digest."""

    def __init__(self, *, is_remembered: bool, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self.is_remembered = is_remembered
        """The rest is read another time: a last line without an end is left to it."""
        self.digest = sha256()
        self.n = 0
        self.n_bytes = 0
        self.bad: DropReason | None = None
        """Why the last line is none."""
        self.unfinished = False

    def of(self, stream: BinaryIO) -> Generator[str, None, None]:
        """The lines with their ends, those that are no text empty."""
        while data := stream.readline(self._longest):
            digest, n_bytes, last = self.digest.copy(), len(data), data
            digest.update(data)
            while not last.endswith(b"\n") and (more := stream.readline(self._longest)):
                digest.update(more)
                n_bytes, last = n_bytes + len(more), more
            if self.is_remembered and not last.endswith(b"\n"):
                self.unfinished = True
                return
            self.digest, self.n, self.n_bytes = digest, self.n + 1, self.n_bytes + n_bytes
            yield self._text(data, is_whole=last is data)

    def _text(self, data: bytes, *, is_whole: bool) -> str:
        try:
            text = data.decode("utf-8-sig" if self.n == 1 else "utf-8").rstrip("\r\n") + "\n"
        except UnicodeDecodeError:
            text, self.bad = "", DropReason.UNREADABLE
        if not is_whole:
            text, self.bad = "", DropReason.TOO_LONG
        return text


def _slow(digest: bytes, source: str) -> str:
    return "begin:" + pbkdf2_hmac("sha256", digest, source.encode(), _ROUNDS).hex()[:64]


def purge(queries: ProductionQueries, config: Intake, clock: Clock) -> int:
    """Delete what is older than the config says; gives the number of rows."""
    first_day = day_of(clock()) - timedelta(days=config.keep_days)
    return queries.purge(first_day.isoformat(), clock() - config.keep_days * _DAY_MS)


def check_source(source: str) -> str:
    """The name of a source.

    Raises:
        UsageError: it is none; it would be stored as it is.
    """
    if not re.fullmatch(SOURCE_PATTERN, source):
        expected = "letters, digits, dots, dashes and underscores, 100 at most"
        raise UsageError("not a valid source name", expected=expected)
    return source


def check_day(day: str | None) -> str | None:
    """A day as it is stored.

    Raises:
        UsageError: it is none.
    """
    try:
        return None if day is None else date.fromisoformat(day).isoformat()
    except ValueError:
        raise UsageError("not a day", expected="a date such as 2026-11-23") from None
