"""Search in the Constitution of the United States for a language model: BM25 of SQLite over sections, or over paragraphs.

A result is a range of lines, with its text and what it costs to read: a token is taken to be four characters.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

DOCUMENT = Path(__file__).with_name("constitution.txt")
Chunk = tuple[int, int, str, str]
"""First and last line, from 1; the heading; the text."""


def sections() -> Iterator[Chunk]:
    """An article's section, or an amendment, as a whole: from a heading to the next blank line."""
    first = 1
    for block in DOCUMENT.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        yield first, first + len(lines) - 1, lines[0].removeprefix("# "), "\n".join(lines[1:])
        first += len(lines) + 1


def paragraphs() -> Iterator[Chunk]:
    """Each paragraph, which is a line."""
    for first, _, heading, text in sections():
        for line, paragraph in enumerate(text.split("\n"), first + 1):
            yield line, line, heading, paragraph


def searcher(chunks: Iterator[Chunk]) -> Callable[[str, int], list[dict[str, object]]]:
    """A search over an index of these chunks."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    columns = "first UNINDEXED, last UNINDEXED, heading UNINDEXED, text, tokenize = porter"
    database.execute(f"CREATE VIRTUAL TABLE chunks USING fts5({columns})")
    database.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?)", chunks)

    def find(query: str, k: int) -> list[dict[str, object]]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        statement = "SELECT * FROM chunks WHERE chunks MATCH ? ORDER BY bm25(chunks), first LIMIT ?"
        return [hit(*row) for row in database.execute(statement, (match, k))]

    return find


def hit(first: int, last: int, heading: str, text: str) -> dict[str, object]:
    span = f"{DOCUMENT.name}:{first}-{last}"
    return {"id": span, "title": heading, "span": span, "tokens": -(-len(text) // 4), "fields": {"text": text}}


find_sections, find_paragraphs = searcher(sections()), searcher(paragraphs())
