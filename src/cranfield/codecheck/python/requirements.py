"""What a file of requirements says: lines of pip, or a lock file in the common format (`pylock.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.errors import ConfigError, Problem

_EXPORTS = {
    "uv.lock": "uv export --format requirements.txt -o requirements.txt",
    "poetry.lock": "poetry export -o requirements.txt",
    "pdm.lock": "pdm export -o requirements.txt",
    "Pipfile.lock": "pipenv requirements > requirements.txt",
    "pyproject.toml": "uv pip compile pyproject.toml -o requirements.txt",
}
"""Files of one tool, and what writes them as requirements."""
_COMMENT = re.compile(r"(^|\s)#.*")
_OPTIONS = (
    *("--index-url", "--extra-index-url", "--find-links", "--no-index", "--pre", "--trusted-host", "--prefer-binary"),
    *("--require-hashes", "--only-binary", "-i", "-f"),
)


def read_requirements(path: Path) -> tuple[str, ...]:
    """The requirements of a file, one a line, with pins and hashes as they are.

    Raises:
        ConfigError: with everything in it that cannot be used.
    """
    if command := _EXPORTS.get(path.name):
        raise ConfigError(
            f"{path.name} is the format of one tool", path=str(path), hint=f"write one that pip reads: {command}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"the requirements cannot be read: {why}", path=str(path)) from None
    rows = list(_locked(text, path) if path.suffix == ".toml" else _lines(text))
    if problems := [Problem(fault, path=str(path), line=line or None, got=row)
                    for line, row in rows if (fault := requirement_fault(row))]:  # fmt: skip
        raise ConfigError(problems)
    if not rows:
        raise ConfigError("it has no requirement", path=str(path))
    return tuple(row for _, row in rows)


def requirement_fault(line: str) -> str:
    """What is wrong with a requirement; empty: nothing. Whether it can be installed is not looked at."""
    first = line.strip().partition(" ")[0]
    if first.startswith("-"):
        if first.partition("=")[0] in _OPTIONS:
            return ""
        if first in {"-r", "--requirement", "-c", "--constraint"}:
            return "it names another file: put all requirements into one, as `pip-compile` or `uv pip compile` do"
        return "this option cannot be used here: only wheels are installed, so that no package runs code to be built"
    if re.match(r"[./~]|[A-Za-z]:\\", first) or re.search(r"\b(git|hg|svn|bzr)\+|^file:", line):
        return "only packages of an index and wheels are installed: declare an `environment` that has this one"
    return "" if re.match(r"[A-Za-z0-9]", first) else "it is no requirement, such as numpy==2.3.5"


def required_packages(requirements: Iterable[str]) -> list[str]:
    """The packages of requirements as a reader names them: `numpy 2.3.5`, `pandas>=2`."""
    named = (line.partition(" --")[0].partition(";")[0].strip() for line in requirements if not line.startswith("-"))
    return [name.replace("==", " ") for name in named]


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
        raise ConfigError("it is no lock file in the format of pylock.toml", path=str(path), hint=hint) from None


def _locked_line(package: Mapping[str, Any]) -> str:
    if "version" not in package:
        return f"file:{package['name']}"  # of a folder or a repository
    hashes = [
        f"--hash={kind}:{value}" for wheel in package.get("wheels", ()) for kind, value in wheel["hashes"].items()
    ]
    marker = f"; {package['marker']} " if package.get("marker") else ""
    return " ".join([f"{package['name']}=={package['version']}{marker}", *hashes]).replace("  ", " ")
