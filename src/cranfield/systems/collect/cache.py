"""Answers of finished collections, kept for a while: the same question to the same system is not asked twice.

One file for each system, test set and k, named by a digest of everything that an answer may depend on. Failures are
not kept. A file is written whole or not at all; one that cannot be read is passed over, and that is said.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cranfield.formats.io.files import write_text
from cranfield.formats.runs.record import json_line
from cranfield.systems.collect.journal import UNREADABLE, VERSION, Kept, kept_from_record, read_records, record_of
from cranfield.systems.system import System
from cranfield.version import __version__

_HEADER = "cranfield_answers"
_OURS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}-[0-9a-f]{64}\.jsonl|\.[A-Za-z0-9].*\.part")
"""Names of files of a cache, and of what a killed writer left of one."""


class DamagedError(Exception):
    """A file of the cache is not what was written."""


def cache_key(system: System, surroundings: str, collection: Mapping[str, object]) -> str:
    """64 hexadecimal digits over all that an answer may depend on.

    Args:
        system: what is asked; its name counts, so that two systems of one config are asked each for itself.
        surroundings: of the system, besides its config.
        collection: what else makes a collection the same: test set, k, repeats.
    """
    same = {
        "cranfield": __version__,
        "journal": VERSION,
        "system": system.name,
        "config": system.config_digest,
        "surroundings": surroundings,
        **collection,
    }
    return sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


class Cache:
    """A folder of kept answers."""

    def __init__(self, folder: Path, max_age_h: float) -> None:
        """Use `folder`, made when something is kept; answers older than `max_age_h` hours are not used."""
        self._folder = folder
        self._max_age_s = max_age_h * 3600

    def read(self, name: str, key: str) -> dict[str, Kept]:
        """Query id to answer, of what is kept and young enough; each says that it was kept.

        Raises:
            DamagedError: the file is there, and is not what was written.
            OSError: it cannot be read.
        """
        try:
            data = self._path(name, key).read_bytes()
        except FileNotFoundError:
            return {}
        now = time.time()
        try:
            header, *records = read_records(data)
            kept = dict(kept_from_record(record) for record in records)
        except UNREADABLE:
            raise DamagedError from None
        if header != {_HEADER: VERSION, "key": key, "n": len(kept)} or len(kept) < len(records):
            raise DamagedError
        return {
            query_id: replace(one, log=replace(one.log, cached=True))
            for query_id, one in kept.items()
            # A time to come is no age: a clock was wrong.
            if abs(now - one.at) <= self._max_age_s and not one.answer.outcome.is_failure
        }

    def write(self, name: str, key: str, answers: Iterable[tuple[str, Kept]]) -> None:
        """Keep all answers but failures, in place of what was kept before. Raises `OSError` where it cannot."""
        records = [
            record_of(query_id, replace(one, log=replace(one.log, cached=False)))
            for query_id, one in answers
            if not one.answer.outcome.is_failure
        ]
        self._folder.mkdir(parents=True, exist_ok=True)
        header = {_HEADER: VERSION, "key": key, "n": len(records)}
        write_text(self._path(name, key), map(json_line, [header, *records]), errors="surrogatepass")

    def tidy(self) -> None:
        """Remove files that are too old to be used again."""
        oldest = time.time() - self._max_age_s
        with suppress(OSError):
            for path in self._folder.iterdir():
                with suppress(OSError):  # another process may be tidying too
                    if _OURS.fullmatch(path.name) and path.stat().st_mtime < oldest:
                        path.unlink()

    def _path(self, name: str, key: str) -> Path:
        return self._folder / f"{name}-{key}.jsonl"


def kept_since(answers: Iterable[Kept]) -> str:
    """When the oldest of some answers was given: `2026-11-21 20:51 UTC`."""
    oldest = min(one.at for one in answers)
    return f"{datetime.fromtimestamp(oldest, UTC):%Y-%m-%d %H:%M} UTC"
