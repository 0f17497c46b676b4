"""Which lines of a repository stand in a text that a tool gave back, whatever its format: found by their content.

A tool under test has its own format of results, and so has the shell of an external agent. What an agent read of a file is in
either of them the same: lines of the file, one after the other, perhaps with numbers, marks or JSON around them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from cranfield.agents.loop import Read
from cranfield.repo.snapshot import Snapshot, as_text

MAX_PLACES = 50
"""A line that stands in more places than these is no anchor: it is only found beside one."""
MIN_LINES = 2
"""Fewest lines of a block that is found, blank ones not counted; a single line counts where it is long and stands in
one place."""
LONE_CHARS = 20
"""Fewest characters of a single line."""
_PATH = re.compile(r"[\w.@+-]+(?:[/\\]+[\w.@+-]+)*")
_EVERYWHERE = frozenset(
    {"README.md", "LICENSE", "setup.py", "pyproject.toml", "__init__.py", "package.json", "Makefile"}
)
"""Files that most repositories have: their names say nothing of which one."""
_BEFORE = re.compile(r"\s*(?:[^\s:]+[:-])?\d+[:|\-\t→ ]+\s*")
"""What tools print before a line: `12: `, `  12\\t`, `src/a.py:12:`."""
_IN_JSON = re.compile(r'[\[{:,]\s*"((?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')
"""A text within JSON, whole or cut off: after what begins an item, a key or a value."""
_Place = tuple[str, int]


class ShownLines:
    """Finds lines of the files of a repository."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        """Index the lines.

        Args:
            texts: path and text of each file.
        """
        self._files: dict[str, list[str]] = {}
        self._places: defaultdict[str, list[_Place]] = defaultdict(list)
        for path, text in texts:
            lines = self._files[path] = [line.strip() for line in text.split("\n")]
            for number, line in enumerate(lines, start=1):
                if line and len(self._places[line]) <= MAX_PLACES:
                    self._places[line].append((path, number))

    @classmethod
    def of(cls, snapshot: Snapshot, withheld: Container[str] = ()) -> ShownLines:
        """Lines of the text files of a repository but those that are withheld."""
        texts = ((path, as_text(data)) for path, data in snapshot.each() if path not in withheld)
        return cls((path, text) for path, text in texts if text is not None)

    def names_file(self, text: str) -> bool:
        """Whether a text has the path of a file, alone or at the end of a longer one."""
        for found in _PATH.finditer(text):
            parts = re.split(r"[/\\]+", found[0].rstrip("."))
            paths = ("/".join(parts[n:]) for n in range(len(parts)))
            if any(path in self._files and path not in _EVERYWHERE for path in paths):
                return True
        return False

    def find(self, text: str) -> tuple[Read, ...]:
        """Blocks of lines of the files that stand in a text, each once, by path and line."""
        found: set[Read] = set()
        for part in _texts(text):
            found.update(self._blocks([_spellings(line) for line in part.splitlines()]))
        return tuple(sorted(found, key=lambda read: (read.path, read.start, read.end)))

    def _blocks(self, lines: Sequence[tuple[str, ...]]) -> Iterable[Read]:
        start = 0
        while start < len(lines):
            blocks = [self._block(lines, start, place) for place in self._anchors(lines[start])]
            path, first, length = max(blocks, key=lambda block: block[2], default=("", 0, 0))
            if length and self._counts(path, first, length):
                yield Read(path, first, first + length - 1)
            start += max(length, 1)

    def _anchors(self, line: tuple[str, ...]) -> list[_Place]:
        return [place for spelling in line for place in self._places.get(spelling, ()) if spelling]

    def _block(self, lines: Sequence[tuple[str, ...]], start: int, place: _Place) -> tuple[str, int, int]:
        """Path, first line and length of the lines of a file that stand in the text from a line on."""
        path, number = place
        file = self._files[path]
        length = 1
        while (
            start + length < len(lines)
            and number + length <= len(file)
            and file[number + length - 1] in lines[start + length]
        ):
            length += 1
        while length > 1 and not file[number + length - 2]:  # blank lines at the end
            length -= 1
        return path, number, length

    def _counts(self, path: str, first: int, length: int) -> bool:
        lines = [line for line in self._files[path][first - 1 : first - 1 + length] if line]
        if len(lines) >= MIN_LINES:
            return any(len(self._places[line]) <= MAX_PLACES for line in lines)
        return len(lines[0]) >= LONE_CHARS and len(self._places[lines[0]]) == 1


def _spellings(line: str) -> tuple[str, ...]:
    """A line as it stands, and without what a tool printed before it."""
    plain = line.strip()
    numbered = _BEFORE.match(line)
    return (plain,) if numbered is None else (plain, line[numbered.end() :].strip())


def _texts(text: str) -> Iterable[str]:
    """The text; of JSON, every text in it. Several values one after the other, and one that was cut, are JSON too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield text
        for found in _IN_JSON.finditer(text):
            yield json.loads(f'"{found[1]}"', strict=False)
        return
    yield from _strings(value)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
