"""The corpus of the demo: the installed Python standard library, read from its source files and never imported.

Three sources: Python files by `ast`, compiled modules by a child interpreter, language topics from `pydoc_data`. The
order is that of the ids, code point by code point, whatever the locale or the file system.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from cranfield.app.demo.compiled import describe_compiled
from cranfield.app.demo.entity import Corpus, DocumentedObject
from cranfield.app.demo.source import SourceModule, is_private_module, public_entities, read_source_module
from cranfield.base.errors import InputError

Progress = Callable[[str], None]

LEFT_OUT_PACKAGES = {
    "antigravity",
    "distutils",  # gone from Python 3.12
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",  # read as topics
    "this",
    "turtledemo",
}
"""Top-level names that are not part of the library, or exist only in some installations."""

LEFT_OUT_FOLDERS = {"test", "tests", "__pycache__"}
LEFT_OUT_COMPILED = {"_tkinter", "xxlimited", "xxlimited_35", "xxsubtype"}
CODEC_FOLDER = "encodings"
CODECS_KEPT = {"encodings.idna", "encodings.utf_8_sig"}
"""The other modules of that folder are tables of character sets."""

TOPICS_FILE = "pydoc_data/topics.py"


def build_corpus(library: Path | None = None, progress: Progress = lambda _: None) -> Corpus:
    """Read the standard library of the running interpreter.

    Args:
        library: its folder; found through `sysconfig` when not given.
        progress: called with a short description of each step.
    """
    folder = library or Path(sysconfig.get_path("stdlib"))
    progress("reading Python source files")
    modules = {module.name: module for module in _source_modules(folder)}
    if not modules:
        raise InputError(
            "the Python standard library has no source files here",
            path=str(folder),
            expected="files such as json/decoder.py",
            hint="an embedded or zipped Python cannot run the demo; use a regular one.",
        )
    progress("describing compiled modules")
    compiled = describe_compiled(_compiled_names(modules))
    entities = [*public_entities(modules, compiled), *_topics(folder)]
    return Corpus(tuple(sorted(entities, key=lambda entity: entity.id)))


def _source_modules(folder: Path) -> Iterator[SourceModule]:
    for relative in _source_paths(folder):
        parts = relative.removesuffix(".py").split("/")
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name.startswith(f"{CODEC_FOLDER}.") and name not in CODECS_KEPT:
            continue
        yield read_source_module((folder / relative).read_bytes(), name=name, path=relative)


def _source_paths(folder: Path) -> list[str]:
    """Paths of the files to read, with forward slashes, sorted."""
    found = []
    # What else lies in the folder (site-packages, a vendor's additions) is not part of the library.
    for top in sys.stdlib_module_names - LEFT_OUT_PACKAGES:
        file = folder / f"{top}.py"
        paths = [file] if file.is_file() else (folder / top).rglob("*.py")
        for path in paths:
            parts = path.relative_to(folder).parts
            if (
                LEFT_OUT_FOLDERS.isdisjoint(parts)
                and parts[-1] != "__main__.py"
                and not parts[0].startswith("_sysconfig")
            ):
                found.append("/".join(parts))
    return sorted(found)


def _compiled_names(modules: dict[str, SourceModule]) -> set[str]:
    """Public modules without source, and the private ones that a module with source takes names from."""
    absent = set(sys.stdlib_module_names) - modules.keys() - LEFT_OUT_PACKAGES - LEFT_OUT_COMPILED
    public = {name for name in absent if not is_private_module(name)}
    taken_from = {statement.module for module in modules.values() for statement in module.imports}
    return public | (absent & taken_from)


def _topics(folder: Path) -> Iterator[DocumentedObject]:
    """The language reference's topics, out of one dictionary display; none where the file was not installed."""
    path = folder / TOPICS_FILE
    if not path.is_file():
        return
    for node in ast.walk(ast.parse(path.read_bytes(), filename=TOPICS_FILE)):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(value, ast.Constant)):
                continue
            if isinstance(key.value, str) and isinstance(value.value, str):
                yield _topic(key.value, value.value.strip(), key.lineno, value.end_lineno or value.lineno)


def _topic(name: str, text: str, start: int, end: int) -> DocumentedObject:
    heading = text.partition("\n")[0]
    return DocumentedObject(
        id=f"topics::{name}",
        kind="topic",
        name=name,
        qualname=heading,
        module="",
        doc=text,
        path=TOPICS_FILE,
        start=start,
        end=end,
    )
