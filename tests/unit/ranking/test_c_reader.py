"""The C kernel behind the native reader: pieces, ranges, threads, odd options, and ranks of runs in memory.

What a run file may hold and what it comes to is tested for both readers together, in test_readers.
"""

import hashlib
import io
import itertools
import math
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import RunFormatError
from cranfield.ranking import c_reader
from cranfield.ranking.run_sources import answer_digest
from cranfield.ranking.scan import BLOCK_BYTES, BlockDigests, JudgedIndex, ScanOptions

if not c_reader.available():
    pytest.skip(f"the native reader was not built: {c_reader.why_not()}", allow_module_level=True)

from cranfield.ranking import _kernel

LINES = (
    "q1 Q0 a 1 3 t\nq1 Q0 b 2 3 t\n\n# no result\nq9 Q0 x 1 1 t\n"
    f"q2 Q0 {'long' * 20} 1 2.5 {'tag ' * 20}\nq2 Q0 c 2 1.25 t\r\nq3 Q0 \xe9 1 1e-3 t"
).encode()
INDEX = ((b"q1", b"q2", b"q3"), ((b"a", b"b"), (b"c", b"long" * 20), ("é".encode(), b"z")), ())
OPTIONS = {
    "order": "score",
    "ties": "descending",
    "duplicates": "error",
    "single": False,
    "depth": -1,
    "keep": 10,
    "gather": False,
    "inner": False,
    "problem_limit": 20,
}


def scanner(**options):
    return _kernel.Scanner(_kernel.Index(*INDEX), **(OPTIONS | options))


def scanned(text, size=None, **options):
    """Status and result when the text comes in pieces of a size."""
    reader = scanner(**options)
    for start in range(0, len(text), size or len(text) or 1):
        reader.feed(text[start : start + (size or len(text))])
    return reader.finish(), reader.result()


def rows_of(result):
    return np.frombuffer(result[0], dtype=np.int32).reshape(-1, 5).tolist()


# ---- pieces


@pytest.mark.parametrize("gather", [False, True])
def test_lines_may_come_in_pieces_of_any_size(gather):
    whole = scanned(LINES, gather=gather)
    # b before a: they tie, and b is larger; 6 result lines
    assert rows_of(whole[1]) == [[0, 1, 1, 1, 2], [0, 2, 0, 1, 2], [1, 1, 1, 1, 1], [1, 2, 0, 2, 2], [2, 1, 0, 1, 1]]
    assert whole[1][6:9] == (6, b"t", [b"q9"])
    for size in range(1, len(LINES) + 2):
        assert scanned(LINES, size, gather=gather) == whole, size


def test_nothing_is_a_piece_too():
    reader = scanner()
    for text in (b"", b"q1 Q0 a 1 1 ", b"", b"t\n", b""):
        assert reader.feed(text) == _kernel.FINE
    assert reader.finish() == _kernel.FINE
    assert rows_of(reader.result()) == [[0, 1, 0, 1, 1]]


def test_bytes_of_any_kind_are_taken_and_text_is_not():
    for kind in (bytes, bytearray, memoryview):
        assert rows_of(scanned(kind(b"q1 Q0 a 1 1 t\n"))[1]) == [[0, 1, 0, 1, 1]]
    with pytest.raises(TypeError):
        scanner().feed("q1 Q0 a 1 1 t\n")
    with pytest.raises(TypeError):
        _kernel.query_change("q1")


def test_a_line_of_some_megabytes_is_read_in_pieces_without_reading_it_over_and_over():
    text = b"q1 Q0 a 1 1 " + b"t" * 4_000_000 + b"\nq1 Q0 b 2 1 t\n"
    assert scanned(text, 1000)[1] == scanned(text)[1]  # seconds, not hours, when it is not looked at again each time


# ---- a scanner on its own


def test_a_query_that_comes_back_ends_the_scan_unless_it_gathers():
    text = b"q1 Q0 a 1 1 t\nq9 Q0 a 1 1 t\nq1 Q0 b 2 2 t\n"
    assert scanned(text)[0] == _kernel.INTERLEAVED
    status, result = scanned(text, gather=True)
    assert status == _kernel.FINE
    assert rows_of(result) == [[0, 1, 1, 1, 1], [0, 2, 0, 2, 2]]


def test_a_query_that_comes_back_is_noticed_though_nobody_judged_it():
    assert scanned(b"x Q0 a 1 1 t\ny Q0 a 1 1 t\nx Q0 b 2 2 t\n")[0] == _kernel.INTERLEAVED


def test_a_scan_that_ended_stays_as_it_is():
    reader = scanner(problem_limit=1)
    assert reader.feed(b"q1 Q0 a 1 1 t\nq1\nq1\n") == _kernel.STOPPED
    before = reader.result()
    assert reader.feed(b"q1 Q0 b 2 1 t\n") == _kernel.STOPPED
    assert reader.finish() == _kernel.STOPPED
    assert reader.result() == before
    assert before[9] == [(_kernel.COLUMNS, 2, 0, 1, b"q1", b"")]


def test_the_end_may_be_said_twice():
    reader = scanner()
    reader.feed(LINES)
    reader.finish()
    before = reader.result()
    assert reader.finish() == _kernel.FINE
    assert reader.result() == before


def test_the_mark_at_the_beginning_of_a_file_is_an_ids_elsewhere():
    text = b"\xef\xbb\xbfq1 Q0 a 1 1 t\n"
    assert scanned(text)[1][8] == []
    assert scanned(text, inner=True)[1][8] == [b"\xef\xbb\xbfq1"]


def test_problems_carry_what_their_words_are_made_of():
    text = b"\nq1 Q0 a 1\nq1 Q0 a 1 1 x\ry\n q1 Q0 a 1 1_0 t\nq1 Q0 a first 1 t\n" + b"q1 Q0 a 5 2 t\nq1 Q0 a 6 1 t\n"
    assert scanned(text, order="rank")[1][9] == [
        (_kernel.COLUMNS, 2, 0, 4, b"q1 Q0 a 1", b""),
        (_kernel.CARRIAGE_RETURN, 3, 0, 6, b"q1 Q0 a 1 1 x\ry", b""),
        (_kernel.SCORE, 4, 0, 6, b"1_0", b""),
        (_kernel.RANK, 5, 0, 6, b"first", b""),
        (_kernel.DUPLICATE, 7, 6, 0, b"a", b"q1"),
    ]


def test_of_a_bad_line_enough_is_kept_to_be_quoted():
    assert scanned(b" \t" + b"x" * 1_000_000)[1][9] == [(_kernel.COLUMNS, 1, 0, 1, b"x" * 4096, b"")]


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 2**63 - 1, "keep": 2**63 - 1},
        {"depth": -(2**63), "keep": -(2**63)},
        {"depth": 0, "keep": 0},
        {"problem_limit": 0},
        {"problem_limit": sys.maxsize},
        {"problem_limit": -5},
    ],
)
def test_numbers_at_their_ends_are_options_too(options):
    status, result = scanned(LINES, **options)
    assert status == _kernel.FINE
    assert len(rows_of(result)) == (0 if options.get("depth") == 0 else 5)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"order": "random"}, ValueError, "order is 'random'"),
        ({"ties": ""}, ValueError, "ties is ''"),
        ({"duplicates": "last"}, ValueError, "duplicates is 'last'"),
        ({"depth": 2**63}, OverflowError, "too large|too big"),
        ({"keep": 1.5}, TypeError, "float"),
        ({"index": (b"q1",)}, TypeError, "Index"),
        ({"order": None}, TypeError, "str"),
    ],
)
def test_what_is_no_option_is_refused(options, error, says):
    with pytest.raises(error, match=says):
        _kernel.Scanner(**({"index": _kernel.Index(*INDEX)} | OPTIONS | options))


@pytest.mark.parametrize(
    ("parts", "error", "says"),
    [
        (((b"q1", b"q2", b"q1"), ((), (), ()), ()), ValueError, "query b'q1' is there twice"),
        (((b"q1",), (), ()), ValueError, "differ in length"),
        ((("q1",), ((),), ()), TypeError, "bytes"),
        (((b"q1",), (("a",),), ()), TypeError, "bytes"),
        (((b"q1",), ([b"a"],), ()), TypeError, "tuple"),
        (([b"q1"], ((),), ()), TypeError, "tuple"),
    ],
)
def test_what_is_no_index_is_refused(parts, error, says):
    with pytest.raises(error, match=says):
        _kernel.Index(*parts)


def test_an_index_may_hold_nothing_and_ids_may_be_empty():
    for index in (((), (), ()), ((b"",), ((b"", b"a"),), (True,))):
        reader = _kernel.Scanner(_kernel.Index(*index), **OPTIONS)
        reader.feed(LINES)
        assert reader.finish() == _kernel.FINE
        assert reader.result()[8] == [b"q1", b"q9", b"q2", b"q3"]


def test_an_index_outlives_the_names_it_was_made_with():
    reader = _kernel.Scanner(_kernel.Index((b"q%d" % 1,), ((b"d%d" % 7,),), ()), **OPTIONS)
    _ = [b"q%d" % n for n in range(1000)]  # would take the place of what was let go
    reader.feed(b"q1 Q0 d7 1 1 t\n")
    reader.finish()
    assert rows_of(reader.result()) == [[0, 1, 0, 1, 1]]


def test_two_threads_cannot_use_one_scanner_at_a_time():
    reader = scanner()
    text = b"".join(b"q1 Q0 d%d 1 1 t\n" % n for n in range(400_000))
    refused = threading.Event()

    def feed(*_):
        try:
            reader.feed(text)
        except RuntimeError as error:
            assert "another thread" in str(error)  # noqa: PT017
            refused.set()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            list(pool.map(feed, range(2)))
            if refused.is_set():
                break
    assert refused.is_set()


@given(
    st.lists(st.sampled_from([b"q1 Q0 a 1 1 t", b"q2 x", b" q2\ty", b"# no", b"", b"\r", b"q22"]), max_size=8),
    st.binary(max_size=3),
)
def test_a_cut_is_before_the_first_line_of_another_query(lines, before):
    text = b"".join(line + b"\n" for line in lines)
    queries = [(place, line.split()[0]) for place, line in enumerate(lines) if line.split() and line[0] != ord("#")]
    changed = [place for (_, one), (place, other) in itertools.pairwise(queries) if one != other]
    expected = sum(len(line) + 1 for line in lines[: changed[0]]) if changed else len(text)
    before = before.replace(b"\n", b"") + b"\n"  # the end of a line that began elsewhere
    assert _kernel.query_change(before + text) == len(before) + expected


# ---- files


def made_run(n_queries, n_lines, seed=1):
    draw = random.Random(seed)
    lengths = [draw.choice([1, 1, 5, n_lines // n_queries * 2]) for _ in range(n_queries)]
    lines = [
        b"q%d Q0 d%d %d %d.5 t\n" % (query, doc, rank, 1000 - rank // 2)
        for query, length in enumerate(lengths)
        for rank, doc in enumerate(draw.sample(range(10_000), length))
    ]
    index = JudgedIndex(
        tuple(b"q%d" % query for query in range(0, n_queries, 2)),
        tuple(tuple(b"d%d" % doc for doc in draw.sample(range(10_000), 500)) for _ in range(0, n_queries, 2)),
    )
    return b"".join(lines), index


def as_values(scan):
    """A scan to compare: its columns as lists."""
    columns = {
        name: value.tolist() if isinstance(value := getattr(scan, name), np.ndarray) else value
        for name in scan.__dataclass_fields__
        if name != "top"
    }
    return columns, [list(scan.top.of(query)) for query in range(len(scan.answered))]


@pytest.mark.parametrize("block_bytes", [16, 100, 1000])
def test_cuts_may_fall_anywhere(tmp_path, block_bytes):
    # blocks of 16 bytes: ranges of 64, some without a query's first line, or a whole line
    text, index = made_run(40, 400)
    path = tmp_path / "a.run"
    path.write_bytes(text)
    one = as_values(c_reader.scan_file(path, index, ScanOptions(), threads=1, block_bytes=block_bytes))
    for threads in (2, 5):
        several = c_reader.scan_file(path, index, ScanOptions(), threads=threads, block_bytes=block_bytes)
        assert as_values(several) == one
    assert as_values(c_reader.scan_file(io.BytesIO(text), index, ScanOptions(), block_bytes=block_bytes)) == one


@pytest.mark.parametrize("back", [b"q0 Q0 new 1 1 t\n", b"q1 Q0 new 1 1 t\n"], ids=["judged", "not judged"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_query_that_comes_back_in_the_last_range_is_put_together(tmp_path, back, threads):
    text, index = made_run(40, 400)
    path = tmp_path / "a.run"
    path.write_bytes(text + back)
    found = c_reader.scan_file(path, index, ScanOptions(), threads=threads, block_bytes=100)
    path.write_bytes(back + text)  # where q0 or q1 stand together, or nearly: the same results
    other = c_reader.scan_file(path, index, ScanOptions(), threads=1)
    assert found.n_returned.tolist() == other.n_returned.tolist()
    assert sorted(found.extra_queries) == sorted(other.extra_queries)
    assert found.n_lines == other.n_lines


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_problems_have_the_lines_of_the_whole_file(tmp_path, threads):
    text, index = made_run(40, 400)
    lines = text.split(b"\n")
    wrong = [7, len(lines) // 2, len(lines) - 3]
    for place in wrong:
        lines[place] = b"q0 Q0"
    path = tmp_path / "a.run"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RunFormatError) as caught:
        c_reader.scan_file(path, index, ScanOptions(), threads=threads, block_bytes=100)
    assert [problem.line for problem in caught.value.problems] == [place + 1 for place in wrong]


def test_a_file_that_became_shorter_is_refused(tmp_path, monkeypatch):
    text, index = made_run(40, 400)
    path = tmp_path / "a.run"
    path.write_bytes(text)
    ranges = c_reader._Reader._ranges

    def and_cut(reader, file, size):
        found = ranges(reader, file, size)
        with path.open("r+b") as stream:
            stream.truncate(size // 2)
        return found

    monkeypatch.setattr(c_reader._Reader, "_ranges", and_cut)
    with pytest.raises(RunFormatError, match="the file became shorter while it was read"):
        c_reader.scan_file(path, index, ScanOptions(), threads=2, block_bytes=100)


def test_what_stops_one_thread_stops_all(tmp_path, monkeypatch):
    text, index = made_run(40, 4000)
    path = tmp_path / "a.run"
    path.write_bytes(text)
    read = c_reader.os.preadv
    reads = []

    def interrupted(*arguments):
        reads.append(arguments[2])
        if len(reads) == 5:
            raise KeyboardInterrupt
        time.sleep(0.001)
        return read(*arguments)

    monkeypatch.setattr(c_reader.os, "preadv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        c_reader.scan_file(path, index, ScanOptions(), threads=2, block_bytes=100)
    assert len(reads) < len(text) / 100 / 2


def test_the_threads_are_as_many_as_processors_up_to_a_bound():
    assert 1 <= c_reader.default_threads() <= c_reader.MAX_THREADS
    assert c_reader.why_not() == ""


def test_blocks_are_those_of_the_digests_definition():
    blocks = BlockDigests(BLOCK_BYTES)
    assert blocks.room == BLOCK_BYTES
    assert blocks.digests() == ()


# ---- scans in other threads


def test_a_started_scan_has_the_result_of_a_scan(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(LINES)
    index = JudgedIndex(*INDEX)
    started, read = c_reader.start(path, index, ScanOptions()).result(), c_reader.scan_file(path, index, ScanOptions())
    assert (started.digest, started.n_lines, started.rank.tolist()) == (read.digest, 6, read.rank.tolist())


def test_a_started_scan_raises_its_error_when_its_result_is_needed(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(b"q1 Q0 a 1 high t\n")
    pending = c_reader.start(path, JudgedIndex(*INDEX), ScanOptions())
    with pytest.raises(RunFormatError, match="1: the score is not a finite number"):
        pending.result()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_started_scan_that_is_closed_reads_no_further(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(c_reader, "PIECE_BYTES", 1000)
    monkeypatch.setattr(c_reader, "BLOCK_BYTES", 10_000)
    path = tmp_path / "a.run"
    path.write_bytes(b"".join(b"q%d Q0 a 1 1 t\n" % query for query in range(500_000)))
    pending = c_reader.start(path, JudgedIndex((b"q499999",), ((b"a",),)), ScanOptions(), threads=threads)
    pending.close()
    try:
        scan = pending.result()
    except RunFormatError:
        return  # nothing was read
    assert not scan.answered.any()


# ---- runs in memory


def ranked(run, judged, ties="descending", single=False):
    """(query, rank, item, tie_first, tie_last) of every judged document, and (query, n_returned, n_tied)."""
    rows, answered, bad = _kernel.rank_mappings(run, tuple(judged), tuple(judged.values()), ties, single)
    assert bad == []
    as_rows = np.frombuffer(rows, dtype=np.int32).reshape(-1, 5)
    return [tuple(row) for row in as_rows.tolist()], np.frombuffer(answered, dtype=np.int32).reshape(-1, 3).tolist()


@given(
    st.dictionaries(
        st.text("ab\n\u00e9\ud800", max_size=3),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
        max_size=6,
    )
)
def test_what_the_kernel_saw_of_an_answer_is_what_a_digest_is_of(answer):
    seen = []
    bad = _kernel.rank_mappings({"q": answer}, ("q",), ((),), "descending", False, lambda *told: seen.append(told))[2]
    ((query, n, content),) = seen
    assert (query, n, bad) == (0, len(answer), [])
    is_plain = not any("\n" in doc_id or "\ud800" in doc_id for doc_id in answer)
    assert (content is not None) is is_plain
    if is_plain:
        assert hashlib.sha256(content).digest() == answer_digest(answer)
        assert content == "\n".join(answer).encode() + np.array([*answer.values()], "<f8").tobytes()


def test_an_error_of_what_is_told_of_answers_comes_out():
    with pytest.raises(ZeroDivisionError):
        _kernel.rank_mappings({"q": {"a": 1.0}}, ("q",), ((),), "descending", False, lambda *_: 1 / 0)


def id_bytes(doc_id):
    try:
        return doc_id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return doc_id.encode("utf-8", "surrogatepass")


def ranked_slowly(run, judged, ties="descending", single=False):
    rows, answered = [], []
    for query, (query_id, doc_ids) in enumerate(judged.items()):
        if query_id not in run:
            continue
        scores = {doc_id: float(np.float32(score) if single else score) for doc_id, score in run[query_id].items()}
        order = list(scores)
        if ties != "given":
            order.sort(key=id_bytes, reverse=ties == "descending")
        order.sort(key=lambda doc_id: -scores[doc_id])
        found = []
        for item, doc_id in enumerate(doc_ids):
            if doc_id in scores:
                same = [rank for rank, other in enumerate(order, 1) if scores[other] == scores[doc_id]]
                found.append((query, order.index(doc_id) + 1, item, same[0], same[-1]))
        rows += sorted(found)
        answered.append([query, len(order), len(order) - len(set(scores.values()))])
    return rows, answered


DOCS = st.one_of(
    st.integers(0, 30).map(lambda n: f"d{n}"),
    st.sampled_from(["", "é", "日本", "😀", "\udcff", "\ud800", "\udcc3\udca9", "a\0b"]),
)
SCORES = st.one_of(
    st.integers(-3, 3),
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([0.0, -0.0, 1.0, 1.00000001, 5e-324, -1e308, 2**70, np.float64(1), np.float32(2), np.int64(3), Fraction(1, 2)]),
)  # fmt: skip


@given(
    run=st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.dictionaries(DOCS, SCORES, max_size=40)),
    judged=st.dictionaries(st.sampled_from(["q1", "q2", "q4"]), st.lists(DOCS, unique=True, max_size=8).map(tuple)),
    ties=st.sampled_from(["descending", "ascending", "given"]),
    single=st.booleans(),
)
def test_mappings_are_ranked_as_a_sort_would(run, judged, ties, single):
    if single:
        run = {q: {d: s for d, s in docs.items() if abs(float(s)) < 3e38} for q, docs in run.items()}
    assert ranked(run, judged, ties, single) == ranked_slowly(run, judged, ties, single)


@pytest.mark.parametrize("n", [63, 64, 65, 1000])
@pytest.mark.parametrize("ties", ["descending", "ascending", "given"])
def test_mappings_of_any_length_are_ranked_as_a_sort_would(n, ties):
    draw = random.Random(n)
    run = {"q": {f"d{doc}": draw.randrange(n // 3) - n / 6 for doc in draw.sample(range(10 * n), n)}}
    judged = {"q": tuple(draw.sample(list(run["q"]), n // 2))}
    assert ranked(run, judged, ties) == ranked_slowly(run, judged, ties)


def test_a_tie_of_everything_is_ranked_in_one_sort():
    n = 50_000
    run = {"q": {f"d{doc}": 1.0 for doc in range(n)}}
    order = sorted(run["q"], reverse=True)
    rows, answered = ranked(run, {"q": tuple(order)})
    assert rows == [(0, place + 1, place, 1, n) for place in range(n)]
    assert answered == [[0, n, n - 1]]


@pytest.mark.parametrize(
    "score", [math.nan, math.inf, -math.inf, None, "1", b"1", True, np.bool_(True), 10**400, 1j, [], np.nan]
)
def test_what_is_no_finite_number_is_named_with_its_place(score):
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0, "b": score, "c": 2.0}}
    bad = _kernel.rank_mappings(run, ("q1", "q2"), (("a",), ("a",)), "descending", False)[2]
    assert len(bad) == 1
    assert bad[0][:2] == ("q2", "b")
    assert bad[0][2] is score


def test_an_id_that_is_no_text_is_named_with_its_place():
    bad = _kernel.rank_mappings({"q": {"a": 1, 7: 2, None: 3}}, ("q",), ((),), "descending", False)[2]
    assert bad == [("q", 7, 2), ("q", None, 3)]


def test_the_first_twenty_that_are_no_scores_are_named():
    run = {f"q{n}": {f"d{m}": math.nan for m in range(7)} for n in range(9)}
    bad = _kernel.rank_mappings(run, tuple(run), ((),) * 9, "descending", False)[2]
    assert [entry[:2] for entry in bad] == [(f"q{n // 7}", f"d{n % 7}") for n in range(20)]


def test_texts_and_numbers_of_other_types_are_taken():
    class Id(str):
        __slots__ = ()

        def __eq__(self, other):
            raise AssertionError("nobody's code runs while a dict is read")

        __hash__ = str.__hash__

    run = {"q": {Id("a"): np.float32(1.5), np.str_("b"): Fraction(7, 2), "c": 2}}
    assert ranked(run, {"q": ("a", "b", "c")})[0] == [(0, 1, 1, 1, 1), (0, 2, 2, 2, 2), (0, 3, 0, 3, 3)]


def test_a_number_whose_code_changes_the_mapping_does_no_harm():
    class Sly:
        def __float__(self):
            run["q"].clear()
            run["q"].update({f"x{n}": 1.0 for n in range(1000)})
            return 2.5

    run = {"q": {"a": 1.0, "b": Sly(), "c": 3.0}}
    assert ranked(run, {"q": ("a", "b", "c", "x1")})[0] == [(0, 1, 2, 1, 1), (0, 2, 1, 2, 2), (0, 3, 0, 3, 3)]


def test_an_error_of_a_numbers_code_is_passed_on_unless_it_says_no_number():
    class Broken:
        def __init__(self, error):
            self.error = error

        def __float__(self):
            raise self.error

    with pytest.raises(ZeroDivisionError):
        ranked({"q": {"a": Broken(ZeroDivisionError())}}, {"q": ()})
    bad = _kernel.rank_mappings({"q": {"a": Broken(ValueError())}}, ("q",), ((),), "descending", False)[2]
    assert bad[0][:2] == ("q", "a")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([], (), (), "descending", False), TypeError),
        (({}, [], (), "descending", False), TypeError),
        (({}, ("q",), (), "descending", False), ValueError),
        (({}, ("q",), ([],), "descending", False), TypeError),
        (({}, ([],), ((),), "descending", False), TypeError),
        (({"q": [1.0]}, ("q",), ((),), "descending", False), TypeError),
        (({"q": {"a": 1.0}}, ("q",), ((b"a",),), "descending", False), TypeError),
        (({}, (), (), "random", False), ValueError),
    ],
)
def test_what_is_no_run_in_memory_is_refused(arguments, error):
    with pytest.raises(error):
        _kernel.rank_mappings(*arguments)


def test_the_mapping_holds_no_more_references_than_before():
    run = {"q": {f"d{n}": float(n % 3) for n in range(100)} | {"\udcff": 1.0, "é": np.float32(1)}}
    judged = {"q": tuple(run["q"])}
    counts = [sys.getrefcount(key) for key in run["q"]]
    for _ in range(50):
        ranked(run, judged)
    assert [sys.getrefcount(key) for key in run["q"]] == counts


def test_nothing_is_left_of_a_scan():
    def rss():
        return int(Path("/proc/self/statm").read_text().split()[1])

    text = LINES + b"\n" + b"".join(b"z%d Q0 a 1 1 t\n" % n for n in range(2000))
    for _ in range(200):
        scanned(text)
    before = rss()
    for _ in range(2000):
        scanned(text)
    assert rss() - before < 2000  # pages of 4 kB: a scan is about 100 kB, and 2000 of them would be 200 MB
