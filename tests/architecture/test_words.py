"""Plain technical English: `words.toml` lists what is not written here, and how often it may still occur by folder."""

from __future__ import annotations

import io
import os
import re
import tokenize
import tomllib
from collections import Counter
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


def findings(source: str, kind: str, *, is_python: bool) -> Iterator[tuple[int, str]]:
    """Line and word of everything in a file that is on the list `kind`, in text and in names."""
    for match in pattern(WORDS[kind]["text"]).finditer(source):
        yield source.count("\n", 0, match.start()) + 1, match.group().lower()
    if is_python:
        names, whole_names = pattern(WORDS[kind]["names"]), WORDS[kind].get("whole_names", {})
        for line, name in identifiers(source):
            if name in whole_names or any(map(names.fullmatch, parts_of(name))):
                yield line, f"{name} (name)"


def files() -> Iterator[tuple[str, Path]]:
    """Every file that is read, with its folder: a room of the package, or the documentation."""
    package = CHECKOUT / "src" / "cranfield"
    for path in sorted(package.rglob("*")):
        if path.suffix in SUFFIXES:
            room = path.relative_to(package).parts[0]
            yield f"src/cranfield/{room}", path
    yield "docs", CHECKOUT / "README.md"
    for path in sorted((CHECKOUT / "docs").rglob("*.md")):
        if not {"_build", "generated"} & set(path.parts):
            yield "docs", path


def found(kind: str) -> Iterator[tuple[str, str, str]]:
    """Folder, place and word of everything that is on a list."""
    for folder, path in files():
        name = path.relative_to(CHECKOUT).as_posix()
        for line, word in findings(path.read_text(), kind, is_python=path.suffix == ".py"):
            if word not in WORDS["exceptions"].get(name, ()):
                yield folder, f"{name}:{line}: {word}", word


def test_no_forbidden_word_is_used() -> None:
    places = [place for _, place, _ in found("forbidden")]
    assert not places, "see words.toml for what to write instead\n" + "\n".join(places)


def test_discouraged_words_become_fewer_in_every_folder() -> None:
    rows = list(found("discouraged"))
    counts = Counter(folder for folder, _, _ in rows)
    ceilings = WORDS["ceilings"]
    if os.environ.get("CRANFIELD_UPDATE_WORDS"):
        head = TABLE.read_text().partition("[ceilings]\n")[0]
        comment = "# Occurrences of discouraged words by folder. They may only shrink: CRANFIELD_UPDATE_WORDS=1 lowers them.\n"
        lines = (f'"{folder}" = {min(n, ceilings.get(folder, n))}\n' for folder, n in sorted(counts.items()))
        TABLE.write_text(f"{head}[ceilings]\n{comment}{''.join(lines)}")
    over = {
        folder: f"{n}, allowed: {ceilings.get(folder, 0)}"
        for folder, n in counts.items()
        if n > ceilings.get(folder, 0)
    }
    places = [place for folder, place, _ in rows if folder in over]
    assert not over, f"{over}: see words.toml for what to write instead\n" + "\n".join(places)


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
    assert list(findings(source, "discouraged", is_python=True)) == expected


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
    assert list(findings(source, "discouraged", is_python=True)) == []
