"""Where a result lies: its file, its lines and its entity, read from the id and the span that the system gave."""

from __future__ import annotations

import functools
import posixpath
import re
from dataclasses import dataclass

from cranfield.base.patterns import Expression, is_short, search_limit
from cranfield.model import Hit, MatchingRules

_LINES = re.compile(r"L?(\d{1,9})(?:[-:,]L?(\d{1,9}))?")
_LINE = r"(L?\d{1,9})(?::\d{1,9}|C\d{1,9})?"
_ID_WITH_LINES = re.compile(rf"(.*?[^:])[:#]{_LINE}(?:-{_LINE})?")
"""The column that may follow a line (`:12:5`, `#L12C5`) is passed over."""
_ENTITY_WITH_LINES = re.compile(rf"(.*?[^:])(?::|#(?=L|\d+-)){_LINE}(?:-{_LINE})?")
"""After the name of an entity a number alone, `#3`, is no line: it tells definitions of one name apart."""
_HOST_WITH_PORT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
"""The number at its end is no line."""
ENTITY_MARK = "::"
"""Between the path of a file and the name of a symbol in it."""
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".org", ".html", ".htm", ".tex")
"""Ends of files whose entities are sections: a heading is compared as it stands."""
_RUBY = (".rb", ".rake")
"""Ends of files in which `Cart#total` is a method of an object and `Cart.total` one of the class."""
_NUMBERED = re.compile(r"(^|\.)(operator [^.]+?|[^\s.]+?)(?:#\d+)+\Z")
"""Ends the id of the second and later definitions of a name: `prompt#2`. Where blanks stand before it, it is a heading's: `in C#12`."""
_JOINTS = re.compile(r"::|\.<locals>\.")
"""Between the parts of a name, besides the dot: `Index::add`, `outer.<locals>.inner`."""
_HASH = re.compile(r"(?<=\w)#(?=[^\W\d])")
"""`Index#add`"""
_QUALIFIED = re.compile(r"<[^\w'<>]*(?:'\w+\s+)?(?:(?:mut|dyn)\s+)*(?:\w+\.)*(\w+).*>(?=\.)|\.prototype(?=\.)")
"""What is in a name only to tell two apart: `<Cart as From<Order>>.from` of Rust, `Cart.prototype.total` of JavaScript."""


@dataclass(frozen=True, slots=True)
class Place:
    """A result, as a place in a file."""

    path: str
    lines: tuple[int, int] | None
    """First and last, counted from 1, both included; None where the result does not say."""
    entity: str
    """`path::Qual.name`, as `entity_of` has it; the path where it names none."""


def place_of(hit: Hit, rules: MatchingRules) -> Place:
    """Read the place of a result.

    The lines stand in its span (`12-40`), or at the end of its id (`src/a.rs:12-40`, `src/a.rs#L12-L40`, or `src/a.rs:12:5`,
    a line and a column). The entity stands in its id (`src/a.py::Index.add`, `src/a.py::Index.add:12-40`), with what a chunk
    adds to it taken off. After the name of an entity, `#3` is no line: see `plain_name`.

    Raises:
        InputError: `chunk_suffix` takes too long.
    """
    name = hit.id
    lines = None if hit.span is None else lines_of(hit.span, rules)
    if (found := _with_lines(name)) is not None:
        name = found[1]
        lines = lines or lines_of(found[2] if found[3] is None else f"{found[2]}-{found[3]}", rules)
    entity = entity_of(name, rules)
    return Place(entity.partition(ENTITY_MARK)[0], lines, entity)


def place_name(hit: Hit) -> str:
    """`src/a.rs:12-40`, the id of a place in judgments; the id alone of a result that says no lines besides."""
    return hit.id if hit.span is None or hit.id.endswith(f":{hit.span}") else f"{hit.id}:{hit.span}"


def names_lines(doc_id: str) -> bool:
    """Whether an id ends in lines."""
    return _with_lines(doc_id) is not None


def _with_lines(doc_id: str) -> re.Match[str] | None:
    found = (_ENTITY_WITH_LINES if ENTITY_MARK in doc_id else _ID_WITH_LINES).fullmatch(doc_id)
    return None if _HOST_WITH_PORT.fullmatch(doc_id) else found


def lines_of(text: str, rules: MatchingRules) -> tuple[int, int] | None:
    """`12-40`, `12:40`, `L12-L40` or `12` as lines counted from 1; None where it is none of these."""
    found = _LINES.fullmatch(text.strip())
    if found is None:
        return None
    first = int(found[1]) + 1 - rules.line_base
    last = first if found[2] is None else int(found[2]) + 1 - rules.line_base
    return (first, last) if first <= last else None


def entity_of(name: str, rules: MatchingRules) -> str:
    """The id of an entity with its path and its name in the one form, and without what a chunk adds."""
    if rules.chunk_suffix:
        name = _without_suffix(name, rules.chunk_suffix)
    path, mark, symbol = name.partition(ENTITY_MARK)
    path = path_of(path, rules)
    return path + mark + plain_name(symbol, path)


def plain_name(name: str, path: str) -> str:
    """A name in the one form that names are compared in: `Index::add`, `Index#add` and `Index.add#2` are `Index.add`.

    Definitions of a file whose names have one form are one entity, and no others are. In code the number tells definitions of
    one name apart (overloads, the branches of an `if`, getter and setter), which people and tools name together. A heading
    stays as it is: `What is new in C#12`, and the second section `Notes#2`. In Ruby `Cart#total` is not `Cart.total`.

    Args:
        name: of a symbol or a section, in its file.
        path: of the file; what kind of names it has is known by its end.
    """
    path = path.lower()
    if path.endswith(_PROSE):
        return name
    name = _JOINTS.sub(".", name)
    if "#" not in name:
        return name
    if not path.endswith(_RUBY):
        name = _HASH.sub(".", name)
    return _NUMBERED.sub(r"\1\2", name) if name.rpartition("#")[2].isdigit() else name


def parts_of(entity_id: str) -> tuple[str, ...]:
    """The names that the name of an entity is made of, from the outside in: `("Cart", "from")` of `a.rs::<Cart as From<Order>>.from`."""
    path, _, name = entity_id.partition(ENTITY_MARK)
    if path.lower().endswith(_PROSE):
        return tuple(name.split(" > "))
    return tuple(_HASH.sub(".", _QUALIFIED.sub(r"\1", plain_name(name, path))).split("."))


def plain_entity(entity_id: str) -> str:
    """The id of an entity with its name as `plain_name` has it."""
    path, mark, name = entity_id.partition(ENTITY_MARK)
    return path + mark + plain_name(name, path)


def short_entity(entity_id: str) -> str:
    """The id of an entity without what tells it from another of its name: `a.rs::Cart.from` of `a.rs::<Cart as From<Order>>.from`."""
    path, mark, name = entity_id.partition(ENTITY_MARK)
    return path + mark + (name if path.lower().endswith(_PROSE) else ".".join(parts_of(entity_id)))


def _without_suffix(name: str, suffix: str) -> str:
    if is_short(suffix, len(name)):
        return re.sub(suffix, "", name)
    with search_limit(f"chunk_suffix {suffix}"):
        return Expression(suffix).replaced_in(name, "")


def path_of(path: str, rules: MatchingRules) -> str:
    """A path in the one form: `/` between parts, no `.` among them, and without what the rules take off its front."""
    path = _with_slashes(path)
    for front in _fronts(rules.strip):
        if path.startswith(front) and path != front:
            path = path[len(front) :]
            break
    if rules.roots:
        parts = path.split("/")
        begins = next((place for place, part in enumerate(parts) if part in rules.roots), None)
        path = "/".join(parts[begins:]) if begins is not None else path
    return path


def _with_slashes(path: str) -> str:
    path = posixpath.normpath(path.replace("\\", "/")) if path else path
    return path[1:] if path.startswith("//") else path  # POSIX keeps two slashes at the front apart from one


@functools.cache
def _fronts(strip: tuple[str, ...]) -> tuple[str, ...]:
    """What is taken off, whole folders in the one form, the longest first."""
    return tuple(sorted({_with_slashes(front).rstrip("/") + "/" for front in strip if front}, key=len, reverse=True))


def overlap(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Lines that two spans share, both ends included; 0 or less where they share none."""
    return min(first[1], second[1]) - max(first[0], second[0]) + 1
