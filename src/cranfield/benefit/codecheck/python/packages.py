"""Symbols of packages, and attributes of objects: there, missing or unknown.

The packages themselves decide where they could be imported: the types of some are not those of their code. Where they could
not, the type checker decides as far as a package comes with types, and as far as it has seen a definition; the rest is
unknown, with the reason.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cranfield.base.errors import ConfigError, Problem
from cranfield.benefit.codecheck.python.facts import FileFacts, Import, Place
from cranfield.benefit.codecheck.python.lookup import Lookup, LookupAnswer, Presence, look_up
from cranfield.benefit.codecheck.python.reading import (
    NO_TYPE,
    AttributeReading,
    is_of_import,
    names_of_any_kind,
    read_members,
)
from cranfield.benefit.codecheck.python.symbols import Sources
from cranfield.benefit.codecheck.python.ty import ATTRIBUTE, SYMBOL_RULES, CheckerError, Diagnostic, Workplace
from cranfield.benefit.codecheck.report import CodeCheck, CodeFinding

_MODULE = re.compile(r"<module '(?P<name>[^']+)'>")
_CLASS = re.compile(r"<class '(?P<name>[\w.]+)[^']*'>|type\[(?P<type>[\w.]+)[^\]]*\]")
_OBJECT = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:\[.*\])?", re.DOTALL)
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class SymbolUse:
    """An import, an attribute or an argument that code uses."""

    file: str
    line: int
    column: int
    name: str
    """As a reader names it: `numpy.float`, `DataFrame.appendd`."""
    lookups: tuple[Lookup, ...] = ()
    row: Diagnostic | None = None
    """What the type checker says against it."""
    doubt: str = ""
    """Why the silence of the type checker says nothing; empty: it has seen a definition."""
    first: Place = (0, 0)
    """Start of the object of an attribute."""

    @property
    def kind(self) -> str:
        """Kind of its lookups; empty: it has none."""
        return self.lookups[0][0] if self.lookups else ""


@dataclass(slots=True)
class PackageFindings:
    """What is known of symbols of packages, and of attributes of objects."""

    decided: set[Diagnostic] = field(default_factory=set)
    """Diagnostics that the packages confirm or disprove: they are not reported again."""
    findings: list[CodeFinding] = field(default_factory=list)
    unknown: list[CodeFinding] = field(default_factory=list)
    n_symbols: int = 0
    """That were looked at."""


async def check_packages(
    place: Workplace, sources: Sources, rows: tuple[Diagnostic, ...], sandbox: str
) -> PackageFindings:
    """Look at every symbol of a package, and at every attribute of an object.

    Args:
        place: with the files.
        sources: of the code.
        rows: what the type checker says.
        sandbox: path of bubblewrap; empty: the one on the path.

    Raises:
        CheckerError: the type checker could not run.
    """
    reading = await read_members(place, sources, rows)
    doubtful = await names_of_any_kind(place, set(_plain_names(sources)))
    symbols = [
        *_imports(sources, rows, doubtful),
        *sorted(_members(sources, reading, doubtful), key=lambda symbol: (symbol.file, symbol.line, symbol.column)),
        *_arguments(sources, rows),
    ]
    answers = await _answers(place, sources, symbols, sandbox)
    decision = _Decision(sources, rows, answers)
    for symbol in symbols:
        decision.add(symbol)
    return decision.found


async def _answers(
    place: Workplace, sources: Sources, symbols: list[SymbolUse], sandbox: str
) -> Mapping[Lookup, LookupAnswer]:
    """What the packages say of all lookups; nothing where the code imports none."""
    imports = [
        name for file in sources.texts for name in sources.facts[file].run_imports if sources.is_of_package(name)
    ]
    lookups = list(dict.fromkeys(lookup for symbol in symbols for lookup in symbol.lookups))
    if not imports or not lookups:
        return {}
    try:
        return await look_up(sources.environment, imports, lookups, place.folder, sandbox)
    except CheckerError as error:
        return dict.fromkeys(lookups, LookupAnswer(Presence.UNKNOWN, str(error)))


def _imports(
    sources: Sources, rows: tuple[Diagnostic, ...], doubtful: AbstractSet[tuple[str, ...]]
) -> Iterator[SymbolUse]:
    for file in sources.texts:
        facts = sources.facts[file]
        for item in facts.imports:
            if item.level or not sources.is_of_package(item.module):
                continue
            row = next((row for row in rows if is_of_import(row, file, item, sources)), None)
            is_name = bool(item.name) and item.name != "*"
            lookup = ("name", item.module, item.name) if is_name else ("module", item.module)
            lookups = () if facts.is_for_typing(item.line) else (lookup,)
            doubt = "its module has every name" if lookup[1:] in doubtful else ""
            yield SymbolUse(file, item.line, item.column, ".".join(lookup[1:]), lookups, row, doubt)


def _plain_names(sources: Sources) -> Iterator[tuple[str, str]]:
    """Names that are imported, or read of a module where no type can be revealed, as in annotations."""
    for file in sources.texts:
        facts = sources.facts[file]
        for item in facts.imports:
            if not item.level and item.name not in {"", "*"} and sources.is_of_package(item.module):
                yield item.module, item.name
        for line, column, path in facts.resolved_uses():
            if facts.is_fixed((line, column)) and sources.is_of_package(path):
                yield from ((module, name) for _, module, name in _path_lookup(path, facts) if name.isidentifier())


def _members(
    sources: Sources, reading: AttributeReading, doubtful: AbstractSet[tuple[str, ...]]
) -> Iterator[SymbolUse]:
    for each in sources.members:
        facts = sources.facts[each.file]
        at = each.place[1:]
        is_fixed = facts.is_fixed(at)
        path = facts.imported_at.get(at, "")
        is_of_package = bool(path) and sources.is_of_package(path)
        types = reading.types_of(each)
        modules = [match["name"] for part in types if (match := _MODULE.fullmatch(part))]
        lookups: tuple[Lookup, ...] = ()
        if modules:
            lookups = tuple(("member", name, each.name) for name in modules if sources.is_of_package(name))
        elif types or is_of_package:
            of_class = _class_lookups(types, each.name) if sources.environment.modules else ()
            lookups = (*of_class, *(_path_lookup(path, facts) if is_of_package else ()))
        elif is_fixed and (path or at in facts.fixed):
            continue  # of the standard library, or a class of the code's own: the type checker has read it
        row = reading.row(each)
        name = f"{modules[0]}.{each.name}" if modules else path or _name_of(types, each.name, facts, at)
        refused = row if row is not None and row.rule == ATTRIBUTE else None
        doubt = reading.doubt(each)
        if is_fixed and any(lookup[2].isidentifier() for lookup in lookups):
            doubt = "its module has every name" if any(lookup[1:] in doubtful for lookup in lookups) else ""
        yield SymbolUse(each.file, *at, name[:_NAME_CHARS], lookups, refused, doubt, each.first)


def _name_of(types: list[str], name: str, facts: FileFacts, at: Place) -> str:
    written = facts.written_at.get(at, "")
    of = types[0].partition("[")[0] if len(types) == 1 and _OBJECT.fullmatch(types[0]) else ""
    return written or (f"{of}.{name}" if of else name)


def _path_lookup(path: str, facts: FileFacts) -> Iterator[Lookup]:
    """A dotted path from the longest module in it that the file imports."""
    found = [name for name in facts.run_imports if path.startswith(f"{name}.")]
    if found:
        module = max(found, key=len)
        yield "member", module, path.removeprefix(f"{module}.")


def _class_lookups(types: list[str], name: str) -> Iterator[Lookup]:
    for part in types:
        if match := _CLASS.fullmatch(part):
            yield "class", (match["name"] or match["type"]).rpartition(".")[2], name, "class"
        elif match := _OBJECT.fullmatch(part):
            yield "class", match["name"].rpartition(".")[2], name, "object"


def _arguments(sources: Sources, rows: tuple[Diagnostic, ...]) -> Iterator[SymbolUse]:
    """Arguments by name of functions of packages, of which the type checker says nothing."""
    refused = {row.place for row in rows}
    for file in sources.texts:
        for line, column, name in sources.facts[file].resolved_uses():
            called, _, argument = name.partition("(")
            if argument and (file, line, column) not in refused and sources.is_of_package(called):
                for _, module, path in _path_lookup(called, sources.facts[file]):
                    yield SymbolUse(file, line, column, name, (("parameter", module, path, argument.rstrip(")")),))


class _Decision:
    """Which symbols are there, missing or unknown."""

    def __init__(self, sources: Sources, rows: tuple[Diagnostic, ...], answers: Mapping[Lookup, LookupAnswer]) -> None:
        self.found = PackageFindings()
        self._sources, self._environment, self._answers = sources, sources.environment, answers
        self._reported: set[tuple[str, int, int]] = {row.place for row in rows if row.rule in SYMBOL_RULES}
        """Places of what is missing or unknown: what is read of it is not reported again."""
        self._not_imported: set[tuple[str, Import]] = {
            (file, item)
            for file in sources.texts
            for item in sources.facts[file].imports
            if any(is_of_import(row, file, item, sources) for row in rows)
        }

    def add(self, symbol: SymbolUse) -> None:
        """Decide one."""
        answers = [self._answers[lookup] for lookup in symbol.lookups if lookup in self._answers]
        known = [answer for answer in answers if answer.state is not Presence.ABSENT]
        answer = next((each for state in Presence for each in known if each.state is state), None)
        is_argument = symbol.kind == "parameter"
        self.found.n_symbols += not is_argument
        if answer is None:
            self._add_unseen(symbol)
        elif answer.state is Presence.THERE:
            self._add_there(symbol, answer)
        elif answer.state is Presence.MISSING and (symbol.kind != "class" or symbol.row is not None):
            self._add_missing(symbol, answer)
        elif is_argument or (symbol.kind == "class" and symbol.row is None and not symbol.doubt):
            return  # the type checker has seen it
        else:
            self._add_unknown(symbol, answer)

    def _add_unseen(self, symbol: SymbolUse) -> None:
        if symbol.row is None and symbol.doubt and not self._is_of_reported(symbol):
            self._leave(symbol, symbol.doubt)

    def _add_there(self, symbol: SymbolUse, answer: LookupAnswer) -> None:
        self._take(symbol.row)
        self._not_imported -= {(symbol.file, item) for item in self._imports_of(symbol)}
        if answer.deprecated and not self._is_provided_for(symbol):
            message = self._with_package(answer.deprecated, symbol, answer)
            self.found.findings.append(_finding(symbol, CodeCheck.NOT_DEPRECATED, message, answer.deprecated))
        elif answer.perhaps_deprecated and not self._is_provided_for(symbol):
            message = f"its documentation states, possibly about a part of it: {answer.perhaps_deprecated}"
            self.found.unknown.append(_finding(symbol, CodeCheck.NOT_DEPRECATED, message))

    def _add_missing(self, symbol: SymbolUse, answer: LookupAnswer) -> None:
        self._take(symbol.row)
        self._not_imported |= {(symbol.file, item) for item in self._imports_of(symbol)}
        if self._is_provided_for(symbol):
            return
        self._reported.add((symbol.file, symbol.line, symbol.column))
        if symbol.name.rpartition(".")[2] in self._sources.stored:
            self._leave(symbol, "the code itself sets an attribute of this name")
        else:
            message = answer.why or (symbol.row.message if symbol.row else f"there is no {symbol.name}")
            self.found.findings.append(_finding(symbol, CodeCheck.SYMBOLS, self._with_package(message, symbol, answer)))

    def _add_unknown(self, symbol: SymbolUse, answer: LookupAnswer) -> None:
        """Handle a symbol that could not be looked up: the type checker decides as far as it can."""
        if symbol.row is not None and self._is_typed(symbol, answer):
            return
        self._take(symbol.row)
        if symbol.row is not None or symbol.doubt:
            if not self._is_of_reported(symbol):
                self._leave(symbol, "; ".join(filter(None, (symbol.doubt, answer.why))))
        elif not self._is_provided_for(symbol):
            message = f"whether it is deprecated could not be looked up: {answer.why}"
            self.found.unknown.append(_finding(symbol, CodeCheck.NOT_DEPRECATED, message))

    def _imports_of(self, symbol: SymbolUse) -> Iterator[Import]:
        """The statement that imports a symbol, if one does."""
        for item in self._sources.facts[symbol.file].imports if symbol.kind in {"name", "module"} else ():
            if (item.line, item.column) == (symbol.line, symbol.column):
                yield item

    def _take(self, row: Diagnostic | None) -> None:
        if row is not None:
            self.found.decided.add(row)

    def _leave(self, symbol: SymbolUse, why: str) -> None:
        self._reported.add((symbol.file, symbol.line, symbol.column))
        if not self._is_provided_for(symbol):
            self.found.unknown.append(_finding(symbol, CodeCheck.SYMBOLS, why))

    def _is_typed(self, symbol: SymbolUse, answer: LookupAnswer) -> bool:
        """Whether what the type checker says is of types that a package comes with, or of no package: then it stands."""
        modules = _modules_of(symbol, answer)
        if symbol.kind == "class" and modules:
            return False  # the class was looked at
        if modules:
            return {module.partition(".")[0] for module in modules} <= self._environment.typed
        return not self._environment.may_define(symbol.lookups[0][1])

    def _is_of_reported(self, symbol: SymbolUse) -> bool:
        """Whether an attribute is read of what is itself missing or unknown."""
        facts = self._sources.facts[symbol.file]
        if symbol.doubt != NO_TYPE:
            return False
        inner = any(
            file == symbol.file and symbol.first <= (line, column) < (symbol.line, symbol.column)
            for file, line, column in self._reported
        )
        name = facts.written_at.get((symbol.line, symbol.column), "")
        bound = {item.bound for file, item in self._not_imported if file == symbol.file}
        return inner or name.partition(".")[0] in bound

    def _is_provided_for(self, symbol: SymbolUse) -> bool:
        failed = [item.line for file, item in self._not_imported if file == symbol.file]
        return self._sources.facts[symbol.file].provides_for(symbol.line, failed)

    def _with_package(self, message: str, symbol: SymbolUse, answer: LookupAnswer) -> str:
        packages = {self._environment.package_of(module) for module in _modules_of(symbol, answer)}
        return f"{message} ({packages.pop()})" if len(packages) == 1 and "" not in packages else message


def _modules_of(symbol: SymbolUse, answer: LookupAnswer) -> tuple[str, ...]:
    return answer.modules if symbol.kind == "class" else (symbol.lookups[0][1],)


def _finding(symbol: SymbolUse, check: CodeCheck, message: str, current: str = "") -> CodeFinding:
    return CodeFinding(check, symbol.file, symbol.line, symbol.name, message, current=current)


_EXPORTS = {
    "uv.lock": "uv export --format requirements.txt -o requirements.txt",
    "poetry.lock": "poetry export -o requirements.txt",
    "pdm.lock": "pdm export -o requirements.txt",
    "Pipfile.lock": "pipenv requirements > requirements.txt",
    "pyproject.toml": "uv pip compile pyproject.toml -o requirements.txt",
}
"""Files of one tool, and what writes them as requirements."""
_COMMENT = re.compile(r"(^|\s)#.*")
_FLAGS = {"--no-index", "--pre", "--prefer-binary", "--require-hashes"}
_WITH_VALUE = {"--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--trusted-host"}
_ONLY_WHEELS = {"--only-binary :all:", "--only-binary=:all:"}
_OTHER_FILES = {"-r", "--requirement", "-c", "--constraint"}
_NAME = r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)"
_WHEEL = r"https?://\S+"
_REQUIREMENT = re.compile(
    rf"(?:{_NAME}\s*(?:\[[\w\s,.-]*\])?\s*(?:@\s*(?P<at>{_WHEEL})|(?P<versions>\(?\s*[<>=!~][\w\s.,*+!<>=~()-]*)?)|(?P<url>{_WHEEL}))"
    r"(?:\s*;[^;]*)?",
    re.ASCII,
)
_WHEEL_FILE = re.compile(r"[^/]+(-[^/-]+){4}\.whl")
_ARCHIVE = re.compile(r"\.(zip|tgz|tbz|txz|tlz|tar(\.\w+)?|whl)", re.IGNORECASE)
_USER = re.compile(r"://([^/\s]*)@")
_OF_VARIABLES = re.compile(r"(\$\{[A-Z0-9_]+\}:?)+")
_HASH = re.compile(r"--hash(=|\s+)\w+:[0-9A-Fa-f]+")
_OPTION_FAULT = "this option is not supported: only wheels are installed, so that no package runs build code"
_SOURCE_FAULT = (
    "only packages from an index and wheels over http(s) are installed: declare an `environment` with this package"
)


def read_requirements(path: Path) -> tuple[str, ...]:
    """The requirements of a file, one a line, with pins and hashes as they are.

    Raises:
        ConfigError: with everything in it that cannot be used.
    """
    if command := _EXPORTS.get(path.name):
        raise ConfigError(
            f"{path.name} is a tool-specific format", path=str(path), hint=f"write a format that pip reads: {command}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"the requirements cannot be read: {why}", path=str(path)) from None
    rows = list(_locked(text, path) if path.suffix == ".toml" else _lines(text))
    if problems := [Problem(fault, path=str(path), line=line or None, got=without_passwords(row))
                    for line, row in rows if (fault := requirement_fault(row))]:  # fmt: skip
        raise ConfigError(problems)
    if not rows:
        raise ConfigError("no requirements in the file", path=str(path))
    return tuple(row for _, row in rows)


def requirement_fault(line: str) -> str:
    """What is wrong with a requirement; empty: nothing. Whether it can be installed is not looked at."""
    line = _COMMENT.sub("", line).strip()
    if len(line.splitlines()) > 1 or line.endswith("\\"):
        return "the requirement has more than one line: write each requirement on a single line"
    if any(not _OF_VARIABLES.fullmatch(user[1]) for user in _USER.finditer(line)):
        return (
            "an address contains a user or a password, but tasks are stored with an experiment: use the settings "
            "of pip or netrc, or variables, as in https://${NAME}:${TOKEN}@host"
        )
    if line.startswith("-"):
        return _option_fault(line)
    given, option, options = re.sub(r"\s", " ", line).partition(" -")
    if option and _HASH.sub("", f"-{options}").strip():
        return f"only --hash may follow a requirement: {_OPTION_FAULT}"
    found = _REQUIREMENT.fullmatch(given.strip())
    if found is None:
        is_elsewhere = re.search(r"[/\\@$]|^[.~]|^file:", given)
        return _SOURCE_FAULT if is_elsewhere else "not a requirement such as numpy==2.3.5"
    url = found["at"] or found["url"]
    is_package = (
        _WHEEL_FILE.fullmatch(urlsplit(url).path.rpartition("/")[2]) if url else not _ARCHIVE.search(found["name"])
    )
    return "" if is_package else _SOURCE_FAULT


def _option_fault(line: str) -> str:
    """What is wrong with a line of options: each is looked at, and what is not known here is refused."""
    if line in _ONLY_WHEELS:
        return ""
    try:
        left = shlex.split(line)
    except ValueError as error:
        return f"it cannot be read: {error}"
    while left:
        name, equals, value = left.pop(0).partition("=")
        if name in _OTHER_FILES:
            return (
                "the file refers to another file: put all requirements into one file, as `pip-compile` or `uv "
                "pip compile` do"
            )
        if name not in _FLAGS | _WITH_VALUE or (name in _FLAGS and equals):
            return _OPTION_FAULT
        if name in _WITH_VALUE and not (value or (left and not left[0].startswith("-") and left.pop(0))):
            return f"{name} has no value"
    return ""


def without_passwords(line: str) -> str:
    """A requirement without the users and passwords of its addresses."""
    return _USER.sub("://***@", line)


def required_packages(requirements: Iterable[str]) -> list[str]:
    """The packages of requirements as a reader names them: `numpy 2.3.5`, `pandas>=2`; of an address the name alone."""
    lines = (_COMMENT.sub("", line).partition(" --")[0].strip() for line in requirements)
    return [_package(line.partition(";")[0].strip()) for line in lines if line and not line.startswith("-")]


def _package(requirement: str) -> str:
    name = requirement.partition("@")[0].strip()
    if "://" in name:
        return urlsplit(requirement).path.rpartition("/")[2].partition("-")[0]
    return name.replace("==", " ")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        part = _COMMENT.sub("", line).strip()
        parts.append(part.removesuffix("\\").strip())
        if part.endswith("\\"):
            continue
        if whole := " ".join(filter(None, parts)):
            yield number, whole
        parts = []
    if whole := " ".join(filter(None, parts)):
        yield text.count("\n") + 1, whole


def _locked(text: str, path: Path) -> Iterator[tuple[int, str]]:
    try:
        packages = tomllib.loads(text)["packages"]
        for package in packages:
            yield 0, _locked_line(package)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"it is not TOML: {error}", path=str(path)) from None
    except (KeyError, TypeError, AttributeError):
        hint = "pip lock, uv export --format pylock.toml and pdm lock write one"
        raise ConfigError("not a lock file in the pylock.toml format", path=str(path), hint=hint) from None


def _locked_line(package: Mapping[str, Any]) -> str:
    if "version" not in package:
        return f"file:{package['name']}"  # of a folder or a repository
    hashes = [
        f"--hash={kind}:{value}" for wheel in package.get("wheels", ()) for kind, value in wheel["hashes"].items()
    ]
    marker = f"; {package['marker']} " if package.get("marker") else ""
    return " ".join([f"{package['name']}=={package['version']}{marker}", *hashes]).replace("  ", " ")
