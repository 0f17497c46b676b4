"""How many planted errors are found, and that correct code has none: precision and recall are printed (`pytest -s`)."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import cranfield
from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.report import Target

PLANTED = Path(__file__).with_name("planted_errors.txt")
SOURCES = Path(cranfield.__file__).parents[1]
TYPED_ROOMS = ("base", "benefit/codecheck", "gate/forge", "model", "repo", "formats", "measures")
"""Of this package, all of which passes a type checker."""
DOCUMENTED = [
    "ast",
    "base64",
    "bdb",
    "binascii",
    "bisect",
    "calendar",
    "collections",
    "colorsys",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "doctest",
    "enum",
    "fractions",
    "functools",
    "glob",
    "graphlib",
    "heapq",
    "html",
    "inspect",
    "ipaddress",
    "itertools",
    "json",
    "json.decoder",
    "json.encoder",
    "math",
    "numbers",
    "pickletools",
    "posixpath",
    "pprint",
    "random",
    "re",
    "reprlib",
    "secrets",
    "shlex",
    "statistics",
    "string",
    "struct",
    "textwrap",
    "threading",
    "timeit",
    "traceback",
    "types",
    "typing",
    "unittest.mock",
    "urllib.parse",
    "uuid",
    "weakref",
    "builtins",
    "http.cookies",
    "xml.etree.ElementTree",
]
"""Modules of the standard library whose documentation has examples."""


def planted() -> dict[int, str]:
    lines = enumerate(PLANTED.read_text(encoding="utf-8").splitlines(), 1)
    return {number: line.partition("#! ")[2] for number, line in lines if "#! " in line}


@pytest.mark.slow  # hundreds of type checks of calls that no version has
def test_planted_errors_are_found_and_nothing_else(capsys):
    expected = planted()
    target = Target("python", "linux", "3.11")
    report = event_loop().run(PythonChecker().check({"a.py": PLANTED.read_text(encoding="utf-8")}, target))
    found = {finding.line: finding.check.value for finding in report.findings}
    right = sum(expected.get(line) == check for line, check in found.items())
    with capsys.disabled():
        print(f"\nplanted errors: {len(expected)}; precision {right}/{len(found)}, recall {right}/{len(expected)}")
    assert found == expected


def examples() -> Iterator[tuple[str, str]]:
    """Name and code of the examples in documentation that run here without an error, and use public names alone."""
    for name in DOCUMENTED:
        module = importlib.import_module(name)
        with contextlib.suppress(ValueError):
            for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
                code = f"from {name} import *\n" + "".join(row.source for row in test.examples if not row.exc_msg)
                if test.examples and not re.search(r"\b_[A-Za-z]", code) and runs(code, test.name):
                    yield test.name, code


def runs(code: str, name: str) -> bool:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        exec(compile(code, name, "exec", dont_inherit=True), {"__name__": "example"})
        return True
    return False


NOT_INSTALLED = re.compile(r"^ *(?:from|import) (?:datasets|pyspark|torch)\b", re.MULTILINE)
"""Imports of what `make setup` leaves out."""


def own_modules() -> dict[str, str]:
    """Modules of this package, without lines that its own type check leaves out, and without packages that are not installed."""
    paths = [path for room in TYPED_ROOMS for path in (SOURCES / "cranfield").glob(f"{room}/**/*.py")]
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return {
        name: text
        for name, text in texts.items()
        if "type: ignore" not in text and "TYPE_CHECKING" not in text and not NOT_INSTALLED.search(text)
    }


@pytest.mark.slow  # type checks some hundred files
def test_nothing_in_correct_code_is_missing(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        snippets = dict(examples())
    names = {f"example_{number}.py": name for number, name in enumerate(snippets)}
    files = {file: snippets[name] for file, name in names.items()} | own_modules()
    target = Target("python", "linux", environment=sys.prefix)
    report = event_loop().run(PythonChecker().check(files, target))
    with capsys.disabled():
        print(
            f"\ncorrect code: {len(files)} snippets, {len(snippets)} of them examples; findings: {len(report.findings)}"
        )
    wrong = [(names.get(row.file, row.file), row.line, row.symbol, row.message) for row in report.findings]
    assert wrong == []
    assert len(files) >= 200
