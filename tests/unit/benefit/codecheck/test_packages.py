"""Symbols of packages: what is there, what is missing, and what cannot be known."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.unit.benefit.codecheck.environments import THIS, environment

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python import environment as python_environment
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.python.environment import Environment, existing_environment
from cranfield.benefit.codecheck.python.facts import FileFacts
from cranfield.benefit.codecheck.python.reading import components
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target

FAILED, PASSED, UNKNOWN, MISSING = CheckState.FAILED, CheckState.PASSED, CheckState.UNKNOWN, CheckState.MISSING
in_sandbox = pytest.mark.skipif(not shutil.which("bwrap"), reason="packages are imported in bubblewrap alone")
PACKAGES = {
    "typed/py.typed": "",
    "typed/__init__.py": """
        from typing import TYPE_CHECKING, Any
        from typed._inner import Thing as Thing, make as make
        if TYPE_CHECKING:
            class Hidden: ...
        def function(a: int, *, b: int = 1) -> "Thing": return Thing()
        """,
    "typed/_inner.py": """
        class Thing:
            \"\"\"A thing.\"\"\"
            def __init__(self) -> None:
                self.made = 1
            def again(self) -> "Thing": return self
        def make() -> Thing: return Thing()
        """,
    "typed/apart.py": "value = 1\n",
    "untyped/__init__.py": """
        import sys
        for _name in ("first", "second"):
            globals()[f"{_name}_made"] = 1
        class Client:
            def __init__(self, url):
                self.url = url
            def get(self, path, *, timeout=1): return Reply()
        class Reply:
            def json(self): return {}
            def __getattr__(self, name):
                if name.startswith("is_"): return True
                raise AttributeError(name)
        class Record:
            def __init__(self, **values): self.__dict__.update(values)
        setattr(Client, "patched", lambda self: 1)
        def connect(url, retries=3): return Client(url)
        """,
    "untyped/tools.py": "def sharpen(): ...\n",
    "frames/__init__.pyi": """
        class Column:
            def top(self) -> int: ...
        class Frame:
            def head(self) -> Frame: ...
            def __getattr__(self, name: str) -> Column: ...
        """,
    "frames/__init__.py": "class Frame:\n    def head(self): return self\n    def __getattr__(self, name): raise AttributeError(name)\nclass Column:\n    def top(self): return 1\n",
    "anything.py": "def __getattr__(name): return name\nreal = 1\n",
    "lazy/__init__.py": """
        _parts = {"heavy"}
        def __getattr__(name):
            if name in _parts:
                import importlib
                return importlib.import_module(f"lazy.{name}")
            if name == "gone":
                raise ImportError("`gone` has been moved to lazy-extra")
            if name == "old":
                import warnings
                warnings.warn("old is deprecated, use heavy", DeprecationWarning, stacklevel=2)
                return 1
            raise AttributeError(f"module lazy has no attribute {name}")
        """,
    "lazy/heavy.py": "def lift(): ...\n",
    "imp_old.py": "import warnings\nwarnings.warn('The imp_old module is deprecated', DeprecationWarning)\n",
    "imp_new.py": "import warnings\nwarnings.warn('the argument imp_new of f is deprecated', DeprecationWarning)\n",
    "ext/__init__.py": "import sys, types\nsys.modules['ext._core'] = core = types.ModuleType('ext._core')\ncore.Fast = type('Fast', (), {'run': lambda self: 1})\n",
    "stubbed-stubs/__init__.pyi": "class Thing:\n    def real(self) -> int: ...\ndef promised() -> Thing: ...\n",
    "stubbed/__init__.py": "class Thing:\n    def real(self): return 1\n    def extra(self): return 2\ndef more(): ...\n",
    "old/__init__.py": '''
        import warnings
        from typing_extensions_here import deprecated
        @deprecated("use new_call")
        def call(): ...
        def new_call(): ...
        def noted():
            """Do it.

            .. deprecated:: 2.1
               Use `new_call`.
            """
        def part(inst=None):
            """Do it.

            It takes what it needs, and more.

            .. deprecated:: 1.0 pass `inst` by position
            """
        class Tool:
            @deprecated("use Tool.new")
            def use(self): ...
            def new(self): ...
        ''',
    "old/py.typed": "",
    "typing_extensions_here.py": """
        def deprecated(message):
            def mark(function):
                function.__deprecated__ = message
                return function
            return mark
        """,
}  # fmt: skip
VERSIONS = {"typed": "1.2.3", "untyped": "0.9", "lazy": "4.0", "stubbed": "2.0", "old": "3.1"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("environment") / "venv", PACKAGES, VERSIONS)


def check(where: str, code: str, *, sandbox: str = "", version: str = THIS, tests: str = "") -> CheckReport:
    target = Target("python", "linux", version, environment=where)
    return event_loop().run(PythonChecker(sandbox=sandbox).check({"main.py": dedent(code)}, target, tests))


def by_line(report: CheckReport) -> dict[int, str]:
    """`missing`, `deprecated` or `unknown`, by line; what is not named is there."""
    kinds = {CodeCheck.NOT_DEPRECATED: "deprecated", CodeCheck.SYMBOLS: "missing", CodeCheck.AVAILABLE: "elsewhere"}
    unknown = {row.line: "unknown" for row in report.unknown if row.check is CodeCheck.SYMBOLS}
    return unknown | {row.line: kinds[row.check] for row in report.findings}


def marked(code: str) -> tuple[str, dict[int, str]]:
    """Code, and what its comments `#! kind` expect."""
    lines = enumerate(dedent(code).splitlines(), 1)
    return code, {number: line.partition("#! ")[2] for number, line in lines if "#! " in line}


@in_sandbox
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            """\
            import typed as t, untyped
            from typed import function, nothing  #! missing
            from typed import Hidden  #! missing
            from untyped import first_made, third_made  #! missing
            import typed.apart, typed.absent  #! missing
            import not_installed  #! missing
            not_installed.anything()
            t.Thing().again().again().agian()  #! missing
            t.make().made + t.apart.value
            t.nowhere  #! missing
            t.nowhere.deeper()  #! missing
            untyped.second_made, untyped.fourth_made  #! missing
            untyped.tools  #! missing
            client = untyped.Client("x")
            client.patched()
            client.fetch("x")  #! missing
            client.get("x").json()  #! unknown
            untyped.connect("x", retries=2)
            untyped.connect("x", retrys=2)  #! missing
            function(1, c=2)  #! missing
            print(f"{t.nowhere}")  #! missing
            """,
            id="there or missing",
        ),
        pytest.param(
            """\
            import anything, frames, lazy, untyped
            from anything import whatever  #! unknown
            from lazy import gone  #! missing
            anything.real, lazy.heavy.lift()
            anything.other  #! unknown
            lazy.light  #! missing
            reply = untyped.Client("x").get("x")
            reply.is_fine  #! unknown
            untyped.Record(a=1).a  #! unknown
            def read(rows, names: list[str], untyped):
                rows.strip().lower()  #! unknown
                names.append("x")
                untyped.nope  #! unknown
            frame = frames.Frame()
            frame.head().head()
            frame.price.top()  #! unknown
            frame.price.topp()  #! missing
            def kept(tools: untyped.Client, other: untyped.Klient) -> None:  #! missing
                tools.url
            """,
            id="what cannot be known",
        ),
        pytest.param(
            """\
            import ext, stubbed
            from ext._core import Fast, Slow  #! missing
            Fast().run()  #! unknown
            stubbed.promised()  #! missing
            stubbed.more()
            stubbed.Thing().extra() + stubbed.Thing().real()
            stubbed.Thing().fake()  #! missing
            """,
            id="types that are missing, or are not those of the code",
        ),
        pytest.param(
            """\
            import imp_new, old, lazy
            import imp_old  #! deprecated
            from old import call  #! deprecated
            old.noted()  #! deprecated
            old.new_call()
            old.part()
            old.Tool().use()  #! deprecated
            lazy.old  #! deprecated
            """,
            id="deprecated",
        ),
        pytest.param(
            """\
            import typed, untyped
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from typed import Hidden
            if hasattr(typed, "later"):
                typed.later
            try:
                from typed import faster
            except ImportError:
                faster = None
            try:
                untyped.rare
            except AttributeError:
                pass
            try:
                from typed import make as build
            except ImportError:
                from typed import old_make as build
            try:
                from typed import new_make as build
            except ImportError:
                from typed import older_make as build  #! missing
            match object():
                case untyped.Client():
                    pass
                case untyped.Nothing():  #! missing
                    pass
            untyped.extra = 1
            untyped.extra  #! unknown
            """,
            id="what the code provides for",
        ),
    ],
)  # fmt: skip
def test_each_symbol_is_there_or_missing_or_unknown(packages: str, code: str):
    code, expected = marked(code)
    report = check(packages, code)
    assert by_line(report) == expected, [*report.findings, *report.unknown, *report.notes]


@in_sandbox
def test_a_missing_symbol_names_the_version_that_is_installed_and_a_submodule_its_import(packages: str):
    report = check(
        packages, "import typed, untyped\ntyped.nope\nuntyped.tools\nfrom lazy import gone\ntyped.Thing().zap()\n"
    )
    assert [row.message for row in report.findings] == [
        "Module `typed` has no member `nope` (typed 1.2.3)",
        "untyped.tools is a module that nothing imports: `import untyped.tools` (untyped 0.9)",
        "`gone` has been moved to lazy-extra (lazy 4.0)",
        "Object of type `Thing` has no attribute `zap` (typed 1.2.3)",
    ]
    assert report.versions.items() >= {"typed": "1.2.3", "lazy": "4.0"}.items()


@in_sandbox
def test_what_is_deprecated_is_told_in_the_words_of_the_package(packages: str):
    report = check(packages, "import old, lazy\nold.call()\nold.noted()\nlazy.old\nold.part()\n")
    assert [row.current for row in report.findings] == [
        "use new_call",
        "deprecated: 2.1 Use `new_call`.",
        "old is deprecated, use heavy",
    ]
    assert report.states[CodeCheck.SYMBOLS] is PASSED
    (perhaps,) = report.unknown
    assert (perhaps.line, perhaps.check) == (5, CodeCheck.NOT_DEPRECATED)
    only = check(packages, "import old\nold.part()\n")
    assert (only.states[CodeCheck.SYMBOLS], only.states[CodeCheck.NOT_DEPRECATED]) == (PASSED, UNKNOWN)
    assert "pass `inst` by position" in only.notes[0]


def test_without_a_sandbox_nothing_is_imported_and_what_only_that_would_tell_is_unknown(packages: str, tmp_path: Path):
    code, expected = marked("""\
        import typed, untyped, ext, lazy
        typed.nope  #! missing
        typed.Thing().agian()  #! missing
        typed.Thing().again()
        untyped.Client("x").url
        untyped.first_made  #! unknown
        lazy.heavy  #! unknown
        untyped.Client("x").fetch()  #! unknown
        "a".fetch()  #! missing
        from ext._core import Fast  #! unknown
        import anything
        def f(a: typed.Thing, b: untyped.Client, c: typed.Thin) -> anything.X: ...  #! missing
        def g(a: typed.Thing, b: untyped.Client) -> anything.X: ...  #! unknown
        def h(a: typed.Thing, b: untyped.Client) -> None: ...
        """)
    report = check(packages, code, sandbox=str(tmp_path / "none"))
    assert by_line(report) == expected
    assert report.states[CodeCheck.NOT_DEPRECATED] is UNKNOWN
    assert all("packages are imported only in a sandbox, but bubblewrap" in note for note in report.notes)
    quiet = check(packages, "import typed\ntyped.Thing().again()\n", sandbox=str(tmp_path / "none"))
    assert (quiet.states[CodeCheck.SYMBOLS], quiet.states[CodeCheck.NOT_DEPRECATED]) == (PASSED, UNKNOWN)


HOSTILE = {
    "ends.py": "import os\nos._exit(0)\n",
    "leaves.py": "raise SystemExit(0)\n",
    "breaks.py": "1 / 0\n",
    "lies.py": 'print(\'{"state": "there"}\', flush=True)\n',
    "writes.py": "open(__file__ + 'x', 'w')\n",
    "calls.py": "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n",
    "lacks.py": "import not_there\n",
    "good.py": "x = 1\n",
}


@in_sandbox
def test_a_package_that_cannot_be_imported_is_unknown_and_reaches_nothing(tmp_path: Path):
    where = environment(tmp_path / "venv", HOSTILE)
    code = "import ends, leaves, breaks, lies, writes, calls, lacks, good\ngood.x, good.y\n"
    code += "".join(f"{name}.symbol\n" for name in ("ends", "leaves", "breaks", "writes", "calls", "lacks", "lies"))
    report = check(where, code)
    assert [(row.check, row.line) for row in report.findings] == [(CodeCheck.SYMBOLS, 2), (CodeCheck.SYMBOLS, 9)]
    why = {row.line: row.message for row in report.unknown if row.check is CodeCheck.SYMBOLS}
    assert "importing ends ended the process" in why[3]
    for line, name in enumerate(("SystemExit", "ZeroDivisionError", "Read-only", "ConnectionRefused", "not_there"), 4):
        assert name in why[line]
    assert report.states[CodeCheck.SYMBOLS] is FAILED
    assert "6 of" in report.notes[0]


WRITES_TO_ALL = """\
import os
for number in range(3, 10):
    try:
        os.write(number, b'hello\\n{"state": "there"}\\n[]\\n{"number": 0, "state": "there"}\\nno end of line')
    except OSError:
        pass
x = 1
"""


@in_sandbox
def test_what_a_package_writes_to_open_files_is_no_answer(tmp_path: Path):
    files = {"writes.py": WRITES_TO_ALL, "closes.py": "import os\nos.closerange(3, 10)\n", "good.py": "x = 1\n"}
    where = environment(tmp_path / "venv", files)
    report = check(where, "import writes, good\nwrites.nowhere\nwrites.x\ngood.x\ngood.y\n")
    assert [(row.check, row.line) for row in report.findings] == [(CodeCheck.SYMBOLS, 2), (CodeCheck.SYMBOLS, 5)]
    assert not report.unknown
    report = check(where, "import good, closes\ngood.x\ngood.y\ncloses.z\n")
    assert by_line(report) == {3: "missing", 4: "unknown"}
    assert "importing closes ended the process or its output" in report.notes[0]


@in_sandbox
def test_code_of_the_answer_is_not_imported_and_takes_the_place_of_a_package(packages: str):
    files = {"typed.py": "raise SystemExit\n", "main.py": "import typed\ntyped.own = 1\nimport untyped\nuntyped.no\n"}
    target = Target("python", "linux", THIS, environment=packages)
    report = event_loop().run(PythonChecker().check(files, target))
    assert [row.symbol for row in report.findings] == ["untyped.no"]


@in_sandbox
def test_tests_run_with_the_packages(packages: str):
    report = check(packages, "import typed\nx = typed.make().made\n", tests="from main import x\nassert x == 1\n")
    assert set(report.states.values()) == {PASSED}


def test_packages_of_another_system_are_noted(packages: str):
    other = Target("python", "windows", THIS, environment=packages)
    report = event_loop().run(PythonChecker().check({"main.py": "x = 1\n"}, other))
    assert "but the code is for windows" in report.notes[0]


def test_an_environment_that_cannot_be_used_leaves_the_checks_open(packages: str, tmp_path: Path):
    other = "3.12" if THIS != "3.12" else "3.13"
    shared = Path(environment(tmp_path / "shared", {}))
    (shared / "pyvenv.cfg").write_text("include-system-site-packages = true\n")
    for where, version, why in (
        (str(tmp_path), THIS, "has no lib/python3.*/site-packages"),
        (packages, other, f"has Python {THIS}; expected Python {other}"),
        (str(shared), THIS, "shares the packages of another Python"),
    ):
        report = check(where, "import typed\ntyped.nope\n", version=version)
        assert report.states[CodeCheck.COMPILES] is PASSED
        assert {report.states[each] for each in (CodeCheck.SYMBOLS, CodeCheck.AVAILABLE, CodeCheck.NOT_DEPRECATED)} == {
            MISSING
        }
        assert why in report.notes[0]
    target = Target("python", "", THIS, {"typed": "1.2", "untyped": "1", "none": ""}, environment=packages)
    report = event_loop().run(PythonChecker().check({"main.py": "x = 1\n"}, target))
    assert report.notes == ("the packages do not match the target: untyped is 0.9; expected 1; none is not there",)


def test_the_python_of_an_environment_names_it_and_its_version_is_that_of_the_code(packages: str):
    report = check(str(Path(packages) / "bin" / "python"), "import typed\ntyped.make()\n", version="")
    assert report.versions["target"] == THIS
    assert report.states[CodeCheck.SYMBOLS] is PASSED


def test_packages_for_a_python_that_is_not_here_are_not_imported(tmp_path: Path):
    folder = tmp_path / "venv"
    shutil.move(environment(folder, {"untyped.py": "globals()['x'] = 1\n"}), folder)
    (folder / "lib" / f"python{THIS}").rename(folder / "lib" / "python3.14")
    (folder / "bin" / "python").unlink()
    report = check(str(folder), "import untyped\nuntyped.x\n", version="3.14")
    assert by_line(report) == {2: "unknown"}
    assert "no Python 3.14 is available to import packages" in report.notes[0]


@pytest.mark.parametrize(
    ("displayed", "known"),
    [
        ("", []),
        ("Unknown", []),
        ("Unknown | None", []),
        ("None", ["None"]),
        ("int | Unknown", ["int"]),
        ("dict[str, int | None] | str", ["dict[str, int | None]", "str"]),
        ("(x: int | str) -> int", ["(x: int | str) -> int"]),
        ("<module 'a.b'>", ["<module 'a.b'>"]),
        ("@Todo(generic)", []),
    ],
)
def test_types_of_a_union_are_taken_apart(displayed: str, known: list[str]):
    assert components(displayed) == known


NEVER = """\
import asyncio, itertools
from tomllib import laod
from enum import StrEnum
async def f():
    async with asyncio.TaskGroup() as group:
        group.spawn(f())
    asyncio.timeout(1).extend(2)
    asyncio.Runner(debgu=True)
itertools.batched([1], 2).widen()
class Kind(StrEnum):
    A = "a"
Kind.B
class Pool(asyncio.Runner):
    pass
Pool(size=3)
"""


def test_what_no_python_has_does_not_exist_in_one_that_lacks_its_owner():
    target = Target("python", "linux", "3.12")
    report = event_loop().run(PythonChecker().check({"main.py": NEVER}, target))
    assert [(row.check, row.line) for row in report.findings] == [
        (CodeCheck.SYMBOLS, line) for line in (2, 6, 7, 8, 9, 12, 15)
    ]
    assert "It exists" not in " ".join(row.message for row in report.findings)


def test_an_attribute_of_an_object_of_unknown_type_is_counted_and_said():
    code = "def f(rows, n: int = 1):\n    return rows.strip(), n.bit_length(), rows.strip().lower()\n"
    report = event_loop().run(PythonChecker().check({"main.py": code}, Target("python", "linux", "3.12")))
    assert {report.states[each] for each in (CodeCheck.SYMBOLS, CodeCheck.AVAILABLE, CodeCheck.NOT_DEPRECATED)} == {
        UNKNOWN
    }
    assert (report.states[CodeCheck.COMPILES], report.n_unknown, report.n_symbols) == (PASSED, 2, 4)
    (note,) = report.notes
    assert note.startswith("2 of 4 symbols are unknown: main.py:2 rows.strip, main.py:2 rows.strip: the type of")


def test_nothing_of_an_environment_runs_when_it_starts(tmp_path: Path):
    files = {"sitecustomize.py": "raise SystemExit\n", "x.pth": "import os; os._exit(1)\n"}
    report = check(environment(tmp_path / "venv", files), "print(1)\n")
    assert report.states[CodeCheck.SYMBOLS] is PASSED


def editable(folder: Path, place: Path, *, project: Path | None = None) -> str:
    """An environment with an editable package `own`, whose .pth file names a folder."""
    where = environment(folder / "venv", {"untyped.py": "class Client: ...\n"}, {"own": "1.0"})
    site = Path(where) / "lib" / f"python{THIS}" / "site-packages"
    (site / "_own.pth").write_text(f"{place}\n")
    (site / "own-1.0.dist-info" / "RECORD").write_text("_own.pth,,\n")
    if project:
        (site / "own-1.0.dist-info" / "direct_url.json").write_text(f'{{"url": "{project.as_uri()}"}}')
    for name in ("own/__init__.py", "private/__init__.py", "settings.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x = 1\n")
    return where


@in_sandbox
def test_of_a_linked_project_only_the_modules_of_its_package_can_be_read(tmp_path: Path):
    project = tmp_path / "project"
    found = existing_environment(editable(tmp_path, project, project=project))
    assert found.linked == (project / "own",)
    assert set(found.inside.values()) == {found.folder, project / "own"}
    assert found.modules == {"own": "own 1.0", "untyped": ""}
    tests = f"import own\nfrom pathlib import Path\nassert not Path({str(project)!r}).exists()\n"
    tests += "assert [each.name for each in Path(own.__file__).parents[1].iterdir()] == ['own']\n"
    code = "import own\nown.x\nown.nowhere\n"
    report = check(str(tmp_path / "venv"), code.replace("own.nowhere\n", ""), tests=tests)
    assert set(report.states.values()) == {PASSED}, report.findings
    assert by_line(check(str(tmp_path / "venv"), code)) == {3: "missing"}


def test_a_folder_within_a_linked_project_is_all_of_its_package(tmp_path: Path):
    place = tmp_path / "project" / "src"
    found = existing_environment(editable(tmp_path, place, project=tmp_path / "project"))
    assert [path.name for path in found.linked] == ["own", "private", "settings.py"]


def test_a_linked_folder_of_no_package_is_left_out_and_said(tmp_path: Path):
    where = editable(tmp_path, tmp_path / "project")
    site = Path(where) / "lib" / f"python{THIS}" / "site-packages"
    (site / "more.pth").write_text(f"/\n{'x' * 5000}\n\0\n{tmp_path}\n")
    report = check(where, "x = 1\n")
    assert [note.partition(", listed")[0] for note in report.notes] == ["/", f"{tmp_path}"]
    assert "no package lists its modules" in report.notes[0]
    assert set(existing_environment(where).inside.values()) == {site, tmp_path / "project" / "own"}


def test_files_of_an_environment_that_are_not_utf_8_are_said_or_left_out(tmp_path: Path):
    where = Path(environment(tmp_path / "venv", {"tiny.py": "x = 1\n"}, {"tiny": "1.0", "other": "1.0"}))
    site = where / "lib" / f"python{THIS}" / "site-packages"
    (site / "other-1.0.dist-info" / "RECORD").write_bytes(b"\xff,,\n")
    assert existing_environment(str(where)).versions == {"tiny": "1.0"}
    (where / "pyvenv.cfg").write_bytes(b"home = /\xff\n")
    report = check(str(where), "x = 1\n")
    assert report.states[CodeCheck.SYMBOLS] is MISSING
    assert report.notes[0] == f"environment {where}: pyvenv.cfg cannot be read: it is not UTF-8"


def test_texts_of_packages_are_read_once_and_those_that_are_too_large_may_define_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    where = environment(tmp_path / "venv", {"tiny.py": "class Client: ...\n"})
    assert existing_environment(where).may_define("Client")
    assert not existing_environment(where).may_define("Klient")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("read again"))
    assert Environment(existing_folder(where)).may_define("Client")
    monkeypatch.undo()
    monkeypatch.setattr(python_environment, "_MAX_BYTES", 10)
    (existing_folder(where) / "more.py").write_text("x = 1\n")
    assert existing_environment(where).may_define("Klient")


def existing_folder(where: str) -> Path:
    return Path(where) / "lib" / f"python{THIS}" / "site-packages"


def test_uses_are_resolved_once_for_a_file_however_many_attributes_it_reads(packages: str, tmp_path: Path, monkeypatch):
    resolve, n_times = FileFacts.resolved_uses, itertools.count()

    def counted(facts: FileFacts) -> Iterator[tuple[int, int, str]]:
        next(n_times)
        return resolve(facts)

    monkeypatch.setattr(FileFacts, "resolved_uses", counted)
    report = check(packages, "import typed\n" + "typed.make().made\n" * 300, sandbox=str(tmp_path / "none"))
    assert report.n_symbols > 300
    assert next(n_times) < 10
