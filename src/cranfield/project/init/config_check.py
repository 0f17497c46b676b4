"""Config files of a program that is tried, as preflight checks: a search must not read another index or mode unnoticed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cranfield.words import printable

MAX_BYTES = 64 * 1024
"""Of a config file, and of a script that is searched for the names of config files."""
MOST_SETTINGS = 3
MAX_VALUE = 200
"""Characters of a setting."""
SUFFIXES = (".json", ".toml", ".yaml", ".yml")
TELLING = frozenset(
    {"mode", "index", "database", "db", "dir", "directory", "folder", "path", "file", "root", "store", "corpus"}
    | {"collection", "dataset", "model", "embedding", "embedder", "version", "backend", "engine"}
)
"""Words of a setting that decides what is searched."""
_GENERAL = r"(?:config|conf|settings)"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LINE = re.compile(r"""(?m)^[ \t]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*([^\s\[{|>&#].*?)[ \t\r]*$""")
_SECRET = re.compile(r"(?i)secret|token|passw|credential|://[^/\s]*@")


def config_checks(argv: Sequence[str]) -> list[Mapping[str, Any]]:
    """Preflight checks of the settings in config files beside the program of a command, relative to the working folder.

    A file counts where it is called as the program (`search.config.json`), `config` or `settings`, or where the script
    names it. JSON is checked by value, TOML and YAML by a line.
    """
    return [check for path in _config_files(argv) for check in _checks_of(path)]


def _config_files(argv: Sequence[str]) -> Iterator[Path]:
    words = [word for word in argv if word and not word.startswith("-") and "{" not in word]
    programs = [path for word in words if (path := _program(word)) is not None]
    seen: set[Path] = set()
    for program in programs:
        name = rf"\.?(?:{re.escape(program.stem)}(?:[._-]?{_GENERAL})?|{_GENERAL})"
        source = _text(program) or ""
        for folder in [program.parent, *([program.resolve().parent] if program.is_symlink() else ())]:
            for path in _files(folder):
                is_its_own = re.fullmatch(name, path.stem, re.IGNORECASE) or path.name in source
                if is_its_own and path not in programs and path.resolve() not in seen:
                    seen.add(path.resolve())
                    yield path


def _program(word: str) -> Path | None:
    """The program or script that a word of a command names."""
    is_file = os.path.isfile(word)  # noqa: PTH113 - Path.is_file raises where a script of `sh -c` is too long for a name
    found = word if is_file else shutil.which(word) if "/" not in word else None
    return None if found is None else Path(found)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError:
        return []


def _text(path: Path) -> str | None:
    """The text of a small file; None of any other."""
    try:
        return path.read_text(encoding="utf-8-sig") if path.is_file() and path.stat().st_size <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def _checks_of(path: Path) -> Iterator[Mapping[str, Any]]:
    text = _text(path) or ""
    file = path.as_posix()
    if path.suffix == ".json":
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        for place, value in [*_settings(document)][:MOST_SETTINGS]:
            yield {"file": file, "equals_json": {"path": place, "value": value}}
    else:
        lines = [match[0].strip() for match in _LINE.finditer(text) if _tells(match[1], match[2])]
        for line in lines[:MOST_SETTINGS]:
            yield {"file": file, "contains": line}


def _settings(document: object, before: str = "") -> Iterator[tuple[str, str | int | float | bool]]:
    """JMESPath and value of each telling setting; of an outer one every setting inside tells."""
    for key, value in document.items() if isinstance(document, dict) else ():
        place = before + (key if re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII) else json.dumps(key, ensure_ascii=False))
        if isinstance(value, dict):
            yield from _settings(value, f"{place}.")
        elif isinstance(value, str | int | float) and _tells(place, str(value)):
            yield place, value


def _tells(name: str, value: str) -> bool:
    """Whether a setting decides what is searched, and may be written down."""
    words = {word.lower() for word in _WORD.findall(name)}
    is_plain = 0 < len(value) <= MAX_VALUE and printable(value) == value and not _SECRET.search(f"{name} {value}")
    return bool(words & TELLING) and is_plain
