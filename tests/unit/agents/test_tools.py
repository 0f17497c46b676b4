"""Tools over a snapshot: what they show, what they refuse, and that `reads` is what was shown."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cranfield.agents.loop import RESULT_CHARS, Read, ToolResult
from cranfield.agents.protocol import ToolCall
from cranfield.agents.tools.source import HISTORY_TOOLS, TOOL_NAMES, AllowedTools, SourceTools, ToolLimits
from cranfield.repo.hashes import glob_regex
from cranfield.repo.snapshot import GitHistory, Snapshot, take

FILES = {
    "src/index.py": 'class Index:\n    """All of it."""\n\n    def add(self, item):\n        return item\n',
    "src/store/disk.py": "from src.index import Index\n\nINDEX = Index()\n",
    "docs/guide.md": "# Guide\n\n## Install\n\nRun it.\n",
    "empty.txt": "",
    "wide.js": f"var a = 1;\nvar b = '{'x' * 5000}';\nvar c = 3;\n",
    "many.txt": "".join(f"line {n} of many\n" for n in range(1, 1201)),
    "private.txt": "the Index of secrets\n",
}


def folder(root: Path) -> Snapshot:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "data.bin").write_bytes(b"\0\1\2Index")
    (root / "link.py").symlink_to(root / "src/index.py")
    return take(root)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return folder(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def tools(snapshot: Snapshot) -> Iterator[SourceTools]:
    made = SourceTools(snapshot, withheld={"private.txt"})
    yield made
    asyncio.run(made.aclose())


def use(tools: Any, name: str, **arguments: Any) -> ToolResult:
    result = asyncio.run(tools.call(ToolCall("1", name, json.dumps(arguments))))
    assert isinstance(result, ToolResult)
    return result


def test_files_are_listed_with_their_lines_and_those_withheld_do_not_exist(tools: SourceTools) -> None:
    text = use(tools, "list_files").text
    assert text.splitlines() == [
        "7 files",
        "data.bin (no text)",
        "docs/guide.md (5 lines)",
        "empty.txt (0 lines)",
        "many.txt (1200 lines)",
        "src/index.py (5 lines)",
        "src/store/disk.py (3 lines)",
        "wide.js (3 lines)",
    ]
    assert use(tools, "list_files", folder="src/", glob="*.py").text.splitlines()[1:] == [
        "src/index.py (5 lines)",
        "src/store/disk.py (3 lines)",
    ]
    assert use(tools, "list_files", folder="./src/store", glob="src/**").text.splitlines()[0] == "1 file"
    assert use(tools, "list_files", glob="*.rb").text == "no file matches"
    for name, arguments in (("read_file", {"path": "private.txt"}), ("outline", {"path": "private.txt"})):
        refused = use(tools, name, **arguments)
        assert refused.is_error
        assert "there is no file private.txt" in refused.text
    assert "private" not in use(tools, "search", pattern="Index").text


def test_search_shows_hits_with_context_and_both_count_as_read(tools: SourceTools) -> None:
    found = use(tools, "search", pattern=r"\bIndex\b")
    assert found.text.splitlines() == [
        "3 hits in 2 files",
        "src/index.py:1:class Index:",
        "src/store/disk.py:1:from src.index import Index",
        "src/store/disk.py:3:INDEX = Index()",
    ]
    near = use(tools, "search", pattern="DEF ADD(", literal=True, ignore_case=True, context=1, glob="*.py")
    assert near.text.splitlines()[1:] == [
        "src/index.py-3-",
        "src/index.py:4:    def add(self, item):",
        "src/index.py-5-        return item",
    ]
    assert near.reads == (Read("src/index.py", 3, 5),)
    apart = use(tools, "search", pattern="line (3|9) of", context=1)
    assert "--" in apart.text.splitlines()
    assert apart.reads == (Read("many.txt", 2, 4), Read("many.txt", 8, 10))
    few = use(tools, "search", pattern="many", limit=2)
    assert few.text.splitlines()[0] == "1200 hits in 1 file"
    assert few.text.splitlines()[-1].startswith("... 1198 hits more")
    assert few.reads == (Read("many.txt", 1, 2),)
    assert use(tools, "search", pattern="nowhere to be found").text == "no hits"


def test_lines_of_a_file_are_numbered_and_cut_below_the_limit(tools: SourceTools) -> None:
    shown = use(tools, "read_file", path="src/index.py", start=4)
    assert shown.text.splitlines() == [
        "src/index.py, lines 4 to 5 of 5",
        "     4\t    def add(self, item):",
        "     5\t        return item",
    ]
    assert shown.reads == (Read("src/index.py", 4, 5),)
    long = use(tools, "read_file", path="./many.txt", end=9_999)
    assert long.reads == (Read("many.txt", 1, 500),)
    assert long.text.splitlines()[-1] == "... not shown up to line 1200: read from line 501"
    wide = use(tools, "read_file", path="wide.js")
    assert wide.reads == (Read("wide.js", 1, 1), Read("wide.js", 3, 3)), "a line that was cut is not read"
    assert "4,011 more characters" in wide.text
    assert use(tools, "read_file", path="empty.txt").text == "empty.txt has no lines"


def test_an_outline_has_ids_and_lines(tools: SourceTools) -> None:
    found = use(tools, "outline", path="src/index.py")
    assert found.text.splitlines() == [
        "src/index.py: 5 lines, 2 symbols",
        "1-5 class src/index.py::Index",
        "4-5 method src/index.py::Index.add",
    ]
    assert found.reads == (), "no line was shown"
    assert "3-5 section docs/guide.md::Guide > Install" in use(tools, "outline", path="docs/guide.md").text


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {"path": "../secret"}, "without `..`"),
        ("read_file", {"path": "/etc/passwd"}, "relative to the repository"),
        ("list_files", {"folder": "src/../.."}, "without `..`"),
        ("read_file", {"path": "link.py"}, "there is no file link.py"),
        ("read_file", {"path": "index.py"}, "files of that name: src/index.py"),
        ("read_file", {"path": "src"}, "is a folder"),
        ("read_file", {"path": "data.bin"}, "binary"),
        ("read_file", {"path": "src/index.py", "start": 6}, "has 5 lines"),
        ("read_file", {"path": "src/index.py", "start": 0}, "start: Input should be greater than or equal to 1"),
        ("read_file", {}, "path: Field required. Expected an object with: path, start (optional), end (optional)"),
        ("read_file", {"path": "src/index.py", "line": 3}, "line: Extra inputs"),
        ("search", {"pattern": "(a"}, "no regular expression of Python: missing ), unterminated subpattern"),
        ("search", {"pattern": "a\nb"}, "no line end"),
        ("search", {"pattern": "a", "glob": "*.{py"}, "a brace of the pattern"),
        ("list_files", {"folder": "nowhere"}, "there is no folder nowhere"),
        ("git_log", {}, "there is no tool 'git_log'"),
    ],
)
def test_a_wrong_call_is_an_error_that_says_what_is_expected(
    tools: SourceTools, name: str, arguments: dict[str, Any], words: str
) -> None:
    result = use(tools, name, **arguments)
    assert (result.is_error, result.reads) == (True, ())
    assert words in result.text
    assert result.text.startswith("error: ")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_arguments_that_are_no_object_are_an_error(tools: SourceTools, text: str) -> None:
    assert asyncio.run(tools.call(ToolCall("1", "read_file", text))).is_error


def test_a_search_without_end_is_ended_and_the_next_one_succeeds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 60 + "!\nshort\n")
    tools = SourceTools(take(tmp_path), limits=ToolLimits(search_s=0.2))

    async def both() -> list[ToolResult]:
        bad, good = (ToolCall("1", "search", json.dumps({"pattern": each})) for each in ("(a+)+$", "short"))
        try:
            return await asyncio.gather(tools.call(bad), tools.call(good))
        finally:
            await tools.aclose()

    late, found = asyncio.run(both())
    assert late.is_error
    assert "took over 0.2 s" in late.text
    assert found.text.splitlines()[1] == "a.txt:2:short"
    assert tools._process.n_started == 2


def test_history_ends_at_the_commit_and_shows_no_contents(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        about = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *about, *arguments], check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "a.py").write_text("x = 1\ny = 3\n")
    git("commit", "-qam", "second: change y")
    (tmp_path / "a.py").write_text("x = 9\ny = 9\n")
    git("commit", "-qam", "later")
    snapshot = take(tmp_path, "HEAD~1")
    tools = SourceTools(snapshot, git=GitHistory.of_snapshot(snapshot))
    log = use(tools, "git_log", path="a.py").text.splitlines()
    assert [line.partition(" Ann: ")[2] for line in log] == ["second: change y", "first"]
    blamed = use(tools, "git_blame", path="a.py", start=1, end=50)
    assert [re.sub(r" \w{10} [\d-]{10} ", " ", line) for line in blamed.text.splitlines()] == [
        "1-1 Ann: first",
        "2-2 Ann: second: change y",
    ]
    assert blamed.reads == ()
    assert use(tools, "git_log", path="nowhere").is_error
    assert tools.tool_versions()["git"][0].isdigit()
    asyncio.run(tools.aclose())
    allowed = AllowedTools(tools, frozenset(TOOL_NAMES) - HISTORY_TOOLS)
    assert [tool.name for tool in allowed.tools] == ["list_files", "search", "read_file", "outline"]
    assert use(allowed, "git_log").is_error


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("*.py", ["a.py", "src/a.py"], ["a.pyc", "a/py"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["lib/src/a.py"]),
        ("src/", ["src/a", "src/x/a"], ["srca", "src"]),
        ("/a.?s", ["a.ts"], ["a.s", "x/a.js"]),
        ("*.{yml,yaml}", ["a.yml", "x/b.yaml"], ["a.yxml"]),
        ("[!a]b", ["cb"], ["ab", "b"]),
        ("a+b(c)", ["a+b(c)"], ["aab(c)", "a+b"]),
        ("[z-a]", ["[z-a]"], ["z"]),
    ],
)
def test_patterns_of_paths(glob: str, matches: list[str], others: list[str]) -> None:
    pattern = re.compile(glob_regex(glob))
    assert [path for path in (*matches, *others) if pattern.fullmatch(path)] == matches


@settings(max_examples=min(50, settings().max_examples))
@given(glob=st.text("ab*?[],!-/^\\.", max_size=12))
@example("[?--]")
def test_every_pattern_of_paths_without_braces_is_an_expression(glob: str) -> None:
    re.compile(glob_regex(glob))


@settings(max_examples=min(40, settings().max_examples))
@given(data=st.data())
def test_reads_are_exactly_the_lines_that_were_shown(tools: SourceTools, data: st.DataObject) -> None:
    """Numbers in the text of a result are those of its reads, whatever was asked for."""
    if data.draw(st.booleans()):
        start, size = data.draw(st.integers(1, 1200)), data.draw(st.integers(0, 2000))
        result = use(tools, "read_file", path="many.txt", start=start, end=start + size)
        shown = {("many.txt", int(number)) for number in re.findall(r"^ *(\d+)\t", result.text, re.MULTILINE)}
    else:
        digits, context = data.draw(st.integers(0, 99)), data.draw(st.integers(0, 10))
        limit = data.draw(st.integers(1, 200))
        result = use(tools, "search", pattern=f"{digits} of|Index", context=context, limit=limit)
        shown = {
            (path, int(number)) for path, number in re.findall(r"^([\w./]+)[:-](\d+)[:-]", result.text, re.MULTILINE)
        }
    assert {(read.path, line) for read in result.reads for line in range(read.start, read.end + 1)} == shown
    assert len(result.text) < RESULT_CHARS
