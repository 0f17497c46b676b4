"""The config and the starter that `cranfield init` writes, and the checks of the config."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.app.init.shape import FoundSystem
from cranfield.base.words import printable, shorten_to
from cranfield.formats.io.yaml_text import short_yaml, yaml_text
from cranfield.measures import USUAL_K
from cranfield.model import Query, TestSet

SCHEMA_LINE = "# yaml-language-server: $schema=cranfield.schema.json"
SCHEMA_NAME = "cranfield.schema.json"
COMMENT_WIDTH = 110
HEAD = """\
# Made by `cranfield init`. `cranfield run` sends the queries, scores the answers and compares the systems;
# `cranfield schema` prints every key, and an editor with YAML support completes them.
"""
VERDICT = """\
# The primary measure decides the verdict; `cranfield measures` lists the others. A margin is the largest
# difference that does not matter to you; with one, the verdict can be "equivalent".
"""
USUAL = "# Number of results requested from each system per query; default: 10, or the largest cutoff of the measures.\n# k: 10\n"
OFFERED = "    # Current settings of its config file. Remove the `# ` to check them before the first query.\n"
GATE = {
    True: """\
# `cranfield gate` fails where a query failed, or a floor or a forbidden result of the test set is broken.
gate: {rules: [{failures: {at_most: 0}}, {requirements: {at_most: 0}}]}
""",
    False: """\
# `cranfield gate` fails where a query failed; add floors on measures, and drops from a baseline.
gate: {rules: [{failures: {at_most: 0}}]}
""",
}
"""The gate of a golden file, by whether it requires something of single queries."""
SYSTEMS = "# One system is evaluated, two are compared, the first as the baseline; of more, all pairs.\n"


def config_text(
    testsets: Mapping[str, Any],
    systems: Mapping[str, Mapping[str, Any]],
    *,
    about: Mapping[str, str],
    notes: Mapping[str, Sequence[str]],
    checks: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
    k: int,
    measures: Sequence[str],
    requires: bool | None = None,
) -> str:
    """The whole file.

    Args:
        testsets: the keys that say what the queries are: `testset` or `testsets`, and `options`.
        systems: settings by name.
        about: name of a system, or "" for the test set, to what it is.
        notes: name of a system to what stays open.
        checks: name of a system to preflight checks that are offered, as comments.
        k: results asked of a system.
        measures: the primary measure, and those beside it; where it is alone the default list is beside it.
        requires: whether the test set requires something of single queries, which a gate checks; None: no gate is written.
    """
    parts = [
        SCHEMA_LINE + "\n" + HEAD,
        comment(about[""]) + short_yaml(testsets, opened=1 if "testsets" in testsets else 0),
        (comment("Number of results requested from each system per query.") + yaml_text({"k": k}))
        if k != USUAL_K
        else USUAL,
        VERDICT
        + short_yaml({"primary": measures[0]} | ({"measures": list(measures)} if measures[1:] else {}))
        + "# margin: 0.01\n",
        SYSTEMS + "systems:\n" + "".join(_system_lines(systems, about, notes, checks)),
        *([GATE[requires]] if requires is not None else []),
    ]
    return "\n".join(parts)


def _system_lines(
    systems: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, str],
    notes: Mapping[str, Sequence[str]],
    checks: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[str]:
    for name, settings in systems.items():
        for text in (about[name], *notes.get(name, ())):
            yield "  " + comment(text)
        yield short_yaml({name: settings}, opened=1, indent="  ")
        if checks.get(name):
            yield OFFERED
            yield "".join(f"    # {line}\n" for line in yaml_text({"preflight": list(checks[name])}).splitlines())


def comment(text: str) -> str:
    """A text as one line of comment, whatever it holds."""
    return f"# {shorten_to(printable(text), COMMENT_WIDTH)}\n"


MAX_BYTES = 64 * 1024
"""Most bytes of a config file, and of a script that is searched for the names of config files."""
MAX_SETTINGS = 3
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
        for place, value in [*_settings(document)][:MAX_SETTINGS]:
            yield {"file": file, "equals_json": {"path": place, "value": value}}
    else:
        lines = [match[0].strip() for match in _LINE.finditer(text) if _tells(match[1], match[2])]
        for line in lines[:MAX_SETTINGS]:
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


POOLED = 5
"""Results of each system that the starter lists for a query, with the grade of what is not judged."""
NOT_JUDGED = -1.0
PLACEHOLDER = "id-of-a-document"
"""Stands where no system was asked yet."""
POOL_HEAD = """\
# A starter: queries with results that are not judged yet (grade -1).
# Change each -1 to a grade: 0 not relevant, 1 relevant, 2 highly relevant; or judge in the browser.
# `patterns: [{regex: "^docs"}]` in place of `judgments` expects what matches; `negative: true` expects nothing.
"""
PATTERN_HEAD = """\
# The queries of a table; the right answers of a query are its judgments, or what matches its pattern.
"""


def starter_testset(queries: Sequence[Query], systems: Sequence[FoundSystem], base: TestSet | None = None) -> TestSet:
    """The queries as a test set, with the first results of each system as documents to judge.

    Args:
        queries: each with its text.
        systems: what they answered when they were tried.
        base: the table that the queries are from; its patterns and right answers are kept.
    """
    testset = base or TestSet("starter", tuple(queries))
    grades: dict[str, Mapping[str, float]] = {
        query.id: dict.fromkeys(_pooled(query, systems) or (PLACEHOLDER,), NOT_JUDGED)
        for query in queries
        if not testset.targets.get(query.id) and not testset.grades.get(query.id)
    }
    kept = {query.id for query in queries}
    grades |= {query_id: judged for query_id, judged in testset.grades.items() if query_id in kept}
    targets = {query_id: expected for query_id, expected in testset.targets.items() if query_id in kept}
    return replace(testset, name="starter", queries=tuple(queries), grades=grades, targets=targets, version="0")


def head_of(testset: TestSet) -> str:
    """The comment above the file."""
    is_pool = any(grade == NOT_JUDGED for judged in testset.grades.values() for grade in judged.values())
    return POOL_HEAD if is_pool else PATTERN_HEAD


def _pooled(query: Query, systems: Sequence[FoundSystem]) -> Mapping[str, None]:
    found = (system.ids.get(query.text) or system.ids.get(query.id) or () for system in systems)
    return {doc_id: None for ids in found for doc_id in list(ids)[:POOLED] if doc_id.strip()}
