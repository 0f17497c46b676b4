"""Every command that the program names is one that it has, with options that it has and the arguments that it needs.

The commands are collected from the source: literals and f-strings of Python, templates of pages, and the documentation with its
blocks. What is new is checked without a line here.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException

from cranfield.cli.main import command_line
from cranfield.gate.commands.gate import INSTEAD
from cranfield.golden.review import PROFILES

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "cranfield"
QUOTED = re.compile(r"`(cranfield(?: [^`]*)?)`")
UNQUOTED = re.compile(r"(?<![\w`.'\"/-])cranfield +(?=[a-z])[^`\n]*")
IN_PAGE = re.compile(r"<code>(cranfield [^<]*)</code>")
IN_BLOCK = re.compile(r"^(?:\$ )?(cranfield [a-z][^\n]*)", re.MULTILINE)
END_OF_COMMAND = re.compile(r"\s(?:\||&?>|<|\d>|&&|#)|;")
VALUE = "VALUE"
"""For what an f-string or a template fills in."""
OPTIONAL = {"db", "option", "options", "given"}
"""What an f-string fills in behind a word, with a space before it, or nothing."""
LEFT_OUT = {"...", "…"}
PLACEHOLDER = re.compile(r"\W*[A-Z][A-Z_|.]*\W*")
AS_NAMES = {
    "app/commands/convert.py": {"cranfield evaluate"},  # "in any format that it reads"
    "golden/commands.py": {"cranfield calibrate"},
    "judging/commands/pool.py": {"cranfield evaluate"},
    "workbench/client/client.py": {"cranfield people token"},
    "golden/index.py": {"cranfield golden run"},
    "plugins.py": {"cranfield testset validate"},
    "judging/reports/holes.py": {"cranfield compare"},
}
"""Where a command is the name of what reads or wrote a file, and not what to type."""
NO_COMMANDS = {
    r"cranfield \w+( \w+)? 1(\0.*)?": "the head of what a digest is of",
    r"cranfield(?= k measures | takes settings |( benefit)? gate$)": "fields of a record, a marker of pytest, a name in JUnit",
    r"cranfield ARGUMENTS": "any command",
    r"cranfield polls.*": "a command of the package that a page makes",
    r"cranfield [(\[].*": "the pattern of commands in texts for other programs",
}


@dataclass(frozen=True)
class Named:
    """A command as a text names it."""

    text: str
    where: str
    is_prose: bool = False
    """It explains, and may leave out what the command needs; of all else a reader types what is named."""

    @property
    def source(self) -> str:
        """The file, from the folder of the package."""
        return self.where.partition("src/cranfield/")[2].partition(":")[0]


def named_in(text: str, where: str, *, is_prose: bool = False) -> Iterator[Named]:
    """The commands in a text: between backticks; and elsewhere, where it is no prose, to the end of their line."""
    found = [match[1] for match in QUOTED.finditer(text)]
    if not is_prose:
        found += [match[0].rstrip(" .;,:") for match in UNQUOTED.finditer(QUOTED.sub("", text))]
    for each in found:
        if not any(re.match(pattern, each) for pattern in NO_COMMANDS):
            yield Named(" ".join(each.split()), where, is_prose)


def _name_of(part: ast.expr) -> str:
    return ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""


def of_python(path: Path) -> Iterator[Named]:
    prose, parts = set[int](), set[int]()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            prose.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts |= {id(each) for each in node.values}
    for node in ast.walk(tree):
        if id(node) in parts or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(
            str(each.value) if isinstance(each, ast.Constant) else "" if _name_of(each) in OPTIONAL else VALUE
            for each in pieces
        )
        yield from named_in(text, f"{path}:{node.lineno}", is_prose=id(node) in prose)


def of_pages() -> Iterator[Named]:
    for path in sorted((SOURCE / "server" / "templates").glob("*.html")):
        for match in IN_PAGE.finditer(path.read_text()):
            filled = re.sub(r"\{\{.*?\}\}", VALUE, unescape(match[1]))
            yield from named_in(f"`{filled}`", str(path))


def of_docs() -> Iterator[Named]:
    for path in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]:
        text = path.read_text().replace("\\\n", " ")
        yield from named_in(text, str(path), is_prose=True)
        for match in IN_BLOCK.finditer(text):
            yield Named(END_OF_COMMAND.split(match[1])[0].strip(), str(path), is_prose=True)


def problem_of(named: Named, root: Any) -> str | None:
    """Why the text is no call of the program; None where it is one."""
    command, context = root, typer.Context(root, info_name="cranfield", **root.context_settings)
    words = [word for word in shlex.split(named.text)[1:] if word not in {*LEFT_OUT, "--debug", *INSTEAD["gate"]}]
    is_whole = not LEFT_OUT & set(named.text.split())
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words[0] if words[0] in command.commands else command.default
        if not name:
            return f"`{context.command_path}` has no command {words[0]}"
        words = words[words[0] == name :]
        command = command.commands[name]
        context = typer.Context(command, parent=context, info_name=name, **command.context_settings)
    if words == ["--help"] or context.command.context_settings.get("ignore_unknown_options"):
        return None
    try:
        given, rest, _ = command.make_parser(context).parse_args(list(words))
        for each in command.params:
            for value in (
                [given.get(each.name)] if each.nargs == 1 and not each.multiple else given.get(each.name) or []
            ):
                if isinstance(value, str) and getattr(each.type, "choices", None) and not PLACEHOLDER.fullmatch(value):
                    each.type.convert(value, each, context)
    except TyperException as error:
        return error.format_message()
    if rest:
        return f"too many arguments: {rest}"
    if named.is_prose or not is_whole or (not words and context.command_path in AS_NAMES.get(named.source, ())):
        return None
    missing = [each.human_readable_name for each in command.params if each.required and not given.get(each.name)]
    return f"without {', '.join(missing)}" if missing else refused(context.command_path, given)


def refused(command: str, given: Mapping[str, Any]) -> str | None:
    """What the command itself refuses, beyond what the parser of its arguments does."""
    if command == "cranfield golden run" and not given.get("plan") and not given.get("resume"):
        return "without PLAN or --resume RUN"
    if command == "cranfield golden run" and given.get("resume") and given.get("feedback"):
        return "--feedback with --resume"
    profile = str(given.get("profile", ""))
    if command == "cranfield golden review" and profile and VALUE not in profile and profile not in {"NAME", *PROFILES}:
        return f"no profile {profile}"
    return None


@pytest.fixture(scope="module")
def program() -> Any:
    return typer.main.get_command(command_line())


@pytest.mark.slow  # 4 s: every command is imported
def test_every_command_that_a_text_names_can_be_typed(program: Any) -> None:
    found = [each for path in sorted(SOURCE.rglob("*.py")) for each in of_python(path)]
    found += [*of_pages(), *of_docs()]
    assert len(found) > 500
    problems = {f"{each.where}: `{each.text}`: {problem}" for each in found if (problem := problem_of(each, program))}
    assert not problems, "\n".join(["", *sorted(problems)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cranfield golden nothing", "no command nothing"),
        ("cranfield golden VALUE RUN", "no command VALUE"),
        ("cranfield golden run --resum RUN", "No such option"),
        ("cranfield golden run --resume", "requires an argument"),
        ("cranfield golden status", "without RUN"),
        ("cranfield golden status RUN RUN", "too many arguments"),
        ("cranfield golden status RUN --format yes", "yes"),
        ("cranfield golden status RUN --format json", None),
        ("cranfield pool RUN... --book NAME", None),
        ("cranfield golden run … --feedback FILE", None),
        ("cranfield golden run --repo DIR", "without PLAN"),
        ("cranfield golden run --resume RUN --feedback FILE", "--feedback with --resume"),
        ("cranfield golden review RUN --profile nonsense", "no profile nonsense"),
        ("cranfield golden review RUN --profile VALUE-one-person", None),
        ("cranfield evaluate", "without TESTSET"),
        ("cranfield run", None),
    ],
)
def test_what_cannot_be_typed_is_found(program: Any, text: str, problem: str | None) -> None:
    found = problem_of(Named(text, ""), program)
    assert found is None if problem is None else found is not None and problem in found


def test_commands_are_collected_from_all_kinds_of_strings(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""`cranfield a`."""\nhint = "first `cranfield b X`, then"\nraise E("no", hint=f"cranfield c {path}")\n'
        'echo(f"next: `cranfield {command} {path}`")\nsay("cranfield d; " "`cranfield e`")\n'
    )
    found = [(each.text, each.is_prose) for each in of_python(path)]
    assert sorted(found) == [
        ("cranfield VALUE VALUE", False),
        ("cranfield a", True),
        ("cranfield b X", False),
        ("cranfield c VALUE", False),
        ("cranfield d", False),
        ("cranfield e", False),
    ]
