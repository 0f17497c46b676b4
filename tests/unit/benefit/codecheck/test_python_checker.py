"""Python code: what compiles, what exists, and what exists elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python import facts
from cranfield.benefit.codecheck.python.checker import CODE_CHECKS, PythonChecker
from cranfield.benefit.codecheck.python.ty import ProgramOutput
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target

FAILED, PASSED, MISSING = CheckState.FAILED, CheckState.PASSED, CheckState.MISSING
CHECKER = PythonChecker()


def check(files: str | dict[str, str], version: str = "3.11", platform: str = "linux") -> CheckReport:
    files = {"a.py": dedent(files)} if isinstance(files, str) else files
    return event_loop().run(CHECKER.check(files, Target("python", platform, version)))


def findings(report: CheckReport) -> list[tuple[str, int, str]]:
    return [(finding.check.value, finding.line, finding.symbol) for finding in report.findings]


def test_symbols_that_do_not_exist_are_found_with_line_and_name():
    report = check("""\
        import json as j, os, random
        import no_such_package
        from json import loadz
        j.dump_all({})
        random.choice([1], k=3)
        j.dumps()
        sorted([1], cmp=3)
        print(undefined)
        os.startfile("a")
        open(sorted([1], cmp=3), "r", nope=open("é", 4))
        """)
    assert findings(report) == [
        ("symbols", 2, "no_such_package"),
        ("symbols", 3, "loadz"),
        ("symbols", 4, "json.dump_all"),
        ("symbols", 5, "k=3"),
        ("symbols", 6, "json.dumps"),
        ("symbols", 7, "sorted"),
        ("symbols", 8, "undefined"),
        ("available", 9, "os.startfile"),
        ("symbols", 10, "open"),
        ("symbols", 10, "sorted"),
    ]
    states = report.states
    assert (states[CodeCheck.COMPILES], states[CodeCheck.SYMBOLS], states[CodeCheck.AVAILABLE]) == (
        PASSED,
        FAILED,
        FAILED,
    )


CORRECT = {
    "types.txt.py": """
import subprocess
subprocess.run(["a"], text=5)
open("x", 3)
max(open("x", 4), sorted([object()]), key=3)
x: int = "a"
""",
    "try_import.py": "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\n",
    "fallback.py": "try:\n    import json\nexcept ImportError:\n    import no_such_package as json\n",
    "version.py": "import sys\nif sys.version_info >= (3, 11):\n    import tomllib\n",
    "has.py": "import itertools\nif hasattr(itertools, 'batched'):\n    print(itertools.batched)\n",
    "try_use.py": "import itertools\ntry:\n    print(itertools.batched)\nexcept AttributeError:\n    pass\n",
    "stored.py": "def f():\n    f.calls = 1\n    return f.calls\n",
    "names.py": "exec('x = 1')\nprint(x)\n",
    "package/__init__.py": "from package.own import value\nfrom .own import value as other\n",
    "package/own.py": "value = 1\n",
}


def test_an_attribute_of_what_a_call_returns_is_named_and_not_the_function_that_is_called():
    report = check("""\
        from pathlib import Path
        Path("a").walk()
        sorted([1]).zap()
        Path(
            "a",
        ).resolve().bar
        [1][int("0")].huh()
        """)
    assert findings(report) == [
        ("available", 2, "walk"), ("symbols", 3, "zap"), ("symbols", 4, "bar"), ("symbols", 7, "huh"),
    ]  # fmt: skip


def test_wrong_types_and_symbols_that_the_code_provides_for_are_not_missing():
    report = check(CORRECT, "3.10")
    assert findings(report) == []
    assert {(row.file, row.line, row.symbol) for row in report.unknown} == {
        ("stored.py", 3, "f.calls"),
        ("names.py", 2, "x"),
    }


def test_what_another_version_has_is_not_available_and_exists():
    code = "import itertools, tomllib, distutils\nfrom asyncio import TaskGroup\nprint(itertools.batched([1], 2), TaskGroup, tomllib)\n"
    code += "try:\n    import tomllib\nexcept ImportError:\n    import no_such_package\n"
    report = check(code, "3.10")
    assert findings(report) == [
        ("not_deprecated", 1, "distutils"),
        ("available", 1, "tomllib"),
        ("available", 2, "TaskGroup"),
        ("available", 3, "itertools.batched"),
        ("symbols", 7, "no_such_package"),
    ]
    assert report.findings[3].message.endswith("It exists in Python 3.12, 3.13, 3.14, 3.15")
    assert findings(check(code, "3.12")) == [("available", 1, "distutils")]


HOSTILE = {
    "answer.py": "# mypy: ignore-errors\nimport os  # ty: ignore\nos.nope()  # type: ignore\nos.no()  # noqa # ty: ignore[unresolved-attribute]\n",
    "pyproject.toml": '[tool.ty.rules]\nall = "ignore"\n',
    "ty.toml": '[rules]\nall = "ignore"\n',
    "sitecustomize.py": "raise SystemExit(0)\n",
    "typing.py": "x = 1\n",
    "hidden.py": "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    import os\n    os.nope()\n",
    "unchecked.py": "import os, typing as t\n@t.no_type_check\ndef f():\n    os.nope()\n",
    "parentheses.py": "x = " + "(" * 500 + ")" * 500,
    "signs.py": "x = " + "-" * 100_000 + "1",
    "parts.py": "x = " + "a." * 50_000 + "b",
    "null.py": "x = 1\0",
    "encoding.py": "# coding: rot13\nx = 1",
    "surrogate.py": "x = '\ud800'",
    "syntax.py": "def f(:\n    pass\n",
    "return.py": "return 1\n",
    "../out.py": "x = 1\n",
    "/out.py": "x = 1\n",
    "-x.py": "x = 1\n",
    "y" * 300 + ".py": "x = 1\n",
}


def test_nothing_in_the_answer_changes_how_it_is_checked():
    report = check(HOSTILE)
    refused = {*list(HOSTILE)[7:]}
    assert {row.file for row in report.findings if row.check is CodeCheck.COMPILES} == refused
    symbols = [(row.file, row.line) for row in report.findings if row.check is CodeCheck.SYMBOLS]
    assert symbols == [("answer.py", 3), ("answer.py", 4)]
    noted = " ".join(report.notes)
    assert all(name in noted for name in ("pyproject.toml", "ty.toml", "typing.py", "hidden.py", "unchecked.py"))
    hidden = check({name: HOSTILE[name] for name in ("typing.py", "hidden.py")})
    assert hidden.states[CodeCheck.COMPILES] is PASSED
    assert hidden.states[CodeCheck.SYMBOLS] is MISSING


def test_syntax_is_that_of_the_target():
    assert check("type X = int\n", "3.12").states[CodeCheck.COMPILES] is PASSED
    report = check("match 1:\n    case _: pass\ntry:\n    pass\nexcept* OSError:\n    pass\n", "3.10")
    assert findings(report) == [("compiles", 5, "")]
    assert report.states[CodeCheck.SYMBOLS] is MISSING


def test_no_code_fails_and_an_unknown_version_leaves_every_check_open():
    assert check({}).states[CodeCheck.COMPILES] is FAILED
    assert set(check("x = 1\n", "2.7").states.values()) == {MISSING}


def test_without_the_type_checker_nothing_passes(tmp_path):
    program = tmp_path / "ty"
    program.write_text("#!/bin/sh\necho ty 0.0.1\n")
    program.chmod(0o755)
    for path in (str(program), str(tmp_path / "none")):
        report = event_loop().run(PythonChecker(program=path).check({"a.py": "x = 1\n"}, Target("python")))
        assert report.states[CodeCheck.SYMBOLS] is MISSING
        assert "ty" in report.notes[0]


def test_many_attributes_in_f_strings_are_read_within_the_limits(tmp_path: Path):
    (tmp_path / "a.py").write_text("import sys\n" + "print(f'{sys.path} {sys.argv} {sys.nowhere}')\n" * 1500)
    found = event_loop().run(facts.inspect_files(tmp_path, ["a.py"]))["a.py"]
    assert (found.error, found.unread, len(found.members)) == ("", "", 4500)


def test_code_that_cannot_be_read_within_the_limits_is_undecided_and_is_not_said_not_to_compile(
    monkeypatch: pytest.MonkeyPatch,
):
    inspects = facts._inspect

    async def ends_at_long(folder: Path, files: Sequence[str]) -> ProgramOutput:
        before = list(itertools.takewhile(lambda name: name != "long.py", files))
        found = await inspects(folder, before) if before else ProgramOutput(b"", "", None)
        return found if before == files else replace(found, stderr="", status=None)

    monkeypatch.setattr(facts, "_inspect", ends_at_long)
    texts = {"first.py": "import long\n", "long.py": "value = 1\n", "other.py": "import os\nos.nowhere\n"}
    report = check(texts)
    assert report.states == {**dict.fromkeys(CODE_CHECKS, MISSING), CodeCheck.SYMBOLS: FAILED}
    assert findings(report) == [("symbols", 2, "os.nowhere")]
    assert report.notes == ("long.py: the compiler reached the limits of this check: time limit",)


def test_code_that_is_nested_too_deeply_to_be_read_compiles():
    report = check("x = " + "f'{1}' + " * 900 + "1\n")
    assert report.states[CodeCheck.COMPILES] is PASSED
    assert {report.states[each] for each in CODE_CHECKS if each is not CodeCheck.COMPILES} == {MISSING}
    assert report.notes == ("a.py: it is nested too deeply to be read",)
