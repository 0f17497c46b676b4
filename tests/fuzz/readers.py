"""Readers of test sets, texts of queries and runs: a value, or an error of ours with a message and a place; never slow.

A TREC run is read by the C reader and by the Python reader, which give the same columns or the same problems.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import random
import sys
import tempfile
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mutate import mutate_bytes
from runner import main

from corpus import LINES
from cranfield.base.errors import CranfieldError, RunFormatError
from cranfield.formats.sniff import FORMATS, read_queries, read_testset
from cranfield.ranking import c_reader, python_reader
from cranfield.ranking.collected import read_run_file
from cranfield.ranking.scan import JudgedIndex, Scan, ScanOptions

ROOT = Path(__file__).resolve().parents[2]
FOLDER = tempfile.TemporaryDirectory(prefix="cranfield-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
TREC = "trec"
Case = tuple[str, str, bytes, bool]
"""Kind of the file, name of its format, content, and whether the format is named to the reader."""
INDEX = JudgedIndex(
    (b"q1", b"q2", b"7", "é".encode()), ((b"d1", b"d2", b"n1"), (b"a",), (), (b"x3",)), (False, False, True, False)
)
RUNS = {
    "jsonl": b'{"cranfield_run":1,"name":"x","depth":10,"order":"descending","config":{"a":[1,{"b":null}]}}\n'
    b'{"query_id":"q1","outcome":"answered","fields":{"mode":"x"},"hits":[{"id":"d1","score":2.5,"title":"T",'
    b'"span":"1-2","tokens":30},{"id":"d2","score":1}],"log":{"latency_ms":1.5,"attempts":2}}\n'
    b'{"query_id":"q2","outcome":"timeout","reason":"no answer in 1 s"}\n',
    "run-table": b"query_id,rank,doc_id,start,end,score,title\nq1,1,d1,1,9,2.5,One\nq1,2,d2,,,,\nq2,1,a,3,4,1,\n",
}


@cache
def samples() -> dict[tuple[str, str], bytes]:
    """Kind and format to a file of it, from the samples of the tests."""
    path = ROOT / "tests" / "unit" / "formats" / "test_malformed.py"
    spec = importlib.util.spec_from_file_location("malformed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {("run", name): data for name, data in RUNS.items() if name in FORMATS}
    found |= {("run", f"{TREC} {name}"): text.encode() for name, text in LINES.items()}
    for packing in ("none", "snappy", "gzip", "zstd"):
        found["run", f"parquet {packing}"] = _parquet_run(packing)
    for name in module.FILES:
        place = Path(FOLDER.name) / "sample"
        FORMATS[name].write(module.sample(name), place)
        found[FORMATS[name].kind, name] = place.read_bytes()
    return found


def _parquet_run(packing: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    columns = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "a"], "score": [2.5, 1.0, 3.0], "rank": [1, 2, 1]}
    pq.write_table(pa.table(columns), stream, compression=packing)
    return stream.getvalue()


def make(draw: random.Random) -> Case:
    """A changed file; every other one is a TREC run."""
    runs = [key for key in samples() if key[1].startswith(TREC + " ")]
    kind, name = draw.choice(runs if draw.randrange(2) else [*samples()])
    data = mutate_bytes(draw, samples()[kind, name], tuple(samples().values()))
    if not draw.randrange(50):
        packed = bytearray(gzip.compress(data, 1, mtime=0))
        if draw.randrange(2):
            packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
        data = bytes(packed)
    return kind, name.split()[0], data, bool(draw.randrange(2))


def check(given: Case) -> str | None:
    """What is wrong with how a file is read."""
    kind, name, data, is_named = given
    draw = random.Random(len(data))
    if name == TREC and is_named:
        return _check_scan(data, draw)
    path = Path(FOLDER.name) / draw.choice(("a", "a.json", "a.yaml", "a.csv", "a.tsv", "a.jsonl"))
    path.write_bytes(data)
    try:
        if kind == "run":
            read_run_file(path, None, draw.choice(("trec", "searchtweak", "octocode", "knowcode")))
        else:
            read = read_queries if kind == "queries" else read_testset
            read(path, name if is_named else None)
    except CranfieldError as error:
        bad = [problem for problem in error.problems if not problem.message or len(problem.message) > 20_000]
        return f"a problem that says nothing, or too much: {bad[0]!r}" if bad or not error.problems else None
    finally:
        path.unlink()
    return None


def _check_scan(data: bytes, draw: random.Random) -> str | None:
    """Where the two readers of TREC runs differ."""
    options = ScanOptions(
        order=draw.choice(("score", "given", "rank")),
        ties=draw.choice(("descending", "ascending", "given")),
        width=draw.choice((64, 32)),
        duplicates=draw.choice(("error", "first")),
        depth=draw.choice((None, 1, 3)),
        keep=draw.choice((0, 2, 10)),
    )
    specified = _scan(python_reader.scan_file, data, options)
    if c_reader.available() and (found := _scan(c_reader.scan_file, data, options)) != specified:
        return f"under {options} the readers differ:\n  C: {found}\n  Python: {specified}"
    return None


def _scan(read: Any, data: bytes, options: ScanOptions) -> object:
    try:
        scan: Scan = read(io.BytesIO(data), INDEX, options)
    except RunFormatError as error:
        return [str(problem) for problem in error.problems]
    columns = {field.name: getattr(scan, field.name) for field in fields(scan) if field.name not in {"engine", "top"}}
    hits = [[(doc_id, repr(score), item) for doc_id, score, item in scan.top.of(query)] for query in range(4)]
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in columns.items()}, hits


if __name__ == "__main__":
    sys.exit(main(make, check, inputs=1_000_000))
