"""Python as Markdown: signatures, attributes, and docstrings in Google's sections. For `generate`; knows no page."""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin

from cranfield.evaluation.options.declaration import declared
from cranfield.model import kinds, query

SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Conventions|Source|Note|Example|Examples):$")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(heads), *[[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fence(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


KINDS = {
    name: get_args(kind)[0]
    for name, kind in (*vars(kinds).items(), *vars(query).items())
    if get_origin(kind) is Annotated
}
"""Name of a kind of field in a file to the type of its values."""


class PlainTypes(ast.NodeTransformer):
    """Types without what a file has to say beside them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        kind = KINDS.get(node.id)
        return node if kind is None else ast.Name(kind.__name__ if inspect.isclass(kind) else "Scalar")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_annotated = ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple)
        return self.visit(node.slice.elts[0]) if is_annotated else self.generic_visit(node)


def plain_type(annotation: str) -> str:
    return ast.unparse(PlainTypes().visit(ast.parse(annotation, mode="eval")))


class Bare(str):
    """An annotation that prints as it is written, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def written(annotation: Any) -> str:
    """An annotation as the code has it: without modules, and of an option its type alone."""
    if isinstance(annotation, str):
        return plain_type(annotation)
    kind = annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", inspect.formatannotation(kind))


def signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, Exception | enum.Enum):
        return f"class {name}({thing.__mro__[1].__name__})"
    bare = inspect.signature(thing)
    parameters = [
        parameter.replace(annotation=Bare(written(parameter.annotation))) for parameter in bare.parameters.values()
    ]
    returns = inspect.Signature.empty if inspect.isclass(thing) else bare.return_annotation
    returns = Bare(returns) if isinstance(returns, str) else returns
    # A field that a factory fills would show the factory.
    text = re.sub(r" = <[^>]*>", " = ...", str(bare.replace(parameters=parameters, return_annotation=returns)))
    head = f"class {name}" if inspect.isclass(thing) else name
    if len(head + text) <= 100:
        return head + text
    inside, _, result = (text[1:-1], "", "") if inspect.isclass(thing) else text[1:].rpartition(") -> ")
    parts = [f"    {part}," for part in split_arguments(inside)]
    return "\n".join([f"{head}(", *parts, f") -> {result}" if result else ")"])


def attributes(thing: Any) -> Iterable[str]:
    """What a class holds: its fields, members and properties, with the sentence that stands under each."""
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return
    rows = []
    for each in [*(base for base in thing.__mro__[:0:-1] if is_dataclass(base)), thing]:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        rows += [row for node, after in itertools.zip_longest(body, body[1:]) if (row := attribute(node, after))]
    helped = (
        {f"`{name}`": each.option.help.replace("; repeat for more", "") for name, each in declared(thing).items()}
        if is_dataclass(thing)
        else {}
    )
    rows = [(name, kind, sentence or helped.get(name, "")) for name, kind, sentence in rows]
    if rows:
        yield table(("attribute", "type", "what it is"), rows)


def field_sentences(cls: type) -> dict[str, str]:
    """Name of a field to the sentence that stands under it; what has none has the empty one."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        ast.unparse(node.target): " ".join(found[2].split())
        for node, after in itertools.zip_longest(body, body[1:])
        if isinstance(node, ast.AnnAssign) and (found := attribute(node, after))
    }


def attribute(node: ast.stmt, after: ast.stmt | None) -> tuple[str, str, str] | None:
    sentence = ""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        sentence = str(after.value.value)
    if isinstance(node, ast.AnnAssign):
        if (name := ast.unparse(node.target)).startswith("_"):
            return None
        return f"`{name}`", f"`{plain_type(ast.unparse(node.annotation))}`", sentence
    if isinstance(node, ast.Assign) and not ast.unparse(node.targets[0]).startswith("_"):
        return f"`{ast.unparse(node.targets[0])}`", f"`{ast.unparse(node.value)}`", sentence
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
        is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        arguments = "" if is_property else f"({', '.join(argument.arg for argument in node.args.args[1:])})"
        returned = ast.unparse(node.returns) if node.returns else ""
        return f"`{node.name}{arguments}`", f"`{returned}`", first_line(ast.get_docstring(node))
    return None


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand outside every bracket and quote."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def docstring(thing: object) -> Iterable[str]:
    """Google sections as Markdown: prose as it stands, sections under a bold word, entries as a list."""
    text = inspect.getdoc(thing) or ""
    section: str | None = None
    buffer: list[str] = []
    for line in [*text.splitlines(), "End:"]:
        heading = SECTION.match(line)
        if heading or line == "End:":
            yield from section_text(section, buffer)
            section, buffer = (heading[1] if heading else None), []
        else:
            buffer.append(line)


def section_text(section: str | None, lines: list[str]) -> Iterable[str]:
    body = inspect.cleandoc("\n".join(["", *lines])).strip("\n")
    if not body:
        return
    if section is None:
        yield re.sub(
            r"(?:^ {4}.*\n?)+", lambda match: fence(inspect.cleandoc(match.group())) + "\n", body, flags=re.MULTILINE
        )
        return
    yield f"**{section}**"
    if section in {"Example", "Examples"}:
        yield fence(body, "python")
    elif section in {"Args", "Arguments", "Raises"}:
        entries = re.sub(r"\n\s+", " ", body).splitlines()
        yield "\n".join("- " + re.sub(r"^(\*{0,2}[\w.]+)(?: \(.*?\))?: ?", r"`\1`: ", entry) for entry in entries)
    else:
        yield body
