"""Nothing is decided by the text of a sentence: a note, message, hint, warning or reason has a kind, which is compared.

Found by AST, wherever a name or an attribute is called so: tests of what a text begins with, ends with, contains or is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cranfield

PACKAGE = Path(cranfield.__file__).parent
PROSE = {"note", "notes", "message", "hint", "hints", "sentence", "sentences", "warning", "warnings", "reason"}
METHODS = {
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "split",
    "find",
    "index",
}
MATCHES = {"match", "fullmatch", "search"}


def is_prose(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_") in PROSE


def is_text(node: ast.expr) -> bool:
    """A literal, or a constant by its name."""
    return isinstance(node, ast.Constant | ast.JoinedStr) or (
        isinstance(node, ast.Name) and node.id.isupper() and not is_prose(node)
    )


def decisions(source: str) -> Iterator[str]:
    """Every expression of `source` that looks into prose."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looked_into = node.func.attr in METHODS and is_prose(node.func.value)
            matched = node.func.attr in MATCHES and any(map(is_prose, node.args))
            if looked_into or matched:
                yield ast.unparse(node)
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                contained = isinstance(operator, ast.In | ast.NotIn) and (is_prose(left) or is_prose(right))
                equal = isinstance(operator, ast.Eq | ast.NotEq) and (
                    (is_prose(left) and is_text(right)) or (is_prose(right) and is_text(left))
                )
                if contained or equal:
                    yield ast.unparse(node)


def test_no_text_of_a_sentence_decides_anything() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {expression}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for expression in decisions(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "if note.startswith('not carried over'): pass",
        "if 'table' in problem.message: pass",
        "if hint in HINTS: pass",
        "kind = self._reason.partition(': ')[0]",
        "if error.message == 'no such file': pass",
        "if reason != GONE: pass",
        "if re.match('no .*', warning): pass",
        "if any('x' in note for note in notes): pass",
    ],
)
def test_a_decision_by_text_is_found(source: str) -> None:
    assert len(list(decisions(source))) == 1


@pytest.mark.parametrize(
    "source",
    ["if note.kind is Kind.LEFT_OUT: pass", "if name.startswith('a'): pass", "if hint is None: pass", "print(message)"],
)
def test_a_kind_is_not(source: str) -> None:
    assert list(decisions(source)) == []
