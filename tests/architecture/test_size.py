"""Limits of length for files and functions, a docstring for every public name, and how docstrings and names of bounds begin."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import cranfield

PACKAGE = Path(cranfield.__file__).parent
MAX_FILE_LINES, MAX_FUNCTION_LINES = 900, 120
"""A file is a subject: the limits stop only what nobody can read, and are no reason to cut one in two."""
UNDOCUMENTED: set[str] = set()

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@functools.cache
def parsed() -> list[tuple[str, ast.Module, int]]:
    """Path, tree and number of lines of every file of the package."""
    return [
        (path.relative_to(PACKAGE).with_suffix("").as_posix(), ast.parse(text), text.count("\n"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if (text := path.read_text()) is not None
    ]


def public_definitions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    """Classes and functions of a module, and the methods of its classes, whose names have no underscore."""
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield f"{prefix}.{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}.{node.name}")


def says_what_it_is(node: Definition) -> bool:
    overrides = any(ast.unparse(decorator).endswith("override") for decorator in node.decorator_list)
    stub = any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)
    return overrides or stub or bool(ast.get_docstring(node))


def test_no_file_is_longer_than_its_limit() -> None:
    assert not {f"{name}.py": lines for name, _, lines in parsed() if lines > MAX_FILE_LINES}


def test_no_function_is_longer_than_its_limit() -> None:
    long = {
        f"{name}.py:{node.lineno} {node.name}": lines
        for name, tree, _ in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert not long


def test_members_stand_where_they_belong_and_are_not_unpacked_from_a_literal() -> None:
    unpacked = [
        f"{name}.py:{node.lineno}"
        for name, tree, _ in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List) and node.value.elts
    ]
    assert not unpacked


def test_every_module_says_what_lives_in_it() -> None:
    silent = [name for name, tree, lines in parsed() if lines and not ast.get_docstring(tree)]
    assert not silent


def test_every_public_name_says_what_it_is() -> None:
    silent = {
        qualified
        for name, tree, _ in parsed()
        for qualified, node in public_definitions(tree.body, name.removesuffix("/__init__").replace("/", "."))
        if not says_what_it_is(node)
    }
    assert silent - UNDOCUMENTED == set(), "give these a docstring"
    assert UNDOCUMENTED - silent == set(), "these have a docstring now: take them off the list"


def test_a_docstring_begins_with_what_the_thing_is_or_does() -> None:
    """Also that of a field or a constant, which is the string below it."""
    found = [
        f"{name}.py:{node.lineno}: {node.value.value.strip()[:60]}"
        for name, tree, _ in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if node.value.value.split()[:1] == ["Of"]
    ]
    assert not found


def test_bounds_are_called_max_and_min() -> None:
    found = [
        f"{name}.py:{node.lineno}: {node.id}"
        for name, tree, _ in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if node.id.lstrip("_").startswith(("MOST_", "FEWEST_"))
    ]
    assert not found


def test_a_silent_public_function_is_found() -> None:
    tree = ast.parse("def loud():\n    '''Say it.'''\n\ndef silent(): ...\n\ndef _private(): ...")
    found = [name for name, node in public_definitions(tree.body, "made_up") if not says_what_it_is(node)]
    assert found == ["made_up.silent"]
