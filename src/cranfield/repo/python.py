"""Definitions of a Python file, by the standard library's own parser."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from cranfield.repo.definition import Definition

Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def python_definitions(text: str) -> tuple[list[Definition], str]:
    """Classes, functions, methods and assigned names of modules and classes; and the syntax error, if any.

    Decorators belong to what they decorate. A function inside a function is `outer.inner`.
    """
    clean = text.encode("utf-8", "replace").decode()  # surrogates stand for bytes that were not UTF-8
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the code that is read
            tree = ast.parse(clean)
    except SyntaxError as error:
        return [], f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return [], f"not read: {error}"
    return list(_found(tree)), ""


def _found(tree: ast.Module) -> Iterator[Definition]:
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
                    for name in _assigned(node):
                        yield Definition((*names, name), "variable", node.lineno, node.end_lineno or node.lineno)
            else:
                stack += [(inner, names, inside) for inner in _bodies(node)]


def _assigned(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return list(dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name)))


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Statements under an `if`, a loop, a `with`, a `try` or a `match`."""
    for part in ("body", "orelse", "finalbody"):
        if isinstance(inner := getattr(node, part, None), list):
            yield inner
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body
