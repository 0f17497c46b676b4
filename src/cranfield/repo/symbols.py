"""The symbols of a source file, and hashes of its lines.

A symbol's id is `path::Qual.name`; of a Markdown section `path::Install > Linux`; of the file itself its path. A name
that is defined again (overloads, the setter of a property) is `path::name#2`, `#3` in the order of the file. These ids tell
definitions apart, for anchors. Which of them are one entity, the thing that people, tools and sets name, `plain_entity` says:
in code, those that a number alone tells apart. Functions of one name that the language itself tells apart are named in full:
`<Cart as Display>.fmt` and `<Cart as Debug>.fmt` of Rust; `Cart.total` of a class of JavaScript and `Cart.prototype.total` of
its objects. Where a file has only one of them it is `Cart.fmt`, `Cart.total`.

The hash of lines is the SHA-256 of them joined by line feeds, without the blanks at their ends and the indentation that all
share, so that code may move into a class; and with the names of the symbol they stand in blanked out, so that code whose
only change is its own name is known again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from hashlib import sha256

from cranfield.base.errors import MissingExtraError
from cranfield.base.words import and_list
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of, plain_entity
from cranfield.repo.grammar import Definition, grammar_definitions, markdown_definitions, python_definitions

Reader = Callable[[str], tuple[list[Definition], str]]

_SUFFIXES = {
    "python": ".py .pyi .pyw",
    "markdown": ".md .markdown .mdx",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .tpp",
    "go": ".go",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "rust": ".rs",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
}
LANGUAGES: Mapping[str, str] = {suffix: name for name, some in _SUFFIXES.items() for suffix in some.split()}
"""End of a file's name to its language; a file of any other is one symbol."""
_READERS: Mapping[str, Reader] = {"python": python_definitions, "markdown": markdown_definitions}
_IS_CPP = re.compile(r"^[ \t]*(?:class|namespace|template|using|public:|private:|protected:)\b", re.MULTILINE)
"""What makes a header `.h` one of C++."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named piece of a file, or the file."""

    id: str
    names: tuple[str, ...]
    """From the outside in, as `parts_of` has them; none for the file."""
    kind: str
    start: int
    end: int

    @property
    def entity(self) -> str:
        """Id of the entity that it defines, or is one definition of; of the file, its path."""
        return plain_entity(self.id)

    @property
    def lines(self) -> int:
        """How many."""
        return self.end - self.start + 1


@dataclass(frozen=True)
class Outline:
    """A file and its symbols."""

    path: str
    lines: tuple[str, ...]
    """Without blanks at their ends."""
    symbols: tuple[Symbol, ...]
    """The file first, then by line, outer before inner."""
    language: str = ""
    """Name in `LANGUAGES`; empty where symbols are not looked for."""
    trouble: str = ""
    """The first parse error: `line 3: invalid syntax`. Then some or all symbols are missing."""

    @cached_property
    def entities(self) -> Mapping[str, tuple[Symbol, ...]]:
        """Plain name, as `plain_name` has it, to all that is defined under it."""
        found: dict[str, list[Symbol]] = {}
        for symbol in self.symbols[1:]:
            found.setdefault(symbol.entity.partition(ENTITY_MARK)[2], []).append(symbol)
        return {name: tuple(symbols) for name, symbols in found.items()}

    def missing(self, name: str) -> str:
        """Why no entity has a name; with those that it is short for."""
        names = parts_of(f"{self.path}{ENTITY_MARK}{name}")
        known = and_list(list(dict.fromkeys(f"`{symbol.entity}`" for symbol in self.symbols if symbol.names == names)))
        return f"the file has no such symbol; it has {known}" if known else "the file has no such symbol"

    @cached_property
    def _indents(self) -> tuple[int, ...]:
        return tuple(len(line) - len(line.lstrip(" \t")) if line else -1 for line in self.lines)

    def innermost(self, start: int, end: int) -> Symbol:
        """The smallest symbol that holds these lines; the file where none does."""
        holding = [symbol for symbol in reversed(self.symbols) if symbol.start <= start and end <= symbol.end]
        return min(holding, key=lambda symbol: symbol.lines, default=self.symbols[0])

    def body(self, start: int, end: int, names: Sequence[str] = ()) -> str:
        """Hash of lines, counted from 1, both ends included, as they stand in a symbol of these names."""
        return sha256(self._plain(start, end, names).encode("utf-8", "surrogateescape")).hexdigest()

    def entity_body(self, symbols: Iterable[Symbol]) -> str:
        """Hash of all that is defined under one name."""
        text = "\n".join(self._plain(symbol.start, symbol.end, symbol.names) for symbol in symbols)
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def _plain(self, start: int, end: int, names: Sequence[str]) -> str:
        shared = min((indent for indent in self._indents[start - 1 : end] if indent >= 0), default=0)
        text = "\n".join([line[shared:] for line in self.lines[start - 1 : end]])
        if not names:
            return text
        pattern, marks = _mask(tuple(names))
        return pattern.sub(lambda found: marks[found[0]], text)


def outline_of(path: str, text: str, *, needed: bool = True) -> Outline:
    """The symbols of a file.

    Args:
        path: as ids begin.
        text: its lines end in line feeds.
        needed: a file whose language's library is missing is an error; otherwise it is one symbol.

    Raises:
        MissingExtraError: see `needed`.
    """
    language = language_of(path, text)
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    found, trouble = _definitions(language, text, needed=needed) if language else ([], "")
    if found is None:
        language, found = "", []
    return Outline(path, tuple(lines), _numbered(path, len(lines), found, language), language, trouble)


def language_of(path: str, text: str = "") -> str:
    """Language of a file by the end of its name; empty where none is known."""
    suffix = posixpath.splitext(path)[1].lower()
    if suffix == ".h" and _IS_CPP.search(text):
        return "cpp"
    return LANGUAGES.get(suffix, "")


def _definitions(language: str, text: str, *, needed: bool) -> tuple[list[Definition] | None, str]:
    """Definitions, and the parse error; None where the library of the language is missing and not needed."""
    read = _READERS.get(language) or partial(grammar_definitions, language=language)
    try:
        return read(text)
    except MissingExtraError:
        if needed:
            raise
        return None, ""


def _numbered(path: str, length: int, found: Iterable[Definition], language: str) -> tuple[Symbol, ...]:
    """Definitions in order as symbols; repeated names are named in full where that tells them apart, and else numbered."""
    ordered = sorted(found, key=lambda item: (item.start, -item.end, len(item.names), item.names))
    full: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for item in ordered:
        full.setdefault(item.names, set()).add(item.full)
    joint = " > " if language == "markdown" else "."
    names = [joint.join(item.full if len(full[item.names]) > 1 else item.names) for item in ordered]
    taken, seen = set(names), dict.fromkeys(names, 0)
    numbered = [Symbol(path, (), "file", 1, max(length, 1))]
    for item, name in zip(ordered, names, strict=True):
        seen[name] += 1
        while seen[name] > 1 and f"{name}#{seen[name]}" in taken:  # a heading that is so written
            seen[name] += 1
        again = f"#{seen[name]}" if seen[name] > 1 else ""
        numbered.append(Symbol(f"{path}{ENTITY_MARK}{name}{again}", item.names, item.kind, item.start, item.end))
    return tuple(numbered)


@lru_cache(maxsize=4096)
def _mask(names: tuple[str, ...]) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """What finds names as whole words, and what each becomes: its place, counted from the inside."""
    marks = {name: f"\0{place}\0" for place, name in reversed(list(enumerate(reversed(names))))}
    words = "|".join(re.escape(name) for name in sorted(marks, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)"), marks
