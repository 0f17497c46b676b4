"""Lines of files are found in what tools print, whatever they print around them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.loop import Read
from cranfield.benefit.shown import ShownLines

STORE = """class Store:
    def add(self, item):
        self.rows.append(item)

    def remove(self, item):
        self.rows.remove(item)

    def __len__(self):
        return len(self.rows)
"""
VIEW = """from store import Store

def show(store):
    for row in store.rows:
        print(row)
        pass
    return len(store.rows)
"""
FILES = {"store.py": STORE, "view.py": VIEW, "copy.txt": "x = 1\ny = 2\n"}
SHOWN = ShownLines(FILES.items())


def lines(path: str, start: int, end: int) -> list[tuple[int, str]]:
    return list(enumerate(FILES[path].split("\n"), start=1))[start - 1 : end]


FORMATS: dict[str, Callable[[str, list[tuple[int, str]]], str]] = {
    "plain": lambda _, found: "\n".join(text for _, text in found),
    "cat -n": lambda _, found: "\n".join(f"{number:>6}\t{text}" for number, text in found),
    "grep": lambda path, found: "\n".join(f"{path}:{number}:{text}" for number, text in found),
    "markdown": lambda path, found: f"## {path}\n```python\n" + "\n".join(text for _, text in found) + "\n```\n",
    "json": lambda path, found: json.dumps({"hits": [{"path": path, "text": "\n".join(text for _, text in found)}]}),
    "arrows": lambda _, found: "\n".join(f"{number:>6}→{text}" for number, text in found),
    "no indent": lambda _, found: "\n".join(text.strip() for _, text in found),
}


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data())
def test_a_block_of_a_file_is_found_in_every_format(form: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(["store.py", "view.py"]))
    n_lines = len(FILES[path].split("\n")) - 1
    start = data.draw(st.integers(1, n_lines - 1))
    end = data.draw(st.integers(start + 1, n_lines))
    block = lines(path, start, end)
    full = [number for number, text in block if text.strip()]
    found = SHOWN.find(FORMATS[form](path, block))
    covered = {number for read in found if read.path == path for number in range(read.start, read.end + 1)}
    wanted = set(range(full[0], full[-1] + 1)) if len(full) > 1 else covered
    assert covered == wanted
    assert {read.path for read in found} <= {path}


def test_blocks_are_found_in_json_that_is_cut_or_has_several_values() -> None:
    hits = [json.dumps({"path": path, "code": FILES[path]}, indent=2) for path in ("store.py", "view.py")]
    whole = (Read("store.py", 1, 9), Read("view.py", 1, 7))
    assert SHOWN.find("\n".join(hits)) == whole  # a result of MCP has one text for each item of a list
    assert SHOWN.find("\n".join(map(json.dumps, map(json.loads, hits)))) == whole
    assert SHOWN.find("found, with \" and ' in the query:\n" + "\n".join(hits)) == whole
    cut = json.dumps(list(map(json.loads, hits)))
    cut = cut[: cut.index("print(row)")] + "\n... 120 more characters are not shown"
    assert SHOWN.find(cut) == (Read("store.py", 1, 9), Read("view.py", 1, 4))
    assert SHOWN.find('{"code": "x = 1\\ny = 2\\u00') == (Read("copy.txt", 1, 2),)


def test_what_is_no_block_of_a_file_is_not_read() -> None:
    assert SHOWN.find("") == ()
    assert SHOWN.find("pass") == ()  # a single short line
    assert SHOWN.find("the class Store has a method add(self, item)") == ()
    assert SHOWN.find("pass\nno line of a file\nprint(row)") == ()
    assert SHOWN.find('{"text": null, "n": [1, true]}') == ()


def test_a_single_line_counts_where_it_is_long_and_stands_once() -> None:
    assert SHOWN.find("store.py:6: self.rows.remove(item)") == (Read("store.py", 6, 6),)
    assert SHOWN.find("x = 1") == ()
    twice = ShownLines([("a.py", "self.rows.remove(item)\n"), ("b.py", "self.rows.remove(item)\n")])
    assert twice.find("self.rows.remove(item)") == ()


def test_blocks_of_two_files_in_one_result_are_two() -> None:
    text = "\n".join(["view.py", *(text for _, text in lines("view.py", 3, 5)), "--", *STORE.splitlines()[:3]])
    assert SHOWN.find(text) == (Read("store.py", 1, 3), Read("view.py", 3, 5))


def test_a_line_that_stands_everywhere_is_found_beside_another() -> None:
    files = [(f"f{n}.py", "import os\n" * 3 + f"value = {n}\n") for n in range(60)]
    found = ShownLines(files)
    assert found.find("import os\nimport os") == ()
    assert found.find("value = 7\nimport os") == ()


@pytest.mark.parametrize(
    "text",
    [
        "see src/kitchen/store.py:12",
        '{"file": "src/kitchen/store.py"}',
        "/home/me/repo/src/kitchen/store.py",
        r"src\\kitchen\\store.py",
        "It is in src/kitchen/store.py.",
        "notes.txt",
    ],
)
def test_a_file_is_named_by_its_whole_path(text: str) -> None:
    assert NAMES.names_file(text)


@pytest.mark.parametrize("text", ["store.py", "kitchen/store.py", "src/kitchen/store.pyc", "README.md", "", "a b"])
def test_a_part_of_a_path_and_a_file_that_every_repository_has_name_nothing(text: str) -> None:
    assert not NAMES.names_file(text)


NAMES = ShownLines([("src/kitchen/store.py", "a"), ("README.md", "b"), ("notes.txt", "c")])
