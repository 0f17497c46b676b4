"""Where text is that is not where it was: in the lines of a file, and in all files of a snapshot, read once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from cranfield.model import Anchor, Meta
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of, plain_entity, plain_name
from cranfield.repo.anchor import ExpectedPlace
from cranfield.repo.snapshot import Snapshot, as_text
from cranfield.repo.symbols import Outline, Symbol, outline_of

Lost = Mapping[str, tuple[ExpectedPlace, Anchor]]
"""Label to the place that is not where it was, and what it hung on."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A place with the text that was looked for."""

    id: str
    """Id of the symbol, or of the file."""
    path: str
    lines: tuple[int, int] = (0, 0)
    rank: tuple[bool, bool] = (False, False)
    """Another file than before, another name than before: the least is the likeliest."""


def windows(outline: Outline, anchor: Anchor, names: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Lines between `first` and `last` at which the text of an anchor begins."""
    for start in range(first, last - anchor.lines + 2):
        if outline.body(start, start + anchor.lines - 1, names) == anchor.body:
            yield start


def names_of(anchor: Anchor) -> tuple[str, ...]:
    """Names of the symbol that an anchor is in, from the outside in; none where it is in none."""
    return parts_of(re.sub(r"#\d+$", "", anchor.symbol)) if ENTITY_MARK in anchor.symbol else ()


def best(found: Sequence[TextMatch], place: ExpectedPlace, anchor: Anchor) -> list[TextMatch]:
    """What was found, the likeliest first: in the same file, then under the same name."""
    name = place.name or anchor.symbol.partition(ENTITY_MARK)[2]

    def ranked(candidate: TextMatch) -> TextMatch:
        other = plain_entity(candidate.id).partition(ENTITY_MARK)[2] != plain_name(name, place.path)
        return TextMatch(candidate.id, candidate.path, candidate.lines, (candidate.path != place.path, other))

    unique = {(candidate.id, candidate.lines): ranked(candidate) for candidate in found}
    return sorted(
        unique.values(), key=lambda candidate: (candidate.rank, candidate.path, candidate.lines, candidate.id)
    )


def elsewhere(lost: Lost, meta: Meta, snapshot: Snapshot) -> dict[str, list[TextMatch]]:
    """Look for places in every file, each read once.

    A file is known by the hash of its bytes, or of its text. An entity is known by its text under any name. Lines are
    known by their text at the same distance from the beginning of a symbol of the same name; in a symbol that is these
    lines and no more; and anywhere in a file of the same base name.
    """
    found: dict[str, list[TextMatch]] = {label: [] for label in lost}
    gone = {place.path for place, _ in lost.values() if place.path not in snapshot}
    hashes = {path: digest for path, digest in meta.source_files.items() if path in gone}
    anchored = {label: (place, anchor) for label, (place, anchor) in lost.items() if anchor.body}
    renamed: dict[str, list[str]] = {}
    for path, data in snapshot.each():
        digest = sha256(data).hexdigest()
        for old, known in hashes.items():
            if known == digest:
                renamed.setdefault(old, []).append(path)
        text = as_text(data) if anchored else ""
        if text is None:
            snapshot.left_out["binary files"] += 1
        if not text:
            continue
        outline = outline_of(path, text, needed=False)
        for label, (place, anchor) in anchored.items():
            found[label] += _in_file(place, anchor, outline)
    for label, (place, _) in lost.items():
        for path in renamed.get(place.path, ()):
            symbol = f"{path}{ENTITY_MARK}{place.name}" if place.name else path
            if not any(candidate.path == path for candidate in found[label]):
                found[label].append(TextMatch(symbol, path, place.lines))
    return found


def _in_file(place: ExpectedPlace, anchor: Anchor, outline: Outline) -> Iterator[TextMatch]:
    if place.kind == "file" or ENTITY_MARK not in anchor.symbol:
        if place.kind != "span" and len(outline.lines) == anchor.lines:
            if outline.path != place.path and outline.body(1, anchor.lines) == anchor.body:
                yield TextMatch(outline.path, outline.path)
            return
    elif place.kind == "entity":
        for symbols in outline.entities.values():
            if sum(symbol.lines for symbol in symbols) == anchor.lines and outline.entity_body(symbols) == anchor.body:
                yield TextMatch(symbols[0].id, outline.path, (symbols[0].start, symbols[-1].end))
        return
    if place.kind == "span":
        yield from _lines_in_file(place, anchor, outline)


def _lines_in_file(place: ExpectedPlace, anchor: Anchor, outline: Outline) -> Iterator[TextMatch]:
    names = names_of(anchor)
    last = names[-1] if names else ""
    for symbol in outline.symbols[1:]:
        if not _may_hold(symbol, last, anchor, same_file=outline.path == place.path):
            continue
        start = symbol.start + anchor.offset
        if outline.body(start, start + anchor.lines - 1, symbol.names) == anchor.body:
            yield TextMatch(symbol.id, outline.path, (start, start + anchor.lines - 1))
    if outline.path != place.path and posixpath.basename(outline.path) == posixpath.basename(place.path):
        for start in windows(outline, anchor, names, 1, len(outline.lines)):
            holder = outline.innermost(start, start + anchor.lines - 1)
            yield TextMatch(holder.id, outline.path, (start, start + anchor.lines - 1))


def _may_hold(symbol: Symbol, last: str, anchor: Anchor, *, same_file: bool) -> bool:
    """Whether a symbol is worth a look: long enough, and of the same name, in the same file, or these lines alone."""
    if symbol.lines < anchor.offset + anchor.lines:
        return False
    alone = anchor.offset == 0 and symbol.lines == anchor.lines
    return same_file or alone or bool(symbol.names and symbol.names[-1] == last)
