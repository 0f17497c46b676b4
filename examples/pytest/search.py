"""The search that is tested: SQLite's full text over the index that build_index.py makes."""

import re
import sqlite3
from pathlib import Path

INDEX = Path(__file__).parent / "index.db"


def find(query, k):
    """Ids of the best k entities, best first."""
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    index = sqlite3.connect(f"file:{INDEX}?mode=ro", uri=True)
    try:
        found = index.execute(
            "SELECT id FROM entity WHERE entity MATCH ? ORDER BY bm25(entity, 0, 4, 1), id LIMIT ?", (words, k)
        )
        return [doc_id for (doc_id,) in found]
    finally:
        index.close()
