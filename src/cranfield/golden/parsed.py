"""The files of a snapshot as the gate and the screen need them: symbols, lines, names and words, each read once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from cranfield.ranking.matching.place import ENTITY_MARK, plain_name
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.symbols import Outline, Symbol, language_of, outline_of

MAX_LINES = 200
"""Lines that are kept of one word: a word that is on more is too frequent to find anything by."""
PACKAGE_FILES = frozenset({"__init__", "index", "mod"})
"""Stems of files that have the name of their folder."""
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"#\d+$")

Place = tuple[str, int]
"""A file, and a line of it."""
Range = tuple[int, int]
"""First and last line, counted from 1, both included."""
Lines = tuple[str, int, int]
"""A file, and the first and last of its lines."""


class ParsedSource:
    """A fresh parse of a snapshot. Files are parsed when they are needed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._outlines: dict[str, Outline | None] = {}
        self._lines: dict[str, tuple[str, ...] | None] = {}
        self._symbols: dict[str, tuple[Symbol, ...]] = {}

    @property
    def files(self) -> Mapping[str, str]:
        """Paths of all files."""
        return self.snapshot.files

    def lines(self, path: str) -> tuple[str, ...] | None:
        """The lines of a file; None where it is missing, binary or too large."""
        if path not in self._lines:
            text = self.snapshot.text(path)
            self._lines[path] = None if text is None else tuple(text.removesuffix("\n").split("\n")) if text else ()
        return self._lines[path]

    def range_problem(self, path: str, start: int, end: int) -> str | None:
        """Why these lines are none of a file; None where they are."""
        if path not in self.files:
            return f"{path}: no such file"
        lines = self.lines(path)
        if lines is None:
            return f"{path}: not a readable text file"
        if start < 1:
            return f"{path}:{start}-{end}: lines count from 1"
        if end < start:
            return f"{path}:{start}-{end}: ends before it starts"
        return f"{path}:{start}-{end}: the file has {len(lines)} lines" if end > len(lines) else None

    def outline(self, path: str) -> Outline | None:
        """The symbols of a file; None where it is no text. Of a language whose library is missing it is one symbol."""
        if path not in self._outlines:
            text = self.snapshot.text(path)
            self._outlines[path] = None if text is None else outline_of(path, text, needed=False)
        return self._outlines[path]

    def symbols(self, entity_id: str) -> tuple[Symbol, ...]:
        """All that is defined under an id `path::Qual.name` or `path.md::Heading > Heading`; none where it does not resolve.

        `path::name#2` is the same entity, where the name has a second definition.

        Raises:
            MissingExtraError: the library that reads this language is not installed.
        """
        if entity_id not in self._symbols:
            self._symbols[entity_id] = self._look_up(entity_id)
        return self._symbols[entity_id]

    def _look_up(self, entity_id: str) -> tuple[Symbol, ...]:
        path, mark, name = entity_id.partition(ENTITY_MARK)
        outline = self.outline(path) if mark else None
        if outline is None:
            return ()
        if not outline.language and language_of(path):
            outline = self._outlines[path] = outline_of(path, self.snapshot.text(path) or "")
        if _NUMBERED.search(name) and all(symbol.id != entity_id for symbol in outline.symbols[1:]):
            return ()
        return outline.entities.get(plain_name(name, path), ())

    def entity_problem(self, entity_id: str) -> str | None:
        """Why an id does not resolve; None where it does."""
        if self.symbols(entity_id):
            return None
        path, mark, name = entity_id.partition(ENTITY_MARK)
        if not mark:
            return f"{entity_id}: not an entity id; expected path::Qual.name"
        if path not in self.files:
            return f"{entity_id}: no such file"
        outline = self.outline(path)
        trouble = f"; the file is not parsed: {outline.trouble}" if outline and outline.trouble else ""
        missing = outline.missing(name) if outline else "not a readable text file"
        return f"{entity_id}: {missing}{trouble}"

    def ranges(self, entity_id: str) -> list[Range]:
        """The lines of an entity; none where it does not resolve."""
        return [(symbol.start, symbol.end) for symbol in self.symbols(entity_id)]

    def outside_problem(self, part: Lines, entity_ids: Collection[str]) -> str | None:
        """Why lines are of none of the entities; None where they share a line with one, or where that is not known.

        It is not known where there are none, of a file without symbols, such as one of settings, and where an entity of the
        file does not resolve.

        Raises:
            MissingExtraError: see `symbols`.
        """
        path, start, end = part
        outline = self.outline(path) if entity_ids else None
        if outline is None or not outline.language:
            return None
        entities = [self.ranges(each) for each in entity_ids if each.partition(ENTITY_MARK)[0] == path]
        if not all(entities) or any(first <= end and start <= last for ranges in entities for first, last in ranges):
            return None
        holder = outline.innermost(start, end)
        hint = f"; {holder.entity} holds it" if holder.names else ""
        return f"{path}:{start}-{end}: outside every expected entity{hint}"

    @cached_property
    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The last name of every symbol of code, to the ids of the entities that have it."""
        found: dict[str, dict[str, None]] = {}
        for path in self.files:
            outline = self.outline(path)
            if outline is None or outline.language in {"", "markdown"}:
                continue
            for name in outline.entities:
                found.setdefault(name.rpartition(".")[2], {})[f"{path}{ENTITY_MARK}{name}"] = None
        return {name: tuple(ids) for name, ids in found.items()}

    @cached_property
    def modules(self) -> Mapping[str, tuple[str, ...]]:
        """The last part of the name of every module, to the paths of the modules that have it."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            if language_of(path) not in {"", "markdown"}:
                found.setdefault(module_parts(path)[-1], []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def file_names(self) -> Mapping[str, tuple[str, ...]]:
        """The last part of every path, to the paths that end in it."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            found.setdefault(posixpath.basename(path), []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def top_folders(self) -> frozenset[str]:
        """Folders at the root."""
        return frozenset(path.partition("/")[0] for path in self.files if "/" in path)

    @cached_property
    def _lines_of_words(self) -> Mapping[str, list[Place]]:
        """Word, case folded, to the lines it is on, `MAX_LINES` and one more at most."""
        found: dict[str, list[Place]] = {}
        for path in sorted(self.files):
            for number, line in enumerate(self.lines(path) or (), start=1):
                for word in set(_WORD.findall(line.casefold())):
                    places = found.setdefault(word, [])
                    if len(places) <= MAX_LINES:
                        places.append((path, number))
        return found

    def lines_with(self, text: str) -> Sequence[Place] | None:
        """Lines that `grep -i -F` finds, in the order of paths; None where they are more than `MAX_LINES`.

        Args:
            text: a word, or several; not blank.
        """
        wanted = text.casefold()
        index = self._lines_of_words
        words = _WORD.findall(wanted)
        if not words:
            return None
        longest = max(words, key=len)
        places: set[Place] = set()
        for word in self._words_with(longest):
            places.update(index[word])
            if len(index[word]) > MAX_LINES:
                return self._scan(wanted) if longest != wanted else None
        if longest != wanted:
            places = {place for place in places if wanted in self._line(place)}
        return sorted(places) if len(places) <= MAX_LINES else None

    @cached_property
    def _all_words(self) -> str:
        return "\n".join(["", *self._lines_of_words, ""])

    def _words_with(self, part: str) -> Iterator[str]:
        """Words that contain a part. One text of all words is searched, since a query may have many words."""
        text = self._all_words
        at = text.find(part)
        while at >= 0:
            end = text.index("\n", at)
            yield text[text.rindex("\n", 0, at) + 1 : end]
            at = text.find(part, end)

    def _line(self, place: Place) -> str:
        return (self.lines(place[0]) or ())[place[1] - 1].casefold()

    def _scan(self, wanted: str) -> Sequence[Place] | None:
        places = [
            (path, number)
            for path in sorted(self.files)
            for number, line in enumerate(self.lines(path) or (), start=1)
            if wanted in line.casefold()
        ]
        return places if len(places) <= MAX_LINES else None


class LineCoverage:
    """Lines of files, as the union of ranges."""

    def __init__(self, ranges: Iterable[Lines]) -> None:
        self._merged: dict[str, list[Range]] = {}
        for path, start, end in sorted(ranges):
            merged = self._merged.setdefault(path, [])
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))

    def holds(self, path: str, start: int, end: int) -> bool:
        """Whether every one of these lines is in it."""
        return any(first <= start and end <= last for first, last in self._merged.get(path, ()))

    def shared(self, path: str, start: int, end: int) -> int:
        """How many of these lines are in it."""
        return sum(max(0, min(last, end) - max(first, start) + 1) for first, last in self._merged.get(path, ()))

    def paths(self) -> frozenset[str]:
        """Files with lines in it."""
        return frozenset(self._merged)


def module_parts(path: str) -> list[str]:
    """The name of a file of code as a module: `src`, `click`, `core` of `src/click/core.py`; of `click/__init__.py` the folder's."""
    *folders, stem = posixpath.splitext(path)[0].split("/")
    return folders if folders and stem in PACKAGE_FILES else [*folders, stem]


def folder_of(path: str) -> str:
    """The folder of a file; empty for one at the root."""
    return posixpath.dirname(path)


def files_in(snapshot: Snapshot, scope: Sequence[str]) -> list[str]:
    """Files of a snapshot in some folders, or among some files; all, where none are named."""
    return [path for path in snapshot.files if not scope or any(lies_in(path, part) for part in scope)]


def lies_in(path: str, place: str) -> bool:
    """Whether a file is `place`, or in the folder `place`; everything is in the root, which is empty or `.`."""
    place = place.rstrip("/")
    return place in {"", "."} or path == place or path.startswith(f"{place}/")
