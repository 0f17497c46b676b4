"""nDCG@10, AP and RR of a folder of Parquet files in DuckDB's SQL, a row a query: `with_duckdb_sql.py QRELS FOLDER OUT MEMORY`."""

from __future__ import annotations

import sys

import duckdb

QUERY = """
copy (
    with ranked as (
        select query_id, doc_id, row_number() over (partition by query_id order by score desc, doc_id desc) as rank
        from read_parquet('{run}/*.parquet')
    ),
    judged as (select r.query_id, r.rank, q.grade from ranked r join qrels q using (query_id, doc_id)),
    counted as (
        select query_id, rank, grade,
            sum(case when grade >= 1 then 1 else 0 end) over (partition by query_id order by rank) as found
        from judged
    ),
    ideal as (
        select query_id,
            sum(case when place <= 10 then grade / log2(place + 1) else 0 end) as ideal,
            sum(case when grade >= 1 then 1 else 0 end) as relevant
        from (select query_id, grade, row_number() over (partition by query_id order by grade desc) as place from qrels)
        group by query_id
    ),
    summed as (
        select query_id,
            sum(case when rank <= 10 then grade / log2(rank + 1) else 0 end) as gained,
            sum(case when grade >= 1 then found / rank else 0 end) as precisions,
            max(case when grade >= 1 then 1.0 / rank else 0 end) as reciprocal
        from counted group by query_id
    )
    select query_id,
        coalesce(gained / nullif(ideal, 0), 0) as "nDCG@10",
        coalesce(precisions / nullif(relevant, 0), 0) as "AP",
        coalesce(reciprocal, 0) as "RR"
    from ideal left join summed using (query_id)
) to '{out}' (format parquet)
"""


def main() -> None:
    qrels, run, out, memory = sys.argv[1:]
    database = duckdb.connect(config={"threads": 2, "memory_limit": memory, "temp_directory": out + ".spill"})
    database.execute(
        f"create table qrels as select column0 as query_id, column2 as doc_id, column3::double as grade "
        f"from read_csv('{qrels}', delim=' ', header=false)"
    )
    database.execute(QUERY.format(run=run, out=out))


if __name__ == "__main__":
    main()
