"""Cache of answers of finished collections.

One file per system, test set and k, named by a digest of everything that an answer may depend on. Failures are not
cached. Files are written atomically; a damaged file is ignored with a note.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cranfield.base.version import __version__
from cranfield.formats.io.files import PRIVATE_FOLDER, folder_inside, read_inside, write_text
from cranfield.formats.runs.record import json_line
from cranfield.systems.collect.journal import (
    UNREADABLE,
    VERSION,
    KeptAnswer,
    age_s,
    kept_from_record,
    kept_record,
    read_records,
    utc_time,
)
from cranfield.systems.system import System

_HEADER = "cranfield_answers"
_FILE_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}-[0-9a-f]{64}\.jsonl|\.[A-Za-z0-9].*\.part")
"""Names of cache files, and of incomplete files left by a killed process."""


class DamagedError(Exception):
    """A cache file is damaged."""


def cache_key(system: System, dependencies: str, collection: Mapping[str, object]) -> str:
    """64 hexadecimal digits over everything that an answer may depend on.

    Args:
        system: the system; its name is part of the key, so that systems of equal config do not share answers.
        dependencies: digest of what the system depends on besides its config.
        collection: test set, k, repeats.
    """
    same = {
        "cranfield": __version__,
        "journal": VERSION,
        "system": system.name,
        "config": system.config_digest,
        "surroundings": dependencies,
        **collection,
    }
    return sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


class Cache:
    """A folder of cached answers."""

    def __init__(self, folder: Path, max_age_h: float, root: Path | None = None) -> None:
        """Use a folder of cached answers.

        Args:
            folder: created on the first write.
            max_age_h: answers that are older are not used.
            root: folder above it below which no link is followed; None: `folder`, which may be a link then.
        """
        self._folder = folder
        self._root = root or folder
        self._max_age_s = max_age_h * 3600

    def read(self, name: str, key: str) -> dict[str, KeptAnswer]:
        """Query id to cached answer, without those that are too old; each is marked as cached.

        Raises:
            DamagedError: the file is damaged.
            UsageError: a link, or what is no file, is in its place.
            OSError: it cannot be read.
        """
        try:
            data = read_inside(self._root, self._path(name, key))
        except FileNotFoundError:
            return {}
        now = time.time()
        try:
            header, *records = read_records(data)
            answers = dict(kept_from_record(record) for record in records)
        except UNREADABLE:
            raise DamagedError from None
        if header != {_HEADER: VERSION, "key": key, "n": len(answers)} or len(answers) < len(records):
            raise DamagedError
        return {
            query_id: replace(kept, log=replace(kept.log, cached=True, at=utc_time(kept.at), age_s=age_s(kept.at, now)))
            for query_id, kept in answers.items()
            # A time in the future: a clock was wrong.
            if abs(now - kept.at) <= self._max_age_s and not kept.answer.outcome.is_failure
        }

    def write(self, name: str, key: str, answers: Iterable[tuple[str, KeptAnswer]]) -> None:
        """Write all answers but failures, replacing the file. Raises `OSError`."""
        records = [
            kept_record(query_id, replace(kept, log=replace(kept.log, cached=False, age_s=None)))
            for query_id, kept in answers
            if not kept.answer.outcome.is_failure
        ]
        self._root.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        header = {_HEADER: VERSION, "key": key, "n": len(records)}
        lines = map(json_line, [header, *records])
        write_text(self._path(name, key), lines, errors="surrogatepass", root=self._root, private=True)

    def tidy(self) -> None:
        """Remove files that are too old."""
        oldest = time.time() - self._max_age_s
        with suppress(OSError), folder_inside(self._root, self._folder) as folder:
            for name in filter(_FILE_NAMES.fullmatch, folder.names()):
                with suppress(OSError):  # another process may be tidying too
                    if folder.facts(name).st_mtime < oldest:
                        folder.unlink(name)

    def _path(self, name: str, key: str) -> Path:
        return self._folder / f"{name}-{key}.jsonl"
