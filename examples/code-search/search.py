"""Search over the functions and classes of an installed package, jmespath: BM25 of SQLite, with words made in three ways."""

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import jmespath

PACKAGE = Path(jmespath.__file__).parent


def whole(text: str) -> list[str]:
    """Names as they are: `_parse_slice`, `lexererror`."""
    return re.findall(r"\w+", text.lower())


def split(text: str) -> list[str]:
    """Names in their parts: `parse` and `slice`, `lexer` and `error`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)]


def both(text: str) -> list[str]:
    """The names, and their parts beside them."""
    return whole(text) + split(text)


def chunks(path: Path) -> Iterator[tuple[str, str]]:
    """Id and text of each class and function of a file: `jmespath/lexer.py::Lexer.tokenize`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.FunctionDef):
            yield f"jmespath/{path.name}::{node.name}", "\n".join(lines[node.lineno - 1 : node.end_lineno])
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            end = methods[0].lineno - 1 if methods else node.end_lineno
            yield f"jmespath/{path.name}::{node.name}", "\n".join(lines[node.lineno - 1 : end])
            for each in methods:
                name = f"jmespath/{path.name}::{node.name}.{each.name}"
                yield name, "\n".join(lines[each.lineno - 1 : each.end_lineno])


def searcher(words: Callable[[str], list[str]]) -> Callable[[str, int], list[str]]:
    """A search over an index of these words."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    columns = "id UNINDEXED, text, tokenize = \"unicode61 tokenchars '_'\""
    database.execute(f"CREATE VIRTUAL TABLE chunks USING fts5({columns})")
    found = (chunk for path in sorted(PACKAGE.glob("*.py")) for chunk in chunks(path))
    rows = [(name, " ".join(words(text))) for name, text in found]
    database.executemany("INSERT INTO chunks VALUES (?, ?)", rows)

    def find(query: str, k: int) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words(query))
        statement = "SELECT id FROM chunks WHERE chunks MATCH ? ORDER BY bm25(chunks), id LIMIT ?"
        return [name for (name,) in database.execute(statement, (match, k))]

    return find


find_whole, find_split, find_both = searcher(whole), searcher(split), searcher(both)
