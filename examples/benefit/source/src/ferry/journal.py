"""The journal of the harbour."""

import os
from typing import IO


def append(stream: IO[str], line: str) -> None:
    """Write an entry. It is flushed to the disk before the call returns."""
    stream.write(line + "\n")
    stream.flush()
    os.fsync(stream.fileno())


def mend(text: str) -> str:
    """Repair a damaged journal. What stands behind its last whole line is dropped."""
    return text[: text.rfind("\n") + 1]
