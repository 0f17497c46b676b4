"""RUN into three columns of a DuckDB table, and no more."""

from __future__ import annotations

import sys

import duckdb

READ = """
create table run as select query, document, score from read_csv(?, delim = ' ', header = false, quote = '', escape = '',
auto_detect = false, columns = {'query': 'VARCHAR', 'q0': 'VARCHAR', 'document': 'VARCHAR', 'rank': 'INTEGER',
'score': 'DOUBLE', 'tag': 'VARCHAR'})
"""


def main(run):
    base = duckdb.connect()
    base.execute(READ, [run])
    print(base.execute("select count(*) from run").fetchone()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
