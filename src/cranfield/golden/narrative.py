"""What a narrative names of the repository: entities and files, of tokens that look like code."""

from __future__ import annotations

import ast
import builtins
import keyword
import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property

from cranfield.golden.lexical import is_distinctive
from cranfield.golden.parsed import ParsedSource
from cranfield.matching.place import ENTITY_MARK, plain_entity
from cranfield.repo.definitions import parse_python
from cranfield.repo.symbols import language_of

_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w*(?![\w/])")
_NAME = re.compile(r"(?<![\w./-])[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*")
_JOINT = re.compile(r"\.|::")
_OWN = frozenset({"self", "cls", "this", "super"})
_COMMON = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | _OWN


class NamesAllowed:
    """What a narrative may name: what is expected, what holds it, and what is inside of it."""

    def __init__(self, entities: Iterable[str], files: Iterable[str], source: ParsedSource) -> None:
        self.source = source
        self.files = frozenset(files)
        self.entities = frozenset(map(plain_entity, entities))

    def file(self, paths: Iterable[str]) -> bool:
        """Whether one of these files is expected."""
        return not self.files.isdisjoint(paths)

    def entity(self, ids: Iterable[str]) -> bool:
        """Whether one of these is expected; or holds, or lies in, what is; or is a field of a class that does.

        Where no entities are expected, those of expected files are.
        """
        if not self.entities:
            return self.file(entity.partition(ENTITY_MARK)[0] for entity in ids)
        return any(self._is_allowed(entity) for entity in ids)

    def _is_allowed(self, entity: str) -> bool:
        for expected in self.entities:
            if entity == expected or expected.startswith(f"{entity}.") or entity.startswith(f"{expected}."):
                return True
        owner, dot, _ = entity.rpartition(".")
        is_field = bool(dot and ENTITY_MARK in owner) and all(
            symbol.kind == "variable" for symbol in self.source.symbols(entity)
        )
        return is_field and any(expected == owner or expected.startswith(f"{owner}.") for expected in self.entities)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Parameters and local variables of the expected entities of Python: these names mean nothing else there."""
        return frozenset(name for entity in self.entities for name in _bound_names(entity, self.source))


def names_not_expected(narrative: str, allowed: NamesAllowed) -> list[str]:
    """Entities and files that a narrative names, and that are not expected.

    Looked at are: what is in backticks; elsewhere, names with `_` or an inner capital, dotted names of which a part has one,
    and paths. Words of prose are not, nor acronyms. A token names

    - a file, where it is its path or the end of it; or where it begins with a folder of the repository, has the form of a path,
      and there is no such file;
    - an entity, where it is its name, or ends in `Class.name`, `module.name` or `path::name`. After `self.` it names a
      member of an expected class. A name that is no word of prose names any entity so called; a word does only in backticks, alone
      or before `(`, where it is no word of Python, and no parameter or local variable of an expected entity.

    Whatever could be an expected entity is taken for it.
    """
    found: dict[str, None] = {}
    for token, is_code in _tokens(narrative):
        named = _files_named(token, allowed.source)
        if named is not None:
            if not allowed.file(named):
                found[token] = None
            continue
        ids = _entities_named(token, allowed, is_code=is_code)
        if ids and not allowed.entity(ids):
            found[token] = None
    return list(found)


def _tokens(narrative: str) -> Iterator[tuple[str, bool]]:
    """Tokens that may name something, and whether each is a name in backticks: alone, or with its arguments."""
    pieces = [(code, True) for code in _CODE.findall(narrative)]
    pieces.append((_CODE.sub(" ", narrative), False))
    for text, is_code in pieces:
        for found in _PATH.finditer(text):
            yield found[0], is_code
        for found in _NAME.finditer(_PATH.sub(lambda hit: hit[0] if "/" not in hit[0] else " ", text)):
            is_name = is_code and (found[0] == text.strip() or found.string.startswith("(", found.end()))
            if is_name or any(map(is_distinctive, _JOINT.split(found[0]))) or (is_code and _JOINT.search(found[0])):
                yield found[0], is_name


def _files_named(token: str, source: ParsedSource) -> tuple[str, ...] | None:
    """Files that a token may mean, none of a path that does not exist; None where it is no path."""
    known = source.file_names.get(posixpath.basename(token), ())
    named = tuple(path for path in known if path == token or path.endswith(f"/{token}"))
    if named:
        return named
    is_path = "/" in token and token.partition("/")[0] in source.top_folders and _PATH.fullmatch(token)
    return () if is_path else None


def _entities_named(token: str, allowed: NamesAllowed, *, is_code: bool) -> tuple[str, ...]:
    """Ids that a token may mean; none where it means nothing of the repository."""
    *before, last = _JOINT.split(token)
    ids = allowed.source.named.get(last, ())
    if not ids:
        return ()
    if before and before[0] in _OWN:
        members = {f"{_owner(entity)}.{last}" for entity in allowed.entities}
        return tuple(entity for entity in ids if (len(before) > 1 and is_distinctive(last)) or entity in members)
    if before:
        qualified = tuple(entity for entity in ids if _is_qualified(entity, before))
        return qualified or (ids if is_distinctive(last) and last not in allowed.local_names else ())
    if last in allowed.local_names or last in _COMMON:
        return ()
    return ids if is_code or is_distinctive(last) else ()


def _is_qualified(entity: str, before: list[str]) -> bool:
    """Whether what stands before a name is the class, the module or the packages of an entity."""
    path, _, qualified = entity.partition(ENTITY_MARK)
    stem = posixpath.splitext(path)[0].removesuffix("/__init__")
    parts = [*stem.split("/"), *qualified.split(".")][:-1]
    return parts[-len(before) :] == before


def _owner(entity: str) -> str:
    """The class that an entity is or is in; an entity of a module is its own."""
    path, mark, qualified = entity.partition(ENTITY_MARK)
    owner = qualified.rpartition(".")[0] or qualified
    return f"{path}{mark}{owner}"


def _bound_names(entity: str, source: ParsedSource) -> Iterator[str]:
    path = entity.partition(ENTITY_MARK)[0]
    if language_of(path) != "python":
        return
    lines = source.lines(path) or ()
    for start, end in source.ranges(entity):
        try:
            tree = parse_python(textwrap.dedent("\n".join(lines[start - 1 : end])))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
