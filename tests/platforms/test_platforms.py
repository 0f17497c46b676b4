"""What each operating system can do: the table, its errors, and the package on a Python without the calls of POSIX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cranfield.base.errors import PlatformError
from cranfield.base.platforms import FEATURES, NAMES, PROGRAMS, Feature, missing, platform_name, require

CRANFIELD = [sys.executable, "-m", "cranfield"]
ON_WINDOWS = CRANFIELD if sys.platform == "win32" else ["quick-python", str(Path(__file__).with_name("windows.py"))]
"""The command on Windows; elsewhere in a process that lacks what Windows lacks."""
HERE = ON_WINDOWS if sys.platform == "linux" else CRANFIELD
"""The command that is tried: on Linux, where all other tests run, as it is on Windows."""
TESTSET = """
cranfield_testset: 1
name: shop
queries:
  - {id: q1, text: red shoes, judgments: {a: 1}}
  - {id: q2, text: rain coat, judgments: {b: 1}}
"""
FUNCTIONS = """
def old(query, k):
    return ["a", "c"][:k]

def new(query, k):
    return ["a" if "red" in query else "b"][:k]
"""
CONFIG = """
testset: shop.yaml
primary: RR
systems:
  old: {python: "shop:old"}
  new: {python: "shop:new"}
"""
COMMAND = '{command: ["{python}", "-c", "print(1)", "{query}"], extract: {regex: "(?P<id>.)"}}'
GATE = """
gate:
  system: new
  rules:
    - floor: {measure: RR, at_least: 0.5}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(TESTSET)
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "a.run").write_text("q1 Q0 a 1 2 x\nq2 Q0 c 1 2 x\n")
    (tmp_path / "b.run").write_text("q1 Q0 a 1 2 x\nq2 Q0 b 1 2 x\n")
    return tmp_path


class Windows:
    """The command on Windows, in forks of a process that lacks what Windows lacks."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*ON_WINDOWS, "--answer"], stdin=pipe, stdout=pipe, text=True)

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: dict[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        streams = [folder / f"stream-{number}" for number in range(3)]
        for path, text in zip(streams, (stdin, "", ""), strict=True):
            path.write_text(text, encoding="utf-8")
        request = {"arguments": arguments, "folder": str(folder), "environment": environment}
        request["streams"] = [str(path) for path in streams]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        _, out, err = (path.read_text(encoding="utf-8") for path in streams)
        for path in streams:
            path.unlink()
        return subprocess.CompletedProcess(arguments, status, out, err)


@cache
def windows() -> Windows:
    """Started at its first use."""
    return Windows()


@pytest.fixture(scope="module", autouse=True)
def end_of_windows(request: pytest.FixtureRequest) -> Iterator[None]:
    if sys.platform == "linux":
        request.getfixturevalue("quick_python")
    yield
    if windows.cache_info().currsize:
        windows().process.communicate()
        windows.cache_clear()


def call(
    program: list[str], folder: Path, *arguments: str, code: int = 0, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CRANFIELD_CACHE": str(folder / "cache")}
    if program is ON_WINDOWS and sys.platform != "win32":
        done = windows().run(arguments, folder, environment, stdin)
    else:
        done = subprocess.run(
            [*program, *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8", input=stdin
        )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="these have everything")
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.title)
def test_linux_and_macos_miss_nothing(feature: Feature) -> None:
    assert missing(feature) == ()
    require(feature)


def test_what_is_missing_is_named_with_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.killpg")
    monkeypatch.setattr("sys.platform", "win32")
    assert missing(PROGRAMS) == ("os.killpg",)
    with pytest.raises(PlatformError) as raised:
        require(PROGRAMS, "this")
    assert str(raised.value).splitlines() == [
        "this does not work on Windows; expected an operating system with os.killpg.",
        "Hint: use Linux or macOS; on Windows, use the Windows Subsystem for Linux (WSL).",
    ]


def test_a_module_that_is_missing_is_missing_with_its_names() -> None:
    assert missing(Feature("flying", ("no_such_module.wings", "os.wings", "os"))) == (
        "no_such_module.wings",
        "os.wings",
    )


def test_a_platform_without_a_name_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "emscripten")
    assert platform_name() == "emscripten"
    assert set(NAMES) >= {"linux", "darwin", "win32"}


def test_what_is_refused_says_so_in_the_column_of_windows() -> None:
    assert [each.title for each in FEATURES if each.refused and not each.windows.startswith("no")] == []


@pytest.mark.skipif(sys.platform != "linux", reason="imports every library")
def test_every_module_is_imported_without_the_calls_of_posix(tmp_path: Path) -> None:
    assert call([*ON_WINDOWS, "--import-everything"], tmp_path).stdout.startswith("imported")


def test_files_are_evaluated_and_compared(shop: Path) -> None:
    assert "0.5000" in call(HERE, shop, "evaluate", "shop.yaml", "a.run").stdout
    assert "0.5000" in call(HERE, shop, "evaluate", "shop.yaml", "-", stdin=(shop / "a.run").read_text()).stdout
    compared = call(HERE, shop, "compare", "shop.yaml", "a.run", "b.run", "--html", "report.html").stdout
    assert "VERDICT: no significant difference" in compared
    assert (shop / "report.html").read_text().startswith("<!doctype html>")
    call(HERE, shop, "testset", "validate", "shop.yaml")


def test_python_functions_are_run_and_their_run_is_resumed_and_remembered(shop: Path) -> None:
    first = call(HERE, shop, "run")
    assert "VERDICT" in first.stdout
    runs = sorted(path.name for path in shop.rglob("runs/*"))
    assert runs == ["new.jsonl", "new.log.jsonl", "old.jsonl", "old.log.jsonl"]
    call(HERE, shop, "run")
    assert len((shop / ".cranfield" / "history.jsonl").read_text().splitlines()) == 4
    assert "RR" in call(HERE, shop, "history").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a link takes a right there")
def test_an_output_folder_that_is_a_link_is_refused(shop: Path) -> None:
    call(HERE, shop, "run", "--out", "out")
    (shop / "out" / "runs").rename(shop / "elsewhere")
    (shop / "out" / "runs").symlink_to(shop / "elsewhere")
    assert "a symbolic link" in call(HERE, shop, "run", "--out", "out", code=2).stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS starts programs")
@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        (["run"], "Starting other programs"),
        (["gate"], "a gate on a Python function, which needs its own process,"),
        (["demo"], "the demo, which starts its search systems as programs,"),
        (["serve", "cranfield.yaml"], "The server and its schedule"),
        (["watch"], "The server and its schedule"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_needs_programs_is_refused_in_one_sentence(shop: Path, arguments: list[str], subject: str) -> None:
    config = CONFIG + GATE if arguments == ["gate"] else CONFIG.replace('{python: "shop:old"}', COMMAND)
    (shop / "cranfield.yaml").write_text(config)
    said = call(ON_WINDOWS, shop, *arguments, code=2)
    (error, hint) = said.stderr.splitlines()[-2:]
    assert error.startswith(f"error: {subject} does not work on Windows; expected an operating system with os.killpg")
    assert hint.startswith("Hint: ")
    assert said.stderr.count("error:") == 1
