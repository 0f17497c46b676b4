"""Definitions of Python and Markdown files: names and lines. Ids and hashes are made in `symbols`."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

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
