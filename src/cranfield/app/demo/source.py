"""Source files of the standard library as entities, by `ast` alone: nothing is imported or run.

Which of them are public, and under which name, is decided when all files are read.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cranfield.app.demo.compiled import CompiledModule
from cranfield.app.demo.entity import DocumentedObject, Kind

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_WARNERS = {"warnings.warn", "warn", "_warn", "_warnings.warn"}
_DEPRECATERS = {"warnings._deprecated", "_deprecated"}
_DEPRECATED_LINE = re.compile(r"^[\s*.]*deprecated\b", re.IGNORECASE | re.MULTILINE)
_DEPRECATED_WORDS = re.compile(r"\b(is|are) (now )?deprecated\b", re.IGNORECASE)
_THIS_IS_DEPRECATED = re.compile(r"\bthis (function|method|class|module) is (now )?deprecated\b", re.IGNORECASE)
_PROPERTY_DECORATORS = {"property", "cached_property", "functools.cached_property", "abc.abstractproperty"}
_CONTEXT_DECORATORS = {"contextmanager", "asynccontextmanager"}


@dataclass(frozen=True)
class FromImport:
    """`from module import names`; `*` stands among the names as itself."""

    module: str
    names: tuple[tuple[str, str], ...]
    """(name there, name here)."""


@dataclass
class SourceModule:
    """Definitions, imports and exports of one file."""

    name: str
    """Dotted name."""
    path: str
    is_package: bool
    entities: list[DocumentedObject] = field(default_factory=list)
    """The module itself, then what it defines, in the order of the source; ids are those of the file."""
    defined: set[str] = field(default_factory=set)
    """Names of classes, functions and assignments at the top level."""
    imports: list[FromImport] = field(default_factory=list)
    exported: set[str] = field(default_factory=set)
    """The literal part of `__all__`."""
    is_export_list_complete: bool = False
    """True when there is an `__all__` and all of it is literal."""


def read_source_module(source: bytes, *, name: str, path: str) -> SourceModule:
    """Parse one file.

    Args:
        source: its bytes; the encoding is the one the file declares.
        name: dotted module name.
        path: path below the library's folder, with forward slashes.
    """
    tree = ast.parse(source, filename=path)
    module = SourceModule(name, path, is_package=path.endswith("/__init__.py"))
    statements = list(_top_level(tree.body))
    module.imports = [_from_import(node, module) for node in statements if isinstance(node, ast.ImportFrom)]
    module.imports.extend(FromImport(name, (("*", "*"),)) for node in statements for name in _stand_in(node))
    module.exported, module.is_export_list_complete = _export_list(statements)
    text = source.decode("utf-8", "replace")
    lines = text.splitlines()
    module.entities.append(_module_entity(tree, statements, module, len(lines)))
    module.entities.extend(_members(statements, module, lines))
    module.defined = {entity.name for entity in module.entities[1:] if "." not in entity.id.partition("::")[2]}
    taken = _taken_names(module)
    module.defined.update(name for node in statements for name in _assigned_names(node) if name not in taken)
    return module


def _taken_names(module: SourceModule) -> set[str]:
    """Names that come from elsewhere; an assignment to one of them is a stand-in (`SimpleQueue = None`)."""
    return {here for statement in module.imports for _, here in statement.names}


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, those under `if`, `try` and `with` included: a definition there is a definition here."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            # Definitions under `if __name__ == "__main__"` cannot be imported.
            if "__name__" in {_dotted(part) for part in ast.walk(node.test) if isinstance(part, ast.Name)}:
                continue
            yield from _top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            inner = [statement for handler in node.handlers for statement in handler.body]
            yield from _top_level([*node.body, *inner, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from _top_level(node.body)


def _from_import(node: ast.ImportFrom, module: SourceModule) -> FromImport:
    target = node.module or ""
    if node.level:
        parts = module.name.split(".")
        keep = len(parts) - node.level + (1 if module.is_package else 0)
        target = ".".join([*parts[:keep], *([target] if target else [])])
    return FromImport(target, tuple((alias.name, alias.asname or alias.name) for alias in node.names))


def _stand_in(node: ast.stmt) -> list[str]:
    """The module that a module puts in its own place: `sys.modules[__name__] = _collections_abc`."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)):
        return []
    places = [target for target in node.targets if isinstance(target, ast.Subscript)]
    own = [place for place in places if _dotted(place) == "sys.modules" and _dotted(place.slice) == "__name__"]
    return [node.value.id] if own else []


def _export_list(statements: Sequence[ast.stmt]) -> tuple[set[str], bool]:
    """The names in `__all__` that are written out, and whether those are all of them."""
    names: set[str] = set()
    seen, complete = False, True
    for node in statements:
        value = _export_value(node)
        if value is None:
            continue
        seen = True
        literal = isinstance(value, ast.List | ast.Tuple)
        complete = complete and literal
        parts = value.elts if isinstance(value, ast.List | ast.Tuple) else list(ast.walk(value))
        names.update(part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return names, seen and complete


def _export_value(node: ast.stmt) -> ast.expr | None:
    """The expression that a statement adds to `__all__`, if it does."""
    if isinstance(node, ast.Assign) and any(_dotted(target) == "__all__" for target in node.targets):
        return node.value
    if isinstance(node, ast.AugAssign) and _dotted(node.target) == "__all__":
        return node.value
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and _dotted(call.func) in {"__all__.extend", "__all__.append"} and call.args:
        argument = call.args[0]
        return ast.List([argument]) if isinstance(argument, ast.Constant) else argument
    return None


def _assigned_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _module_entity(
    tree: ast.Module, statements: Sequence[ast.stmt], module: SourceModule, n_lines: int
) -> DocumentedObject:
    doc = ast.get_docstring(tree) or _assigned_docs(statements).get("", "")
    return DocumentedObject(
        id=module.path,
        kind="module",
        name=module.name.rpartition(".")[2],
        qualname=module.name,
        module=module.name,
        doc=doc,
        path=module.path,
        start=1,
        end=max(n_lines, 1),
        is_deprecated=_says_deprecated(doc) or any(_warns_deprecated(node) for node in statements),
    )


def _members(statements: Sequence[ast.stmt], module: SourceModule, lines: Sequence[str]) -> list[DocumentedObject]:
    """Top-level entities and the members of classes; of several with one name, the first that has documentation."""
    found: dict[str, DocumentedObject] = {}
    for entity in _definitions(statements, module, lines, prefix=""):
        known = found.get(entity.id)
        if known is None or (entity.doc and not known.doc and not known.decorators):
            found[entity.id] = entity
    for entity in _data(statements, module, lines):
        found.setdefault(entity.id, entity)
    for inner, doc in _assigned_docs(statements).items():
        known = found.get(f"{module.path}::{inner}")
        if known is not None and not known.doc:
            found[known.id] = replace(known, doc=doc, is_deprecated=known.is_deprecated or _says_deprecated(doc))
    return list(found.values())


def _definitions(
    statements: Sequence[ast.stmt], module: SourceModule, lines: Sequence[str], prefix: str
) -> Iterator[DocumentedObject]:
    for node in statements:
        if not isinstance(node, Definition):
            continue
        doc = ast.get_docstring(node) or ""
        if not _is_kept(node.name, doc, is_member=bool(prefix)):
            continue
        inner = prefix + node.name
        yield _definition(node, doc, inner, module, lines)
        if isinstance(node, ast.ClassDef):
            yield from _definitions(list(_top_level(node.body)), module, lines, prefix=inner + ".")


def _is_kept(name: str, doc: str, *, is_member: bool) -> bool:
    """Drop private names; keep special methods that have documentation.

    A private name at the top level stays for now: another module may export it under a public name.
    """
    if name.startswith("__") and name.endswith("__"):
        return bool(doc)
    return not (is_member and name.startswith("_"))


def _definition(node: Definition, doc: str, inner: str, module: SourceModule, lines: Sequence[str]) -> DocumentedObject:
    decorators = tuple(_dotted(decorator) for decorator in node.decorator_list)
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    end = node.end_lineno or node.lineno
    entity = DocumentedObject(
        id=f"{module.path}::{inner}",
        kind="class",
        name=node.name,
        qualname=f"{module.name}.{inner}",
        module=module.name,
        doc=doc,
        path=module.path,
        start=start,
        end=end,
        decorators=decorators,
        is_deprecated=_says_deprecated(doc)
        or any(decorator.rpartition(".")[2] == "deprecated" for decorator in decorators),
    )
    if isinstance(node, ast.ClassDef):
        return _with_class_facts(entity, node)
    # Walking every body for a `yield` would double the time of the whole pass; most bodies do not contain the word.
    mentions_yield = any("yield" in line for line in lines[start - 1 : end])
    is_member = "." in inner
    arguments = _without_self(node.args) if is_member and "staticmethod" not in decorators else node.args
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return replace(
        entity,
        kind=_function_kind(decorators, is_member=is_member),
        signature=f"{node.name}({ast.unparse(arguments)}){returns}",
        parameters=_parameters(arguments),
        is_async=isinstance(node, ast.AsyncFunctionDef),
        is_generator=mentions_yield and _yields(node),
        is_context_manager=any(decorator.rpartition(".")[2] in _CONTEXT_DECORATORS for decorator in decorators),
        is_deprecated=entity.is_deprecated or any(_warns_deprecated(statement) for statement in node.body),
    )


def _function_kind(decorators: tuple[str, ...], *, is_member: bool) -> Kind:
    if not is_member:
        return "function"
    return "property" if _PROPERTY_DECORATORS.intersection(decorators) else "method"


def _with_class_facts(entity: DocumentedObject, node: ast.ClassDef) -> DocumentedObject:
    methods = {
        statement.name: statement
        for statement in _top_level(node.body)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    maker = methods.get("__init__") or methods.get("__new__")
    arguments = _without_self(maker.args) if maker else None
    return replace(
        entity,
        bases=tuple(_dotted(base) for base in node.bases),
        signature=f"{node.name}({ast.unparse(arguments) if arguments else ''})",
        parameters=_parameters(arguments) if arguments else (),
        is_context_manager=not methods.keys().isdisjoint({"__enter__", "__aenter__"}),
    )


def _data(statements: Sequence[ast.stmt], module: SourceModule, lines: Sequence[str]) -> Iterator[DocumentedObject]:
    """Assignments at the top level to a name in `__all__`: constants, and aliases such as `typing.List`."""
    taken = _taken_names(module)
    for node in statements:
        for name in _assigned_names(node):
            if name in module.exported and name not in taken:
                yield DocumentedObject(
                    id=f"{module.path}::{name}",
                    kind="data",
                    name=name,
                    qualname=f"{module.name}.{name}",
                    module=module.name,
                    signature=lines[node.lineno - 1].strip(),
                    path=module.path,
                    start=node.lineno,
                    end=node.end_lineno or node.lineno,
                )


def _assigned_docs(statements: Sequence[ast.stmt]) -> dict[str, str]:
    """`Name.__doc__ = "..."` at the top level: how a module documents what it did not define by `def` or `class`.

    A bare `__doc__ = "..."` is the module's own and has the empty name.
    """
    docs: dict[str, str] = {}
    for node in statements:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        for target in node.targets:
            inner, _, last = _dotted(target).rpartition(".")
            if last == "__doc__" and isinstance(node.value.value, str):
                docs[inner] = node.value.value.strip()
    return docs


def _without_self(arguments: ast.arguments) -> ast.arguments:
    positional, regular = list(arguments.posonlyargs), list(arguments.args)
    if positional:
        del positional[0]
    elif regular:
        del regular[0]
    n_positional = len(positional) + len(regular)
    return ast.arguments(
        posonlyargs=positional,
        args=regular,
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults[-n_positional:] if n_positional else [],
    )


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return tuple(argument.arg for argument in named if argument is not None)


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a name, an attribute, or of what is called or subscribed; otherwise nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    if isinstance(node, ast.Call):
        return _dotted(node.func)
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    return ""


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True when the function's own body yields; a function inside it does not count."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(inner))
    return False


def _says_deprecated(doc: str) -> bool:
    """True for a deprecation note in the text, or where it calls the thing itself, and not an argument, deprecated."""
    first_paragraph = doc.partition("\n\n")[0]
    return bool(
        _DEPRECATED_LINE.search(doc) or _THIS_IS_DEPRECATED.search(doc) or _DEPRECATED_WORDS.search(first_paragraph)
    )


def _warns_deprecated(node: ast.stmt) -> bool:
    """True for an unconditional deprecation warning; one under an `if` is about an argument, not the whole."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    called = _dotted(call.func)
    if called in _DEPRECATERS:
        return True
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    categories = {_dotted(argument) for argument in arguments}
    return called in _WARNERS and not categories.isdisjoint({"DeprecationWarning", "PendingDeprecationWarning"})


Place = tuple[str, str]
"""(module, name): where a top-level name is defined."""

_OFFERED_BY_OTHERS = {"posix", "nt", "genericpath"}
"""Named like public modules, and offered to people as `os` and `os.path`."""

_PATH_MODULE = os.path.__name__
"""`posixpath` or `ntpath`: what people call `os.path` on this machine. The other one keeps its own name."""
_OTHER_PATH_MODULES = {"posixpath", "ntpath"} - {_PATH_MODULE}


def is_private_module(name: str) -> bool:
    """True for a module that people are not meant to import: `_csv`, `concurrent.futures._base`, `posix`."""
    parts = name.split(".")
    hidden = any(part.startswith("_") and not part.endswith("__") for part in parts)
    return hidden or name in _OFFERED_BY_OTHERS


def public_entities(
    modules: Mapping[str, SourceModule], compiled: Mapping[str, CompiledModule]
) -> Iterator[DocumentedObject]:
    """Yield every public entity of the library under its best name, in no particular order."""
    for entity in _public_entities(modules, compiled):
        if entity.module == _PATH_MODULE:
            inner = entity.qualname.removeprefix(_PATH_MODULE)
            yield replace(entity, module="os.path", qualname=f"os.path{inner}", name=entity.name if inner else "path")
        else:
            yield entity


def _public_entities(
    modules: Mapping[str, SourceModule], compiled: Mapping[str, CompiledModule]
) -> Iterator[DocumentedObject]:
    homes = _Exports(modules, compiled).homes()
    for module in modules.values():
        for entity in module.entities:
            inner = entity.id.partition("::")[2]
            if inner or not is_private_module(module.name):
                yield from _source_entity(entity, inner, homes, is_private=is_private_module(module.name))
    for described in compiled.values():
        if not is_private_module(described.name):
            name = described.name
            yield DocumentedObject(id=name, kind="module", name=name, qualname=name, module=name, doc=described.doc)
        for entity in described.entities:
            yield from _compiled_entity(entity, homes, is_private=is_private_module(described.name))


def _source_entity(
    entity: DocumentedObject, inner: str, homes: Mapping[Place, Place], *, is_private: bool
) -> Iterator[DocumentedObject]:
    top, dot, rest = inner.partition(".")
    home = homes.get((entity.module, top))
    if home is not None:
        module, name = home
        yield replace(entity, module=module if is_private else entity.module, qualname=f"{module}.{name}{dot}{rest}")
    elif not is_private and not top.startswith("_"):
        yield entity


def _compiled_entity(
    entity: DocumentedObject, homes: Mapping[Place, Place], *, is_private: bool
) -> Iterator[DocumentedObject]:
    if not is_private:
        yield entity
        return
    top, dot, rest = entity.id.partition("::")[2].partition(".")
    home = homes.get((entity.module, top))
    if home is not None:
        module, name = home
        inner = f"{name}{dot}{rest}"
        yield replace(
            entity,
            id=f"{module}::{inner}",
            name=inner.rpartition(".")[2],
            qualname=f"{module}.{inner}",
            module=module,
        )


@dataclass
class _Exports:
    """Follows `from ... import ...` through all modules."""

    modules: Mapping[str, SourceModule]
    compiled: Mapping[str, CompiledModule]
    compiled_names: dict[str, set[str]] = field(default_factory=dict)
    starred: dict[str, set[str]] = field(default_factory=dict)
    resolved: dict[Place, Place | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, module in self.compiled.items():
            tops = (entity.id.partition("::")[2] for entity in module.entities)
            self.compiled_names[name] = {top for top in tops if "." not in top}

    def homes(self) -> dict[Place, Place]:
        """Where each private or shortened name is offered: (public module, name there)."""
        offers: dict[Place, list[tuple[bool, int, Place]]] = {}
        for module in self.modules.values():
            if is_private_module(module.name) or module.name in _OTHER_PATH_MODULES:
                continue
            for name in sorted(self._offered(module)):
                place = self.resolve(module.name, name)
                if place is not None and place[0] != module.name and _may_offer(module.name, place[0]):
                    rank = (name not in module.exported, len(module.name), (module.name, name))
                    offers.setdefault(place, []).append(rank)
        return {place: min(ranks)[2] for place, ranks in offers.items()}

    def _offered(self, module: SourceModule) -> set[str]:
        """Names that a module takes from elsewhere and offers as its own."""
        if module.is_export_list_complete:
            return {name for name in module.exported if not name.startswith("_")}
        offered = set(module.exported)
        for statement in module.imports:
            for name, through_star in self._taken(statement.module, statement.names):
                if through_star or _is_kin(module.name, statement.module):
                    offered.add(name)
        return {name for name in offered if not name.startswith("_")}

    def _taken(self, target: str, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
        """Pairs of a name and whether it came through a star."""
        for there, here in names:
            if there == "*":
                yield from ((name, True) for name in self._star(target))
            else:
                yield here, False

    def _star(self, target: str) -> set[str]:
        """Names that `from target import *` brings."""
        if target not in self.starred:
            self.starred[target] = set()  # ends a circle of imports
            self.starred[target] = self._find_star(target)
        return self.starred[target]

    def _find_star(self, target: str) -> set[str]:
        module = self.modules.get(target)
        if module is None:
            return self.compiled_names.get(target, set())
        if module.is_export_list_complete:
            return module.exported
        names = module.exported | module.defined
        for statement in module.imports:
            names |= {name for name, _ in self._taken(statement.module, statement.names)}
        return {name for name in names if not name.startswith("_")}

    def resolve(self, module_name: str, name: str) -> Place | None:
        """Where `name`, as seen in a module, is defined; Python source goes before compiled code."""
        key = (module_name, name)
        if key not in self.resolved:
            self.resolved[key] = None  # ends a circle of imports
            self.resolved[key] = self._resolve(module_name, name)
        return self.resolved[key]

    def _resolve(self, module_name: str, name: str) -> Place | None:
        module = self.modules.get(module_name)
        if module is None:
            return (module_name, name) if name in self.compiled_names.get(module_name, ()) else None
        if name in module.defined:
            return (module_name, name)
        found = []
        for statement in module.imports:
            for there, here in statement.names:
                if here == name or (there == "*" and name in self._star(statement.module)):
                    found.append(self.resolve(statement.module, name if there == "*" else there))
        places = [place for place in found if place is not None]
        if not places and name in module.exported:
            places = self._below(module_name, name)
        return next((place for place in places if place[0] in self.modules), places[0] if places else None)

    def _below(self, module_name: str, name: str) -> list[Place]:
        """Where a package's promised name is defined that it only imports when asked (`concurrent.futures`)."""
        below = [other for other in self.modules.values() if other.name.startswith(f"{module_name}.")]
        defining = [other.name for other in below if name in other.defined]
        return [(defining[0], name)] if len(defining) == 1 else []


def _is_kin(module: str, origin: str) -> bool:
    """True for the compiled twin of a module (`ssl`, `_ssl`) and for what lies in the module's own package."""
    package = module.rpartition(".")[0] or module
    return origin in {f"_{module}", f"{module}.{origin.rpartition('.')[2]}"} or origin.startswith(f"{package}.")


def _may_offer(module: str, origin: str) -> bool:
    """True when a name of `origin` is properly called by `module`'s name: the origin is private, or lies below it."""
    return is_private_module(origin) or origin.startswith(f"{module}.")
