"""The same sections of the Constitution of the United States in two engines: SQLite's FTS5 and tantivy, both BM25 over stems.

pip install tantivy
"""

import re
import sqlite3
from pathlib import Path

import tantivy

DOCUMENT = Path(__file__).parents[1] / "rag" / "constitution.txt"


def sections() -> list[tuple[str, str]]:
    """Lines, as a span, and text of each section."""
    found, first = [], 1
    for block in DOCUMENT.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        found.append((f"{DOCUMENT.name}:{first}-{first + len(lines) - 1}", "\n".join(lines)))
        first += len(lines) + 1
    return found


def fts5() -> sqlite3.Connection:
    """An index of SQLite."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute("CREATE VIRTUAL TABLE sections USING fts5(span UNINDEXED, text, tokenize = porter)")
    database.executemany("INSERT INTO sections VALUES (?, ?)", sections())
    return database


def rust() -> tantivy.Index:
    """An index of tantivy, in memory."""
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("span", stored=True, tokenizer_name="raw")
    schema.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for span, text in sections():
        writer.add_document(tantivy.Document(span=span, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


DATABASE, INDEX = fts5(), rust()


def search_fts5(query: str, k: int) -> list[dict[str, str]]:
    """Sections by BM25, any of the words."""
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    statement = "SELECT span FROM sections WHERE sections MATCH ? ORDER BY bm25(sections), span LIMIT ?"
    return [{"id": span, "span": span} for (span,) in DATABASE.execute(statement, (words, k))]


def search_tantivy(query: str, k: int) -> list[dict[str, str]]:
    """Sections by BM25, any of the words."""
    searcher = INDEX.searcher()
    parsed = INDEX.parse_query(" ".join(re.findall(r"\w+", query)), ["text"])
    spans = [searcher.doc(address)["span"][0] for _, address in searcher.search(parsed, k).hits]
    return [{"id": span, "span": span} for span in spans]
