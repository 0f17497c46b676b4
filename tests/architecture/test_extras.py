"""Every library that the package imports is declared, and every declared library is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import cranfield
from cranfield.repo.grammar import GRAMMARS

PACKAGE = Path(cranfield.__file__).parent
PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
BROUGHT_BY = {
    "pydantic-core": "pydantic",
    "markupsafe": "jinja2",
    "mcp-types": "mcp",
    "openai": "pydantic-ai-slim",
    "h2": "httpx2",
    "hpack": "httpx2",
    "starlette": "fastapi",
}
"""Libraries that are part of another one's interface, and come with it in the one version that fits."""
HOSTS = {"ir_measures", "llama_index", "pytest", "sentence_transformers", "torch", "tqdm"}
"""Programs and libraries that use a part of the package: they are there when it is imported."""
OF_CALLERS = {"pandas", "polars"}
"""Types of frames that a caller asks for; imported by the method that makes one, which says what to install."""
LOADED_BY_ANOTHER = {"python-multipart"}
"""Loaded by a library when the package uses a part of it: FastAPI reads forms with it."""
STARTED = {"ty"}
"""Programs in a wheel: started, not imported."""
TO_COME = {"alembic"}
NOT_INSTALLED = {"datasets": "datasets", "pyspark": "pyspark", "py4j": "pyspark"}
"""Modules to libraries that `make setup` leaves out, because their tests alone install them."""
NAMESPACES = {"google": "opentelemetry-proto", "opentelemetry": "opentelemetry-proto"}
"""Modules of several libraries, to the one that is used, or that brings it."""
BY_NAME = {grammar.module for grammar in GRAMMARS.values()}
"""Imported by a name in a table."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}


CORE = declared(PROJECT["dependencies"])
EXTRAS = {extra: declared(requirements) for extra, requirements in PROJECT["optional-dependencies"].items()}


def modules_imported(source: str) -> set[str]:
    """The first part of every absolute import, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
    return {name.partition(".")[0] for name in found}


@cache
def distributions() -> dict[str, str]:
    found = {module: canonical(names[0]) for module, names in packages_distributions().items()}
    return NOT_INSTALLED | found | NAMESPACES


def imports() -> Iterator[tuple[str, str]]:
    """File and library of every import of something that is neither Python's nor ours."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for module in modules_imported(path.read_text(encoding="utf-8")):
            if module not in {
                *sys.stdlib_module_names,
                *HOSTS,
                *OF_CALLERS,
                "cranfield",
                "compression",
            }:  # compression: Python 3.14
                library = distributions()[module]
                yield path.relative_to(PACKAGE).as_posix(), BROUGHT_BY.get(library, library)


def undeclared(found: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[tuple[str, str]]:
    known = CORE.union(*EXTRAS.values())
    return [(file, library) for file, library in found if library not in known]


def test_every_imported_library_is_declared() -> None:
    assert undeclared(imports()) == []


def test_an_undeclared_library_would_be_found() -> None:
    assert modules_imported("def f():\n    import a.b\n    from c.d import e\n    from . import g") == {"a", "c"}
    assert undeclared([("x.py", "numpy"), ("y.py", "no-such-library")]) == [("y.py", "no-such-library")]


def test_every_declared_library_is_imported() -> None:
    used = {library for _, library in imports()} | {distributions()[module] for module in BY_NAME}
    assert CORE.union(*EXTRAS.values()) - used - LOADED_BY_ANOTHER - STARTED <= TO_COME


def test_one_extra_is_enough_for_a_file() -> None:
    needs: dict[str, set[str]] = {}
    for file, library in imports():
        if library not in CORE:
            needs.setdefault(file, set()).add(library)
    assert {file: names for file, names in needs.items() if not any(names <= extra for extra in EXTRAS.values())} == {}


def test_every_extra_that_an_error_names_can_be_installed() -> None:
    named: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        named |= set(re.findall(r"for_extra\(.*?, \"(\w+)\"\)", path.read_text(encoding="utf-8")))
    assert named <= set(EXTRAS)
    assert set(EXTRAS) - named <= {"web", "agents", "benefit"}
