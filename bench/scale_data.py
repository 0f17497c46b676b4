"""Rows of a large run, and judgments: `scale_data.py MILLIONS FOLDER`; a thousand results a query.

The rows of every query are striped over 16 Parquet files by rank, and in random order within a file: what a reader meets
in a lake, where nothing is sorted. Scores are rounded to hundredths, so many tie.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DEPTH, FILES, DOCUMENTS = 1000, 16, 10_000_000
QUERIES_AT_ONCE = 2000


def doc_numbers(query: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Documents of a query at its ranks, all different."""
    return (rank.astype(np.int64) * 10_007 + query.astype(np.int64) * 104_729) % DOCUMENTS


def ids(prefix: str, numbers: np.ndarray, width: int) -> pa.Array:
    digits = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def write_rows(folder: Path, n_queries: int) -> None:
    draw = np.random.default_rng(1)
    edges = np.linspace(0, DEPTH, FILES + 1).astype(int)
    schema = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
    for number in range(FILES):
        ranks = np.arange(edges[number], edges[number + 1])
        with pq.ParquetWriter(folder / f"part-{number:02d}.parquet", schema, compression="zstd") as writer:
            for first in range(0, n_queries, QUERIES_AT_ONCE):
                queries = np.arange(first, min(first + QUERIES_AT_ONCE, n_queries))
                order = draw.permutation(len(queries) * len(ranks))
                query, rank = np.repeat(queries, len(ranks))[order], np.tile(ranks, len(queries))[order]
                score = np.round(30 - 20 * np.sqrt(rank / DEPTH) + draw.normal(0, 0.5, len(rank)), 2)
                columns = [ids("q", query, 6), ids("doc", doc_numbers(query, rank), 8), pa.array(score)]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=1 << 20)


def write_qrels(path: Path, n_queries: int) -> None:
    draw = np.random.default_rng(2)
    with path.open("w", encoding="ascii") as file:
        for query in range(n_queries):
            ranks = np.unique(np.minimum(draw.exponential(180, draw.integers(9, 30)).astype(int), 1400))
            documents = doc_numbers(np.full(len(ranks), query), ranks)
            grades = draw.integers(0, 4, len(ranks))
            rows = zip(documents.tolist(), grades.tolist(), strict=True)
            file.writelines(f"q{query:06d} 0 doc{doc:08d} {grade}\n" for doc, grade in rows)


def main() -> None:
    n_queries, folder = int(sys.argv[1]) * 1000, Path(sys.argv[2])
    if (folder / "done").exists():
        return
    (folder / "run").mkdir(parents=True, exist_ok=True)
    write_rows(folder / "run", n_queries)
    write_qrels(folder / "qrels.txt", n_queries)
    (folder / "done").touch()


if __name__ == "__main__":
    main()
