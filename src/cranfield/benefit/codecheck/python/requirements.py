"""What a file of requirements says: lines of pip, or a lock file in the common format (`pylock.toml`)."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cranfield.base.errors import ConfigError, Problem

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
