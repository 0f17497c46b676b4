"""What a narrative names of the repository: entities and files, of tokens that look like code."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from cranfield.golden.index import CALL, CODE, is_distinctive, name_parts
from cranfield.golden.parsed import PACKAGE_FILES, ParsedSource, folder_of, lies_in, module_parts
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of, plain_entity
from cranfield.repo.grammar import parse_python
from cranfield.repo.symbols import language_of

_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w*(?![\w/])")
_SLASHED = re.compile(r"(?<![\w./-])\w[\w-]*(?:/\w[\w-]*)+(?![\w/])")
"""A path without the ending of its file: `click/shell_completion`."""
_NAME = re.compile(r"(?<![\w./-])[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*")
_JOINT = re.compile(r"\.|::|#")
_CAMEL = re.compile(r"[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
_OWN = frozenset({"self", "cls", "this", "super"})
_COMMON = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | _OWN
_BUILT_IN_METHODS = frozenset(
    name for each in (str, bytes, list, dict, set, io.RawIOBase, io.TextIOWrapper) for name in dir(each)
)
"""`close()` in prose is that of any object, where it is not in backticks."""


class NamesAllowed:
    """What a narrative may name: what is expected, what holds it, and what is inside of it."""

    def __init__(self, entities: Iterable[str], files: Iterable[str], source: ParsedSource) -> None:
        self.source = source
        self.files = frozenset(files)
        self.entities = frozenset(map(plain_entity, entities))

    def file(self, paths: Iterable[str]) -> bool:
        """Whether one of these files is expected."""
        return not self.files.isdisjoint(paths)

    def module(self, paths: Sequence[str]) -> bool:
        """Whether one of these files is expected, or is that of a package which holds an expected one."""
        packages = [
            folder_of(path) for path in paths if posixpath.splitext(posixpath.basename(path))[0] in PACKAGE_FILES
        ]
        return self.file(paths) or any(lies_in(file, package) for file in self.files for package in packages)

    def entity(self, ids: Iterable[str]) -> bool:
        """Whether one of these is expected; or holds, or lies in, what is; or is a field of a class that does.

        Where no entities are expected, those of expected files are.
        """
        if not self.entities:
            return self.file(entity.partition(ENTITY_MARK)[0] for entity in ids)
        return any(self._is_allowed(entity) for entity in ids)

    def _is_allowed(self, entity: str) -> bool:
        if entity in self.entities:
            return True
        path, names = _path_and_names(entity)
        owner = names[:-1]
        is_field = bool(owner) and all(symbol.kind == "variable" for symbol in self.source.symbols(entity))
        for expected in self.entities:
            expected_path, expected_names = _path_and_names(expected)
            if path == expected_path and len(names) != len(expected_names):
                shorter, longer = sorted([names, expected_names], key=len)
                if longer[: len(shorter)] == shorter:
                    return True
            if is_field and path == expected_path and expected_names[: len(owner)] == owner:
                return True
        return False

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Parameters and local variables of the expected entities of Python: these names mean nothing else there."""
        return frozenset(name for entity in self.entities for name in _bound_names(entity, self.source))


def names_not_expected(narrative: str, allowed: NamesAllowed) -> list[str]:
    """Entities and files that a narrative names, and that are not expected.

    Looked at are: what is in backticks; elsewhere, names with `_` or an inner capital, names before `(`, names joined by a dot,
    `::` or `#`, and paths. Words of prose are not, nor acronyms, nor the parts of a name as words of their own (`context
    forward`): that is how people speak. A token names

    - a file, where it is its path or the end of it; where it is its module, with a package before it (`click.parser`,
      `click/parser`) or no word of prose (`shell_completion`); or where it begins with a folder of the repository, has the
      form of a path, and there is no such file;
    - an entity, where it is its name, or ends in `Class.name`, `module.name`, `package.name` or `path::name`. After `self.` it
      names a member of an expected class. A name that is no word of prose names any entity so called, also as `readFile` of
      `read_file`; a word does only before `(` and, in backticks, alone, where it is no word of Python, and no parameter or
      local variable of an expected entity; a method that built-in objects have (`close()`), in backticks only.

    Whatever could be an expected entity is taken for it.
    """
    found: dict[str, None] = {}
    for token, is_name in _tokens(narrative, allowed.source):
        named = _files_named(token, allowed.source)
        if named is not None:
            if not allowed.file(named):
                found[token] = None
            continue
        ids = () if "/" in token else _entities_named(token, allowed, is_name=is_name)
        modules = _modules_named(token, allowed)
        if (ids or modules) and not (allowed.entity(ids) or allowed.module(modules)):
            found[token] = None
    return list(found)


def _tokens(narrative: str, source: ParsedSource) -> Iterator[tuple[str, bool]]:
    """Tokens that may name something, and whether each is written as a name: in backticks alone, or with its arguments."""
    pieces = [(code, True) for code in CODE.findall(narrative)]
    pieces.append((CODE.sub(" ", narrative), False))
    for given, is_code in pieces:
        text = given.replace("\\", "/")
        for path in _PATH.findall(text):
            yield path, is_code
        text = _PATH.sub(lambda hit: " " if "/" in hit[0] or _files_named(hit[0], source) else hit[0], text)
        for path in _SLASHED.findall(text):
            yield path, is_code
        for found in _NAME.finditer(text):
            is_called = CALL.match(text, found.end()) is not None and (is_code or found[0] not in _BUILT_IN_METHODS)
            is_name = is_called or (is_code and found[0] == text.strip())
            if is_name or is_distinctive(found[0]) or _JOINT.search(found[0]):
                yield found[0], is_name


def _files_named(token: str, source: ParsedSource) -> tuple[str, ...] | None:
    """Files that a token may mean, none of a path that does not exist; None where it is no path."""
    known = source.file_names.get(posixpath.basename(token), ())
    named = tuple(path for path in known if path == token or path.endswith(f"/{token}"))
    if named:
        return named
    is_path = "/" in token and token.partition("/")[0] in source.top_folders and _PATH.fullmatch(token)
    return () if is_path else None


def _modules_named(token: str, allowed: NamesAllowed) -> tuple[str, ...]:
    """Files of code that a token may mean by the names of their modules."""
    parts = re.split(r"[./]|::", token)
    known = allowed.source.modules.get(parts[-1], ())
    if len(parts) > 1:
        return tuple(path for path in known if module_parts(path)[-len(parts) :] == parts)
    return known if is_distinctive(token) and token not in allowed.local_names else ()


def _entities_named(token: str, allowed: NamesAllowed, *, is_name: bool) -> tuple[str, ...]:
    """Ids that a token may mean; none where it means nothing of the repository."""
    *before, last = _JOINT.split(token)
    ids = allowed.source.named.get(last, ())
    if not ids and _CAMEL.fullmatch(last):
        ids = allowed.source.named.get("_".join(name_parts(last)), ())
    if not ids:
        return ()
    if before and before[0] in _OWN:
        members = {(path, (*(names[:-1] or names), last)) for path, names in map(_path_and_names, allowed.entities)}
        is_any = len(before) > 1 and is_distinctive(last)
        return tuple(entity for entity in ids if is_any or _path_and_names(entity) in members)
    if before:
        qualified = tuple(entity for entity in ids if _is_qualified(entity, before, allowed))
        return qualified or (ids if is_distinctive(last) and last not in allowed.local_names else ())
    if last in allowed.local_names or last in _COMMON:
        return ()
    return ids if is_name or is_distinctive(last) else ()


def _is_qualified(entity: str, before: list[str], allowed: NamesAllowed) -> bool:
    """Whether what stands before a name is the class, the module or the packages of an entity.

    A package may stand in the place of its module, because it passes names on (`click.Context`); and a class may be written as
    its instance is (`context.forward`), unless a variable of an expected entity is called so.
    """
    path, names = _path_and_names(entity)
    module, owners = module_parts(path), list(names[:-1])
    if [*module, *owners][-len(before) :] == before:
        return True
    if before[0] in allowed.local_names:
        return False
    head, tail = before[: -len(owners) or None], before[len(before) - len(owners) :]
    if len(before) <= len(owners):
        head, tail, owners = [], before, owners[-len(before) :]
    is_package = any(module[start : start + len(head)] == head for start in range(len(module)))
    return is_package and [name_parts(name) for name in tail] == [name_parts(name) for name in owners]


def _path_and_names(entity: str) -> tuple[str, tuple[str, ...]]:
    """The file of an entity, and its names from the outside in."""
    return entity.partition(ENTITY_MARK)[0], parts_of(entity)


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
