"""Compile Python files, and list the names that they use: `inspector.py FOLDER FILE...` writes a line of JSON per file.

Started as a script in a process of its own, because code of an unknown author can exhaust the memory or the stack of a
compiler. Nothing is executed. Only the standard library is imported. Lines and columns are counted from 1, columns in characters.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
import warnings
from pathlib import Path
from typing import Any

Place = tuple[int, int]


class ModuleNames(ast.NodeVisitor):
    """What a module imports, binds, stores and uses."""

    def __init__(self, text: str) -> None:
        self._lines = [line.encode() for line in text.split("\n")]
        self._is_ascii = [line.isascii() for line in self._lines]
        self.imports: list[tuple[int, int, int, str, str, str]] = []
        """Line and column, relative level, module, imported name (empty: the module), name that is bound."""
        self.guards: list[tuple[list[Place], list[Place], list[str]]] = []
        """Lines of the body of a `try`, lines of its handlers, names of the exceptions that they catch."""
        self.stored: set[str] = set()
        """Attributes that are set, and members of classes."""
        self.bound: set[str] = set()
        """Names that are bound otherwise than by an import."""
        self.uses: list[tuple[int, int, str]] = []
        """Line and column of the last part, dotted name as written; a parameter as `function(parameter)`."""
        self.members: list[tuple[int, int, str, Place, Place]] = []
        """Attributes that are read: line, column, name; first and last place of the object."""
        self.calls: list[tuple[Place, list[tuple[Place, Place]]]] = []
        """Place of a call, and spans of the values of its arguments."""
        self.callees: list[tuple[Place, Place, Place, Place]] = []
        """First and last places of each call, and of what is called."""
        self.fixed: set[Place] = set()
        """Line and column of members in annotations and patterns, where no other expression may stand."""
        self.unplaced: set[Place] = set()
        """Line and column of members whose place is not known, as in f-strings of some versions of Python."""
        self.typing_only: list[Place] = []
        """First and last lines of what only type checkers read."""
        self.versions: list[Place] = []
        """First and last lines of what depends on the version of Python."""
        self.hidden: list[int] = []
        """Lines that a type checker does not look at."""

    def column(self, line: int, offset: int) -> int:
        """Column in characters of an offset in bytes."""
        if self._is_ascii[line - 1]:
            return offset + 1
        return len(self._lines[line - 1][:offset].decode("utf-8", "replace")) + 1

    def start(self, node: ast.expr | ast.alias) -> Place:
        """Where an expression or an imported name begins."""
        return node.lineno, self.column(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> Place:
        """Where an expression ends."""
        line, offset = node.end_lineno or node.lineno, node.end_col_offset or 0
        return line, self.column(line, offset)

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b as c`."""
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.split(".")[0]
            self.imports.append((*self.start(alias), 0, alias.name, "", alias.asname or name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a.b import c as d`."""
        for alias in node.names:
            bound = alias.asname or alias.name
            self.imports.append((*self.start(alias), node.level, node.module or "", alias.name, bound))

    def visit_Try(self, node: ast.Try) -> None:
        """A body that may fail."""
        self._add_guard(node)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        """A body that may fail in groups of exceptions."""
        self._add_guard(node)

    def _add_guard(self, node: ast.Try | ast.TryStar) -> None:
        caught = [dotted(part) for handler in node.handlers for part in exception_types(handler.type)]
        if node.handlers:
            self.guards.append(
                (lines(node.body), [line for part in node.handlers for line in lines(part.body)], caught)
            )
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class and its members."""
        self.bound.add(node.name)
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.stored.add(part.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function."""
        self._add_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """A function that is awaited."""
        self._add_function(node)

    def _add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.add(node.name)
        self._fix(node.returns)
        if any(dotted(part).rpartition(".")[2] == "no_type_check" for part in node.decorator_list):
            self.hidden.append(node.lineno)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Code for some versions of Python, or code that runs and that no type checker reads."""
        if any(isinstance(part, ast.Attribute) and part.attr == "version_info" for part in ast.walk(node.test)):
            self.versions += lines([node])
        test, negated = node.test, False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, not negated
        if dotted(test).rpartition(".")[2] == "TYPE_CHECKING":
            self.typing_only += lines(node.orelse if negated else node.body)
            self.hidden += [part.lineno for part in (node.body if negated else node.orelse)[:1]]
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """A parameter."""
        self.bound.add(node.arg)
        self._fix(node.annotation)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """`x: T = value`."""
        self._fix(node.annotation)
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """`case T(x):`."""
        self._fix(node.pattern)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """An f-string."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and not self._is_at_its_place(part):
                self.unplaced.add(self._member_place(part))
        self.generic_visit(node)

    def _fix(self, node: ast.AST | None) -> None:
        for part in ast.walk(node) if node is not None else ():
            if isinstance(part, ast.Attribute):
                self.fixed.add(self._member_place(part))

    def _member_place(self, node: ast.Attribute) -> Place:
        line, column = self.end(node)
        return line, column - len(node.attr)

    def _is_at_its_place(self, node: ast.Attribute) -> bool:
        last = node.end_lineno or node.lineno
        parts = self._lines[node.lineno - 1 : last]
        parts[-1] = parts[-1][: node.end_col_offset]
        parts[0] = parts[0][node.col_offset :]
        try:
            return ast.dump(ast.parse(b"\n".join(parts).decode(), mode="eval").body) == ast.dump(node)
        except (SyntaxError, ValueError):
            return False

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """`except E as name`."""
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """A name that is read or bound."""
        if isinstance(node.ctx, ast.Load):
            self.uses.append((*self.start(node), node.id))
        else:
            self.bound.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """An attribute that is read or set."""
        line, column = self._member_place(node)
        if not isinstance(node.ctx, ast.Load):
            self.stored.add(node.attr)
        else:
            self.members.append((line, column, node.attr, self.start(node.value), self.end(node.value)))
            if name := dotted(node):
                self.uses.append((line, column, name))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A call with its arguments."""
        values = [part.value if isinstance(part, ast.Starred) else part for part in node.args]
        values += [part.value for part in node.keywords]
        self.calls.append((self.start(node), [(self.start(value), self.end(value)) for value in values]))
        self.callees.append((self.start(node), self.end(node), self.start(node.func), self.end(node.func)))
        if name := dotted(node.func):
            self.uses += [(*self.start(part.value), f"{name}({part.arg})") for part in node.keywords if part.arg]
            if name == "setattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                self.stored.add(str(node.args[1].value))
        self.generic_visit(node)


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute of one; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def exception_types(node: ast.expr | None) -> list[ast.expr]:
    """The types of an `except` clause."""
    if node is None:
        return []
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def lines(body: list[ast.stmt]) -> list[Place]:
    """First and last lines of statements."""
    return [(part.lineno, part.end_lineno or part.lineno) for part in body]


def inspect(text: str, name: str) -> dict[str, Any]:
    """What is known of a file: its syntax error, or its names, or why they could not be read."""
    source = text.encode("utf-8", "surrogatepass")
    warnings.simplefilter("ignore")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        tree = ast.parse(source, name)
        compile(tree, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"error": error.msg, "line": error.lineno or 0, "is_syntax": True}
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return {"error": str(error) or type(error).__name__, "line": 0, "is_syntax": False}
    names = ModuleNames(text)
    try:
        names.visit(tree)
    except RecursionError:
        return {"unread": "it is nested too deeply to be read", "compiles": True}
    found = {
        key: sorted(value) if isinstance(value, set) else value for key, value in vars(names).items() if key[0] != "_"
    }
    return {"encoding": encoding, **found}


def main() -> None:
    """Inspect files, one after another, so that a file at which this process ends is known."""
    folder, *files = sys.argv[1:]
    for name in files:
        text = (Path(folder) / name).read_bytes().decode("utf-8", "surrogatepass")
        sys.stdout.write(json.dumps(inspect(text, name)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
