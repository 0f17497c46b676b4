"""Results of the workers as one file in the order of the test set, while they are few: the same as the local path's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.scale.kernel import result_schema
from cranfield.scale.results import ROWS_AT_ONCE, Results, ResultsInfo, ResultsWriter

FEW_ROWS = 1 << 20
"""Results are put in order up to so many; more stay in the files of the partitions, in the order of their queries' hashes."""


def finish_in_order(files: Sequence[Path], query_ids: pa.Array | None, about: ResultsInfo) -> Results:
    """Replace the files of the partitions, all of a folder, by one, and finish the folder.

    Args:
        files: at least one.
        query_ids: of the test set; None: in the order of their text.
        about: what was computed.
    """
    scoring = about.scoring
    schema = result_schema(scoring)
    table = pa.concat_tables([pq.read_table(path).select(schema.names).cast(schema) for path in files])
    table = table.filter(pc.is_valid(table["query_id"]))
    known = (
        pc.cast(query_ids, pa.string())
        if query_ids is not None
        else pc.unique(table["query_id"].combine_chunks()).sort()
    )
    query = np.asarray(pc.index_in(table["query_id"], value_set=known))
    system = np.asarray(pc.index_in(table["system"], value_set=pa.array(scoring.systems)))
    table = table.take(pa.array(np.lexsort((system, query))))
    for path in files:
        path.unlink()
    with ResultsWriter(files[0].parent, scoring) as writer:
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            writer.write(batch)
        return writer.finish(about)
