"""Make the run files and judgments of the benchmark: `python bench/generate.py S M --into FOLDER`.

Three sizes in TREC format. Scores fall as those of BM25 do, about one neighbouring pair in a hundred ties, six
decimals. The same seed gives the same bytes: everything random is integer arithmetic on raw PCG64 words, the one
stream that numpy keeps from version to version. A chunk of queries is held at a time, so L takes no more memory than S.

Two scores of a query are equal, or further apart than 32 bits can blur: tools that compare scores as single precision
see the same order, and speed is compared on the same answers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Counted up when the same seed would give other bytes."""
CHUNK_QUERIES = 200
TIE_IN_1024 = 10
TOP_MICROS, TOP_SPREAD = 18_000_000, 17_000_000
"""Best scores lie between 18 and 35; scores are counted in millionths."""
FALL_MICROS = 3_000_000
"""The mean gap below rank r is this over r + 10: about 14 points over 1,000 ranks."""
SMALLEST_GAP = 8
"""Below 64, neighbouring single-precision numbers are at most 4 millionths apart."""
TAG = "run"

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Size:
    """What a run and its judgments look like."""

    name: str
    n_queries: int
    depth: int
    first_query: int
    query_step: int
    """Query ids go up by 1 to this."""
    doc_prefix: str
    n_docs: int
    graded: bool
    """Grades 0 to 3 of a judged pool, or the few relevant documents alone."""
    judged: tuple[int, int]
    """Graded: smallest and largest number of judgments of a query. Else: judgments in all, and 0."""
    retrieved_percent: int
    """Judged documents that the run returns."""
    head: int
    """The chance that a judged document stands at rank r goes with 1 / (r + head)."""


SIZES = {
    size.name: size
    for size in (
        Size("S", 50, 1000, 301, 1, "FBIS3-", 528_155, graded=True, judged=(100, 194), retrieved_percent=60, head=20),
        Size("M", 6_980, 1000, 2, 300, "D", 8_841_823, graded=False, judged=(7_553, 0), retrieved_percent=86, head=2),
        Size("L", 50_000, 1000, 2, 60, "D", 8_841_823, graded=False, judged=(54_104, 0), retrieved_percent=86, head=2),
    )
}


@dataclass
class Judgments:
    """Draws what is judged, query by query."""

    size: Size
    words: np.random.PCG64
    counts: list[int]
    cumulated: Numbers

    @classmethod
    def of(cls, size: Size, seed: int) -> Judgments:
        """Settle how many judgments each query has."""
        words = stream(seed, 1)
        low, high = size.judged
        if size.graded:
            counts = low + raw(words, size.n_queries, high - low + 1)
        else:
            order = np.argsort(words.random_raw(size.n_queries), kind="stable")
            counts = np.ones(size.n_queries, dtype=np.int64)
            counts[order[: low - size.n_queries]] += 1
        weights = 1_000_000_000 // (np.arange(1, size.depth + 1) + size.head)
        return cls(size, words, counts.tolist(), np.cumsum(weights))

    def draw(self, query: int) -> list[tuple[int, int]]:
        """(rank, grade) of every judged document of one query; rank 0 is a document that the run does not return."""
        n_judged = self.counts[query]
        drawn = self.words.random_raw((n_judged, 3))
        ranks = np.searchsorted(self.cumulated, (drawn[:, 0] % np.uint64(self.cumulated[-1])).astype(np.int64), "right")
        pairs, taken = [], set()
        for place, coin, dice in zip(ranks.tolist(), drawn[:, 1].tolist(), drawn[:, 2].tolist(), strict=True):
            rank = 0
            if coin % 100 < self.size.retrieved_percent:
                rank = place + 1
                while rank in taken:
                    rank = rank % self.size.depth + 1
                taken.add(rank)
            pairs.append((rank, grade_of(dice % 100) if self.size.graded else 1))
        return pairs


def grade_of(percent: int) -> int:
    """55 % grade 0, 25 % grade 1, 13 % grade 2, 7 % grade 3."""
    return (percent >= 55) + (percent >= 80) + (percent >= 93)


def stream(seed: int, purpose: int) -> np.random.PCG64:
    """Random words of their own for each purpose."""
    return np.random.PCG64(np.random.SeedSequence([seed, purpose]))


def raw(words: np.random.PCG64, shape: int | tuple[int, ...], below: int) -> Numbers:
    """Whole numbers from 0 to `below`, not included."""
    return (words.random_raw(shape) % np.uint64(below)).astype(np.int64)


def draw_documents(words: np.random.PCG64, spare: np.random.PCG64, n_queries: int, size: Size) -> Numbers:
    """[queries, depth] numbers of documents, none twice in a row."""
    documents = raw(words, (n_queries, size.depth), size.n_docs)
    doubtful = np.arange(n_queries)
    while doubtful.size:
        ordered = np.sort(documents[doubtful], axis=1)
        doubtful = doubtful[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        documents[doubtful] = raw(spare, (doubtful.size, size.depth), size.n_docs)
    return documents


def draw_gaps(words: np.random.PCG64, n_queries: int, depth: int) -> Numbers:
    """[queries, depth] millionths between the score above and this one; of rank 1, below the best score there is."""
    drawn = words.random_raw((n_queries, depth))
    mean = np.concatenate(([0], FALL_MICROS // (np.arange(1, depth) + 10))).astype(np.int64)
    share = ((drawn >> np.uint64(20)) & np.uint64(0xFFFF)).astype(np.int64)  # over 2^15: from 0 to 2, 1 in the mean
    gaps = SMALLEST_GAP + ((mean * share) >> 15)
    gaps[(drawn & np.uint64(1023)) < TIE_IN_1024] = 0
    gaps[:, 0] = (drawn[:, 0] >> np.uint64(40)).astype(np.int64) % TOP_SPREAD
    return gaps


def put_number(matrix: NDArray[np.uint8], at: int, numbers: Numbers, width: int, *, padded: bool) -> int:
    """Write numbers as digits, right-aligned in `width` columns; leading zeros are 0 bytes unless padded."""
    values = numbers.astype(np.uint32)
    for column in range(at + width - 1, at - 1, -1):
        rest = values // np.uint32(10)
        digit = (values - rest * np.uint32(10) + np.uint32(48)).astype(np.uint8)
        if not padded and column < at + width - 1:
            digit[values == 0] = 0
        matrix[:, column] = digit
        values = rest
    return at + width


def put_text(matrix: NDArray[np.uint8], at: int, text: str) -> int:
    """Write the same letters on every row."""
    matrix[:, at : at + len(text)] = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return at + len(text)


def run_lines(query_ids: Numbers, documents: Numbers, micros: Numbers, prefix: str) -> bytes:
    """`query Q0 document rank score tag`, a line per result; a 0 byte in the matrix is no letter at all."""
    n_queries, depth = documents.shape
    query_width, doc_width, rank_width = len(str(query_ids.max())), len(str(documents.max())), len(str(depth))
    spaces = len(" Q0 ") + len(" ") + len(" ") + len(".") + len(f" {TAG}\n")
    width = query_width + len(prefix) + doc_width + rank_width + 2 + 6 + spaces
    matrix = np.zeros((n_queries * depth, width), dtype=np.uint8)
    at = put_number(matrix, 0, np.repeat(query_ids, depth), query_width, padded=False)
    at = put_text(matrix, at, f" Q0 {prefix}")
    at = put_number(matrix, at, documents.ravel(), doc_width, padded=False)
    at = put_text(matrix, at, " ")
    at = put_number(matrix, at, np.tile(np.arange(1, depth + 1), n_queries), rank_width, padded=False)
    at = put_text(matrix, at, " ")
    at = put_number(matrix, at, micros.ravel() // 1_000_000, 2, padded=False)
    at = put_text(matrix, at, ".")
    at = put_number(matrix, at, micros.ravel() % 1_000_000, 6, padded=True)
    put_text(matrix, at, f" {TAG}\n")
    return matrix[matrix != 0].tobytes()


def chunks(size: Size, seed: int) -> Iterator[tuple[bytes, str, list[str]]]:
    """(run lines, qrels lines, queries where a judged document ties) of some queries at a time."""
    documents_words, spare_words, score_words = stream(seed, 2), stream(seed, 3), stream(seed, 4)
    judgments = Judgments.of(size, seed)
    steps = 1 + raw(stream(seed, 5), size.n_queries, size.query_step)
    query_ids = size.first_query - 1 + np.cumsum(steps)
    absent = size.n_docs
    for start in range(0, size.n_queries, CHUNK_QUERIES):
        chosen = query_ids[start : start + CHUNK_QUERIES]
        documents = draw_documents(documents_words, spare_words, len(chosen), size)
        gaps = draw_gaps(score_words, len(chosen), size.depth)
        micros = TOP_MICROS + TOP_SPREAD - np.cumsum(gaps, axis=1)
        if micros.min() <= 0:
            raise ValueError("a score fell below 0")
        lines, tied = [], []
        for place, query_id in enumerate(chosen.tolist()):
            ties = False
            for rank, grade in judgments.draw(start + place):
                if rank:
                    number = int(documents[place, rank - 1])
                    ties |= rank > 1 and gaps[place, rank - 1] == 0
                    ties |= rank < size.depth and gaps[place, rank] == 0
                else:
                    absent += 1
                    number = absent
                lines.append(f"{query_id} 0 {size.doc_prefix}{number} {grade}\n")
            if ties:
                tied.append(str(query_id))
        yield run_lines(chosen, documents, micros, size.doc_prefix), "".join(lines), tied


def paths(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Run, qrels and the record of a size."""
    return folder / f"{name}.run", folder / f"{name}.qrels", folder / f"{name}.json"


def make(size: Size, folder: Path, seed: int = 1) -> dict[str, Any]:
    """Write a size into a folder, unless it is there; give its record: counts, bytes and SHA-256 digests."""
    run, qrels, record = paths(folder, size.name)
    asked = {"format": FORMAT, "seed": seed, "size": asdict(size)}
    held = read_record(run, qrels, record)
    if held is not None and all(held.get(key) == json.loads(json.dumps(value)) for key, value in asked.items()):
        return held
    folder.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    began = time.perf_counter()
    run_hash, qrels_hash, tied, done = hashlib.sha256(), hashlib.sha256(), [], 0
    with run.open("wb") as run_stream, qrels.open("wb") as qrels_stream:
        for run_text, qrels_text, tied_queries in chunks(size, seed):
            run_stream.write(run_text)
            run_hash.update(run_text)
            qrels_stream.write(qrels_text.encode("ascii"))
            qrels_hash.update(qrels_text.encode("ascii"))
            tied += tied_queries
            done += 1
            if done % 25 == 0:
                share = min(1.0, done * CHUNK_QUERIES / size.n_queries)
                print(f"generating {size.name}: {share:4.0%}, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    made = asked | {
        "run_sha256": run_hash.hexdigest(),
        "qrels_sha256": qrels_hash.hexdigest(),
        "run_bytes": run.stat().st_size,
        "qrels_bytes": qrels.stat().st_size,
        "run_lines": size.n_queries * size.depth,
        "qrels_lines": qrels.read_bytes().count(b"\n"),
        "tied_judged_queries": tied,
    }
    record.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return made


def read_record(run: Path, qrels: Path, record: Path) -> dict[str, Any] | None:
    """What was made before, where the files still have the sizes it says."""
    if not (run.exists() and qrels.exists() and record.exists()):
        return None
    held: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    sizes = (held.get("run_bytes"), held.get("qrels_bytes"))
    return held if sizes == (run.stat().st_size, qrels.stat().st_size) else None


def excerpt(name: str, folder: Path, n_queries: int = 50) -> tuple[Path, Path]:
    """(qrels, run) of the first queries of a size: ids as wide as in the whole, and soon read."""
    run, qrels, _ = paths(folder, name)
    short_run, short_qrels, _ = paths(folder, f"{name}-head")
    wanted: dict[bytes, None] = {}
    with run.open("rb") as lines, short_run.open("wb") as kept:
        for line in lines:
            wanted[line.split(b" ", 1)[0]] = None
            if len(wanted) > n_queries:
                wanted.popitem()
                break
            kept.write(line)
    with qrels.open("rb") as lines:
        short_qrels.write_bytes(b"".join(line for line in lines if line.split(b" ", 1)[0] in wanted))
    return short_qrels, short_run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    parser.add_argument("--into", type=Path, default=Path(__file__).with_name("data"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.sizes:
        made = make(SIZES[name], options.into, options.seed)
        print(f"{name}: {made['run_lines']:,} results in {made['run_bytes']:,} bytes, sha256 {made['run_sha256']}")
        print(f"   {made['qrels_lines']:,} judgments, sha256 {made['qrels_sha256']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
