"""Answers on disk as they come, so that a collection that was cut short goes on from where it was.

One file a system under `.partial/`: a header that says which collection this is, then a line an answer, each written
out at once. A last line that was cut off is dropped; a journal of another collection is set aside, never mixed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cranfield.errors import CranfieldError
from cranfield.formats.run_record import answer_from_record, answer_record, json_line
from cranfield.model import Answer, CallLog

VERSION = 1
SET_ASIDE = "set-aside"
"""Folder, beside the journals, of those that belong to another collection."""

_SAID = {
    "journal": "it was written by another version of Cranfield",
    "testset": "the test set changed",
    "config": "the system's config changed",
    "k": "another k was asked for",
    "pilot": "one of the two is a pilot",
}


class Journal:
    """The answers collected so far from one system."""

    def __init__(self, folder: Path, name: str, collection: Mapping[str, Any]) -> None:
        """Open the journal of `name`, taking over what an earlier call of the same collection left.

        Args:
            folder: where journals are; must exist.
            name: the system's name, fit for a file name.
            collection: what must be the same for an earlier journal to be gone on with.
        """
        self.path = folder / f"{name}.jsonl"
        self.answers: dict[str, Answer] = {}
        self.logs: dict[str, CallLog] = {}
        self.set_aside: str | None = None
        """Why an earlier journal was not used, and where it is now."""
        header = {"journal": VERSION, **collection}
        sound_bytes = self._take_over(header) if self.path.exists() else 0
        self._stream = self.path.open("ab", buffering=0)
        if sound_bytes:
            self._stream.truncate(sound_bytes)
        else:
            self._stream.truncate(0)
            self._write(header)

    def append(self, query_id: str, answer: Answer, log: CallLog | None) -> None:
        """Keep an answer; it is with the operating system when this returns."""
        self._write(answer_record(query_id, answer, log))
        self._keep(query_id, answer, log)

    def close(self) -> None:
        """Stop writing."""
        self._stream.close()

    def remove(self) -> None:
        """Stop writing, and forget: the answers are in a run now."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        line = json_line(record).encode("utf-8", "surrogatepass")
        written = self._stream.write(line)
        if written != len(line):
            raise OSError(f"{self.path.name}: {written} of {len(line)} bytes written")

    def _keep(self, query_id: str, answer: Answer, log: CallLog | None) -> None:
        self.answers[query_id] = answer
        if log is not None:
            self.logs[query_id] = log

    def _take_over(self, header: Mapping[str, Any]) -> int:
        """Read what is there; how many bytes of it are good, 0 when none."""
        data = self.path.read_bytes()
        sound_bytes = data.rfind(b"\n") + 1  # what follows the last line end was cut off
        lines = data[:sound_bytes].split(b"\n")[:-1]
        if len(lines) < 2:
            return 0  # nothing that could be lost
        try:
            found = _loads(lines[0])
            differs = [key for key in header if found.get(key) != header[key]]
            records = [] if differs else [answer_from_record(_loads(line)) for line in lines[1:]]
        except (ValueError, TypeError, AttributeError, CranfieldError):
            self._put_aside("it is damaged")
            return 0
        if differs:
            self._put_aside(" and ".join(_SAID.get(key, key) for key in differs))
            return 0
        for query_id, answer, log in records:
            self._keep(query_id, answer, log)
        return sound_bytes

    def _put_aside(self, why: str) -> None:
        folder = self.path.parent / SET_ASIDE
        folder.mkdir(exist_ok=True)
        number = 1
        while (aside := folder / f"{self.path.stem}-{number}.jsonl").exists():
            number += 1
        self.path.rename(aside)
        self.set_aside = f"{why}; the earlier answers are in {folder.parent.name}/{folder.name}/{aside.name}"


def _loads(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))
