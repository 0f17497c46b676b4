"""Plain technical English: `words.toml` lists what is not written here."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("words.toml")
WORDS = tomllib.loads(TABLE.read_text())
SUFFIXES = {".py", ".c", ".h", ".md"}


def pattern(words: dict[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(words)})(?![A-Za-z_])", re.IGNORECASE)


def parts_of(name: str) -> list[str]:
    """The words of an identifier, without those of the term `held_out`."""
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+", re.sub("held_?out", "", name, flags=re.IGNORECASE))


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every identifier; `np.ones` is not a name of this project."""
    before = ["", ""]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and not (token.string == "ones" and before == ["np", "."]):
            yield token.start[0], token.string
        before = [before[1], token.string]


def findings(source: str, *, is_python: bool) -> Iterator[tuple[int, str]]:
    """Line and word of everything in a file that is on the list, in text and in names."""
    for match in pattern(WORDS["text"]).finditer(source):
        yield source.count("\n", 0, match.start()) + 1, match.group().lower()
    if is_python:
        names, whole_names = pattern(WORDS["names"]), WORDS["whole_names"]
        for line, name in identifiers(source):
            if name in whole_names or any(map(names.fullmatch, parts_of(name))):
                yield line, f"{name} (name)"


def files() -> Iterator[Path]:
    """Every file of the package and of the documentation."""
    yield from (path for path in sorted((CHECKOUT / "src" / "cranfield").rglob("*")) if path.suffix in SUFFIXES)
    yield CHECKOUT / "README.md"
    for path in sorted((CHECKOUT / "docs").rglob("*.md")):
        if not {"_build", "generated"} & set(path.parts):
            yield path


def test_no_word_of_the_list_is_used() -> None:
    places = []
    for path in files():
        name = path.relative_to(CHECKOUT).as_posix()
        found = findings(path.read_text(), is_python=path.suffix == ".py")
        places += [f"{name}:{line}: {word}" for line, word in found]
    assert not places, "see words.toml for what to write instead\n" + "\n".join(places)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# Nobody looks here.\nx = 1\n", [(1, "nobody")]),
        ("def told_apart(labels): ...\n", [(1, "told_apart (name)")]),
        ('print("and somebody came")\n', [(1, "somebody")]),
        ("class SaidAloud: ...\n", [(1, "SaidAloud (name)")]),
        ("[one for one in lines]\n", [(1, "one (name)"), (1, "one (name)")]),
    ],
)
def test_a_word_of_the_list_is_found(source: str, expected: list[tuple[int, str]]) -> None:
    assert list(findings(source, is_python=True)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "x = held_out\n",
        "one_line = p_one_sided\n",
        "# the doorway of nobodys\n",
        "toned = 1\n",
        "settlement = 2\n",
        "np.ones(3)\n",
    ],
)
def test_what_only_looks_like_one_is_not(source: str) -> None:
    assert list(findings(source, is_python=True)) == []
