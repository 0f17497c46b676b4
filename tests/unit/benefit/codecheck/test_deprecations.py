"""The map of deprecated symbols, and where code uses them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import warnings
from contextlib import suppress
from textwrap import dedent

import pytest
from tests.unit.benefit.codecheck.environments import THIS, environment

from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import ConfigError
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.python.ty import SYMBOL_RULES, VERSIONS, find_type_checker
from cranfield.benefit.codecheck.report import (
    CheckReport,
    CodeCheck,
    Target,
    is_older,
    packaged_deprecations,
    read_deprecations,
)

MAP = packaged_deprecations("python")
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
CHECKER = PythonChecker()


def check(code: str, version: str) -> CheckReport:
    return event_loop().run(CHECKER.check({"a.py": dedent(code)}, Target("python", "linux", version)))


CODE = """\
import datetime, imp, logging, shutil, unittest
from collections import Mapping
from datetime import datetime as dt
now = dt.now()
now.utcnow()
datetime.datetime.utcnow()
class T(unittest.TestCase):
    def test(self):
        self.assertEquals(1, logging.getLogger().
            warn("é"), getattr(logging, "x"))
        try:
            dt.utcfromtimestamp(1)
        except Exception:
            pass
def f(log, other: str, maybe: logging.Logger | None):
    log.warn("x")
    maybe.warn("x")
shutil.rmtree("x", onerror=None)
imp.reload(T)
import base64, pkg_resources
base64.encodestring(b"")
dt.utcnow
"""


def test_deprecated_and_removed_symbols_are_found_by_import_and_by_type():
    report = check(CODE, "3.12")
    assert [(row.check.value, row.line, row.symbol) for row in report.findings] == [
        ("available", 1, "imp"),
        ("available", 2, "collections.Mapping"),
        ("not_deprecated", 5, "datetime.datetime.utcnow"),
        ("not_deprecated", 6, "datetime.datetime.utcnow"),
        ("available", 9, "unittest.TestCase.assertEquals"),
        ("not_deprecated", 10, "logging.Logger.warn"),
        ("not_deprecated", 12, "datetime.datetime.utcfromtimestamp"),
        ("not_deprecated", 17, "logging.Logger.warn"),
        ("not_deprecated", 18, "shutil.rmtree(onerror)"),
        ("symbols", 20, "pkg_resources"),
        ("available", 21, "base64.encodestring"),
        ("not_deprecated", 22, "datetime.datetime.utcnow"),
    ]
    assert report.findings[2].current == "datetime.datetime.now(datetime.UTC)"
    assert {(row.line, row.check) for row in report.unknown} == {
        (16, CodeCheck.NOT_DEPRECATED),
        (16, CodeCheck.SYMBOLS),
    }
    assert [note for note in report.notes if "the map" in note] == []


def test_a_version_before_that_of_the_entry_is_not_concerned():
    code = "import datetime, cgi\ndatetime.datetime.utcnow()\n"
    assert check(code, "3.10").findings == ()
    assert [row.symbol for row in check(code, "3.11").findings] == ["cgi"]


def test_an_entry_of_a_package_goes_by_the_version_that_is_installed(tmp_path):
    for version, symbols in (("70.0", ["pkg_resources"]), ("60.0", [])):
        where = environment(tmp_path / version, {"pkg_resources/__init__.py": ""}, {"setuptools": version})
        target = Target("python", "linux", THIS, environment=where)
        report = event_loop().run(PythonChecker().check({"a.py": "import pkg_resources\n"}, target))
        assert [row.symbol for row in report.findings] == symbols


def test_a_deprecated_symbol_without_an_entry_is_a_note():
    report = check(
        "import ast\nclass V(ast.NodeVisitor): ...\nimport zipimport\nzipimport.zipimporter('x').load_module('x')\n",
        "3.11",
    )
    assert report.findings == ()
    assert "load_module" in report.notes[0]


def test_what_is_used_where_the_version_is_asked_for_is_not_deprecated():
    code = """\
        import sys
        if sys.version_info >= (3, 12):
            import importlib
        else:
            import imp
        try:
            from collections.abc import Mapping
        except ImportError:
            from collections import Mapping
        """
    assert check(code, "3.11").findings == ()


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [("3.9", "3.10", True), ("3.10", "3.9", False), ("3", "3.0", False), ("3.0", "3", False), ("14", "14.1", True)],
)
def test_versions_are_compared_by_number(version, other, expected):
    assert is_older(version, other) is expected


def test_every_problem_of_a_map_is_found(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text("cranfield_deprecations: 1\nlanguage: python\nentries:\n- symbol: x\n  since: new\n  colour: red\n")
    with pytest.raises(ConfigError) as caught:
        read_deprecations(path)
    assert len(caught.value.problems) == 4


def is_there(symbol: str) -> bool:
    module, _, name = symbol.partition(":")
    with warnings.catch_warnings(), suppress(ImportError, AttributeError):
        warnings.simplefilter("ignore")
        found: object = importlib.import_module(module)
        for part in filter(None, name.split(".")):
            found = getattr(found, part)
        return True
    return False


def test_the_running_python_has_what_the_map_says():
    entries = [entry for entry in MAP.entries if not entry.package and "(" not in entry.symbol]
    there = {entry.symbol for entry in entries if is_there(entry.symbol)}
    assert there == {entry.symbol for entry in entries if not entry.removed or is_older(RUNNING, entry.removed)}


def snippet(symbol: str) -> str:
    module, _, name = symbol.partition(":")
    if not name:
        return f"import {module}\n"
    function, _, parameter = name.partition("(")
    call = f"('x', {parameter[:-1]}=None)" if parameter else ""
    return f"from {module} import {function.partition('.')[0]}\n{function}{call}\n"


@pytest.mark.slow  # type checks a file for each entry, for each version of Python
@pytest.mark.parametrize("version", VERSIONS)
def test_the_stubs_of_each_version_have_what_the_map_says(version, tmp_path):
    entries = [entry for entry in MAP.entries if not entry.package]
    for number, entry in enumerate(entries):
        (tmp_path / f"e{number}.py").write_text(snippet(entry.symbol))
    argv = [find_type_checker(), "check", "--project", ".", "--python-version", version, "--python-platform", "linux"]
    ran = subprocess.run(
        [*argv, "--output-format", "gitlab", "--exit-zero"], cwd=tmp_path, capture_output=True, check=True
    )
    rows = [(entries[int(row["location"]["path"][1:-3])], row["check_name"]) for row in json.loads(ran.stdout)]
    missing = {entry.symbol for entry, rule in rows if rule in SYMBOL_RULES}
    assert missing == {entry.symbol for entry in entries if entry.removed and not is_older(version, entry.removed)}
    assert len({entry.symbol for entry, rule in rows if rule == "deprecated"}) > 10
