"""Definitions of C, C++, Go, Java, JavaScript, Rust and TypeScript files, by tree-sitter's grammars: one table of them."""

from __future__ import annotations

import ast
import importlib
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import MissingExtraError

if TYPE_CHECKING:
    from tree_sitter import Node


_PARSING = threading.Lock()
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]|\||<)|(?: {4}|\t)")
"""Beginnings of lines that a line of dashes does not make a heading."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition with its lines."""

    names: tuple[str, ...]
    """From the outside in: `("Index", "add")`."""
    kind: str
    """`class`, `function`, `method`, `variable`, `struct`, `section`."""
    start: int
    """First line, counted from 1, decorators and attributes included."""
    end: int
    """Last line, included."""
    full: tuple[str, ...] = ()
    """The names with what tells it from another of the same names, such as the trait of a Rust `impl`; empty where nothing does."""


def parse_python(text: str) -> ast.Module:
    """The tree of a source text. One at a time: CPython counts the depth of a tree for all threads together.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it cannot be parsed.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the code that is read
        return ast.parse(text)


def python_definitions(text: str) -> tuple[list[Definition], str]:
    """Classes, functions, methods and assigned names of modules and classes; and the syntax error, if any.

    Decorators belong to what they decorate. A function inside a function is `outer.inner`.
    """
    clean = text.encode("utf-8", "replace").decode()  # surrogates stand for bytes that were not UTF-8
    try:
        tree = parse_python(clean)
    except SyntaxError as error:
        return [], f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return [], f"not read: {error}"
    return list(_definitions_in(tree)), ""


def _definitions_in(tree: ast.Module) -> Iterator[Definition]:
    """All definitions, in no order; a stack, because generated code nests deeper than Python calls."""
    stack: list[tuple[list[ast.stmt], tuple[str, ...], str]] = [(tree.body, (), "module")]
    while stack:
        body, names, inside = stack.pop()
        for node in body:
            if isinstance(node, Defined):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                own = (*names, node.name)
                kind = "class" if isinstance(node, ast.ClassDef) else "method" if inside == "class" else "function"
                yield Definition(own, kind, first, node.end_lineno or node.lineno)
                stack.append((node.body, own, "class" if kind == "class" else "function"))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                if inside != "function":
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for name in list(dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name))):
                        yield Definition((*names, name), "variable", node.lineno, node.end_lineno or node.lineno)
            else:
                stack += [(inner, names, inside) for inner in _bodies(node)]


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Statements under an `if`, a loop, a `with`, a `try` or a `match`."""
    for part in ("body", "orelse", "finalbody"):
        if isinstance(inner := getattr(node, part, None), list):
            yield inner
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


def markdown_definitions(text: str) -> tuple[list[Definition], str]:
    """Sections: from a heading to the next one of its level or above, blank lines at the end left out.

    Fenced code and the block of keys that a file may begin with hold no headings.
    """
    lines = text.split("\n")
    found = []
    path: list[tuple[int, int, str]] = []
    """Line, level and title of the sections that go on."""
    for line, level, title in (*_headings(lines), (len(lines) + 1, 0, "")):
        while path and path[-1][1] >= level:
            start, end = path[-1][0], line - 1
            while end > start and not lines[end - 1].strip():
                end -= 1
            found.append(Definition(tuple(name for _, _, name in path), "section", start, end))
            path.pop()
        path.append((line, level, title))
    return found, ""


def _headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Line, level and title of each heading."""
    found = []
    fence = ""
    paragraph: list[str] = []
    """Lines of the paragraph that goes on."""
    for number, line in enumerate(lines[_front_matter(lines) :], _front_matter(lines) + 1):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence, paragraph = mark[1], []
        elif heading := _ATX.fullmatch(line):
            found.append((number, len(heading[1]), (heading[2] or "").strip()))
            paragraph = []
        elif paragraph and (under := _SETEXT.fullmatch(line)):
            found.append((number - len(paragraph), 1 if under[1][0] == "=" else 2, " ".join(paragraph)))
            paragraph = []
        elif not line.strip() or _BREAK.fullmatch(line) or (not paragraph and _NO_PARAGRAPH.match(line)):
            paragraph = []
        else:
            paragraph.append(line.strip())
    return found


def _front_matter(lines: list[str]) -> int:
    """Lines of the block between `---` that a file may begin with."""
    if lines[0].rstrip() != "---":
        return 0
    return next((place + 1 for place, line in enumerate(lines) if place and line.rstrip() in {"---", "..."}), 0)


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language: its library, and which nodes of its trees define something."""

    module: str
    kinds: Mapping[str, str]
    """Type of node to the kind of thing it defines."""
    function: str = "language"
    """Function of the library that makes the language."""
    scopes: frozenset[str] = frozenset()
    """Nodes that define nothing, and whose name stands before the names in them."""
    wrappers: frozenset[str] = frozenset()
    """Nodes around one definition that belong to it: its lines are theirs."""
    before: frozenset[str] = frozenset()
    """Nodes before a definition that belong to it."""
    bodies: frozenset[str] = field(default_factory=frozenset)
    """Nodes that define something only where they have a body."""


_C_KINDS = {
    "function_definition": "function",
    "declaration": "function",
    "field_declaration": "method",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
    "preproc_function_def": "macro",
}
_C_BODIES = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
_JAVASCRIPT_KINDS = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
    "variable_declarator": "function",
    "field_definition": "method",
    "assignment_expression": "function",
}
_TYPESCRIPT = Grammar(
    "tree_sitter_typescript",
    {
        **_JAVASCRIPT_KINDS,
        "abstract_class_declaration": "class",
        "public_field_definition": "method",
        "abstract_method_signature": "method",
        "function_signature": "function",
        "interface_declaration": "interface",
        "type_alias_declaration": "type",
        "enum_declaration": "enum",
        "internal_module": "module",
        "module": "module",
    },
    "language_typescript",
    wrappers=frozenset({"export_statement", "ambient_declaration", "lexical_declaration", "variable_declaration"}),
)
GRAMMARS: Mapping[str, Grammar] = {
    "c": Grammar("tree_sitter_c", _C_KINDS, bodies=_C_BODIES),
    "cpp": Grammar(
        "tree_sitter_cpp",
        {**_C_KINDS, "class_specifier": "class", "namespace_definition": "module", "concept_definition": "type"},
        wrappers=frozenset({"template_declaration"}),
        bodies=_C_BODIES,
    ),
    "go": Grammar(
        "tree_sitter_go",
        {
            "function_declaration": "function",
            "method_declaration": "method",
            "type_spec": "type",
            "type_alias": "type",
        },
    ),
    "java": Grammar(
        "tree_sitter_java",
        {
            "class_declaration": "class",
            "interface_declaration": "interface",
            "annotation_type_declaration": "interface",
            "enum_declaration": "enum",
            "record_declaration": "class",
            "method_declaration": "method",
            "constructor_declaration": "method",
            "compact_constructor_declaration": "method",
        },
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        _JAVASCRIPT_KINDS,
        wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration"}),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        {
            "function_item": "function",
            "function_signature_item": "function",
            "struct_item": "struct",
            "union_item": "union",
            "enum_item": "enum",
            "trait_item": "trait",
            "mod_item": "module",
            "type_item": "type",
            "const_item": "variable",
            "static_item": "variable",
            "macro_definition": "macro",
        },
        scopes=frozenset({"impl_item"}),
        before=frozenset({"attribute_item"}),
    ),
    "typescript": _TYPESCRIPT,
    "tsx": Grammar(_TYPESCRIPT.module, _TYPESCRIPT.kinds, "language_tsx", wrappers=_TYPESCRIPT.wrappers),
}
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "generator_function", "class"})
"""Values whose assignment to a name is a definition in JavaScript."""
_ASSIGNED = frozenset({"variable_declarator", "field_definition", "public_field_definition", "assignment_expression"})
_MEMBERS = frozenset({"method_definition", "field_definition", "public_field_definition", "abstract_method_signature"})
"""Members of a JavaScript class."""
_REFERENCE = re.compile(r"^(?:&\s*(?:'\w+\s+)?(?:mut\s+)?)+|^dyn\s+")
"""What stands before the type of a Rust `impl`: `&'a mut Cart`."""
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^]]*\])?\s*\)$")
RECEIVER = 1000
"""Characters at the end of a Go receiver in which the name of its type is looked for."""
_DECLARED = frozenset({"declaration", "field_declaration"})
_CLASSES = frozenset({"class", "struct", "union", "trait", "interface", "enum", "type"})


def grammar_definitions(text: str, language: str) -> tuple[list[Definition], str]:
    """Functions, methods, types and modules of a file; and the line of the first parse error.

    A method is named after its type: the type of a Rust `impl`, of a Go receiver, of a qualified C++ name. In full it is named
    after the trait too, `<Cart as Display>`; and a member of objects of JavaScript as one of the prototype.

    Raises:
        MissingExtraError: the language's library is not installed.
    """
    grammar = GRAMMARS[language]
    tree = _parser(language).parse(text.encode("utf-8", "replace"))
    found = []
    stack: list[tuple[Node, tuple[str, ...], tuple[str, ...], str]] = [(tree.root_node, (), (), "module")]
    while stack:
        node, names, full, inside = stack.pop()
        kind = grammar.kinds.get(node.type)
        if node.type in grammar.scopes:
            own = _names(node, "type")[-1:]
            names, full, inside = (*names, *own), (*full, *(_head(node) or own)), "class"
        elif kind is not None and (own := _own_names(node, grammar)):
            names = (*names, *own)
            full = (*full, *own[:-1], "prototype", own[-1]) if _is_of_objects(node) else (*full, *own)
            if kind == "function" and (inside in _CLASSES or (len(own) > 1 and language == "cpp")):
                kind = "method"
            start, end = _lines(node, grammar)
            found.append(Definition(names, kind, start, end, full))
            inside = kind
        stack += [(child, names, full, inside) for child in reversed(node.named_children)]
    if not tree.root_node.has_error:
        return found, ""
    return found, f"line {_first_error(tree.root_node)}: not understood"


@cache
def _parser(language: str) -> Any:
    grammar = GRAMMARS[language]
    try:
        from tree_sitter import Language, Parser

        library = importlib.import_module(grammar.module)
    except ImportError:
        raise MissingExtraError.for_extra(f"finding symbols in {language} files", "symbols") from None
    return Parser(Language(getattr(library, grammar.function)()))


def _lines(node: Node, grammar: Grammar) -> tuple[int, int]:
    """First and last line, with what belongs to the definition around and before it."""
    while node.parent is not None and node.parent.type in grammar.wrappers and _is_alone(node):
        node = node.parent
    first = node
    while grammar.before and (above := first.prev_named_sibling) is not None and above.type in grammar.before:
        first = above
    end = node.end_point[0] + (1 if node.end_point[1] else 0)
    return first.start_point[0] + 1, max(end, node.start_point[0] + 1)


def _is_alone(node: Node) -> bool:
    """Whether a declaration declares a single name: the lines of `const a = …, b = …` belong to neither."""
    if node.type != "variable_declarator":
        return True
    before, after = node.prev_named_sibling, node.next_named_sibling
    while before is not None and before.type == "comment":
        before = before.prev_named_sibling
    while after is not None and after.type == "comment":
        after = after.next_named_sibling
    return node.type not in {before and before.type, after and after.type}


def _own_names(node: Node, grammar: Grammar) -> tuple[str, ...]:
    """The names that a node defines; none where it defines nothing."""
    if node.type in grammar.bodies and node.child_by_field_name("body") is None:
        return ()
    if node.type in _ASSIGNED:
        value = node.child_by_field_name("right" if node.type == "assignment_expression" else "value")
        if value is None or value.type not in _FUNCTIONS:
            return ()
    for part in ("name", "left", "property", "declarator"):
        if node.child_by_field_name(part) is not None:
            own = _names(node, part)
            break
    else:
        return ()
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        found = _RECEIVER.search(_text(receiver)[-RECEIVER:])
        return (found[1], *own) if found else own
    return own


def _head(scope: Node) -> tuple[str, ...]:
    """Type and trait of a Rust `impl` as it is called in full, `<Cart as From<Order>>`; none where the type says it all."""
    head = " as ".join(
        _text(part) for name in ("type", "trait") if (part := scope.child_by_field_name(name)) is not None
    )
    if scope.child_by_field_name("trait") is None and "<" not in head:
        return ()
    return (f"<{' '.join(head.split()).replace('::', '.')}>",)


def _is_of_objects(node: Node) -> bool:
    """Whether it is a member of the objects of a JavaScript class, and none of the class: `get size()`, not `static size()`."""
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        return left is not None and ".prototype." in _text(left)
    is_member = node.type in _MEMBERS and node.parent is not None and node.parent.type == "class_body"
    return is_member and not any(child.type.startswith("static") for child in node.children)


def _names(node: Node, part: str) -> tuple[str, ...]:
    """A name as its parts: without generic arguments, pointers, and the words that JavaScript assigns members through."""
    inner = node.child_by_field_name(part)
    if inner is None:
        return ()
    if part == "declarator":
        inner = _declared(inner, must_be_function=node.type in _DECLARED)
        if inner is None:
            return ()
    text = _text(inner)
    if inner.type != "operator_name" and "operator" not in text:
        text = _without_arguments(text)
    if part == "type":
        text = _REFERENCE.sub("", text)
    if part == "left":
        text = re.sub(r"^(?:module\.)?exports\.|\bprototype\.|^this\.", "", text)
    parts = re.split(r"::|\.", text.lstrip("&*").strip("\"' "))
    return tuple(name.strip() for name in parts if name.strip())


def _declared(node: Node, *, must_be_function: bool) -> Node | None:
    """The name inside a C declarator; None where a function is asked for and it is none."""
    is_function = False
    while True:
        is_function |= node.type == "function_declarator"
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"reference_declarator", "parenthesized_declarator"} and node.named_children:
            inner = node.named_children[0]
        if inner is None:
            break
        if node.type == "function_declarator" and inner.type == "parenthesized_declarator":
            is_function = False  # a pointer to a function
        node = inner
    return node if is_function or not must_be_function else None


def _without_arguments(text: str) -> str:
    """A name without what stands in angle brackets."""
    kept: list[str] = []
    opened: list[int] = []
    for char in text:
        if char == ">" and opened:
            del kept[opened.pop() :]
            continue
        if char == "<":
            opened.append(len(kept))
        kept.append(char)
    return "".join(kept)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _first_error(root: Node) -> int:
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return int(node.start_point[0]) + 1
