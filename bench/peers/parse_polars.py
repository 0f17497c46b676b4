"""RUN into three columns of a Polars frame, and no more."""

from __future__ import annotations

import sys

import polars as pl

COLUMNS = {"query": pl.String, "q0": pl.String, "document": pl.String, "rank": pl.Int32, "score": pl.Float64}


def main(run):
    schema = {**COLUMNS, "tag": pl.String}
    rows = pl.scan_csv(run, separator=" ", has_header=False, quote_char=None, schema=schema)
    print(rows.select("query", "document", "score").collect(engine="streaming").height)


if __name__ == "__main__":
    main(*sys.argv[1:])
